"""The values printed in the three papers, as tables.

* ``nau_nmu_table1``, ``nau_nmu_table2``, ``nau_nmu_table5``, ``nau_nmu_table6``: the tables of Madsen &
  Johansen (2020) as printed; shares as fractions, ``plus`` and ``minus`` are the distances to the ends of the
  95% interval;
* ``nau_nmu_table6_repo_fullprecision``: the authors' unrounded summary of Table 6, with sample means and
  medians recomputed from their file of single runs;
* ``nau_nmu_runs``: their single runs of Table 6, seeds 0 to 49 of 60 lines; ``logged_points`` counts the rows
  of a run's log, one for every 1,000 iterations, ``selected_log_point`` the one with the least validation
  error;
* ``nau_nmu_logged_points``: the former of all 6,000 runs;
* ``nau_nmu_figures``: Figures 3, 4, 7, 13, 14, 15, read off the vector graphics; solved counts (``n_solved``
  of ``n_runs``) are exact, other values good to 1e-4 of the axis;
* ``nau_nmu_fig9_gate_histogram``: Figure 9, exact bar counts;
* ``npu_values``: numbers printed in Heim, Pevný & Šmídl (2020) and in its Figure 5; ``spread`` is what stands
  after the plus-minus sign, ``note`` says which measure it is;
* ``npu_pareto``, ``npu_fig7``: Figures 4 (left) and 7, one line per plotted point; columns ending in
  ``_inferred`` follow from the order of the points and are not printed;
* ``division_values``: numbers and ticks in the text and tables of Mistry, Farrahi & Hare (2022), whose
  figures are not available as numbers; ``value`` may be a word;
* ``division_golden_errors``: the points of its Figure 5, from a file of the authors.

Sources: A. Madsen, A. R. Johansen, Neural Arithmetic Units, ICLR 2020; N. Heim, T. Pevný, V. Šmídl, Neural
Power Units, NeurIPS 2020; B. Mistry, K. Farrahi, J. Hare, Exploring the Learning Mechanisms of Neural
Division Modules, TMLR 2022.

``load`` names the first column ``item`` throughout and spells models as the book does (NAC• where a file has
"NAC."). Published sparsity errors are on the halved scale wherever a beta distribution was fitted
(companion.measures.sparsity_error).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from nalm.units.checks import nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load", "names", "value"]

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The tables that can be loaded.

    >>> "npu_values" in names()
    True
    """
    return sorted(path.stem for path in _FOLDER.glob("*.csv"))


def load(name: str) -> pd.DataFrame:
    """One table of published values.

    >>> load("nau_nmu_table1").query("model == 'NMU' and metric == 'success_rate'").value.item()
    0.94
    """
    return _table(name).copy(deep=False)  # changing it copies what is changed


@cache
def _table(name: str) -> pd.DataFrame:
    import pandas as pd

    if name not in names():
        raise ValueError(f"No published table is called {name!r}: {nearest(name, names())}")
    table = pd.read_csv(_FOLDER / f"{name}.csv")
    table = table.rename(columns={"table_or_figure": "item", "figure_or_table": "item"})
    if "model" in table.columns:
        spelled = (
            table["model"]
            .str.replace(r"^NAC\.", "NAC•", regex=True)
            .str.replace("•,sigma", "•,σ", regex=False)
        )
        table["model"] = spelled
    return table


@cache
def value(name: str, column: str = "value", **where: object) -> float:
    """The one number of a table whose columns have the given values.

    >>> value("npu_values", item="Table A2", task="div", model="RealNPU")
    0.085
    >>> value("npu_values", column="spread", item="Table A2", task="div", model="RealNPU")
    0.038
    """
    table = load(name)
    for key in (column, *where):
        if key not in table.columns:
            raise ValueError(f"{name} has no column {key!r}: {nearest(key, table.columns)}")
    found = table
    for key, wanted in where.items():
        found = found[(found[key] == wanted) | (found[key].astype(str) == str(wanted))]
    said = ", ".join(f"{key}={wanted!r}" for key, wanted in where.items()) or "no condition"
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows of {name} fit {said}; exactly one must.")
    number = found[column].item()
    try:
        return float(number)
    except ValueError:
        raise ValueError(
            f"The {column} of {name} with {said} is {number!r}, which is not a number."
        ) from None
