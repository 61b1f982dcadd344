"""What a reader's first line costs."""

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

from nalm.extras import NEEDED

ROOT = Path(__file__).parents[1]

MEASURE = """
import json, sys, time, torch
HEAVY = "pandas", "scipy", "matplotlib", "statsmodels", "torchvision"
heavy = lambda: [name for name in HEAVY if name in sys.modules]
start = time.perf_counter()
import nalm
seconds, with_nalm = time.perf_counter() - start, heavy()
import companion.measures
print(json.dumps({"seconds": seconds, "nalm": with_nalm, "measures": heavy()}))
"""


@cache
def measured(number: int) -> dict:
    """What the imports of a process took and loaded, beyond torch."""
    return json.loads(
        subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout
    )


def test_importing_nalm_leaves_heavy_packages_out():
    assert measured(1)["nalm"] == []


def test_importing_the_measures_loads_no_statistics_package():
    assert measured(1)["measures"] == []


def test_importing_nalm_costs_at_most_a_second_beyond_torch():
    # something else may have kept the processor busy
    assert measured(1)["seconds"] < 1 or measured(2)["seconds"] < 1


BLOCKED = "pydantic", "scipy", "torchdiffeq", "pandas", "tqdm", "platformdirs", "filelock", "matplotlib"
LIGHT = """
import torch
from nalm import NMU, Unit, penalty, project_, ramp, round_, sparsity_error
model = torch.nn.Sequential(NMU(2, 1))
(model(torch.ones(4, 2)).sum() + penalty(model)).backward()
project_(model)
print(isinstance(model[0], Unit), bool(0 <= sparsity_error(model) <= 0.5))
"""


CASES = [
    *((f"import nalm.{name}", "pydantic", "train") for name in ("models", "tasks", "training", "records")),
    ("import nalm.records", "filelock", "train"),
    ("import nalm.study", "pandas", "train"),
    ("import nalm.values", "pydantic", "train"),
    ("from nalm.tasks.digit_images import digit_images as get; get('sklearn')", "sklearn", "digits"),
    ("from nalm.tasks.digit_images import _downloaded as get; get()", "torchvision", "digits"),
    ("from nalm.records import check_scheduler as get; get('tcp://a:1')", "distributed", "cluster"),
    ("from nalm import NMU, formula; formula(NMU(1, 1), ['x'])", "sympy", "formulas"),
]
"""What is asked for, which module is not there, and the extra that installs it."""
ONE_BY_ONE = f"""
for code, without, _ in {CASES!r}:
    sys.modules[without] = None
    try:
        exec(code)
    except ImportError as error:
        print(error)
    del sys.modules[without]
"""


def said_without(modules: tuple[str, ...], code: str) -> list[str]:
    """The lines that a process prints which cannot import these modules."""
    code = f"import sys\nsys.modules |= dict.fromkeys({modules!r})\n{code}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


def test_units_need_torch_and_numpy_only():
    assert said_without(BLOCKED, LIGHT) == ["True True"]


def test_what_is_missing_is_said_with_the_extra_that_installs_it():
    assert said_without((), ONE_BY_ONE) == [
        f"This needs {without}, which is not installed: pip install 'nalm[{extra}]'."
        for _, without, extra in CASES
    ]


def test_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    modules = {"scikit-learn": "sklearn"}
    assert set(NEEDED) == {"train", "digits", "cluster", "figures", "formulas"}
    for extra, needed in NEEDED.items():
        names = [re.match(r"[\w-]+", each).group() for each in project["optional-dependencies"][extra]]
        assert [modules.get(name, name) for name in names if name != "nalm"] == list(needed)
