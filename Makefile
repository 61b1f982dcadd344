# make book · make test · make test-quick · make test-fresh · make test-heavy · make rerun CHAPTER=… ARGS="-p seeds 5" · make execute CHAPTER=… · make live · make verify · make compare-code · make replay · make compare · make leaderboard · make train-missing · make take-rows · make scoreboard · make strength · make bench · make soak · make lint · make lock · make wheel · make clean · make clean-cache

PYTHON ?= python3
PORT ?= 8000
# Processes that test; on two cores a third makes all tests together take longer.
JOBS ?= 2
MINUTES ?= 10

BIN := .venv/bin
READY := .venv/.ready
HTML := _build/html
PYTEST := $(BIN)/python -m pytest -n $(JOBS)
QUICK := tests/units tests/tasks tests/records/test_store.py tests/training/test_sealed.py tests/models tests/test_values.py \
  $(addprefix tests/companion/test_,$(addsuffix .py,measures parameters thresholds published formulas golden)) \
  $(addprefix tests/training/test_,$(addsuffix .py,losses_and_penalties optimisers)) nalm/units nalm/tasks nalm/values.py book/companion/measures.py
# Before any test: a Chromium that opens a page is found or installed.
BROWSER = CHROMIUM="$$($(BIN)/python tests/chromium.py)" || exit 1; export CHROMIUM;

.DEFAULT_GOAL := help
.PHONY: help setup book live rerun execute verify compare-code compare leaderboard replay train-missing take-rows scoreboard strength bench soak lint lock wheel test test-quick test-fresh test-heavy test-units test-notebooks test-reruns test-book clean clean-cache

help:
	@echo 'make book            build the book into $(HTML)'
	@echo 'make test            run every test; one part alone: test-units, test-notebooks, test-reruns, test-book'
	@echo 'make test-quick      run the quick tests of units, tasks, values, measures and records, in less than a minute'
	@echo 'make test-fresh      run make book and make test as on a bare machine, then the wheel with the oldest and newest versions, then test-heavy: 20 GB, an hour'
	@echo 'make test-heavy      test the installation of Chromium, the instructions of the processor, other frameworks, real processes of a Dask cluster, and the accessibility of every page'
	@echo 'make rerun           run a chapter with other parameters: CHAPTER=book/… ARGS="-p seeds 5"'
	@echo 'make execute         run a chapter as it is and write its outputs into it, as they are committed: CHAPTER=book/…'
	@echo 'make live            build the book and serve it on this machine, PORT=$(PORT)'
	@echo 'make verify          train a random sample of the published rows again and compare: ROWS=5 EXPERIMENT=… STALE=1 CONFIRM=1 ARGS="…"'
	@echo 'make compare-code    run the code of a commit and the present one side by side, bit for bit: AGAINST=COMMIT WITH=another-python EXPERIMENT=…'
	@echo 'make compare         compare a unit of your own with the NAU and the NMU: UNIT=square.py:SquareUnit ITERATIONS=5000 SEEDS=10 ARGS="…"'
	@echo 'make leaderboard     write the leaderboard and the head of it in the README; or print it with a unit of your own: UNIT=square.py:SquareUnit ARGS="--operation squared --seeds 10"'
	@echo 'make replay          train the recorded runs of an experiment as the authors did, seed by seed: EXPERIMENT=division/no-redundancy ARGS="--results publish"'
	@echo 'make train-missing   train what is still missing, in order of value and at the lowest priority, into .training/results: ARGS=--list'
	@echo 'make take-rows       take up the rows of another folder of results: FROM=FOLDER EXPERIMENT=… ARGS="--replace-older"'
	@echo 'make scoreboard      write the scoreboard, its lines in the README and the picture of the landing page anew from the recorded runs'
	@echo 'make strength        corrupt the rows of every judged experiment and judge it again: what its verdict would notice'
	@echo 'make bench           measure how fast runs are trained on this machine, and its floor: ARGS="division-2 cnn"'
	@echo 'make soak            kill and restart sweeps, MINUTES=$(MINUTES), and all other commands at random moments, and compare their rows; refuse bad parameters'
	@echo 'make lint            look for what is unused, badly laid out or of a wrong type, as the tests do'
	@echo 'make lock            write requirements.txt, with all versions and hashes, from requirements.in; CPU=… is the index of the wheels without CUDA'
	@echo 'make wheel           build the library alone, without the book, into dist'
	@echo 'make clean           remove what was built; make clean-cache: compiled code, which is kept for later processes'

setup: $(READY)

