# Everything here needs Go, gcc (for the race detector), make and git.
# scripts/setup installs the rest.

VERSION  = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME = 1m

.PHONY: help run build check lint test test-race test-plain fuzz soak bench bench-quick bench-growth bench-filters setup

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: ## start the server from source, on animalstore.db in this directory
	go run ./cmd/animalstore serve

# The version is stamped above; Go's own VCS stamp would only make the build
# depend on who owns the checkout.
build: ## build a static binary, bin/animalstore
	CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.version=$(VERSION)" -o bin/animalstore ./cmd/animalstore

check: lint test ## lint, then test: what every change must pass

lint: ## run gofmt, go vet, staticcheck, go mod tidy, and shellcheck if installed
	@files=$$(gofmt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go mod tidy -diff
	go -C tools mod tidy -diff
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run scripts/*; fi

# The two halves run at the same time, because tests in e2e wait more than they
# compute. -count=1, because some tests run the go command or the built binary, and
# the test cache doesn't see what those read. -vet=off, because lint runs go vet.
test: setup ## run every test, with the race detector except in e2e
	@$(MAKE) --no-print-directory -j2 test-race test-plain

test-race:
	@pkgs=$$(go list ./...) || exit 1; \
	CGO_ENABLED=1 go test -race -vet=off -count=1 -timeout 15m $$(echo "$$pkgs" | grep -v '/e2e$$')

# e2e tests the binary as it is released, in a process of its own, so the race
# detector would only watch the test clients. These are the flags that e2e builds the
# binary with, so that each package is compiled once, not again for the tests.
# The test of memory is here because the race detector multiplies memory.
test-plain: export CGO_ENABLED = 0
test-plain:
	go test -trimpath -vet=off -count=1 -timeout 15m ./e2e
	@out=$$(go test -trimpath -vet=off -count=1 -v -run 'TestAMillionKeysFitInto200MiB' ./internal/ratelimit) && \
	echo "$$out" | grep '^--- PASS' || { echo "$$out"; exit 1; }

fuzz: ## run each fuzz target for FUZZTIME (default 1m)
	@pkgs=$$(go list ./...) || exit 1; ran=0; \
	for pkg in $$pkgs; do \
		list=$$(go test -list '^Fuzz' "$$pkg") || { echo "$$list"; exit 1; }; \
		for target in $$(echo "$$list" | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; ran=1; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$pkg" || exit 1; \
		done; \
	done; \
	if [ $$ran = 0 ]; then echo "no fuzz target found"; exit 1; fi

soak: setup ## run the tests with large counts, for hours
	@scripts/setup mkfs.ext4:e2fsprogs mount:mount
	ANIMALSTORE_SOAK=1 go test -v -count=1 -timeout 150m ./e2e/ ./internal/... ./client/... ./cmd/...

# Node and npm run one of the peers, PostgreSQL and Redis our server on them. Node
# from nodejs.org includes npm and doesn't need the package npm.
bench: ## compare the server with its peers, in 15 minutes; writes bench/results
	@scripts/setup wrk node:nodejs npm redis-server psql:postgresql g++
	go run ./bench peers $(BENCHFLAGS)

bench-quick: ## compare the server with a bare net/http server, in 2 minutes
	@scripts/setup wrk
	go run ./bench quick $(BENCHFLAGS)

bench-growth: ## measure reads and startup with 5 million pets
	@scripts/setup wrk
	go run ./bench growth $(BENCHFLAGS)

bench-filters: ## measure a page of pets with every combination of filters, in a small and a large store
	go run ./bench filters $(BENCHFLAGS)

setup:
	@scripts/setup
