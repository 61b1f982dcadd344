"""What tests of verification share."""

import pytest

from nalm.records import verification

TRAINED = {}
"""Keys of a sample's runs -> what was trained of them."""


@pytest.fixture
def each_sample_is_trained_once(monkeypatch):
    """Tests change what is recorded, and training knows nothing of that."""
    train = verification.train_ensembles

    def once(asked, *how, **told):
        keys = told.get("compiled"), *(tuple(run.key for run in ensemble) for ensemble in asked)
        if keys not in TRAINED:
            TRAINED[keys] = list(train(asked, *how, **told))
        return TRAINED[keys]

    monkeypatch.setattr(verification, "train_ensembles", once)
