"""Memoised training: ask for runs, get rows. What is recorded is read; what is missing is trained and
recorded.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from nalm.own import IN_A_NOTEBOOK
from nalm.records import lengths
from nalm.records.bar import TrainingBar
from nalm.records.cluster import dask_team
from nalm.records.code import OLDER, freshness_of
from nalm.records.comparison import is_further_result
from nalm.records.folders import PUBLISHED, results_folder
from nalm.records.groups import checkpoint_of
from nalm.records.keys import keys_of
from nalm.records.row import whole_row_of
from nalm.records.store import COLUMNS, NAMES, Store
from nalm.records.workers import Team, cores, device_of, is_known_here_only, train_ensembles
from nalm.tasks import Task
from nalm.tasks.arithmetic import OperandTask
from nalm.training import Log, Run
from nalm.training.trial import try_units
from nalm.units.checks import boolean
from nalm.values import Value

__all__ = ["ensembles_of", "run_all"]

FIXED = set(COLUMNS) - set(NAMES)
"""Columns whose values follow from the run; a label may give it another model and range."""

MOST_ITERATIONS = 10**8
"""Of a run; an ensemble counts them in its memory."""
LARGEST_ENSEMBLE = 256
"""Rows are recorded after each ensemble; more runs at once are hardly faster on a CPU."""

SIDE_BY_SIDE = 10
"""Runs of a large model that a CUDA device trains at once."""

LARGEST_DRAW = 2**19
"""Numbers that an ensemble draws per update: 2 MiB, of which a core's cache holds most. With wide inputs,
larger ensembles are slower.
"""


def run_all(
    runs: Sequence[Run],
    experiment: str,
    results: str = "",
    device: str = "cpu",
    progress: bool = True,
    executor: Executor | None = None,
    scheduler: str = "",
    train: bool = True,
    also: Sequence[str] = (),
    compiled: bool | None = None,
    keep_states: bool = False,
    retrain: bool = False,
    fresh: bool = False,
) -> pd.DataFrame:
    """The rows of runs, in their order; trains and records those that are not recorded yet.

    Args:
        runs: what is asked for.
        experiment: ``"<paper>/<name>"``, the name of the results file.
        results: where new rows go: ``""`` the reader's own store, ``"publish"`` the book's, or a folder.
            Published rows are read in any case, and of a run that is in both places the published row counts.
        device: where missing runs are trained.
        progress: show a progress bar while training, and say how many rows are older than their code or come
            from elsewhere than the published ones.
        executor: trains all missing runs instead of this process and its own worker processes. What it is
            given and returns is pickled if it has processes; an executor of threads gains nothing, as the
            ensembles of a process take turns.
        scheduler: the address of a Dask scheduler, ``"tcp://host:8786"``, whose workers train all missing
            runs.
        train: if false, nothing is trained and missing runs have no row; for experiments that are recorded a
            part at a time.
        also: other experiments, whose recorded rows count as well: a run of two figures is trained once.
        compiled: whether missing runs are trained with compiled code. ``None``: if they are long enough to
            gain from it and torch's compiler works where they are trained; ``False``: not, which is slower
            and rounds differently; ``True``: in any case. It is recorded with the rows.
        keep_states: keep the states in which runs of large models end, from which a longer training of the
            same runs goes on (:mod:`nalm.records.lengths`).
        retrain: whether runs whose recorded row is older than the code it depends on are missing too; the new
            row takes the place of one in the same folder.
        fresh: whether published rows are left out of account, so that their runs are trained anew, with the
            same seeds; rows that ``results`` has already count.

    Returns:
        A row per run with the columns :data:`nalm.records.store.COLUMNS`, the runs' labels and one column per
        further evaluation set.

    Raises:
        ValueError: an empty selection, equal runs, more than a hundred million iterations, a device that is
            not there, a scheduler that does not answer, a damaged results file, ``fresh`` with the published
            rows as results, a model or range whose name would be read otherwise, or nothing recorded where
            nothing may be trained. Nothing is trained then.
        TypeError: something else than runs, an executor or an address, or a flag that is neither True nor
            False.
        RuntimeError: a worker that died, or that runs other code than this process, or ``compiled=True``
            where torch's compiler does not work. What others have finished is recorded.
        OSError: a folder that cannot be written to, or a full disk. What is recorded stays, and the same
            command goes on from there.

    >>> import tempfile
    >>> from nalm.tasks import SingleModuleTask
    >>> from nalm.models import Stack
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=20, optimiser=Adam(lr=1e-2), log_interval=10)
    >>> task = SingleModuleTask.on("U[1,2)", operation="mul")
    >>> first = Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=0, threshold=1e-5)
    >>> runs = [first, first.but(seed=1)]
    >>> rows = run_all(runs, "demo/nmu", results=tempfile.mkdtemp(), progress=False)
    >>> rows[["model", "range", "seed", "success"]]
      model   range  seed  success
    0   NMU  U[1,2)     0    False
    1   NMU  U[1,2)     1    False
    """
    runs, device = _checked(runs), str(device)  # a torch.device says what it is
    if not (executor is None or isinstance(executor, Executor)):
        raise TypeError(f"An executor is a concurrent.futures.Executor, not {executor!r}.")
    flags = {"progress": progress, "train": train, "keep_states": keep_states}
    for name, flag in (flags | {"retrain": retrain, "fresh": fresh}).items():
        boolean(name, flag)
    if compiled is not None:
        boolean("compiled", compiled)
    also = [also] if isinstance(also, str) else list(also)
    keys = _keys(runs)
    _check_labels(runs)
    if (longest := max(run.recipe.iterations for run in runs)) > MOST_ITERATIONS:
        raise ValueError(
            f"A run of {longest:,} iterations was asked for, but at most {MOST_ITERATIONS:,} are taken."
        )
    if not isinstance(scheduler, str):
        raise TypeError(f"A scheduler is its address, as 'tcp://host:8786', not {scheduler!r}.")
    if executor is not None and scheduler:
        raise ValueError("Give an executor or the address of a scheduler, not both.")
    if executor is None and not scheduler:
        device = device_of(device)  # elsewhere, the workers check it
    folder = results_folder(results)
    if fresh and folder == PUBLISHED:
        raise ValueError(
            f"fresh=True leaves published rows out of account, so results={results!r} cannot take the new "
            "ones; allowed are '' and the path of another folder."
        )
    store = Store(folder, experiment)
    sources = _sources((folder,) if fresh else (folder, PUBLISHED), (*also, experiment))
    known = _known(sources, keys, retrain)
    missing = sum(key not in known for key in keys)
    if missing and train:
        for key, run in zip(keys, runs, strict=True):
            if key not in known:
                try_units(run)
        _check_they_are_found(runs, executor is not None or bool(scheduler))
        store.make_room(missing)
        with _team(executor, scheduler) as (team, places):
            # Grouped before the recorded runs are taken out, so that an interrupted sweep finds its ensembles
            # and their checkpoints again.
            ensembles = [
                [run for run in ensemble if run.key not in known]
                for ensemble in ensembles_of(runs, places if device == "cpu" or team else 1, device)
            ]
            _train(
                [ensemble for ensemble in ensembles if ensemble],
                store,
                device,
                progress,
                len(runs),
                team,
                compiled,
                sources,
                keep_states,
                retrain,
            )
        # what was just trained counts, even if its file was edited meanwhile, so that its code is not known
        known = _known(sources, keys, False) | (_known(sources, keys, True) if retrain else {})
    if progress:
        _say_where_from(known)
    if missing == len(runs) and not train:
        raise ValueError(
            f"None of the {len(runs):,} runs asked for is recorded; with train=True they are trained."
        )
    return pd.DataFrame(
        [known[key][1] | run.labels for key, run in zip(keys, runs, strict=True) if train or key in known]
    ).infer_objects()


def _train(
    ensembles: list[list[Run]],
    store: Store,
    device: str,
    progress: bool,
    asked: int,
    team: Team | None,
    compiled: bool | None,
    sources: Sequence[Store],
    keep_states: bool,
    retrain: bool,
) -> None:
    folder = store.rows_file.parent
    for ensemble in ensembles:
        lengths.begin(ensemble, folder, partial(_is_trusted, sources))
    missing = [run for ensemble in ensembles for run in ensemble]
    done = asked - len(missing)
    with TrainingBar(missing, progress) as bar:
        bar.set_description(f"{done} of {asked} runs")
        for trained, (log, origin) in train_ensembles(
            ensembles, device, folder, bar.update, team, compiled, bar.compiling
        ):
            if keep_states:
                lengths.keep(trained, folder)
            _record(trained, log, origin, store, retrain)
            checkpoint_of(trained, folder).remove()
            done += len(trained)
            bar.set_description(f"{done} of {asked} runs")


@contextmanager
def _team(executor: Executor | None, scheduler: str) -> Iterator[tuple[Team | None, int]]:
    """Who trains instead of this process, if anybody, and how many ensembles may be trained at once."""
    if scheduler:
        with dask_team(scheduler) as team:
            yield team
    elif executor is not None:
        yield Team(executor), getattr(executor, "_max_workers", None) or cores()
    else:
        yield None, cores()


def _checked(runs: Iterable[Run] | Run) -> list[Run]:
    runs = [runs] if isinstance(runs, Run) or not isinstance(runs, Iterable) else list(runs)
    for run in runs:
        if not isinstance(run, Run):
            raise TypeError(f"What is trained is a nalm.training.Run, not {run!r}.")
    return runs


def _keys(runs: list[Run]) -> list[str]:
    """The keys of runs, which all have to be different."""
    if not runs:
        raise ValueError("No runs were asked for: the selection of models, ranges or seeds is empty.")
    # the seeds of an arm share its values
    for run in {(id(one.task), id(one.model), id(one.recipe), one.threshold): one for one in runs}.values():
        if found := re.search(r"'(\w+)': (-?inf|nan)\b", str(run.model_dump())):
            raise ValueError(f"{found[1]} is {found[2]}, but must be a finite number.")
    keys = keys_of(runs)
    if len(set(keys)) < len(keys):
        twice = next(run for run, key in zip(runs, keys, strict=True) if keys.count(key) > 1)
        raise ValueError(
            f"The same run was asked for twice: seed {twice.seed} of {twice.labels or twice.task.label()}."
        )
    return keys


def _check_labels(runs: list[Run]) -> None:
    """A label becomes a cell of its run's row, which is read as it was written."""
    labels = {label for run in runs for label in run.labels.items()}
    for name in sorted({name for name, _ in labels}):
        if name in FIXED or name == "lows" or is_further_result(name):
            raise ValueError(f"A label cannot be called {name!r}: rows have a column of that name.")
    for text in sorted({text for label in labels for text in label if "\r" in text}):
        raise ValueError(f"A label cannot be {text!r}: a carriage return ends a line of the rows' file.")
    for text in sorted({text for label in labels for text in label}):
        if text != text.encode(errors="ignore").decode():
            raise ValueError(f"A label cannot be {text!r}: it is no text that a file can hold.")
    if "" in dict(labels):
        raise ValueError("A label has no name.")
    texts = sorted({text for _, text in labels})
    read = pd.read_csv(
        io.StringIO(
            "label\n"
            + pd.Series(texts, dtype=object).to_csv(index=False, header=False, quoting=csv.QUOTE_ALL)
        )
    )
    if texts and (
        lost := [text for text, there in zip(texts, read["label"].notna(), strict=False) if not there]
    ):
        raise ValueError(f"A label cannot be {lost[0]!r}: it would be read as a missing value.")
    # the task's own label stands in the column "range" where the run has none
    called = {("range", task.label()) for task in {id(run.task): run.task for run in runs}.values()}
    for name, text in sorted(called | {label for label in labels if label[0] in ("model", "range")}):
        (as_read,) = pd.read_csv(io.StringIO(f'{name}\n"{text.replace(chr(34), 2 * chr(34))}"\n'))[name]
        if str(as_read) != text:
            raise ValueError(f"A {name} cannot be called {text!r}: it would be read as {as_read}.")


