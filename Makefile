# Every target sets up .venv first; nothing is reinstalled until pyproject.toml or constraints.txt change.
PYTHON ?= python3
READY := .venv/.ready

.PHONY: demo test check bench format clean

demo: $(READY)  ## see attention work, in the terminal and as pictures in regard-demo/
	.venv/bin/regard demo

test: $(READY)  ## run all tests
	.venv/bin/pytest -n 2

check: $(READY)  ## what CI runs: format, lint, types, tests
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/pytest -n 2

bench: $(READY)  ## measure side by side on this machine
	.venv/bin/python benchmarks/attention_memory.py

format: $(READY)
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

clean:
	rm -rf .venv regard-demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "regard needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@
