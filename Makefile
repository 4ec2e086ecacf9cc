# make demo   the whole story on the embedded corpus, in under two minutes on two cores
# make check  lint, types, layers, unit tests: within a minute on two cores
# make test   lint, types, layers, all tests: in eight to nine minutes on two cores
# make docs   build the documentation into build/site; without the network once it is installed
# make faults break commands and the service on purpose: about 15 minutes on two cores
# Each makes .venv and installs the package first, once.

PYTHON ?= python3
BIN = .venv/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
# Modules are compiled when they are first imported, and kept: pip would compile all of them.
unexport PYTHONDONTWRITEBYTECODE
INSTALL = $(PIP) install --no-compile --constraint constraints.txt

SIDE_BY_SIDE = $(MAKE) --no-print-directory --jobs 2

.PHONY: demo docs check test faults lint unit-tests all-tests clean

demo: .venv/installed
	$(BIN)/setrnn demo

docs: .venv/installed-dev
	$(BIN)/python tools/site/pages.py build/pages
	$(BIN)/zensical build --strict
	@echo "Wrote build/site. To read and search it: $(BIN)/python -m http.server --directory build/site"

check: .venv/installed-dev
	$(SIDE_BY_SIDE) lint unit-tests

test: .venv/installed-dev
	$(SIDE_BY_SIDE) lint all-tests

# Prints a table of what was tried, survived and lost, and writes it into the page.
faults: .venv/installed-dev
	$(BIN)/pytest -m faults tests/faults --reliability-page docs/reliability.md

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; \
	then $(BIN)/mypy; \
	else echo "mypy: left out, numpy and scipy have no fitting type stubs for Python 3.10"; fi

unit-tests:
	$(BIN)/pytest -m "not slow" --hypothesis-profile quick

all-tests:
	$(BIN)/pytest

.venv/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "setrnn needs Python 3.10 or newer")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[serve]'
	touch $@

.venv/installed-dev: .venv/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[dev]'
	touch .venv/installed $@

clean:
	rm -rf .venv
