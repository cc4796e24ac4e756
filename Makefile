# foldhost. `make` builds; `make demo` shows; `make test` proves. Needs Go 1.26 and make, nothing else.

GO        ?= go
LINT      := -modfile=tools/lint.mod
FUZZTIME  ?= 10s
BENCHTIME ?= 300ms

.PHONY: all build demo test race lint bench fuzz cross tidy generate clean
all: build

build: ## bin/foldhost
	@mkdir -p bin
	$(GO) build -o bin/foldhost ./cmd/host

demo: build ## replay the sample session in its human form
	@bin/foldhost replay examples/sessions/dry-run.jsonl

test: ## every test once
	$(GO) test ./...

race: ## every test under the race detector
	$(GO) test -race ./...

lint: ## format, vet, staticcheck (built from tools/lint.mod, so that go.mod stays clean)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool $(LINT) staticcheck ./...

bench: ## the figures and ratios of docs/performance.md, one run
	$(GO) run ./tools/bench -benchtime $(BENCHTIME)

fuzz: ## every fuzz target for FUZZTIME
	$(GO) run ./tools/fuzz -time $(FUZZTIME)

cross: ## it compiles, tests included, where it is not run
	GOOS=windows GOARCH=amd64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...

tidy: ## go.mod and go.sum say what the code imports
	$(GO) mod tidy -diff

generate: ## code made from other files; needs protoc, which nothing else does
	$(GO) generate ./...

clean:
	rm -rf bin
