# Every target sets up what it needs; a second run reuses the set-up.
.DEFAULT_GOAL := help
PYTHON ?= python3
JOBS ?= 1
BIN := .venv/bin
READY := .venv/.ready
BROWSER := .venv/.browser
DOCS_READY := .venv/.docs-ready

# Tests start many processes: Python compiles what they import once, and nothing else of what is installed.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test check test-isa test-slow fuzz lock test-browser test-sanitize test-races bench-predict bench-fit
.PHONY: bench-tables bench-segment paper paper-quick
.PHONY: segmentation pictures report-images docs clean

help:
	@echo "make demo       train a tree on the bundled digits and draw it"
	@echo "make test       style, types and all quick tests"
	@echo "make docs       the documentation, with all examples run, into build/docs"
	@echo "make check      style, spelling, prose and types only"
	@echo "make bench-predict, make bench-fit   how fast prediction and training are"
	@echo "make bench-tables   scores, ranks and fit times on real tables beside other models; hours, resumes; JOBS=16 (set CRISPTREE_DATA: tables.zip)"
	@echo "make paper      sections 4.1 to 4.4, the supplement and the extension, on the data sets whose files are there; hours, resumes; JOBS=16, DRY=--dry-run"
	@echo "make paper-quick   a small version on the bundled digits; minutes"
	@echo "make pictures   draw the documentation's pictures from the examples (MNIST where CRISPTREE_DATA has it) and from tables of results"
	@echo "make lock       write requirements-lock.txt anew: all versions and hashes that the tests were run with"
	@echo "make fuzz       100,000 damaged files for every reader, under a memory limit; hours (NUMBER=2000 for minutes)"
	@echo "make test-browser   the report's page, clicked through in chromium"
	@echo "make report-images  the pictures of docs/guide/plots.md (set CRISPTREE_DATA: MNIST)"
	@echo "make segmentation   membranes in electron microscopy (ISBI 2012); an hour on two cores, resumes"
	@echo "make test-sanitize, make test-races   the kernels under address, undefined-behaviour and thread sanitizers"
	@echo "make test-isa   all quick tests once per instruction set of the processor (ISA=avx2 for one of them)"
	@echo "make test-slow  the tests on real data (set CRISPTREE_DATA to its folder)"

setup: $(READY)

