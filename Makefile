# Every target does its own set-up; a bare clone needs only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install dev serve test test-fast lint bench bench-visible bench-litellm test-vllm clean

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

# The quick tests first, with their branch coverage; then the slow ones.
test: dev
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m 'not slow and not vllm'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90
	$(BIN)/python -m pytest -m 'slow and not vllm'

# The same service against a real vLLM on the CPU, in an environment of its own (3.5 GB).
test-vllm: dev
	$(PYTHON) tests/vllm/setup_env.py
	$(BIN)/python -m pytest -m vllm tests/vllm

bench: install
	$(BIN)/python -m benchmarks.service

bench-visible: install
	$(BIN)/python -m benchmarks.visible

# LiteLLM's proxy in an environment of its own, so that `make bench` measures it too.
bench-litellm: install .venv-litellm/.installed
	$(BIN)/python -m benchmarks.service

.venv-litellm/.installed:
	$(PYTHON) -m venv .venv-litellm
	.venv-litellm/bin/python -m pip install --quiet --disable-pip-version-check 'litellm[proxy]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
