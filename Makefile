# foldhost. `make` builds; `make demo` shows; `make test` proves. Needs Go 1.26 and make, nothing else; the TypeScript client needs Node 20 and npm.

GO        ?= go
LINT      := -modfile=tools/lint.mod
FUZZTIME  ?= 10s
TORTURE_KILLS ?= 300
SOAK_ROUNDS ?= 1000
BENCHTIME ?= 300ms

PLUGINS   := todo imagelimits title tokenusage

# What npm ci writes last.
MODULES   := clients/typescript/node_modules/.package-lock.json

.PHONY: all build demo run test race lint bench fuzz cross tidy generate generate-check soak torture client client-test page openapi clean
all: build

build: ## bin/foldhost and the plugins that ship, in bin/plugins
	@mkdir -p bin/plugins
	$(GO) build -o bin/foldhost ./cmd/host
	$(GO) build -o bin/plugins/ $(PLUGINS:%=./plugins/%)

demo: build ## replay the sample session through real plugin processes, in its human form
	@bin/foldhost plugin list --config examples/foldhost.yaml
	@echo
	@bin/foldhost replay --config examples/foldhost.yaml examples/sessions/dry-run.jsonl

run: build ## serve this machine with the plugins that ship; the data lies in bin/data
	@bin/foldhost serve --config examples/foldhost.yaml --data bin/data

test: ## every test once
	$(GO) test ./...

# Those of RACE_SKIP take minutes under the detector, and one thing after another happens in them.
RACE_SKIP := Salvag|EachProblemIsFound|ThePowerFails|RottenBytes|OpeningDoesNotReadTheLog|ImportHoldsNoLog|HistoryIsBounded|TestCorpus|WhatWasSpooled|ShippedPluginsAsProcesses|BytesOfTheSame|TheSameBytes|AliasesCannot|OneLookCosts|MayNotBeWritten|MayNotGrow

race: ## every test under the race detector, in its short form, but for those that only run the binary, which is built without it
	$(GO) test -race -short -count=1 -skip '$(RACE_SKIP)' $$($(GO) list ./... | grep -v -e /internal/e2e -e /internal/torture)

lint: ## format, vet, staticcheck (built from tools/lint.mod, so that go.mod stays clean)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool $(LINT) staticcheck ./...

bench: ## the figures and ratios of docs/performance.md, one run, plugin processes included
	$(GO) run ./tools/bench -benchtime $(BENCHTIME)

fuzz: ## every fuzz target for FUZZTIME, a time or a number of inputs (3000x)
	$(GO) run ./tools/fuzz -time $(FUZZTIME)

cross: ## it compiles, tests included, where it is not run
	GOOS=windows GOARCH=amd64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...

tidy: ## go.mod and go.sum say what the code imports
	$(GO) mod tidy -diff

generate: ## code made from other files; needs protoc, which nothing else does
	$(GO) generate ./...

generate-check: ## the committed code is what its sources give; needs protoc
	pluginproto/generate.sh --check

soak: ## SOAK_ROUNDS rounds of crash and restart leak nothing
	FOLDHOST_SOAK_ROUNDS=$(SOAK_ROUNDS) $(GO) test -count=1 -run 'CrashAndRestart|CrashesAndRestarts' ./host ./host/launch

torture: ## kill a host TORTURE_KILLS times while it appends; nothing acknowledged is lost
	TORTURE_KILLS=$(TORTURE_KILLS) $(GO) test -count=1 -timeout 3h -v -run NothingAcknowledged ./internal/torture

client: $(MODULES) ## the TypeScript client, in clients/typescript/dist; needs Node 20 and npm, as does what follows
	cd clients/typescript && npm run build

$(MODULES): clients/typescript/package-lock.json
	cd clients/typescript && npm ci --no-audit --no-fund && touch node_modules/.package-lock.json

page: client ## examples/page, for the server of make run
	node examples/page/serve.mjs

client-test: build $(MODULES) ## its types, and its tests against real hosts, in Node and in Chromium
	cd clients/typescript && npm test

openapi: ## api/openapi.json is OpenAPI; that the server keeps to it is what the tests of api are about
	cd tools/openapi && npm ci --no-audit --no-fund >/dev/null && npm run --silent check

clean:
	rm -rf bin clients/typescript/dist clients/typescript/build clients/typescript/node_modules
