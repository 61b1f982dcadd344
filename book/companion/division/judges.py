"""Verdicts on *Exploring the Learning Mechanisms of Neural Division Modules* outside of experiments: none."""

__all__ = ["JUDGES"]

JUDGES: dict = {}
