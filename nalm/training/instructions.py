"""Which of the processor's vector instructions inductor uses, without compiling more than it takes to tell.
It changes no number.
"""

from __future__ import annotations

import os
from functools import cache

__all__ = ["take_the_first"]


@cache
def take_the_first() -> None:
    """Have inductor try the sets of instructions that it knows until one works, the best one first.

    It would compile a small program for each, some two seconds, and take the first of those that work. Where
    somebody asks it for a set, it still tries all; where it is built otherwise, this is left out.
    """
    from torch._inductor import config, cpu_vec_isa

    every, known = (
        getattr(cpu_vec_isa, name, None) for name in ("valid_vec_isa_list", "supported_vec_isa_list")
    )
    if not (isinstance(known, list) and hasattr(every, "__wrapped__")):
        return

    @cache
    def first() -> list:
        try:
            for one in known:
                cpu_vec_isa.supported_vec_isa_list = [one]
                if found := every.__wrapped__():  # type: ignore[union-attr]
                    return found
        finally:
            cpu_vec_isa.supported_vec_isa_list = known
        return []

    def valid_vec_isa_list() -> list:
        asked = config.cpp.simdlen is not None or os.environ.get("ATEN_CPU_CAPABILITY")
        return every() if asked else first()  # type: ignore[misc]

    cpu_vec_isa.valid_vec_isa_list = valid_vec_isa_list
