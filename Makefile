# One verb for each job, the same that continuous integration runs. `make help` lists them.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SYSTEMS ?= .venv-systems
MODIN ?= .venv-modin
LOWEST ?= .venv-lowest
LOWEST_TESTS ?= tests/suite tests/plan tests/analysis tests/cli tests/results softcuda/tests/test_starting.py softcuda/tests/test_pytest_plugin.py tests/scripts/test_private_parts.py
# The oldest that this Python has wheels of: sources of an older NumPy do not build with Python 3.13.
LOWEST_OPTIONS := --resolution lowest-direct --only-binary :all: --no-binary softcuda --no-binary gpubench-suite
# The CUDA device in software, a distribution of its own: of this clone, not of the package index.
SOFTCUDA := --editable ./softcuda
# The CPU build, where pip finds one: a plain torch on Linux is one of 3 GB for CUDA. A version that
# is named takes the build of it with a suffix (2.13.0+cpu) first.
TORCH ?= torch==2.13.0
PRESET ?= smoke
# One more than two cores: tests wait for processes, browsers and signals.
TESTERS ?= 3
LEFT_OUT := $(if $(THOROUGH),,and not thorough)
SIDE_BY_SIDE := -n $(TESTERS) --no-loadscope-reorder
MINUTES ?= 5
SEED ?= 1
COMMITS ?= HEAD^!
GPU_FIGURES ?= gpu-check.json
RECORDED := $(if $(RECORD),--record)
# gpubench-suite was called gpubench: pip would leave that beside it, and both write the same files.
UNINSTALL_FORMER := -m pip uninstall --quiet --quiet --yes gpubench
.DEFAULT_GOAL := help
# Tests and benchmarks start many processes: none of them should compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Most modules of what is installed are never imported: those that are, compile themselves once.
export PIP_COMPILE ?= 0

.PHONY: help bench quick test test-ci test-thorough test-systems lint types docs wheel release test-lowest site pictures tutorial gpu-check gpu-here figures faults fuzz robustness clean

help:  ## List the jobs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

bench: $(VENV)/installed  ## Measure this commit on a quick preset and write the report; without a GPU, check and count CUDA on one in software
	@GPUBENCH_PRESET=$(PRESET) $(BIN)/python scripts/bench.py $(COMMITS)

quick: $(VENV)/installed-test  ## Run in a minute the tests of all rooms that take milliseconds: no browser, no asv, no CUDA
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not gpu and not slow and not ci and not browser and not end_to_end and not systems and not thorough"

test: $(VENV)/installed-test  ## Run the tests; without a GPU, those for CUDA on one in software
	@if $(BIN)/python scripts/gpu_here.py >/dev/null; then \
	    $(BIN)/python -m pytest -m "not ci and not systems and not thorough"; \
	else \
	    code=0; \
	    $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not gpu and not ci and not systems and not thorough" || code=1; \
	    GPUBENCH_SOFTCUDA=1 $(BIN)/python -m pytest $(SIDE_BY_SIDE) tests -m "gpu and not gpu_time and not ci and not systems and not thorough" || code=1; \
	    exit $$code; \
	fi

test-ci: $(VENV)/installed-test  ## Run what `make test` leaves to continuous integration: each history of asv, the whole kernel library compiled and on CUDA in software
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "ci and not gpu and not systems and not thorough"
	$(BIN)/python scripts/gpu_here.py >/dev/null || export GPUBENCH_SOFTCUDA=1; \
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "ci and gpu and not gpu_time and not systems and not thorough"

test-thorough: $(VENV)/installed-test  ## Run the tests that `make test` leaves out: rare layouts of projects, more launches, all architectures
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "thorough and not gpu and not systems"
	$(BIN)/python scripts/gpu_here.py >/dev/null || export GPUBENCH_SOFTCUDA=1; \
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "thorough and gpu and not gpu_time and not systems"
	GPUBENCH_EVERY_ARCHITECTURE=1 $(BIN)/python -m pytest tests/kernels/test_library_compiles_for_cuda.py