$(READY): pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/crisptree/native/*)
	@echo "Installing into .venv and compiling the kernels: a few minutes without output."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e ".[all,dev]"
	@$(BIN)/python -c "import crisptree.native._router, crisptree.native._training" \
	  || { echo "The kernels were not built: pip install -v . shows the compiler's words."; exit 1; }
	@touch $(READY)

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt "crisptree[docs]"
	@touch $(DOCS_READY)

demo: setup
	$(BIN)/python -m crisptree demo --force

check: setup
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python tools/prose.py
	$(BIN)/python -m codespell_lib
	$(BIN)/python -m mypy
	$(BIN)/python -m pyright --pythonpath $(BIN)/python

# Two workers with one thread each: most tests are shorter than the threads take to meet. Types are checked beside them.
test: setup
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m codespell_lib
	@mkdir -p build
	{ $(BIN)/python -m mypy && $(BIN)/python -m pyright --pythonpath $(BIN)/python; } > build/types.log 2>&1 & types=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal; status=$$?; \
	wait $$types || { cat build/types.log; exit 1; }; exit $$status

# The last bits of a training depend on the instruction sets of the kernels and of the libraries; no test may depend on them.
test-isa: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.native.instruction_sets $(ISA) -- -n 2 --dist worksteal

test-slow: setup
	$(BIN)/python -m pytest -m slow -rs

lock: setup
	$(BIN)/python -m tests.locking

fuzz: setup
	$(BIN)/python -m tests.fuzz.run --number $(or $(NUMBER),100000) --seed $(or $(SEED),1) --keep build/fuzz

# The kernels built anew with sanitizers, and the tests that reach them. The interpreter knows nothing of sanitizers, so they
# are loaded before it; leaks are not looked for, since the interpreter itself leaves much behind.
SANITIZED := build/sanitized
SANITIZERS = $(shell $(CXX) -print-file-name=libasan.so):$(shell $(CXX) -print-file-name=libubsan.so):$(shell $(CXX) -print-file-name=libstdc++.so.6)
test-sanitize: setup
	rm -rf $(SANITIZED)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --no-deps --target $(SANITIZED) \
	  --config-settings=cmake.define.CRISPTREE_SANITIZE=address,undefined .
	LD_PRELOAD=$(SANITIZERS) ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(BIN)/python -m tests.native.with_kernels_of $(SANITIZED) -p no:cacheprovider -q \
	  tests/native tests/inference tests/images tests/learning/test_native_engine.py tests/learning/test_native_trees.py tests/learning/test_window_rows.py

# Concurrent prediction under ThreadSanitizer: a program of its own, without the interpreter.
NATIVE := src/crisptree/native
RACES := build/races
IS_X86 := $(filter x86_64,$(shell uname -m))
WITH_TSAN := $(CXX) -std=c++17 -O2 -g -fsanitize=thread -ffp-contract=off -pthread -I$(NATIVE)
test-races:
	@mkdir -p $(RACES)
	$(WITH_TSAN) $(if $(IS_X86),-mavx2) -c $(NATIVE)/kernel_avx2.cpp -o $(RACES)/avx2.o
	$(WITH_TSAN) $(if $(IS_X86),-mavx512f -mavx512bw) -c $(NATIVE)/kernel_avx512.cpp -o $(RACES)/avx512.o
	$(WITH_TSAN) tests/native/at_once.cpp $(addprefix $(NATIVE)/,router.cpp kernel_scalar.cpp kernel_vector128.cpp) \
	  $(RACES)/avx2.o $(RACES)/avx512.o -o $(RACES)/at_once
	$(RACES)/at_once

test-browser: $(BROWSER)
	$(BIN)/python -m pytest -m browser -rs tests/report

# The tests drive the system's chromium; playwright brings no browser of its own.
$(BROWSER): $(READY)
	@command -v chromium > /dev/null || { apt-get update -qq && apt-get install -y -qq chromium; } \
	  || { echo "chromium is needed and could not be installed; install it and try again"; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"  # which knows groups
	$(BIN)/python -m pip install --quiet -c constraints.txt --group browser
	@touch $(BROWSER)

report-images: $(BROWSER)
	$(BIN)/python -m tests.report.screenshots

bench-predict: setup
	$(BIN)/python benchmarks/bench_predict.py

bench-fit: setup
	$(BIN)/python benchmarks/bench_fit.py

# Fits whose records are in build/tables.jsonl are not run again; the single fits are measured last, then the page is written.
bench-tables: setup
	$(BIN)/python -m benchmarks.bench_tables --jobs $(JOBS)
	$(BIN)/python -m benchmarks.bench_tables --speed
	$(BIN)/python -m benchmarks.bench_tables --page

# Sections 4.1 to 4.4 and the supplement. Records that are there are not made again; DRY=--dry-run lists what is missing.
paper: setup
	$(BIN)/python -m experiments.run --jobs $(JOBS) $(DRY)
	$(BIN)/python -m experiments.more_epochs mnist connect4 $(DRY)
	$(BIN)/python -m experiments.roughness --seeds 0,1,2,3,4 $(DRY)
	$(BIN)/python -m experiments.roughness --shallow $(DRY)
	$(BIN)/python -m experiments.segmentation --which paper,finetuned,unsmoothed --seeds 0,1,2 $(DRY)
	$(BIN)/python -m experiments.cnn $(DRY)
	$(BIN)/python -m experiments.extension $(DRY)
	test -n "$(DRY)" || $(BIN)/python -m experiments.report
	test -n "$(DRY)" || $(BIN)/python docs/pictures.py figure_1 information_gain plot_supplement_trees

paper-quick: setup
	$(BIN)/python -m experiments.run digits --device cpu --results build/paper-quick
	$(BIN)/python -m experiments.report digits --results build/paper-quick

pictures: setup
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/result_plots.py
	$(BIN)/python docs/overview.py
	$(BIN)/python docs/terminal.py

segmentation: setup
	$(BIN)/python -m experiments.segmentation --seeds 0,1,2 --which defaults,paper_sample,finetuned,unsmoothed,brightness,scales,stacked,forest

bench-segment: setup
	$(BIN)/python benchmarks/bench_segment.py

# Warnings are errors, but all of them are shown; -E because Sphinx overlooks new API pages otherwise. What Sphinx writes beside the sources is ignored by git.
docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -b html -E -j auto -W --keep-going -q -d build/docs-cache docs build/docs
	@echo "open build/docs/index.html"

clean:
	rm -rf docs/auto_examples docs/api/generated docs/sg_execution_times.rst
	rm -rf .venv build dist demo .mypy_cache .ruff_cache .pytest_cache
