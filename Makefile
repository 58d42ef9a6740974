# Every target sets up what it needs: Python 3.11 to 3.13 and git have to be there, nothing else.

PYTHON := .venv/bin/python
READY  := .venv/.installed
E2E    := .venv-e2e/.installed
PYTEST := $(PYTHON) -m pytest
# As many workers as cores, at most four: some tests start servers of their own.
SPREAD := -n logical --maxprocesses 4 --dist worksteal
# In one process: all stories share one installation, and the last ones see to it and take it away.
EMULATED := tests/contract tests/e2e -m e2e
EMULATED_LOG := build/emulated.log

# "--flag value" for a variable given on the command line of make. One that is only in the
# environment does not count: PORT is set there for many a reason.
given = $(if $(filter command,$(firstword $(origin $(1)))),$(2) "$($(1))")

.DEFAULT_GOAL := help
.PHONY: help up demo test check e2e sim bench synth deploy destroy format lock clean
.PHONY: test-here test-emulated

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

up: $(READY) ## run Stepwell on this machine (PORT=8787 DATA=.stepwell)
	@exec $(PYTHON) -m local up $(call given,PORT,--port) $(call given,DATA,--data)

demo: $(READY) ## watch an order run, be killed in the middle, and finish
	@$(PYTHON) -m examples.order_pipeline

test: $(READY) $(E2E) ## run all tests: format, lint, types and 5,000 simulations among them
	@$(MAKE) --no-print-directory -j 2 test-here test-emulated || { tail -n 30 $(EMULATED_LOG); exit 1; }

test-here:
	$(PYTEST) $(SPREAD) -m "not e2e"

# Beside the others, since it waits most of its time. Here what it says would be torn apart.
test-emulated:
	@mkdir -p $(dir $(EMULATED_LOG))
	$(PYTEST) $(EMULATED) > $(EMULATED_LOG) 2>&1
	@tail -n 1 $(EMULATED_LOG)

check: $(READY) $(E2E) ## the same as test, one concern after the other
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTEST) tests/arch --ignore tests/arch/test_style.py
	$(PYTEST) --ignore tests/arch $(SPREAD) -m "not e2e"
	$(PYTEST) $(EMULATED)

e2e: $(READY) $(E2E) ## deploy to an emulator of AWS, IAM enforced, and run workflows there
	$(PYTEST) $(EMULATED)

sim: $(READY) ## simulate crashes, lost hints, stalls (SEEDS=5000 START=0)
	@$(PYTHON) -m tests.sim $(call given,SEEDS,--seeds) $(call given,START,--start)

bench: $(READY) ## measure, print, and write build/bench.json
	@$(PYTHON) -m tools.bench

synth: $(READY) ## write the templates for AWS to cdk.out (CONTEXT="environment=prod")
	@$(PYTHON) -m infra.app $(foreach pair,$(CONTEXT),--context "$(pair)")

deploy: synth ## bring Stepwell to your AWS account (REGION=eu-west-1 CONTEXT=...)
	@$(PYTHON) -m infra.deploy up $(call given,REGION,--region)

destroy: synth ## take it away again; the data stays (REGION=eu-west-1 CONTEXT=...)
	@$(PYTHON) -m infra.deploy down $(call given,REGION,--region)

format: $(READY) ## format the code and mend what lint can mend
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

lock: $(READY) ## resolve the dependencies of pyproject.toml again, into the lock files
	$(PYTHON) -m uv pip compile --quiet --universal --generate-hashes --group dev --group build \
		pyproject.toml --output-file requirements.lock --custom-compile-command "make lock"
	$(PYTHON) -m uv pip compile --quiet --universal --generate-hashes --group e2e \
		pyproject.toml --output-file requirements-e2e.lock --custom-compile-command "make lock"

clean: ## remove what was built and installed; the data folder stays
	rm -rf .venv .venv-e2e build dist cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh
	@touch $@

$(E2E): $(READY) requirements-e2e.lock scripts/setup_e2e.sh
	@sh scripts/setup_e2e.sh
	@touch $@