test-systems: $(SYSTEMS)/installed $(MODIN)/installed  ## Run the tests of PyTorch, Dask, pandas, scikit-learn, CuPy and others, in an environment with them (4 GB), and of Modin in another (THOROUGH=1: all of them)
	for bin in $(SYSTEMS)/bin $(MODIN)/bin; do $$bin/python scripts/private_parts.py >/dev/null || exit 1; done
	$(SYSTEMS)/bin/python -m pytest $(SIDE_BY_SIDE) gpubench/edge/systems/tests gpubench/edge/fleet/tests tests/backends/test_conformance.py -m "systems and not gpu $(LEFT_OUT)"
	$(SYSTEMS)/bin/python scripts/gpu_here.py >/dev/null || export GPUBENCH_SOFTCUDA=1; \
	$(SYSTEMS)/bin/python -m pytest $(SIDE_BY_SIDE) gpubench/edge/systems/tests tests/backends/test_conformance.py -m "systems and gpu and not gpu_time $(LEFT_OUT)"
	$(MODIN)/bin/python -m pytest $(SIDE_BY_SIDE) gpubench/edge/systems/tests/test_modin.py gpubench/edge/systems/tests/test_what_is_left_behind.py tests/backends/test_conformance.py -k modin -m "systems $(LEFT_OUT)"

lint: $(VENV)/installed-dev  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev  ## Check types
	$(BIN)/mypy

docs: $(VENV)/installed-test  ## Write the generated parts of docs/ again
	$(BIN)/python scripts/format_reference.py
	$(BIN)/python scripts/reference_pages.py
	$(BIN)/python scripts/kernels_page.py
	$(BIN)/python scripts/measurements_page.py
	$(BIN)/python scripts/walk.py

wheel: $(VENV)/installed-test  ## Build the wheels and the sdists of gpubench and softcuda into dist/
	$(BIN)/python -m build --outdir dist ./softcuda
	$(BIN)/python -m build

release: $(VENV)/bin/python  ## Build the wheels and sdists of gpubench and softcuda, check them in clean environments of each Python here, and write the notes
	$(BIN)/python -m pip install --quiet --editable '.[release]'
	$(BIN)/python scripts/release.py

test-lowest:  ## Run quick tests with the lowest versions that pyproject.toml allows (needs uv)
	uv venv --quiet --clear --seed --python $(PYTHON) $(LOWEST)
	uv pip install --quiet --python $(LOWEST)/bin/python $(LOWEST_OPTIONS) $(SOFTCUDA) --editable '.[test]'
	$(LOWEST)/bin/python -m pytest -m "not gpu and not thorough" $(LOWEST_TESTS)

site: $(VENV)/bin/python  ## Build the documents as a site into build/site
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/mkdocs build --quiet --strict

pictures: $(VENV)/installed-test  ## Measure twelve commits of a small project and make the pictures of README and documents (minutes; on a quiet machine)
	$(BIN)/python scripts/pictures.py

tutorial: $(VENV)/installed-test  ## Type the tutorial's pages and that on kinds of projects word for word in empty homes, from a built wheel (minutes)
	$(BIN)/python scripts/new_user.py
	$(BIN)/python scripts/new_user.py --page docs/projects.md

gpu-check: gpu-here $(if $(NO_INSTALL),,$(VENV)/installed-gpu)  ## Check the times on this machine's GPU (NO_INSTALL=1: with what is installed)
	PYTHONPATH="$(CURDIR):$(CURDIR)/softcuda$${PYTHONPATH:+:$$PYTHONPATH}" $(if $(NO_INSTALL),$(PYTHON),$(BIN)/python) scripts/gpu_check.py --output $(GPU_FIGURES)

gpu-here:
	@$(PYTHON) scripts/gpu_here.py

