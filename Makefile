# Everything here needs Go and make. Targets that need more install it first with
# scripts/setup, as root with apt-get.

# The version is in the file VERSION. Between releases, builds show the commit too.
COMMIT   = $(shell git describe --always --exclude '*' --abbrev=12 --dirty=.modified 2>/dev/null)
FUZZTIME = 1m

# Everything is compiled with these flags, also what tests build (testenv.BuildFlags), so
# SQLite, which takes a minute, is compiled once. The race detector needs C, and compiles
# everything once more. The commit is stamped below; Go's own VCS stamp would only make the
# build depend on who owns the checkout. The compiler collects its garbage less often, which
# saves it a seventh of its CPU time for a third more memory.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath -buildvcs=false '-toolexec=env GOGC=400'

# The packages whose goroutines share memory.
RACE = $(addprefix ./internal/,api assistant certs console db/sqlite db/transfer events fair http1 \
	keys metrics ratelimit server webhook) ./client

# Tests wait as much as they compute, so twice as many packages are tested at once as there
# are processors. Vet is in make lint.
GOTEST = go test -vet=off -p $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

# SQLite, which is translated from C, isn't instrumented: it would be many times slower, and
# show only races in SQLite itself. Nor are the builders of Redis's commands, half a minute
# for the compiler.
RACETEST = CGO_ENABLED=1 $(GOTEST) -race -gcflags=modernc.org/...=-race=false \
	-gcflags=github.com/redis/rueidis/internal/cmds='-race=false -l'

# Where scripts/setup puts a newer Node, if the system has an old one.
export PATH := $(CURDIR)/.tools/node_modules/.bin:$(PATH)

.PHONY: help run build dist test check check-slow check-race lint fuzz soak bench bench-quick bench-growth bench-ceiling profile interop need-go

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: build ## build and start the server, on animalstore.db in this directory
	bin/animalstore serve

# Releases are guided by packaging/profile, which saves a tenth of a random page's CPU time,
# but a fresh build would take two minutes more.
build: need-go ## build a static binary, bin/animalstore
	go build -ldflags "-s -w -X main.commit=$(COMMIT)" -o bin/animalstore ./cmd/animalstore

dist: need-go ## build archives, packages and images of a release, in dist/
	@scripts/setup dist
	go -C tools run ./dist $(DISTFLAGS)

test: need-go ## run the quick tests, on SQLite
	@scripts/setup test
	$(GOTEST) -skip _Slow ./...

# No test of make test runs again, but under the race detector. What is compiled once more for
# that is compiled while the slow tests wait for what they started.
check: lint ## everything else a change must pass: race detector, PostgreSQL, Redis, browser, packages, documents, clients
	@scripts/setup check
	@$(MAKE) --no-print-directory -j2 check-slow check-race

check-slow:
	$(GOTEST) -run _Slow -timeout 30m ./...

check-race:
	$(RACETEST) -skip _Slow -timeout 30m $(RACE)

# go tool would compile the standard library once more, with other flags.
lint: need-go ## run gofmt, go vet, staticcheck, go mod tidy, and shellcheck if installed
	@files=$$(gofmt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	GOGC=400 go run -modfile=tools/go.mod honnef.co/go/tools/cmd/staticcheck ./...
	go mod tidy -diff
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run scripts/* clients/typescript/build interop/*/run packaging/linux/animalstore-admin packaging/linux/p*; fi

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

soak: need-go ## run kills, power cuts, failovers and large stores in numbers, for hours
	@scripts/setup soak
	go -C tools vet ./...
	go -C tools mod tidy -diff
	ANIMALSTORE_SOAK=1 go test -v -count=1 -timeout 180m ./...
	$(RACETEST) -count=1 -run _Slow ./internal/db/postgres ./internal/ratelimit

bench: need-go ## compare the server with its peers, in 20 minutes; writes bench/results
	@scripts/setup bench
	go run ./bench peers $(BENCHFLAGS)

bench-quick: need-go ## compare the server with a bare net/http server, or a commit, in 4 minutes
	@scripts/setup bench
	go run ./bench quick $(BENCHFLAGS)

bench-growth: need-go ## measure reads with 5 million pets
	@scripts/setup bench
	go run ./bench growth $(BENCHFLAGS)

bench-ceiling: need-go ## measure several instances on one PostgreSQL, in 5 minutes
	@scripts/setup bench
	go run ./bench ceiling $(BENCHFLAGS)

profile: ## collect packaging/profile again, which releases are compiled with
	@scripts/setup bench
	go run ./bench profile $(BENCHFLAGS)

# CLIENTS="java python" runs some of them. Downloads stay in interop/.work.
interop: ## generate a client with each OpenAPI generator and try it; lint the document
	@scripts/setup interop
	go run ./interop $(CLIENTS)

need-go:
	@command -v go >/dev/null || { echo "please install Go 1.26 or newer: https://go.dev/dl" >&2; exit 1; }