$(READY): requirements.txt pyproject.toml book/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { \
	  echo "What requirements.txt locks is for Python 3.11 to 3.14, and $(PYTHON) is another: choose one with 'make PYTHON=/path/to/python3.11 …'." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { \
	  echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian: python3-venv)." >&2; exit 1; }
	@echo 'Installing what is needed into .venv; the first time this takes some minutes.'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e book
	@touch $@

# With new pages the book is read anew: what moved to one would count as described twice.
book: $(READY)
	@test _build/.doctrees/environment.pickle -nt _toc.yml || rm -rf _build/.doctrees
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo 'The book: $(HTML)/index.html'

live: book
	@echo 'The book: http://127.0.0.1:$(PORT)/ (stop with Ctrl-C)'
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(HTML)

rerun: $(READY)
	@test -n '$(CHAPTER)' || { \
	  echo 'Say which chapter: make rerun CHAPTER=book/division/no-redundancy.ipynb ARGS="-p seeds 5".' >&2; exit 1; }
	@test -f '$(CHAPTER)' || { \
	  echo 'There is no chapter $(CHAPTER); the chapters are: $(wildcard book/*/*.ipynb).' >&2; exit 1; }
	@mkdir -p '_build/rerun/$(dir $(CHAPTER))'
	@$(BIN)/python -m companion.rerun '$(CHAPTER)' '_build/rerun/$(CHAPTER)' $(ARGS)
	@echo 'The chapter with these parameters: _build/rerun/$(CHAPTER)'

execute: $(READY)
	@test -f '$(CHAPTER)' || { echo 'Say which chapter: make execute CHAPTER=book/division/no-redundancy.ipynb.' >&2; exit 1; }
	@$(BIN)/python -m companion.execute '$(CHAPTER)'

verify: $(READY)
	$(BIN)/python -m companion.verification.__main__ $(if $(ROWS),--rows $(ROWS)) $(if $(EXPERIMENT),--experiment $(EXPERIMENT)) $(if $(STALE),--stale) $(if $(CONFIRM),--confirm) $(ARGS)

compare-code: $(READY)
	@test -n '$(AGAINST)$(WITH)' || { \
	  echo 'Say with which code or PyTorch: make compare-code AGAINST=COMMIT WITH=/path/to/python.' >&2; exit 1; }
	$(BIN)/python -m companion.verification.sidebyside $(AGAINST) $(if $(WITH),--python '$(WITH)') $(if $(EXPERIMENT),--experiment $(EXPERIMENT)) $(ARGS)

compare: $(READY)
	@test -n '$(UNIT)' || { echo 'Say which unit: make compare UNIT=square.py:SquareUnit.' >&2; exit 1; }
	$(BIN)/python -m nalm.study '$(UNIT)' $(if $(ITERATIONS),--iterations $(ITERATIONS)) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)
	@echo 'Among all units, on products: make leaderboard UNIT=$(UNIT)'

leaderboard: $(READY)
	$(BIN)/python -m companion.beyond.board $(if $(UNIT),'$(UNIT)') $(ARGS)

replay: $(READY)
	@test -n '$(EXPERIMENT)' || { echo 'Say which experiment: make replay EXPERIMENT=division/no-redundancy.' >&2; exit 1; }
	$(BIN)/python -m companion.replay '$(EXPERIMENT)' $(ARGS)

# In a checkout of its own at the present commit, so that edits do not disturb it.
train-missing: $(READY)
	@test -d .training/checkout || git worktree add --quiet --detach .training/checkout
	@git -C .training/checkout checkout --quiet --detach "$$(git rev-parse HEAD)"
	@cd .training/checkout && PYTHONPATH="$$PWD:$$PWD/book" OMP_NUM_THREADS=1 '$(CURDIR)/$(BIN)/python' -m companion.missing ../results $(ARGS)

take-rows: $(READY)
	@test -n '$(FROM)' || { echo 'Say from which folder of results: make take-rows FROM=../elsewhere/book/results.' >&2; exit 1; }
	$(BIN)/python -m companion.verification.take '$(FROM)' $(if $(EXPERIMENT),--experiment $(EXPERIMENT)) $(ARGS)

scoreboard: $(READY)
	$(BIN)/python -m companion.scoreboard
	$(BIN)/python -m companion.picture

strength: $(READY)
	$(BIN)/python -m companion.scoreboard.strength

bench: $(READY)
	$(BIN)/python -m companion.benchmark $(ARGS)

soak: $(READY)
	$(BIN)/python tests/soak.py "$(MINUTES)"
	$(BIN)/python tests/commands.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock: $(READY)
	$(BIN)/python tests/lock.py $(CPU)

# What an earlier build left behind would get into the wheel.
wheel: $(READY)
	@rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	@rm -rf build
	@echo "The wheel: $$(ls dist/*.whl)"

test: $(READY)
	@$(BROWSER) $(PYTEST)

test-quick: $(READY)
	$(PYTEST) $(QUICK)

test-fresh: $(READY)
	$(PYTHON) tests/fresh.py
	$(PYTHON) tests/versions.py oldest
	$(PYTHON) tests/versions.py newest
	$(MAKE) test-heavy

test-heavy: $(READY)
	@$(BROWSER) $(BIN)/python -m pytest tests/installing.py tests/instructions.py tests/wheel.py tests/frameworks.py tests/on_dask.py tests/book/accessibility.py tests/companion/from_cpp.py

test-units: $(READY)
	$(PYTEST) tests nalm --ignore=tests/book

test-notebooks: $(READY)
	$(PYTEST) book tests/book/test_outputs.py tests/book/test_one_truth.py tests/book/test_columns.py tests/book/test_heads.py tests/book/test_marks.py tests/book/test_own_unit.py tests/book/test_units_page.py tests/book/test_words.py

test-reruns: $(READY)
	$(PYTEST) tests/book/test_reruns.py tests/book/test_refusals.py

test-book: $(READY)
	@$(BROWSER) $(PYTEST) tests/book/test_pages.py tests/book/test_widgets.py tests/book/test_readme.py tests/book/test_edition.py tests/book/test_extensions.py tests/book/test_rerun.py

clean:
	rm -rf _build build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache

clean-cache: $(READY)
	$(BIN)/python -c 'from nalm.training.kept import clean; clean()'