figures: $(VENV)/installed-dev $(SYSTEMS)/installed  ## Measure the times that docs/measurements.md states, on a machine that does nothing else (90 minutes; RECORD=1: into docs/measurements.yaml, from which the page is made)
	$(BIN)/python scripts/cost_of_a_call.py $(RECORDED)
	$(BIN)/python scripts/against_timeit_and_pyperf.py $(RECORDED)
	$(BIN)/python scripts/against_pytest_benchmark.py $(RECORDED)
	$(BIN)/python scripts/false_alarms.py $(RECORDED)
	$(BIN)/python scripts/overhead_of_asv_run.py $(RECORDED)
	$(BIN)/python scripts/stream_bandwidth.py $(RECORDED)
	$(BIN)/python scripts/library_speed.py $(RECORDED)
	$(BIN)/python scripts/report_speed.py $(RECORDED)
	$(SYSTEMS)/bin/python scripts/fleet_throughput.py $(RECORDED)
	$(if $(RECORD),$(BIN)/python scripts/measurements_page.py)

faults: $(VENV)/installed-dev  ## Break kernels and our CUDA path on purpose and count what is noticed; needs no quiet machine (an hour; RECORD=1 as for figures)
	$(BIN)/python scripts/library_faults.py $(RECORDED)
	$(BIN)/python scripts/cuda_path_faults.py $(RECORDED)
	$(BIN)/python scripts/numba_cuda_tests.py $(RECORDED)
	$(BIN)/python scripts/count_mutations.py $(RECORDED)
	$(BIN)/python scripts/hint_mutations.py $(RECORDED)
	$(BIN)/python scripts/count_cost.py $(RECORDED)
	$(if $(RECORD),$(BIN)/python scripts/measurements_page.py)

fuzz: $(VENV)/installed-dev  ## Break suites, results and records at random and count what escapes (MINUTES=5, SEED=1)
	$(BIN)/python scripts/hostile_files.py --minutes $(MINUTES) --seed $(SEED)

robustness: $(VENV)/installed-dev  ## Campaigns of broken suites, results, kills and strings, whose counts docs/robustness.md states (hours)
	$(BIN)/python scripts/robustness.py

clean:  ## Remove what was built and measured here
	rm -rf $(VENV) $(SYSTEMS) $(MODIN) $(LOWEST) build dist .asv reports/html *.egg-info softcuda/build softcuda/*.egg-info

$(VENV)/bin/python $(SYSTEMS)/bin/python $(MODIN)/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("gpubench needs Python 3.11 or newer; name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(@D:/bin=)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python $(UNINSTALL_FORMER)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-test: $(VENV)/bin/python pyproject.toml softcuda/pyproject.toml
	$(BIN)/python $(UNINSTALL_FORMER)
	$(BIN)/python -m pip install --quiet $(SOFTCUDA) --editable '.[test]'
	touch $@ $(VENV)/installed

$(VENV)/installed-dev: $(VENV)/bin/python pyproject.toml softcuda/pyproject.toml
	$(BIN)/python $(UNINSTALL_FORMER)
	$(BIN)/python -m pip install --quiet $(SOFTCUDA) --editable '.[dev]'
	touch $@ $(VENV)/installed-test $(VENV)/installed

$(VENV)/installed-gpu: $(VENV)/bin/python pyproject.toml softcuda/pyproject.toml
	$(BIN)/python $(UNINSTALL_FORMER)
	$(BIN)/python -m pip install --quiet $(SOFTCUDA) --editable '.[test,cuda]' cuda-bench
	touch $@ $(VENV)/installed-test $(VENV)/installed

$(SYSTEMS)/installed: $(SYSTEMS)/bin/python pyproject.toml softcuda/pyproject.toml
	$(SYSTEMS)/bin/python $(UNINSTALL_FORMER)
	$(SYSTEMS)/bin/python -m pip install --quiet $(SOFTCUDA) --editable '.[test,systems,cupy]' '$(TORCH)'
	$(SYSTEMS)/bin/python -m pip install --quiet --no-deps 'dask-kubernetes>=2026.3'  # its operator's schema; all else that it needs is 240 MB
	-$(SYSTEMS)/bin/python scripts/build_pycuda.py  # where it cannot be built, its tests are skipped
	touch $@

# Modin pins another pandas.
$(MODIN)/installed: $(MODIN)/bin/python pyproject.toml softcuda/pyproject.toml
	$(MODIN)/bin/python $(UNINSTALL_FORMER)
	$(MODIN)/bin/python -m pip install --quiet $(SOFTCUDA) --editable '.[test,modin]'
	touch $@