def _sources(folders: Sequence[Path], names: Sequence[str]) -> list[Store]:
    """Where rows are read. The book's results come last, so that no local row takes the place of a published
    one.
    """
    return [Store(place, name) for place in dict.fromkeys(folders) for name in names]


def _known(
    sources: Sequence[Store], keys: Sequence[str], without_older: bool
) -> dict[str, tuple[Store, dict[str, Any]]]:
    """The rows with these keys and where they are, of several with one key that of the last source."""
    known: dict[str, tuple[Store, dict[str, Any]]] = {}
    for source in sources:
        rows = source.read()
        rows = rows[rows["key"].isin(keys)]
        if without_older and len(rows):
            rows = rows[freshness_of(rows, source.sidecar()) != OLDER]
        known |= {row["key"]: (source, row) for row in rows.to_dict("records")}
    return known


def _check_they_are_found(runs: list[Run], elsewhere: bool) -> None:
    """What is defined in a notebook, only its own process knows."""
    if elsewhere and (here := next((run for run in runs if is_known_here_only(run)), None)):
        name = here.canonical().partition(IN_A_NOTEBOOK)[2].partition('"')[0]
        raise ValueError(
            f"{name} is defined in this notebook, where an executor or scheduler cannot find it: write the "
            "cell to a file with %%writefile and import it."
        )


