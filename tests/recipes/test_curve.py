"""The curve over pre-training: the last snapshot's figures are those of the checkpoint itself."""

import shutil

import numpy as np
import pandas as pd
import pytest

from core import config
from core.models.opening import open_checkpoint
from data.recipes import cards, curve


@pytest.mark.thorough
def test_the_curve_of_the_shipped_weights_is_what_the_card_counts(tmp_path):
    shutil.copy(config.BUNDLED_MODELS / config.ENCODER / "model.safetensors", tmp_path / "1.safetensors")
    table = pd.DataFrame(curve.curve(config.ENCODER, [tmp_path], 4), columns=list(curve.COLUMNS))
    expected = cards.mean_scores(open_checkpoint(config.ENCODER), rows=4)
    for place in curve.PLACES:
        values = table[table["score"] == place].sort_values(["layer", "head"])["value"].to_numpy()
        assert np.allclose(values, expected[place].ravel(), atol=1e-4)
    shares = table[table["score"].str.startswith("class ")]
    assert np.allclose(shares.groupby(["layer", "head"])["value"].sum(), 1, atol=1e-3)
    assert (shares["low"] <= shares["value"]).all()
    assert (shares["value"] <= shares["high"]).all()
    maxima = table[table["score"] == "row maximum"]["value"]
    assert maxima.between(0.01, 1).all()
    assert f"| 100.0% | {int((expected['previous'] > curve.CLOSE).sum())} |" in curve.said(table)


def test_a_folder_without_snapshots_says_where_they_come_from(tmp_path):
    with pytest.raises(SystemExit, match="keeps them in its --work folder"):
        curve.snapshots(tmp_path)
