"""Verdicts on *Neural Power Units*: none is left, each is in the file of its experiment."""

JUDGES = {}
