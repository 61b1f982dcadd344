"""Say whether rows are as new as the code they depend on: a role for one experiment, a directive
that lists all, those that are alike together.

``{freshness}`division/no-redundancy``` is "fresh" or "older than the code it depends on". Both are
answered when the book is built, so that no page says what was true when it was written.
"""

from functools import cache

from docutils import nodes
from nalm.records import experiments, freshness
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole

of = cache(freshness)  # within one build, see setup


def always_read(env: BuildEnvironment) -> None:
    """Have the page that is being read read again in each build."""
    env.says_freshness = getattr(env, "says_freshness", set()) | {env.docname}


class FreshnessRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        always_read(self.env)
        try:
            return [nodes.Text(of(self.text))], []
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


class FreshnessList(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        always_read(self.env)
        alike: dict[str, list[str]] = {}
        for name in (every := experiments()):
            alike.setdefault(of(name), []).append(name)
        items = nodes.bullet_list()
        for fresh, names in alike.items():
            said = nodes.paragraph("", f"{fresh}, {len(names)} of {len(every)} results files: ")
            for place, name in enumerate(names):
                said += [nodes.Text(", " if place else ""), nodes.literal(text=name)]
            items += nodes.list_item("", said)
        return [items]


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> set[str]:
    return getattr(env, "says_freshness", set()) - removed


def setup(app: Sphinx) -> dict[str, object]:
    app.add_role("freshness", FreshnessRole())
    app.add_directive("freshness-of-all", FreshnessList)
    app.connect("env-get-outdated", outdated)
    app.connect("builder-inited", lambda app: of.cache_clear())
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
