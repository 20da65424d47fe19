# Every target does its own set-up; a bare clone needs only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install dev serve test test-fast lint bench bench-visible bench-adapters bench-train bench-litellm test-vllm demi demi-control demi-report clean

install: $(VENV)/.installed

dev: $(VENV)/.installed-dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.installed

serve: install
	$(BIN)/macaron serve

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-fast: dev
	$(BIN)/python -m pytest -m 'not slow and not vllm'

# The quick tests first, then the slow ones; branch coverage of both together.
test: dev
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m 'not slow and not vllm'
	$(BIN)/coverage run -m pytest -m 'slow and not vllm'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90

# The same service against a real vLLM on the CPU, in an environment of its own (3.5 GB).
test-vllm: dev
	$(PYTHON) tests/vllm/setup_env.py
	$(BIN)/python -m pytest -m vllm tests/vllm

bench: install
	$(BIN)/python -m benchmarks.service

bench-visible: install
	$(BIN)/python -m benchmarks.visible

# What many adapters of one base cost, beside merged copies; vLLM's rows where `make test-vllm` has built its environment.
bench-adapters: dev
	$(BIN)/python -m benchmarks.adapters

# Tokens a second of training, beside plain TRL.
bench-train: dev
	$(BIN)/python -m benchmarks.train

# The four specialists of demi from nothing: data, adapters, and the copies that ship. Each step goes on where it stopped.
DEMI := build/demi
SHIPPED := src/macaron/profiles/demi/adapters
TRAINED := 0 1 2 3

demi: $(TRAINED:%=$(SHIPPED)/L%/run.json)

$(DEMI)/data/l%/manifest.json: src/macaron/train/recipes/demi-l%.toml | $(VENV)/.installed-dev
	$(BIN)/macaron data build demi-l$* --out $(@D)

$(DEMI)/runs/L%/adapter/run.json: $(DEMI)/data/l%/manifest.json
	$(BIN)/macaron train sft --config demi --adapter L$* --data $(<D) --out $(DEMI)/runs/L$* --resume

$(SHIPPED)/L%/run.json: $(DEMI)/runs/L%/adapter/run.json
	$(BIN)/macaron train publish $(DEMI)/runs/L$* --to $(@D) --licence Apache-2.0

.PRECIOUS: $(DEMI)/data/l%/manifest.json $(DEMI)/runs/L%/adapter/run.json

# One adapter of the same total size on the union of the four data sets, to see what the specialists are worth.
demi-control: $(DEMI)/runs/control/adapter/run.json

$(DEMI)/runs/control/adapter/run.json: $(TRAINED:%=$(DEMI)/data/l%/manifest.json)
	$(BIN)/macaron train sft --config demi-control $(foreach n,$(TRAINED),--data L$(n)=$(DEMI)/data/l$(n)) --out $(DEMI)/runs/control --resume

# What the adapters are worth, on cases they never saw. BRIEFS=FILE.jsonl adds briefs for interfaces by other people.
RESULTS := $(DEMI)/results
CONTROL := $(DEMI)/runs/control
ONE := $(if $(wildcard $(CONTROL)/adapter),--adapters control=$(CONTROL))
WITH := $(foreach n,$(TRAINED),--adapters L$(n)=$(SHIPPED)/L$(n)) $(ONE)
SKILLED := $(foreach n,1 2 3,--adapters L$(n)=$(SHIPPED)/L$(n)) $(ONE)

demi-report: dev
	$(BIN)/macaron data build demi-routing-heldout --out $(DEMI)/data/routing-heldout
	$(BIN)/macaron data build demi-chat-heldout --out $(DEMI)/data/chat-heldout
	$(BIN)/macaron data build demi-l0 --out $(DEMI)/data/l0
	$(BIN)/macaron evals routing $(DEMI)/data/routing-heldout/test.jsonl $(if $(BRIEFS),--surface-briefs $(BRIEFS)) \
		--base --baseline $(DEMI)/data/l0/train.jsonl $(WITH) --out $(RESULTS)
	$(BIN)/macaron evals routing $(DEMI)/data/routing-heldout/test.jsonl --newcomer src/macaron/evals/data/newcomer.toml \
		$(WITH) --out $(RESULTS)/newcomer
	$(BIN)/macaron evals chat $(DEMI)/data/chat-heldout/test.jsonl $(WITH) --out $(RESULTS)
	$(BIN)/macaron evals tasks --suite ui $(if $(BRIEFS),--briefs $(BRIEFS)) $(SKILLED) --out $(RESULTS)
	$(BIN)/macaron evals tasks --suite code $(SKILLED) --out $(RESULTS)
	$(BIN)/macaron evals tasks --suite tools $(SKILLED) --out $(RESULTS)
	$(BIN)/macaron evals report $(RESULTS) --document docs/demi.md

# LiteLLM's proxy in an environment of its own, so that `make bench` measures it too.
bench-litellm: install .venv-litellm/.installed
	$(BIN)/python -m benchmarks.service

.venv-litellm/.installed:
	$(PYTHON) -m venv .venv-litellm
	.venv-litellm/bin/python -m pip install --quiet --disable-pip-version-check 'litellm[proxy]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
