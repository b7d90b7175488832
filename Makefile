# make curves and make test need nothing but git, make and Python >= 3.11 beforehand.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: curves test coverage smoke setup lint format lock clean

curves: setup           ## train CNN and ViT on two embedded data sets, draw both curves
	@$(BIN)/python -m experiments.data_size --preset=quick --out=runs/data_size/quick

test: setup lint        ## lint, types and every test
	$(BIN)/python -m pytest

setup: $(READY)         ## make the environment from requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "make: %s is Python %d.%d; Python >= 3.11 is needed: make PYTHON=/path/to/python" % (sys.executable, v[0], v[1]))'
	@echo "making $(VENV) from requirements.lock, about a minute"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

coverage: setup         ## every test, and the lines that none of them runs
	$(BIN)/python -m pytest --cov --cov-report=term-missing:skip-covered

smoke: setup            ## a few of the tests with XLA's usual code generator; also to try another Python
	ATTENTION_TEST_EMITTERS=1 $(BIN)/python -m pytest tests/attention/test_attend.py tests/models/encoders/test_transformer.py \
	  tests/models/encoders/test_recurrent.py tests/test_train.py tests/tasks/test_translation.py

lint: setup             ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup           ## rewrite the code as ruff would have it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

UPGRADE ?=
lock:                   ## requirements.lock for pyproject.toml, with the versions it has; UPGRADE=--upgrade for newer (needs uv)
	uv pip compile --universal --generate-hashes --python-version 3.11 --extra train --extra dev \
	  --no-header --no-emit-index-url --no-emit-find-links $(UPGRADE) pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .venv-newer runs .pytest_cache .mypy_cache .ruff_cache .hypothesis .jax_cache build *.egg-info
