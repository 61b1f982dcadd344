"""The papers' own settings: which models, recipes and ranges an experiment of a paper means. Nothing else in the library depends on this room."""

__all__: list[str] = []  # a module per paper
