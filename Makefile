# Every recipe sets up what it needs: `make demo` and `make test` are enough on a fresh machine.
.DEFAULT_GOAL := help
.PHONY: help install demo dev test lint types check format bench bench-retrieval bench-speed bench-cutover operator-walk screenshots fuzz chaos load lock clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

install: $(INSTALLED) ## Make .venv with everything, from the lock file

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Memory Plane needs Python 3.11 or newer; set PYTHON=python3.12 or the like."; exit 1; }
ifneq ($(UV),)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
endif
	@touch $@

demo: $(INSTALLED) ## Start the whole stack, import real text, search it, kill the worker, lose nothing
	$(BIN)/python scripts/demo.py

dev: $(INSTALLED) ## Run the whole stack until Ctrl-C
	$(BIN)/memory dev

test: lint types $(INSTALLED) ## Lint, types, tests (what CI runs)
	$(BIN)/python -m pytest

lint: $(INSTALLED) ## ruff and the import arrows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(INSTALLED) ## mypy --strict
	$(BIN)/mypy

format: $(INSTALLED) ## Format and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED) ## The add path and import of 10,000 documents, beside their floor
	$(BIN)/python -m bench.add
	$(BIN)/python -m bench.importing

PEERS := .venv-bench/.installed

$(PEERS): bench/peers/requirements.txt
ifneq ($(UV),)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-bench
	$(UV) pip install --quiet --python .venv-bench/bin/python -r bench/peers/requirements.txt
else
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet -r bench/peers/requirements.txt
endif
	@touch $@

bench-retrieval: $(INSTALLED) $(PEERS) ## Retrieval quality on the judged sets (DATA=../shared/data)
	$(BIN)/python -m bench.retrieval

bench-speed: $(INSTALLED) $(PEERS) ## Search latency, throughput and recall beside the floor
	$(BIN)/python -m bench.speed

FUZZ := .venv/.fuzz
FUZZ_MINUTES := $(if $(filter command environment,$(origin MINUTES)),$(MINUTES),3)

$(FUZZ)/.installed: $(INSTALLED)
ifneq ($(UV),)
	$(UV) pip install --quiet --python $(BIN)/python --target $(FUZZ) atheris==3.0.0
else
	$(BIN)/python -m pip install --quiet --target $(FUZZ) atheris==3.0.0
endif
	@mkdir -p $(FUZZ)/corpus && touch $@

fuzz: $(FUZZ)/.installed ## Coverage-guided fuzzing of the chunker and text hygiene (MINUTES=3; Linux)
	PYTHONPATH=$(FUZZ) $(BIN)/python -m tests.fuzz.run -max_total_time=$$(( $(FUZZ_MINUTES) * 60 )) -max_len=4000 $(FUZZ)/corpus

MINUTES ?= 30
chaos: $(INSTALLED) ## Faults on every part under a mixed load, and what must be true (MINUTES=30, SEED=… for the same again)
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) --report bench/results/chaos.md

load: $(INSTALLED) ## Mixed traffic at rising rates: the knee, latencies, and how saturation is met
	$(BIN)/python -m bench.load

bench-cutover: $(INSTALLED) ## Building a generation and moving the pointer under writers, beside the floor
	$(BIN)/python -m bench.cutover

operator-walk: $(INSTALLED) ## A switch of models in the Temporal UI, in a real browser, held against the database (chromium)
	$(BIN)/python scripts/operator_walk.py

screenshots: $(INSTALLED) ## The same, and the pictures of docs/operations/switching-models.md
	$(BIN)/python scripts/operator_walk.py --pictures docs/operations/images

RESOLVE := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command "make lock" --quiet

lock: ## Resolve pyproject.toml anew into the two lock files (needs uv)
	$(RESOLVE) --all-extras -o requirements.lock
	$(RESOLVE) --extra service -c requirements.lock -o requirements-service.lock

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
