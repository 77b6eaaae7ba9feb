# `make` lists the targets. Everything needed is installed by the targets themselves.
.DEFAULT_GOAL := help
SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
RESULTS := build/results
CLUSTER := eval "$$(hack/cluster.sh env)"
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help venv setup lint format generate verify unit property parity e2e test demo cluster-up cluster-down images image benchmark clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/installed ## Make the Python environment

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q "pip>=25.1"
	$(BIN)/pip install -q -e . --group dev
	@touch $@

setup: venv ## Install what the tests need from the system (root, Debian)
	@hack/setup.sh

lint: venv ## Check style, types, layers and shell scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v shellcheck >/dev/null; then shellcheck -e SC1091,SC2015,SC2034,SC2094,SC2164 hack/*.sh .ci/run \
	  && shellcheck -s dash -e SC1090,SC1091,SC2015,SC2016,SC2034,SC2123,SC2154 operator/multistep/runner/*.sh; fi

format: venv ## Format the code
	$(BIN)/ruff check -q --fix .
	$(BIN)/ruff format -q .

generate: venv ## Generate the CRD from the models
	$(BIN)/python -m multistep.api.crd crds charts/multistep-operator/files

verify: generate ## Fail if the checked-in CRDs are not what the models say
	git diff --exit-code -- crds charts/multistep-operator/files

unit: setup ## Unit tests, the runner's among them (seconds)
	@mkdir -p $(RESULTS)
	$(BIN)/pytest -q -n 4 --junit-xml=$(RESULTS)/unit.xml tests/unit

property: venv ## Property tests of the engine and of scoring
	@mkdir -p $(RESULTS)
	$(BIN)/pytest -q -n 2 --junit-xml=$(RESULTS)/property.xml tests/property

parity: venv ## Every measured case of the reference
	@mkdir -p $(RESULTS)
	$(BIN)/pytest -q --junit-xml=$(RESULTS)/parity.xml tests/parity

cluster-up: ## Build (once) and start the test cluster
	hack/cluster.sh up

cluster-down: ## End the test cluster
	hack/cluster.sh down

images: venv cluster-up ## Build and load the images that tests and demo need
	hack/images.sh all

image: ## Build the operator's image for a registry: make image IMAGE=registry/name:tag
	@hack/images.sh image "$(IMAGE)"

e2e: images ## Tests on the real cluster, in parallel
	@mkdir -p $(RESULTS)
	$(CLUSTER); $(BIN)/pytest -q -n 12 --dist worksteal --timeout 300 --junit-xml=$(RESULTS)/e2e.xml tests/e2e

test: lint unit property parity e2e ## All tests; what CI runs
	@$(BIN)/python hack/count_tests.py $(RESULTS)/*.xml

demo: venv ## From nothing to a finished trial: make demo [CONTEXT=name IMAGE=registry/name:tag]
	@hack/demo.sh "$(CONTEXT)" "$(IMAGE)"

benchmark: images ## Measure what a step costs over the bare chain of its pods
	$(CLUSTER); $(BIN)/python benchmarks/overhead.py

clean: ## Remove what the targets made in this folder
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
