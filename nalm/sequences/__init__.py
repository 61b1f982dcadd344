"""Training of models that read a sequence of images."""

from nalm.sequences.ensemble import SequenceEnsemble

__all__ = ["SequenceEnsemble"]
