"""The ensemble on a CUDA device: one update as a CUDA graph, replayed.

An update of small models is dozens of kernels that are over before Python has launched the next one. A CUDA
graph launches all of them at once; it is recorded with the memory it reads and writes, so parameters, state
and the number of the iteration stay where they are, and an update ends by writing the next ones there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from nalm.training.checkpoint import Checkpoint
from nalm.training.ensemble import Ensemble
from nalm.training.log import Journal
from nalm.training.run import Run

__all__ = ["GraphedEnsemble"]

WARM_UPS = 3
"""Updates before recording, so that libraries are loaded and everything is compiled; as many as in PyTorch's
documentation of CUDA graphs.
"""


class GraphedEnsemble(Ensemble):
    """An :class:`Ensemble` on a CUDA device, whose updates are replayed from a CUDA graph. It takes the same
    runs and returns the same log.

    Where a task draws on the host, each draw is copied to where the graph reads it; there is a graph for each
    shape of a draw. The updates of one call are not joined (``together``), as a replay costs next to nothing.

    Args:
        runs: runs whose ``structure()`` is equal.
        device: ``"cuda"``, ``"cuda:1"``, ...
        compiled: compile updates and evaluations; ``None``: if :func:`worth_compiling` and torch's compiler
            works here.

    Raises:
        ValueError: as :class:`Ensemble`.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import SingleModuleTask
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=300, optimiser=Adam(lr=1e-2))
    >>> task = SingleModuleTask.on("U[1,2)", operation="mul")
    >>> runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=0)]
    >>> if torch.cuda.is_available():
    ...     log = GraphedEnsemble(runs).train()
    ...     assert log.errors["test"][-1] < log.errors["test"][0]
    """

    def __init__(self, runs: Sequence[Run], device: str = "cuda", compiled: bool | None = None) -> None:
        super().__init__(runs, device, compiled, together=1)
        self._number = torch.zeros((), dtype=torch.int64, device=self.device)
        self._fixed = self.update.constants, self.update.numbers
        self._kept = tree_map(torch.clone, (self.parameters, self.state))
        self._replays: dict[torch.Size | None, tuple[Tensor | None, Callable[[], None]]] = {}
        self._uploads = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    def _restore(self, checkpoint: Checkpoint | None, journal: Journal) -> tuple[int, float]:
        reached = super()._restore(checkpoint, journal)
        # what was entered before lies on the host, as what is entered from now on
        journal.columns = {name: [one.cpu() for one in values] for name, values in journal.columns.items()}
        return reached

    def _go_on_from(self, position: dict[str, Any]) -> None:
        # NumPy draws on the host
        stream = tree_map(lambda one: one.cpu() if isinstance(one, Tensor) else one, position["stream"])
        super()._go_on_from(position | {"stream": stream})

    def _advance(self, first: int, last: int) -> None:
        self._keep((self.parameters, self.state))
        self._number.fill_(first)
        for draw in self._drawn(first, last):
            shape = None if draw is None else draw.shape
            if shape not in self._replays:
                self._replays[shape] = self._recorded(draw)
            place, replay = self._replays[shape]
            if place is not None and draw is not None:
                place.copy_(draw)
            replay()
        self.parameters, self.state = tree_map(torch.clone, self._kept)

    def _drawn(self, first: int, last: int) -> Iterator[Tensor | None]:
        """What the host draws, on a stream of its own: the host does not wait for the updates before."""
        draws = iter(self.update.draws(first, last))
        for _ in range(first, last):
            with torch.cuda.stream(self._uploads):
                draw = next(draws)
            if draw is not None and draw.is_cuda:
                draw.record_stream(torch.cuda.current_stream(self.device))
            yield draw

    def _recorded(self, draw: Tensor | None) -> tuple[Tensor | None, Callable[[], None]]:
        """Where an update reads its draw, and what replays it; parameters and state stay as they are."""
        place = None if draw is None else draw.clone()
        before = tree_map(torch.clone, (self._kept, self._number))
        replay = captured(partial(self._update_in_place, place), self.device)
        self._keep(before[0])
        self._number.copy_(before[1])
        return place, replay

    @torch.no_grad()
    def _update_in_place(self, draw: Tensor | None) -> None:
        self._keep(self._update(*self._kept, self._number, draw, *self._fixed))
        self._number.add_(1)

    def _keep(self, values: tuple) -> None:
        for kept, value in zip(tree_leaves(self._kept), tree_leaves(values), strict=True):
            kept.copy_(value)


def captured(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """The work that ``function`` gives to a CUDA device, recorded; each call does it again, on the same
    memory.
    """
    with torch.cuda.device(device):
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(WARM_UPS):
                function()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        # what libraries set up per stream, the warm-ups have set up on this one
        with torch.cuda.graph(graph, stream=beside, capture_error_mode="thread_local"):
            function()
    return graph.replay
