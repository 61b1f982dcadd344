"""Verdicts on *Exploring the Learning Mechanisms of Neural Division Modules*: none but those of experiments."""

__all__ = ["JUDGES"]

JUDGES: dict = {}
