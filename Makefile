# Everything here needs Go, gcc (for the race detector), make and git.
# scripts/setup installs the rest.

# The version is in the file VERSION. Between releases, builds show the commit too.
COMMIT   = $(shell git describe --always --exclude '*' --abbrev=12 --dirty=.modified 2>/dev/null)
FUZZTIME = 1m

.PHONY: help run build check lint test test-race test-plain test-release fuzz soak dist bench bench-quick bench-growth bench-filters interop rules setup

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: build ## build and start the server, on animalstore.db in this directory
	bin/animalstore serve

# The commit is stamped here; Go's own VCS stamp would only make the build depend on
# who owns the checkout.
build: ## build a static binary, bin/animalstore
	CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.commit=$(COMMIT)" -o bin/animalstore ./cmd/animalstore

dist: ## build archives, packages and images of a release, in dist/
	go -C tools run ./dist

check: lint test test-release ## lint, then test: what every change must pass

lint: ## run gofmt, go vet, staticcheck, go mod tidy, and shellcheck if installed
	@files=$$(gofmt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	go -C tools vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go mod tidy -diff
	go -C tools mod tidy -diff
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run scripts/* interop/*/run packaging/linux/animalstore-admin packaging/linux/p*; fi

# The two halves run at the same time, and test-race four packages at once, because many
# tests wait more than they compute. -count=1, because some tests run the go command or
# the built binary, and the test cache doesn't see what those read.
test: setup ## run the tests, with the race detector where it can find something
	@$(MAKE) --no-print-directory -j2 test-race test-plain

# The packages that only test-plain runs. e2e and cmd/animalstore run the program as
# it is released, in processes of their own, so the race detector would only watch the
# tests; the others have one goroutine.
PLAIN = . ./e2e ./cmd/animalstore ./openapi ./client/webhook $(addprefix ./internal/,\
	buildinfo bulk dbadmin diagnose keyadmin metrics pages remote sample settings strictjson tables)

# Libraries that do most of the work while tests run, and the code that is tested.
INLINED = std animalstore/... modernc.org/... zombiezen.com/...

# On a fresh machine compiling takes as long as the tests. Without information for
# debuggers, without inlining in other libraries, and with a compiler that collects garbage
# only if it needs much memory, it takes much less. lint runs go vet. Tests that run
# the go command inherit this.
test-race test-plain test-release: export GOFLAGS := $(GOFLAGS) -vet=off '-gcflags=all=-dwarf=false -l' \
	$(INLINED:%=-gcflags=%=-dwarf=false) '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'

# Some libraries aren't instrumented. SQLite, which is translated from C, would be many
# times slower, and the race detector would watch only SQLite itself. The others check
# documents and histories for the tests. What calls them is instrumented.
UNWATCHED = github.com/getkin/... github.com/santhosh-tekuri/... github.com/anishathalye/...

test-race:
	@pkgs=$$(go list ./...) && plain=$$(go list $(PLAIN) ./bench) || exit 1; \
	ANIMALSTORE_API_PASSES=sqlite CGO_ENABLED=1 \
	go test -race '-gcflags=modernc.org/...=-race=false -dwarf=false' $(UNWATCHED:%='-gcflags=%=-race=false -dwarf=false -l') \
		-p 4 -count=1 -timeout 15m $$(echo "$$pkgs" | grep -vxF "$$plain")

# These are the flags that e2e builds the binary with, so that each package is
# compiled once, not again for the tests. internal/api repeats its tests here on
# PostgreSQL; on SQLite they run with the race detector in test-race.
test-plain test-release: export CGO_ENABLED = 0
test-plain:
	ANIMALSTORE_API_PASSES=postgres go test -trimpath -count=1 -timeout 15m $(PLAIN) ./internal/api

# Apart from test, because a browser and what builds releases take long. So do some loads
# with kills and outages, of which test has others; the tests of bench, and of the API
# without the fast path; tests of tests, which read broken documents; and what the race
# detector would only slow down in internal/ratelimit and internal/db/sqlite: tests of one
# goroutine with many requests, the contract of commands beside a server, and the test of
# memory, which it multiplies.
test-release: setup ## build and install a release, follow the documents, look at the pages
	ANIMALSTORE_SOAK=1 go test -trimpath -count=1 -timeout 15m ./e2e \
		-run '^Test(BrokenDocumentsGoRed|Browser|Console|Documents|FirstRunFromSource|Image|NoResponseBeforeTheDisk|Package.*|Release|Reproducible|RPM.*|WrongCommandsGoRed)$$'
	ANIMALSTORE_RELEASE=1 go test -trimpath -count=1 -timeout 15m ./e2e \
		-run '^Test(ChangesOfBusyKeys|ClusterRollingRestart|CountsSurviveKill|EventsCopy|FrozenPrimary|MoveKilled|RedisOutages|StopLosesNoRequest|WebhooksAreIsolated|WebhooksOutlastKills)$$'
	ANIMALSTORE_SOAK=1 go test -trimpath -count=1 -run '^Test(BreakingChanges|Checks)$$' ./openapi
	ANIMALSTORE_API_PASSES=nethttp go test -trimpath -count=1 ./bench ./internal/api
	@out=$$(go test -trimpath -count=1 -v ./internal/ratelimit ./internal/db/sqlite \
		-run '^Test(AMillionKeysFitInto200MiB|Contract|Memory|PetCacheHoldsWhatFits|PetCacheIsBounded|Redis|RedisThatForgets)$$') && \
	echo "$$out" | grep '^--- PASS' || { echo "$$out"; exit 1; }

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
	ANIMALSTORE_SOAK=1 go test -v -count=1 -timeout 150m ./e2e/ ./internal/... ./client/... ./cmd/...

# Node and npm run one of the peers, PostgreSQL and Redis our server on them. Node
# from nodejs.org includes npm and doesn't need the package npm.
bench: ## compare the server with its peers, in 20 minutes; writes bench/results
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

# CLIENTS="java python" runs some of them. Downloads stay in interop/.work.
interop: ## generate a client with each OpenAPI generator and try it; lint the document
	@scripts/setup java:default-jdk-headless javac:default-jdk-headless mvn:maven node:nodejs npm python3 python3.ensurepip:python3-venv
	go run ./interop $(CLIENTS)

setup:
	@scripts/setup
