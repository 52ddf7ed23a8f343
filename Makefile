# Everything a newcomer needs: `make demo`, `make test`. The first call sets up .venv from nothing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs results bench sanitize fuzz clean help

help:
	@echo "make demo    the copy problem: a KRU, an LSTM and a GRU side by side, a table and a plot (about two minutes)"
	@echo "make test    lint, types, docs and all tests"
	@echo "make lint    ruff and mypy only"
	@echo "make docs    the documentation as HTML: build/docs/index.html"
	@echo "make results RESULTS.md and its figures, from the runs in results/"
	@echo "make bench   our layers and torch.nn's side by side"
	@echo "make sanitize  the native core's tests under AddressSanitizer and UBSan (needs cmake and g++)"
	@echo "make fuzz    many damaged files for every reader, others each time (minutes; MUTANTS=1000 of each)"
	@echo "make clean   remove .venv, caches and outputs"

.venv/ready: requirements.txt pyproject.toml CMakeLists.txt $(wildcard csrc/* csrc/*/*)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: .venv/ready
	$(BIN)/python examples/copy_memory.py

test: lint docs
	$(BIN)/python -m pytest

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/ready
	$(BIN)/python -m sphinx --quiet --write-all --fail-on-warning --keep-going docs build/docs

results: .venv/ready
	$(BIN)/python results/publish.py
	$(BIN)/python docs/figures/paper_results.py

bench: .venv/ready
	$(BIN)/python benchmarks/run.py

# A build of its own, loaded instead of the installed one. libasan must come first in a python that was built without it,
# and libstdc++ before torch brings its own. Tests that watch the process's memory would see the sanitizer's: left out.
runtime = $(shell g++ -print-file-name=$(1))
sanitize: .venv/ready
	cmake -S . -B build/sanitize -DSLIMRNN_SANITIZE=ON -DCMAKE_CXX_COMPILER=g++
	cmake --build build/sanitize
	LD_PRELOAD=$(call runtime,libasan.so):$(call runtime,libubsan.so):$(call runtime,libstdc++.so) \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 SLIMRNN_LIBRARY=$(CURDIR)/build/sanitize/libslimrnn.so \
	$(BIN)/python -m pytest tests/ops -k "not memory and not leaks"

# The seed is printed, so that a failure can be had again: make fuzz SEED=...
MUTANTS ?= 1000
SEED ?= $(shell date +%s)
fuzz: .venv/ready
	@echo "SEED=$(SEED) MUTANTS=$(MUTANTS)"
	SLIMRNN_FUZZ=$(MUTANTS) SLIMRNN_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest tests/fuzz -k damaged

clean:
	rm -rf .venv build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
