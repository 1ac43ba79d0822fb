# Everything here needs Go and make. scripts/setup installs the rest, as root with apt-get.

# The version is in the file VERSION. Between releases, builds show the commit too.
COMMIT   = $(shell git describe --always --exclude '*' --abbrev=12 --dirty=.modified 2>/dev/null)
FUZZTIME = 1m

.PHONY: help run build check lint test test-race test-plain fuzz soak dist bench bench-quick bench-growth profile interop rules setup need-go

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: build ## build and start the server, on animalstore.db in this directory
	bin/animalstore serve

# The commit is stamped here; Go's own VCS stamp would only make the build depend on
# who owns the checkout. Releases are guided by packaging/profile, which is about a tenth
# faster, but a fresh build would take two minutes more.
build: need-go ## build a static binary, bin/animalstore
	CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.commit=$(COMMIT)" -o bin/animalstore ./cmd/animalstore

dist: setup ## build archives, packages and images of a release, in dist/
	@scripts/setup
	go -C tools run ./dist

check: lint ## lint, then run all tests: what every change must pass
	@$(MAKE) --no-print-directory test SHORT=

lint: ## run gofmt, go vet, staticcheck, go mod tidy, and shellcheck if installed
	@files=$$(gofmt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	go -C tools vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go mod tidy -diff
	go -C tools mod tidy -diff
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run scripts/* clients/typescript/build interop/*/run packaging/linux/animalstore-admin packaging/linux/p*; fi

# SHORT= runs the slow tests too. The two halves run at the same time, and test-race four
# packages at once, because many tests wait more than they compute. -count=1, because some
# tests run the go command or the built binary, and the test cache doesn't see what those
# read.
SHORT = -short
test: setup ## run the tests but the slow ones, or with SHORT= all of them
	@$(MAKE) --no-print-directory -j2 test-race test-plain

# On a fresh machine compiling takes as long as the tests. It takes much less without
# information for debuggers and with a compiler that collects garbage only if it needs
# much memory. lint runs go vet. Tests that run the go command inherit this. lint and
# test-plain have the same flags as the program that e2e builds, so that each package is
# compiled once for all three.
QUICKLY = -vet=off -gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
test-race: export GOFLAGS := $(GOFLAGS) $(QUICKLY)
lint test-plain: export GOFLAGS := $(GOFLAGS) $(QUICKLY) -trimpath
lint test-plain: export CGO_ENABLED := 0

# SQLite isn't instrumented: it is translated from C, would be many times slower, and the
# race detector would find only races in SQLite itself. Nor are the libraries that render
# guides and check documents and histories. -l keeps code of sync.Map out of them: without
# it, their copy was used elsewhere too, and hid from the race detector who waits for whom.
UNWATCHED = github.com/getkin/... github.com/santhosh-tekuri/... github.com/anishathalye/... github.com/yuin/...

# Nor are the decoders of pictures, which would be ten times slower. They have one goroutine,
# and so has internal/photo, whose tests run without the race detector.
PICTURES = image/... compress/... golang.org/x/image/... animalstore/internal/photo/...

# The packages run in this order. internal/ratelimit is first because it waits most: at the
# end, it would run alone for minutes.
test-race:
	CGO_ENABLED=1 go test -race '-gcflags=modernc.org/...=-race=false -dwarf=false' $(UNWATCHED:%='-gcflags=%=-race=false -dwarf=false -l') $(PICTURES:%='-gcflags=%=-race=false -dwarf=false') \
		-p 4 $(SHORT) -count=1 -timeout 30m $$(go list ./internal/ratelimit ./internal/... ./client/... | grep -v internal/photo)

# All other packages run the program as it is released, in other processes, or have one
# goroutine.
test-plain:
	@pkgs=$$(go list ./... | grep -Ev '^animalstore/(internal|client)(/|$$)') && \
	go test $(SHORT) -count=1 -timeout 30m $$pkgs ./internal/photo/...

rules: ## check and test the alert rules for Prometheus
	@scripts/setup promtool:prometheus
	promtool check rules packaging/prometheus/animalstore.rules.yml
	promtool test rules packaging/prometheus/animalstore.rules.test.yml

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
	ANIMALSTORE_SOAK=1 go test -v -count=1 -timeout 150m ./...

# Node and npm run one of the peers, PostgreSQL and Redis our server on them. Node
# from nodejs.org includes npm and doesn't need the package npm.
bench: ## compare the server with its peers, in 20 minutes; writes bench/results
	@scripts/setup wrk node:nodejs npm redis-server psql:postgresql g++
	go run ./bench peers $(BENCHFLAGS)

bench-quick: ## compare the server with a bare net/http server, or a commit, in 4 minutes
	@scripts/setup wrk redis-server psql:postgresql
	go run ./bench quick $(BENCHFLAGS)

bench-growth: ## measure reads with 5 million pets
	@scripts/setup wrk psql:postgresql
	go run ./bench growth $(BENCHFLAGS)

profile: ## collect packaging/profile anew, which releases are compiled with
	@scripts/setup wrk
	go run ./bench profile $(BENCHFLAGS)

# CLIENTS="java python" runs some of them. Downloads stay in interop/.work.
interop: ## generate a client with each OpenAPI generator and try it; lint the document
	@scripts/setup java:default-jdk-headless javac:default-jdk-headless mvn:maven node:nodejs npm python3 python3.ensurepip:python3-venv
	go run ./interop $(CLIENTS)

setup: need-go
	@scripts/setup

need-go:
	@command -v go >/dev/null || { echo "please install Go 1.26 or newer: https://go.dev/dl" >&2; exit 1; }
