# Everything here needs Go, gcc (for the race detector), make and git.
# scripts/setup sees to the rest.

VERSION  = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME = 1m

.PHONY: help run build check lint test fuzz soak bench bench-quick bench-growth bench-filters setup

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: ## start the server from source, on animalstore.db in this directory
	go run ./cmd/animalstore serve

# The version is stamped above; Go's own VCS stamp would only make the build
# depend on who owns the checkout.
build: ## build a static binary, bin/animalstore
	CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.version=$(VERSION)" -o bin/animalstore ./cmd/animalstore

check: lint test ## lint, then test: what a change has to pass

lint: ## gofmt, go vet, staticcheck, tidy modules, shellcheck where installed
	@files=$$(gofmt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go mod tidy -diff
	go -C tools mod tidy -diff
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run scripts/*; fi

# -count=1, because some tests run the go command or the built binary, and the
# test cache does not see what those read.
test: setup ## run every test with the race detector
	CGO_ENABLED=1 go test -race -count=1 -timeout 15m ./...
	@# The race detector multiplies memory, so this one skips with it.
	go test -count=1 -run 'TestAMillionKeysFitInto200MiB' ./internal/ratelimit

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

soak: setup ## run the tests with their large counts, for hours
	@scripts/setup mkfs.ext4:e2fsprogs mount:mount
	ANIMALSTORE_SOAK=1 go test -v -count=1 -timeout 150m -run . ./e2e/ ./internal/... ./client/... ./cmd/...

# Node and npm are for one of the peers, PostgreSQL and Redis for ours on them. Node
# that comes with npm, as from nodejs.org, does not need the package npm.
bench: ## measure the server beside its peers, in a quarter of an hour; writes bench/results
	@scripts/setup wrk node:nodejs npm redis-server psql:postgresql g++
	go run ./bench peers $(BENCHFLAGS)

bench-quick: ## measure the server beside a bare one, in two minutes
	@scripts/setup wrk
	go run ./bench quick $(BENCHFLAGS)

bench-growth: ## measure reads and starts with 5 million pets
	@scripts/setup wrk
	go run ./bench growth $(BENCHFLAGS)

bench-filters: ## measure a page under every combination of filters, in a small and a large store
	go run ./bench filters $(BENCHFLAGS)

setup:
	@scripts/setup
