# Everything a newcomer needs: `make demo`, `make test`. The first call sets up .venv from nothing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean help

help:
	@echo "make demo    train two small nets side by side, print a table, save a plot (about two minutes)"
	@echo "make test    lint, types and all tests"
	@echo "make lint    ruff and mypy only"
	@echo "make bench   our layers and torch.nn's side by side"
	@echo "make clean   remove .venv, caches and outputs"

.venv/ready: requirements.txt pyproject.toml CMakeLists.txt $(wildcard csrc/* csrc/*/*)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: .venv/ready
	$(BIN)/python examples/adding.py

test: lint
	$(BIN)/python -m pytest

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python benchmarks/layers.py

clean:
	rm -rf .venv build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
