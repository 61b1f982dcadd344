"""Tasks: what is learned. A task draws data; it trains nothing."""

from typing import TYPE_CHECKING, Annotated

from nalm.extras import train as _  # noqa: F401

# isort: split
from pydantic import Field

from nalm.tasks.digits import DigitSequenceTask
from nalm.tasks.fsir import FractionalSIRTask, fractional_sir
from nalm.tasks.large_scale import LargeScaleTask, sobol
from nalm.tasks.operations import OPERATIONS, operation
from nalm.tasks.ranges import Benford, Halves, Range, TrainingRange, TruncatedNormal, Uniform, UniformUnion
from nalm.tasks.simple_arithmetic import SimpleArithmeticTask
from nalm.tasks.single_module import UNIFORM_RANGES, SingleModuleTask, uniform_range
from nalm.tasks.subset_arithmetic import SubsetArithmeticTask, TenParameterTask
from nalm.tasks.task import EvaluationSet, Task
from nalm.values import OrOwn

__all__ = [
    "OPERATIONS",
    "UNIFORM_RANGES",
    "AnyTask",
    "Benford",
    "DigitSequenceTask",
    "EvaluationSet",
    "FractionalSIRTask",
    "Halves",
    "LargeScaleTask",
    "Range",
    "SimpleArithmeticTask",
    "SingleModuleTask",
    "SubsetArithmeticTask",
    "Task",
    "TenParameterTask",
    "TrainingRange",
    "TruncatedNormal",
    "Uniform",
    "UniformUnion",
    "fractional_sir",
    "operation",
    "sobol",
    "uniform_range",
]

_Ours = (
    SingleModuleTask
    | SubsetArithmeticTask
    | TenParameterTask
    | SimpleArithmeticTask
    | LargeScaleTask
    | FractionalSIRTask
    | DigitSequenceTask
)
if TYPE_CHECKING:
    AnyTask = Task
else:
    AnyTask = Annotated[_Ours, Field(discriminator="kind"), OrOwn(Task)]
