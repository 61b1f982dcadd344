"""The bar of a training says while something is compiled."""

import pytest

from nalm.models import Stack
from nalm.records import groups, workers
from nalm.records.bar import TrainingBar
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Ensemble, Recipe, Run

RECIPE = Recipe(iterations=40, optimiser=Adam(lr=1e-2), log_interval=20)
RUNS = [
    Run(
        task=SingleModuleTask.on("U[1,2)", operation="mul"),
        model=Stack.of("NMU", 1),
        recipe=RECIPE,
        seed=seed,
    )
    for seed in range(2)
]


def test_it_says_so_and_stops_saying_so(capfd):
    with TrainingBar(RUNS) as bar:
        bar.compiling(2)
        bar.compiling(1)
        begun = capfd.readouterr().err
        bar.compiling(0)
        bar.update(80)
    assert begun.count("compiling") == 1 and "0.00/80.0" in begun
    assert "compiling" not in capfd.readouterr().err.splitlines()[-1].rpartition("\r")[2]


def test_a_hidden_bar_says_nothing(capfd):
    with TrainingBar(RUNS, shown=False) as bar:
        bar.compiling(1)
        bar.update(80)
    assert capfd.readouterr().err == ""


@pytest.fixture
def told(monkeypatch):
    """What is done and told in turn, of trainings that say that they are compiled."""
    seen, advance = [], Ensemble._advance

    def compiled(run, device):
        def ensemble(runs, device, compiled):
            made = Ensemble(runs, device, compiled=False)
            made.compiled = True
            return made

        return ensemble

    def advanced(self, first, last):
        seen.append(f"update {first}")
        if first == 20 and self.runs[0].seed == 5:
            raise ArithmeticError
        advance(self, first, last)

    monkeypatch.setattr(groups, "trainer_of", compiled)
    monkeypatch.setattr(groups, "POLL_SECONDS", -1.0)  # everything is told
    monkeypatch.setattr(Ensemble, "_advance", advanced)
    return seen


def trained(ensembles, folder, told):
    return list(
        workers.train_ensembles(
            ensembles, "cpu", folder, told.append, compiling=lambda number: told.append(f"{number} compiled")
        )
    )


def test_an_ensemble_is_compiled_until_its_first_updates_are_through(tmp_path, told):
    trained([RUNS], tmp_path, told)
    assert told[:5] == ["1 compiled", "update 0", "0 compiled", 80, "update 20"]
    assert "1 compiled" not in told[1:] and sum(number for number in told if isinstance(number, int)) == 80


def test_one_that_fails_is_not_compiled_any_more(tmp_path, told, monkeypatch):
    monkeypatch.setattr(groups, "POLL_SECONDS", 60.0)
    with pytest.raises(ArithmeticError):
        trained([[RUNS[0].but(seed=5)]], tmp_path, told)
    assert told == ["1 compiled", "update 0", "update 20", "0 compiled"]


def test_there_is_no_bar_of_nothing(capfd):
    with TrainingBar([]) as bar:
        assert bar.disable
    assert not capfd.readouterr().err
