"""An experiment, defined once: its parameters and runs, its rows, what it states, the tables of its page, and
what it shows to be wrong in its paper.
"""

from companion.experiment.definition import Arm, Experiment, judged, replays_of, runs_of

__all__ = ["Arm", "Experiment", "judged", "replays_of", "runs_of"]