def _is_trusted(sources: Sequence[Store], key: str) -> bool:
    """Whether a run is recorded, with the code as it is now or with one that is known to give the same."""
    return any(
        freshness_of(pd.DataFrame([row]), store.sidecar()).item() != OLDER
        for store, row in _known(sources, [key], False).values()
    )


def _say_where_from(found: dict[str, tuple[Store, dict[str, Any]]]) -> None:
    """Old and new rows are not mixed in silence, nor the book's and the reader's own."""
    older = elsewhere = 0
    places = set()
    for source in dict.fromkeys(store for store, _ in found.values()):
        rows = pd.DataFrame([row for store, row in found.values() if store is source])
        older += int((freshness_of(rows, source.sidecar()) == OLDER).sum())
        if not source.rows_file.is_relative_to(PUBLISHED):
            elsewhere += len(rows)
            places.add(str(source.rows_file))
    if elsewhere:
        print(f"{elsewhere:,} of {len(found):,} rows come from {' and '.join(sorted(places))}.")
    if older:
        print(f"{older:,} of {len(found):,} rows are older than the code that they depend on.")


def ensembles_of(runs: Sequence[Run], places: int, device: str = "cpu") -> list[list[Run]]:
    """How :func:`run_all` groups runs into ensembles, of which ``places`` are trained at once.

    Runs of equal structure are trained together, on the common stream those that share their inputs; where
    that leaves places without work, in smaller ensembles of about equal size; runs that draw many numbers in
    ensembles whose numbers a core's cache holds; large models each by themselves. They are trained in the
    order in which they are asked for.
    """
    groups: dict[tuple, list[Run]] = {}
    for run in runs:
        inputs = _inputs(run.task).canonical() if run.recipe.stream == "common" else None
        groups.setdefault((run.structure(), inputs), []).append(run)
    share = len(runs) if len(groups) >= places else -(-len(runs) // places)
    ensembles = []
    for group in groups.values():
        parts = -(-len(group) // min(share, _most_runs(group[0], device)))
        # all places are done at the same time
        parts = -(-parts // places) * places if len(groups) == 1 else parts
        size = -(-len(group) // parts)
        ensembles += [group[first : first + size] for first in range(0, len(group), size)]
    places_asked = {id(run): place for place, run in enumerate(runs)}
    return sorted(ensembles, key=lambda ensemble: places_asked[id(ensemble[0])])


def _inputs(task: Task) -> Value:
    """What decides the inputs that runs of equal structure see on the common stream."""
    return task.interpolation if isinstance(task, OperandTask) else task


def _most_runs(run: Run, device: str) -> int:
    """How many runs like this one an ensemble may hold."""
    if run.model.one_by_one:
        return 1 if device == "cpu" else SIDE_BY_SIDE
    draw = run.task.noise_rows() * run.recipe.batch_size if run.recipe.stream != "common" else 1
    return max(1, min(LARGEST_ENSEMBLE, LARGEST_DRAW // draw))


def _record(runs: list[Run], log: Log, origin: dict[str, Any], store: Store, replace: bool) -> None:
    batch = hashlib.sha256((json.dumps(origin) + "".join(run.key for run in runs)).encode()).hexdigest()[:8]
    rows = [whole_row_of(run, column, log, store.experiment, batch) for column, run in enumerate(runs)]
    configurations = {run.configuration_key: run.full_configuration for run in runs}
    store.add(rows, configurations, batch, origin, [run.key for run in runs] if replace else ())
