"""Make the documentation of the library say what its source says."""

import ast
import dataclasses
import inspect

from docutils.nodes import Element
from pydantic import BaseModel
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

HIDDEN = "\ue000"  # a character that no text uses


class _Plain(ast.NodeTransformer):
    """``Annotated[kind, …]`` as ``kind``, wherever it stands."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            return node.slice.elts[0]
        return node


def kinds(model: type) -> dict[str, str]:
    """Field -> its type as it was written, without what validates it."""
    written = {}
    for base in reversed(model.__mro__):
        written |= inspect.get_annotations(base)
    shown = {}
    for name, kind in written.items():
        text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
        shown[name] = ast.unparse(_Plain().visit(ast.parse(text, mode="eval")))
    return shown


def fields(model: type[BaseModel]) -> str:
    """The constructor of a model, each field with the type as it was written, not as pydantic
    resolves it.

    >>> class Step(BaseModel):
    ...     size: "tuple[Annotated[float, Field(gt=0)], ...]"
    ...     name: "str" = "Adam"
    >>> fields(Step)
    "(*, size: tuple[float, ...], name: str = 'Adam')"
    """
    arguments, written = [], kinds(model)
    for name, field in model.model_fields.items():
        kind = written[name]
        if kind.startswith("Literal[") and "," not in kind:
            continue  # tells descriptions apart in JSON; nobody passes it
        arguments.append(
            f"{name}: {kind}"
            if field.is_required()
            else f"{name}: {kind} = {field.get_default(call_default_factory=True)!r}"
        )
    return f"(*, {', '.join(arguments)})" if arguments else "()"


def entries(model: type) -> str:
    """The constructor of a dataclass likewise; a default that is a function is shown as ``...``.

    >>> @dataclasses.dataclass
    ... class Step:
    ...     size: "float"
    ...     names: "list[str]" = dataclasses.field(default_factory=list)
    ...     key: "Callable[[str], int]" = len
    >>> entries(Step)
    '(size: float, names: list[str] = [], key: Callable[[str], int] = ...)'
    """
    arguments, written, starred = [], kinds(model), False
    for field in filter(lambda one: one.init, dataclasses.fields(model)):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        shown = "..." if callable(default) or repr(default).startswith("<") else repr(default)
        if field.kw_only and not starred:
            arguments.append("*")
            starred = True
        kind = f"{field.name}: {written[field.name]}"
        arguments.append(kind if default is dataclasses.MISSING else f"{kind} = {shown}")
    return f"({', '.join(arguments)})"


def show_fields(
    app: Sphinx, what: str, name: str, item: object, options: object, signature: str, result: str
) -> tuple[str, str] | None:
    if what == "class" and isinstance(item, type) and issubclass(item, BaseModel):
        return fields(item), ""
    if what == "class" and dataclasses.is_dataclass(item) and "__init__" in vars(item):
        return entries(item), ""
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


def skip_entries(
    app: Sphinx, what: str, name: str, item: object, skip: bool, options: object
) -> bool | None:
    """The entries of a named tuple stand in its signature; alone they would be called aliases."""
    return True if type(item).__name__ == "_tuplegetter" else None


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
    app.connect("autodoc-skip-member", skip_entries)
    app.connect("autodoc-process-docstring", hide_colons, priority=400)  # napoleon comes at 500
    app.connect("autodoc-process-docstring", show_colons, priority=600)
    app.connect("missing-reference", link_short_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
