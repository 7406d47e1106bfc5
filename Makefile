# Build, test and run amends. `make` alone lists what there is.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
ARGS ?=
HOURS ?= 8
FUZZTIME ?= 20s
STATICCHECK_VERSION := v0.8.2
STATICCHECK := bin/tools/staticcheck-$(STATICCHECK_VERSION)
COUNT := $(GO) run ./internal/testcount

# Packages whose tests need no service: the vocabulary, the decisions, and the rules about the tree itself.
UNIT := ./internal/invariant ./internal/usage ./internal/ledger ./internal/wire ./internal/manifest ./internal/journal ./internal/authority \
	./internal/fold ./internal/diff ./internal/engine ./internal/view ./internal/oracle ./internal/workload \
	./internal/store/memory ./internal/lease ./internal/absent ./internal/tidy ./internal/testcount ./internal/mutate

# run-tests NAME, FLAGS AND PACKAGES: events under artifacts/, a line a package, counts at the end. The packages run two at a time
# at most: each may start a server of its own.
define run-tests
	@mkdir -p artifacts
	@$(GO) test -json -p 2 -timeout 40m $(2) | $(COUNT) -o artifacts/$(1).json
endef

.PHONY: help
help: ## this list
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z%-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

.PHONY: build
build: ## bin/amends and bin/amendsctl
	@mkdir -p bin
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -ldflags '-s -w' -o bin/ ./cmd/amends ./cmd/amendsctl # go stamps git's revision in

.PHONY: demo
demo: build ## the whole story on an embedded stack; ARGS="--once", ARGS="retail --once", …
	@bin/amends demo $(ARGS)

.PHONY: test
test: ## every test; sets up its own services; AMENDS_REQUIRE=all,data makes an absence a failure
	$(call run-tests,test,./...)

.PHONY: check
check: format vet staticcheck unit ## format, vet, staticcheck, rules of the tree, unit tests; no services

.PHONY: format
format: # every Go file as gofmt writes it
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet:
	@$(GO) vet ./...

.PHONY: staticcheck
staticcheck: $(STATICCHECK)
	@$(STATICCHECK) ./...

$(STATICCHECK):
	@mkdir -p bin/tools
	@GOBIN=$(CURDIR)/bin/tools $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	@mv bin/tools/staticcheck $@

.PHONY: unit
unit: ## tests that need no service, with a tenth of the random histories: under a minute
	$(call run-tests,unit,-short $(UNIT))

.PHONY: race
race: race-unit race-services ## every test under the race detector, with smaller numbers: a tenth of the histories, the rest as with -short

.PHONY: race-unit
race-unit: # those that need no service
	$(call run-tests,race-unit,-race $(UNIT))

.PHONY: race-services
race-services: # the rest
	$(call run-tests,race-services,-race -short $$($(GO) list ./... | grep -vxFf <($(GO) list $(UNIT))))

.PHONY: smoke
smoke: build ## the demo's story to its end, on a stack of its own
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; XDG_DATA_HOME="$$dir" bin/amends demo --once

.PHONY: test-postgres
test-postgres: ## the stores on a real PostgreSQL
	$(call run-tests,test-postgres,./internal/store/... ./internal/pgtest)

.PHONY: test-worker
test-worker: ## the worker, with the broker's client and the engine
	$(call run-tests,test-worker,./internal/worker ./internal/engine ./internal/broker)

.PHONY: test-delivery
test-delivery: ## relay, view and leases
	$(call run-tests,test-delivery,./internal/delivery ./internal/lease ./internal/view)

.PHONY: test-verify
test-verify: ## verification and its oracle
	$(call run-tests,test-verify,./internal/verify ./internal/oracle)

.PHONY: robust
robust: robust-sim robust-wire robust-bubble robust-drills ## every fault at full size, each figure printed with its count

.PHONY: robust-sim
robust-sim: build # a million simulated schedules, ten thousand of each fault, and the exhaustive models of the fences
	@bin/amends sim -schedules 1000000 -floor 10000 -distinct 990000
	@AMENDS_SIM_SCHEDULES=100000 $(GO) test -count=1 -timeout 30m -v ./internal/sim -run Exhaustively | grep -E 'figure:|---|FAIL|ok|_test.go'

.PHONY: robust-wire
robust-wire: # every fault on every statement of every type of transaction on a real PostgreSQL, the migration's too
	@AMENDS_REQUIRE=postgresql AMENDS_T3_FULL=1 $(GO) test -count=1 -timeout 30m -v ./internal/faultwire | grep -E 'figure:|---|FAIL|ok|_test.go'

.PHONY: robust-bubble
robust-bubble: # ten thousand schedules of the real Kafka client in virtual time, a thousand of each trouble
	@AMENDS_BUBBLE_SCHEDULES=10000 $(GO) test -count=1 -timeout 60m -v ./internal/bubble -run 'RealClient|Regressions' | grep -E 'figure:|---|FAIL|ok|bubble_test'

.PHONY: robust-drills
robust-drills: # real processes: 100 kill -9 cycles, 20 zombies; AMENDS_DRILL_… and PARALLEL change the sizes
	@scripts/drills

.PHONY: soak
soak: ## the drills over and over for HOURS (8), until one fails; AMENDS_DRILL_… and PARALLEL change the sizes
	@scripts/soak $(HOURS)

.PHONY: mutate
mutate: ## each named guard taken out in a copy: its test must fail; ARGS="-smoke", ARGS="-only RE"
	@$(GO) run ./internal/mutate $(ARGS)

.PHONY: evidence
evidence: ## every test, the versions of everything beside its events, and its figures, under artifacts/
	@mkdir -p artifacts
	@scripts/versions > artifacts/versions-test.txt
	@$(MAKE) --no-print-directory test || { scripts/figures artifacts/test.json > artifacts/figures-test.txt; exit 1; }
	@scripts/figures artifacts/test.json > artifacts/figures-test.txt

evidence-%: ## test-% with the versions of everything beside its events, under artifacts/
	@mkdir -p artifacts
	@scripts/versions > artifacts/versions-$*.txt
	@$(MAKE) --no-print-directory test-$*

.PHONY: up
up: ## Redpanda and PostgreSQL in containers, or Apache Kafka and PostgreSQL as processes; same ports and credentials
	@mkdir -p bin
	@$(GO) build -o bin/amends-devstack ./cmd/amends-devstack
	@if scripts/containers; then docker compose up --detach --wait; else bin/amends-devstack up; fi

.PHONY: down
down: ## stop what `make up` started; the data stays
	@mkdir -p bin
	@$(GO) build -o bin/amends-devstack ./cmd/amends-devstack
	@if scripts/containers; then docker compose down; fi
	@bin/amends-devstack down

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (20s)
	@scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: build ## the quick benchmark beside the obvious designs; ARGS are its flags
	@bin/amends bench -quick $(ARGS)

.PHONY: man
man: build ## the manual pages of both programs under artifacts/man
	@bin/amends man -dir artifacts/man
	@bin/amendsctl man -dir artifacts/man

.PHONY: clean
clean: ## remove what was built; data of services stays
	rm -rf bin artifacts
