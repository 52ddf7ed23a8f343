# Everything a newcomer needs: `make demo`, `make test`. The first call sets up .venv from nothing.
PYTHON ?= python3
BIN := .venv/bin
# Jobs for two cores; three at once, since tests that start processes often wait for them.
MAKEFLAGS += --jobs=3 $(if $(filter output-sync,$(.FEATURES)),--output-sync)

.PHONY: demo test tests-core tests-runs tests-others lint format cells docs results bench sanitize clang fuzz wheels
.PHONY: release-check checked native-sum stress stress-thread stress-address clean help

help:
	@echo "make demo    the copy problem: a KRU, an LSTM and a GRU side by side, a table and a plot (about two minutes)"
	@echo "make test    lint, types, docs and all tests"
	@echo "make lint    ruff, mypy and clang-format only"
	@echo "make format  ruff and clang-format rewrite the sources"
	@echo "make cells   the C++ of the built-in cells, csrc/cells/generated.h, from src/slimrnn/cells"
	@echo "make docs    the documentation as HTML: build/docs/index.html"
	@echo "make results RESULTS.md and its figures, from the runs in results/"
	@echo "make bench   our layers and torch.nn's side by side"
	@echo "make sanitize  the native core's tests under AddressSanitizer and UBSan (needs cmake and g++)"
	@echo "make stress  a million frames of 16 clients through a pool, under ThreadSanitizer and AddressSanitizer (minutes)"
	@echo "make clang   the native core built by clang++, warnings are errors, and its tests (needs cmake and clang++)"
	@echo "make checked  both of these; their success is noted in .ci/checked, for continuous integration"
	@echo "make fuzz    many damaged files for every reader, others each time (minutes; MUTANTS=1000 of each)"
	@echo "make wheels  the sources and wheels for Linux, macOS and Windows in dist/ (needs g++; minutes)"
	@echo "make release-check  the wheels built again, installed, run under qemu and wine (see release/check.py; an hour)"
	@echo "make clean   remove .venv, caches and outputs"

.venv/ready: requirements.txt examples/requirements.txt pyproject.toml CMakeLists.txt $(wildcard csrc/* csrc/*/*)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r examples/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: .venv/ready
	$(BIN)/python examples/copy_memory.py

CORE_TESTS := $(addprefix tests/,layers ops sequence structures tracing)
RUN_TESTS := $(addprefix tests/,cli papers tasks training)
test: tests-core tests-runs tests-others lint docs

tests-core: .venv/ready
	$(BIN)/python -m pytest -p no:cacheprovider $(CORE_TESTS)

tests-runs: .venv/ready
	$(BIN)/python -m pytest -p no:cacheprovider $(RUN_TESTS)

tests-others: .venv/ready
	$(BIN)/python -m pytest -p no:cacheprovider $(addprefix --ignore=,$(CORE_TESTS) $(RUN_TESTS))

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES)

CXX_SOURCES = $(wildcard csrc/*.cpp csrc/*.h csrc/*/*.cpp csrc/*/*.h)
format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_SOURCES)

# A test compares the file with what this writes. The next `make` builds the core again.
GENERATED := csrc/cells/generated.h
cells: .venv/ready
	$(BIN)/python -m slimrnn.tracing $(GENERATED)
	$(BIN)/clang-format -i $(GENERATED)

docs: .venv/ready
	$(BIN)/python -m sphinx --quiet --write-all --fail-on-warning --keep-going docs build/docs

results: .venv/ready
	$(BIN)/python results/publish.py
	$(BIN)/python docs/figures/paper_results.py

bench: .venv/ready
	$(BIN)/python benchmarks/run.py

# Builds of their own, loaded instead of the installed one, and what the native code itself computes: every structure
# and cell, shape, step and error, but not what torch does around it (tests/ops/test_native_operators.py). Of the
# instruction sets, the best that runs here and the generic one; the others only pass through the compiler's front end.
NATIVE_TESTS := $(addprefix tests/ops/test_native_,equals_reference.py shapes.py stepping.py library.py unitary_product.py) \
	tests/exporting/int8/test_int8_kernels.py
NATIVE_SOURCES := CMakeLists.txt $(wildcard csrc/* csrc/*/*)
RUNS_HERE := $(shell for isa in avx512bw avx2; do if grep -qs $$isa /proc/cpuinfo; then echo $${isa%bw}; break; fi; done)
build_native = cmake -S . -B build/$(1) -DCMAKE_CXX_COMPILER=$(2) -DSLIMRNN_ISAS=$(RUNS_HERE) $(3) && \
	cmake --build build/$(1) --parallel
