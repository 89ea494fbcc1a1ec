# `make` lists the targets. Everything that is built for the work on the code
# goes to .tmp, everything for its use to bin.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.release=$(VERSION)

# What the tests run on, and how: make test PKG=./internal/store ARGS='-run Append -v'
PKG ?= ./...
ARGS ?=
# The packages where goroutines meet, for the race detector.
RACE ?= ./contextengine/... ./host/... ./internal/api/... ./internal/bus/... ./internal/devpg/... ./internal/engine/... ./internal/store/... ./internal/testdb/... ./internal/worker/... ./internal/hooks/... ./internal/access/... ./internal/audit/... ./internal/retrieval/...
FUZZTIME ?= 5000x
BUILDFLAGS ?= -trimpath
BENCHTIME ?= 1s

TOOLS := $(CURDIR)/.tmp/bin
GOLANGCI := $(TOOLS)/golangci-lint
SQLC := $(TOOLS)/sqlc
GOFUMPT := $(TOOLS)/gofumpt
GENERATED := internal/store/db docs/openapi.json docs/configuration.md plugins/openclaw/src/api.gen.ts plugins/openclaw/dist

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: need-go ## Build bin/engined, a static binary
	CGO_ENABLED=0 go build $(BUILDFLAGS) -ldflags '$(LDFLAGS)' -o bin/engined ./cmd/engined

.PHONY: plugin
plugin: ## Build the OpenClaw plugin: its client from the OpenAPI document, dist from src
	plugins/openclaw/scripts/build.sh

.PHONY: plugin-check
plugin-check: ## Test the OpenClaw plugin; fail when its client or dist is stale
	plugins/openclaw/scripts/build.sh check

.PHONY: e2e-openclaw
e2e-openclaw: build ## Test the plugin in real OpenClaw hosts, offline after the first time; ENGINED_E2E_SHORT=1 leaves the long ones out
	plugins/openclaw/scripts/e2e.sh

.PHONY: console-check
console-check: build need-postgres ## Click through the web console in a Chromium, where there is one; ARGS='-shots DIR' leaves pictures
	cd test/console && go vet ./... && go test -count=1 -timeout 15m $(ARGS)

.PHONY: test
test: need-go need-postgres ## Run all tests; PKG and ARGS narrow them
	go test -timeout 10m $(ARGS) $(PKG)

.PHONY: chaos
chaos: need-go need-postgres ## Keep a cluster under faults; ARGS='-cycles 200 -seed 7' is a long run
	go test ./test/chaos -run '^TestChaos$$' -count=1 -timeout 0 -v -args $(ARGS)

# The suites that also run with everything encrypted.
SEALED ?= ./internal/store/... ./internal/engine/... ./internal/worker/... ./internal/verify/... ./internal/rebuild/... ./internal/summarizers/... ./internal/replay/... ./contextengine/... ./test/model/...

.PHONY: test-encrypted
test-encrypted: need-go need-postgres ## Run the suites of what reads and writes sessions with all of them encrypted
	ENGINED_TEST_ENCRYPTION=1 go test -timeout 15m $(ARGS) $(SEALED)

.PHONY: rolling
rolling: need-go need-postgres ## Replace the version of PREV (a commit or tag) by this one under load
	ENGINED_ROLLING_PREV=$(PREV) go test ./test/faults -run '^TestRollingUpgrade$$' -count=1 -timeout 30m -v

.PHONY: test-race
test-race: need-go need-postgres need-cc ## Run the concurrent packages' tests under the race detector
	CGO_ENABLED=1 go test -race -timeout 15m $(ARGS) $(RACE)

.PHONY: lint
lint: need-go ## Run golangci-lint, built on first use; go vet alone where it cannot be built
	@if $(MAKE) $(GOLANGCI); then $(GOLANGCI) run ./...; \
	elif [ -n "$${CI:-}" ]; then echo 'lint: golangci-lint could not be built' >&2; exit 1; \
	else echo 'lint: golangci-lint could not be built (no network?): running go vet instead' >&2; go vet ./...; fi

.PHONY: fmt
fmt: need-go $(GOFUMPT) ## Format the Go code
	$(GOFUMPT) -l -w $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: generate
