"""Units of a reader's own: one that is right, and some that training cannot take as they are."""

import torch
from torch import Tensor, nn

from nalm import Unit
from nalm.units.functional import weighted_sum


class SquareUnit(Unit):
    """y = W x², with weights in [0, 1]."""

    discrete_values = {"weight": (0, 1)}

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self.weight = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.weight, 0.25, 0.75)

    def forward(self, x: Tensor) -> Tensor:
        return weighted_sum(x.square(), self.weight)


class Plain(nn.Linear):
    """Any module with the same signature."""


class Normed(SquareUnit):
    def project_(self):
        self.weight.div_(self.weight.norm())


class Unmade(SquareUnit):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, {}["size"])


class Holding(nn.Module):
    """A module around a unit whose runs are coupled."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.unit = Normed(in_features, out_features)

    def forward(self, x):
        return self.unit(x)


class Flat(SquareUnit):
    def forward(self, x):
        return super().forward(x)[:, 0]


class Twice(SquareUnit):
    def forward(self, x):
        return super().forward(x).repeat(1, 2)


class Frozen(SquareUnit):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.weight.requires_grad_(False)


class Buffered(SquareUnit):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.register_buffer("steps", torch.zeros(1))


class Branching(SquareUnit):
    def forward(self, x):
        return super().forward(x) * (2 if x.mean() > 0 else 1)


class Reading(SquareUnit):
    def forward(self, x):
        return super().forward(x) * self.weight.max().item()


class Masking(SquareUnit):
    def forward(self, x):
        return super().forward(x) + x[x > 1].sum()


class Dropping(SquareUnit):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.1, self.training)


class Idle(SquareUnit):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.other = nn.Parameter(torch.ones(2))


class Logarithm(SquareUnit):
    def forward(self, x):
        return weighted_sum(x.abs().log(), self.weight)


class Penalised(SquareUnit):
    def penalty(self):
        return self.weight.abs()


class Renamed(Unit):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.factors = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.ones_(self.factors)

    def forward(self, x):
        return x @ self.factors.T


class Replacing(SquareUnit):
    def project_(self):
        self.weight = nn.Parameter(self.weight.clamp(0, 1))


class Misshapen(SquareUnit):
    def forward(self, x):
        return x @ self.weight


class Misspelt(SquareUnit):
    def project_(self):
        self.wait.clamp_(0, 1)


class Empty(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.out_features = out_features

    def forward(self, x):
        return x[:, : self.out_features]


class Random(SquareUnit):
    """Draws numbers that are no parameters."""

    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.fixed = torch.randn(in_features)

    def forward(self, x):
        return super().forward(x * self.fixed)


class Listed(SquareUnit):
    """Has a module that PyTorch does not see."""

    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.parts = [nn.Linear(in_features, in_features)]

    def forward(self, x):
        return super().forward(self.parts[0](x))


class Even(SquareUnit):
    """The same numbers, that are no parameters, for all runs."""

    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.fixed = torch.linspace(0.5, 1.0, in_features)

    def forward(self, x):
        return super().forward(x * self.fixed)


class Complex(SquareUnit):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.weight = nn.Parameter(torch.ones(out_features, in_features, dtype=torch.complex64))

    def reset_parameters(self):
        pass


class Doubling(SquareUnit):
    def forward(self, x):
        return super().forward(x).double()