march_avx2 := x86-64-v3
march_avx512 := x86-64-v4
check_others = set -e; $(foreach isa,$(if $(RUNS_HERE),$(filter-out $(RUNS_HERE),avx2 avx512)),\
	$(1) -std=c++17 -fsyntax-only -Wall -Wextra -Werror -march=$(march_$(isa)) csrc/kernels.cpp csrc/int8/kernels.cpp;)

build/sanitize/libslimrnn.so: $(NATIVE_SOURCES)
	$(call build_native,sanitize,g++,-DSLIMRNN_SANITIZE=ON)
	$(call check_others,g++)

build/clang/libslimrnn.so: $(NATIVE_SOURCES)
	$(call build_native,clang,clang++,-DSLIMRNN_WERROR=ON)
	$(call check_others,clang++)

# libasan must come first in a python that was built without it, and libstdc++ before torch brings its own.
runtime = $(shell g++ -print-file-name=$(1))
sanitize: .venv/ready build/sanitize/libslimrnn.so
	LD_PRELOAD=$(call runtime,libasan.so):$(call runtime,libubsan.so):$(call runtime,libstdc++.so) \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 SLIMRNN_LIBRARY=$(CURDIR)/build/sanitize/libslimrnn.so \
	$(BIN)/python -m pytest -p no:cacheprovider $(NATIVE_TESTS)

# A pool under ThreadSanitizer and under AddressSanitizer: many clients, streams that come and go. Of the kernels only the
# generic ones, since the others take many minutes to compile, and `make sanitize` has them.
build/thread/libslimrnn.so build/address/libslimrnn.so: build/%/libslimrnn.so: $(NATIVE_SOURCES)
	cmake -S . -B build/$* -DCMAKE_CXX_COMPILER=g++ -DSLIMRNN_ISAS= -DSLIMRNN_SANITIZE=$(build_$*) && \
	cmake --build build/$* --parallel

STRESS_FRAMES ?= 1000000
build_thread := thread
build_address := ON
flags_thread := -fsanitize=thread
flags_address := -fsanitize=address,undefined
build/%/pool_stress: release/pool_stress.cpp build/%/libslimrnn.so
	g++ -std=c++17 -O1 -g1 $(flags_$*) -o $@ $< -ldl -lpthread
build/stress.model: .venv/ready release/stress_model.py
	$(BIN)/python release/stress_model.py $@
stress-thread stress-address: stress-%: build/%/pool_stress build/stress.model
	build/$*/pool_stress build/$*/libslimrnn.so build/stress.model $(STRESS_FRAMES)
stress: stress-thread stress-address

# The native sources that both have passed are known by their sum, in .ci/checked. Continuous integration runs them again
# where the sources are others.
native-sum:
	@cat CMakeLists.txt $(sort $(wildcard csrc/*.* csrc/*/*.*)) | sha256sum | cut -d " " -f 1
checked: sanitize clang
	$(MAKE) --silent native-sum > .ci/checked

clang: .venv/ready build/clang/libslimrnn.so
	SLIMRNN_LIBRARY=$(CURDIR)/build/clang/libslimrnn.so $(BIN)/python -m pytest -p no:cacheprovider $(NATIVE_TESTS)

# The seed is printed, so that a failure can be had again: make fuzz SEED=...
MUTANTS ?= 1000
SEED ?= $(shell date +%s)
fuzz: .venv/ready
	@echo "SEED=$(SEED) MUTANTS=$(MUTANTS)"
	SLIMRNN_FUZZ=$(MUTANTS) SLIMRNN_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest tests/fuzz -k damaged

# The wheels of the last commit. What builds them is pinned, and kept apart from .venv.
RELEASE := build/release
$(RELEASE)/ready: release/requirements.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check -r release/requirements.txt
	@touch $@

wheels: $(RELEASE)/ready
	$(RELEASE)/bin/python release/wheels.py dist

release-check: wheels
	$(RELEASE)/bin/python release/check.py dist

clean:
	rm -rf .venv build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
