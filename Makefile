# make demo   train and compare systems on the embedded corpus; ends with a page
# make test   lint, types, layers, tests
# Both make .venv and install the package first, once.

PYTHON ?= python3
BIN = .venv/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test clean

demo: .venv/installed
	$(BIN)/setrnn demo

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; \
	then $(BIN)/mypy; \
	else echo "mypy: left out, numpy and scipy have no fitting type stubs for Python 3.10"; fi
	$(BIN)/lint-imports
	$(BIN)/pytest

.venv/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "setrnn needs Python 3.10 or newer")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

.venv/installed-dev: .venv/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	touch .venv/installed $@

clean:
	rm -rf .venv
