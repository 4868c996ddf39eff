# `make` lists the targets. Everything is installed into .venv; nothing outside the repository is touched.
#
# .venv is filled in layers, each when a target first asks for it:
#
#   demo    the package, what `longtail demo` needs, and the tools that build the native core
#   test    every extra, pytest, and the peers that results are compared with
#   dev     linters, the type checker, documentation, packaging
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
DEMO := .venv/.demo
TEST := .venv/.test
DEV := .venv/.dev
NATIVE := build/dev/.native
CPP := $(shell find cpp -name '*.cpp' -o -name '*.h')
FORMATTED_CPP := $(CPP) $(shell find tests -name '*.cpp' -o -name '*.h')
PREFIX_PATH := PATH="$(CURDIR)/$(BIN):$$PATH"

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench docs sanitize tsan arm fuzz mutants engines dist clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(DEV) $(NATIVE)  ## create .venv with all layers and build the native core (nothing if up to date)

# The package is installed as a link to src/ (metadata and scripts, no compiled code) ...
LINK := $(PIP) install -c constraints.txt --config-settings=wheel.cmake=false --config-settings=editable.mode=inplace -e
$(DEMO): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Longtail needs Python 3.10 or newer; choose one with: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || { \
	  echo "Creating .venv"; rm -rf .venv; $(PYTHON) -m venv .venv; } || { \
	  rm -rf .venv; \
	  echo "$(PYTHON) cannot create a virtual environment. On Debian and Ubuntu: apt install python3-venv." >&2; \
	  echo "Another interpreter can be chosen with: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Installing packages into .venv"
	@$(PIP) install -c constraints.txt scikit-build-core nanobind cmake ninja
	@$(LINK) '.[icd10cm,serve]' --no-build-isolation
	@touch $@

# Peers that come as sources only are built in an environment of their own, as their authors expect.
$(TEST): $(DEMO)
	@echo "Installing packages for the tests (a few minutes, most of it torch)"
	@$(LINK) '.[test]' --no-build-isolation
	@PIP_CONSTRAINT=constraints.txt $(LINK) '.[peers]'
	@touch $@

$(DEV): $(TEST)
	@echo "Installing tools for development"
	@$(LINK) '.[dev]' --no-build-isolation
	@touch $@

# ... and the compiled core is built beside the Python sources, incrementally. The folders are named too, so that a
# removed file is noticed.
$(NATIVE): $(DEMO) CMakeLists.txt $(wildcard cpp/kernels/*) cpp/bindings $(CPP)
	@command -v "$${CXX:-c++}" > /dev/null || command -v g++ > /dev/null || command -v clang++ > /dev/null || { \
	  echo "No C++ compiler found. On Debian and Ubuntu: apt install g++. On macOS: xcode-select --install." >&2; exit 1; }
	@$(BIN)/python -c 'import os, sys, sysconfig as s; sys.exit(not os.path.exists(s.get_path("include") + "/Python.h"))' || { \
	  echo "The headers of $(PYTHON) are missing. On Debian and Ubuntu: apt install python3-dev." >&2; exit 1; }
	@echo "Building the native core (a minute on two processors)"
	@$(PREFIX_PATH) cmake -S . -B build/dev -G Ninja -DLONGTAIL_INPLACE=ON \
	  -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" > /dev/null
	@$(PREFIX_PATH) cmake --build build/dev -- --quiet
	@touch $@

demo: $(NATIVE)  ## compare three models on 47,000 labels, write the report, start the page
	@$(BIN)/longtail demo --output build/demo

test: $(TEST) $(NATIVE)  ## run the tests, the examples in docstrings, README and docs included
	$(BIN)/python -m pytest $(ARGS)

check: setup  ## lint, types, formatting, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@echo "clang-format --dry-run -Werror (C++ sources)"
	@$(BIN)/clang-format --dry-run -Werror $(FORMATTED_CPP)
	$(BIN)/python -m pytest tests/test_imports.py

format: setup  ## rewrite the sources in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(FORMATTED_CPP)

bench: setup  ## run every benchmark; a single one: .venv/bin/python benchmarks/NAME.py
	@status=0; for script in benchmarks/*.py; do \
	  echo "== $$script"; $(BIN)/python $$script || status=1; \
	done; exit $$status

docs: setup  ## build the documentation into docs/_build/html, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# A second copy of the package, compiled with the sanitizers, in a second environment that borrows the packages of the
# first one. The run-time library of the sanitizers has to be loaded before Python, and the C++ library with it, or
# exceptions thrown by the core are not seen. What they find goes to a file, since pytest captures what tests print; a
# refused allocation is not a finding, tests of hostile files ask for absurd ones.
ASAN := build/asan
sanitize: setup  ## run all tests on a core built with the address and undefined-behaviour sanitizers
	@echo "Building the native core with sanitizers"
	@$(PREFIX_PATH) $(PIP) install --no-deps --no-build-isolation --upgrade --target $(ASAN)/site \
	  --config-settings=build-dir=$(ASAN)/cmake --config-settings=cmake.build-type=RelWithDebInfo \
	  --config-settings=cmake.define.LONGTAIL_SANITIZE=address,undefined .
	@$(BIN)/python -m venv --without-pip $(ASAN)/venv
	@printf '%s\n' "$(CURDIR)/$(ASAN)/site" "$(CURDIR)"/.venv/lib/python3*/site-packages \
	  > "$$($(ASAN)/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed.pth"
	@rm -f $(ASAN)/found.*
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:log_path=$(CURDIR)/$(ASAN)/found \
	  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:log_path=$(CURDIR)/$(ASAN)/found \
	  $(ASAN)/venv/bin/python tests/side_by_side.py $(ARGS) || { cat $(ASAN)/found.* 2> /dev/null; exit 1; }
	@! grep -l -e 'ERROR: AddressSanitizer' -e 'runtime error:' $(ASAN)/found.* 2> /dev/null

tsan:  ## run the threaded kernels under the thread sanitizer (no Python; minutes to build the first time)
	@tests/native/run.sh tsan

arm:  ## run the threaded kernels on an emulated ARM processor (needs g++-aarch64-linux-gnu and qemu-user)
	@tests/native/run.sh arm

fuzz: setup  ## fuzz models, calls, texts, memory and HTTP, then the text reader (the latter needs clang)
	@$(BIN)/python tests/fuzz/fuzz.py $(ARGS)
	@tests/fuzz/run.sh

engines: $(TEST) $(NATIVE)  ## install Ray, Dask and Spark (which needs Java), and train on them
	@$(LINK) '.[ray,dask,spark]' --no-build-isolation
	$(BIN)/python -m pytest tests/distributed $(ARGS)

mutants: setup  ## change the package in 300 small ways and name the changes that no test notices (long)
	@$(BIN)/python tests/mutation/run.py $(ARGS)

# On Linux the wheel is also marked with the oldest C library that it runs with (manylinux_2_28 and the like).
dist: $(DEV)  ## build the source distribution, and from it a wheel for machines like this one, into dist/
	@rm -rf dist
	@$(PREFIX_PATH) python -m build --no-isolation
	@for wheel in dist/*-linux_*.whl; do \
	  ! [ -e "$$wheel" ] || { $(PREFIX_PATH) auditwheel repair --wheel-dir dist "$$wheel" && rm "$$wheel"; }; \
	done
	@ls dist

clean:  ## remove everything that was built, .venv included
	rm -rf .venv build dist docs/_build src/longtail/_core*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