generate: need-go $(SQLC) build ## Write what is generated: queries, the OpenAPI document, the settings' table
	$(SQLC) generate
	go test ./internal/api -run OpenAPI -count=1 -update
	bin/engined config --markdown > .tmp/configuration.md
	mv .tmp/configuration.md docs/configuration.md
	@$(MAKE) plugin || echo 'generate: the plugin was not built; make plugin says why' >&2

.PHONY: generate-check
generate-check: generate ## Fail when what is generated is stale
	@stale=$$(git status --porcelain -- $(GENERATED)); if [ -n "$$stale" ]; then \
		echo "$$stale"; git --no-pager diff -- $(GENERATED) | head -100; \
		echo 'generated code is stale: run make generate and commit what it wrote' >&2; exit 1; fi

.PHONY: demo
demo: build need-postgres ## Show the whole cycle on a real transcript
	bin/engined demo

.PHONY: bench
bench: build need-postgres ## Compare HTTP ingest with pgbench at 1, 16 and 128 connections; ARGS pass options
	go run ./bench/append $(ARGS)

.PHONY: bench-quality
bench-quality: need-go need-postgres ## Measure what windows and searches know: ARGS='-locomo DIR -transcripts DIR -out docs/quality.md'
	go run ./bench/quality $(ARGS)

.PHONY: bench-compaction
bench-compaction: build need-postgres ## Measure the compaction of a session of a million tokens; ARGS pass options
	go run ./bench/compaction $(ARGS)

.PHONY: bench-go
bench-go: need-go need-postgres ## Run the Go benchmarks; PKG narrows them
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(ARGS) $(PKG)

.PHONY: fuzz
fuzz: need-go ## Run each fuzz test for FUZZTIME: inputs (5000x) or a time (30s)
	@git grep -h -o -n --untracked -E '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' >/dev/null || { echo 'fuzz: there are no fuzz tests' >&2; exit 1; }
	@git grep -o --untracked -E '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | while IFS=: read -r file func; do \
		name=$${func#func }; echo "fuzz $$(dirname $$file) $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "./$$(dirname $$file)" </dev/null; \
	done

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .tmp

# The tools have modules of their own, so that they add nothing to ours.

$(GOLANGCI): tools/lint/go.mod
	@echo 'building golangci-lint (once; a few minutes)'
	go build -C tools/lint -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(SQLC): tools/go.mod
	@echo 'building sqlc (once)'
	CGO_ENABLED=0 go build -C tools -o $@ github.com/sqlc-dev/sqlc/cmd/sqlc
	@touch $@

$(GOFUMPT): tools/go.mod
	CGO_ENABLED=0 go build -C tools -o $@ mvdan.cc/gofumpt
	@touch $@

# What must be there, or a sentence on how to get it.

.PHONY: need-go
need-go:
	@command -v go >/dev/null || { echo 'Go 1.26 or newer is needed' >&2; exit 1; }

.PHONY: need-cc
need-cc:
	@command -v "$$(go env CC)" >/dev/null || { echo 'the race detector needs a C compiler: install gcc or clang' >&2; exit 1; }

.PHONY: need-postgres
need-postgres:
	@if [ -n "$${DATABASE_URL:-}$${ENGINED_PG_BIN:-}" ] || command -v postgres >/dev/null || command -v npm >/dev/null \
		|| compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || compgen -G '/usr/pgsql-*/bin/postgres' >/dev/null \
		|| compgen -G '/usr/libexec/postgresql*/postgres' >/dev/null || compgen -G '/var/cache/engined/postgres/*/native/bin/postgres' >/dev/null \
		|| compgen -G '/opt/homebrew/opt/postgresql*/bin/postgres' >/dev/null || compgen -G '/usr/local/opt/postgresql*/bin/postgres' >/dev/null \
		|| compgen -G "$${HOME:-/}/Library/Caches/engined/postgres/*/native/bin/postgres" >/dev/null \
		|| compgen -G "$${XDG_CACHE_HOME:-$${HOME:-/}/.cache}/engined/postgres/*/native/bin/postgres" >/dev/null; then :; else \
		echo 'a Postgres server is needed, nothing has to be set up: install its binaries' >&2; \
		echo '  Debian, Ubuntu: apt-get install postgresql     Fedora: dnf install postgresql-server postgresql-contrib' >&2; \
		echo '  macOS: brew install postgresql@17              or npm, with which they are fetched' >&2; \
		echo 'or set ENGINED_PG_BIN to their directory, or DATABASE_URL to a running server' >&2; exit 1; fi
