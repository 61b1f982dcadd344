"""Make the documentation of the library say what its source says."""

import inspect
import re

from docutils.nodes import Element
from pydantic import BaseModel
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

HIDDEN = "\ue000"  # a character that no text uses


def fields(model: type[BaseModel]) -> str:
    """The constructor of a model, each field with the type as it was written, not as pydantic
    resolves it.

    >>> class Step(BaseModel):
    ...     size: "float"
    ...     name: "str" = "Adam"
    >>> fields(Step)
    "(*, size: float, name: str = 'Adam')"
    """
    written = {}
    for base in reversed(model.__mro__):
        written |= inspect.get_annotations(base)
    arguments = []
    for name, field in model.model_fields.items():
        kind = (
            written[name]
            if isinstance(written[name], str)
            else inspect.formatannotation(written[name])
        )
        if kind.startswith("Literal[") and "," not in kind:
            continue  # tells descriptions apart in JSON; nobody passes it
        kind = re.split(r", (?:Field|BeforeValidator)\(", kind.removeprefix("Annotated["))[0]
        arguments.append(
            f"{name}: {kind}"
            if field.is_required()
            else f"{name}: {kind} = {field.get_default(call_default_factory=True)!r}"
        )
    return f"(*, {', '.join(arguments)})"


def show_fields(
    app: Sphinx, what: str, name: str, item: object, options: object, signature: str, result: str
) -> tuple[str, str] | None:
    if what == "class" and isinstance(item, type) and issubclass(item, BaseModel):
        return fields(item), ""
    return None


def hide_colons(
    app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """A property's first line is a sentence, even with a colon in it; napoleon would read the part
    before it as a type.
    """
    if what in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(":", HIDDEN)


def show_colons(
    app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    lines[:] = [line.replace(HIDDEN, ":") for line in lines]


def link_short_names(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element
) -> Element | None:
    """Types in signatures carry no module; link them where one documented object has the name."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.get_domain("py"), node["reftarget"]
    found = {name for name, *_ in domain.get_objects() if name.endswith(f".{target}")}
    if len(found) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found.pop(), node, content)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("autodoc-process-signature", show_fields)
    app.connect("autodoc-process-docstring", hide_colons, priority=400)  # napoleon comes at 500
    app.connect("autodoc-process-docstring", show_colons, priority=600)
    app.connect("missing-reference", link_short_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
