"""The view of discovered patterns: its heatmap, and what it says about the bundled result."""

import pytest

from core.studies.patterns.records import PatternCluster
from pages.parts.views.discovered_patterns import contingency
from tests.pages.opening import opened


def test_the_heatmap_has_the_share_of_each_class_in_each_cluster():
    clusters = [
        PatternCluster(checkpoint="a", cluster=1, maps=9, counts={"vertical": 6, "block": 2}),  # 1 has no class
        PatternCluster(checkpoint="a", cluster=0, maps=3, counts={"block": 3}),
    ]
    table, chart = contingency(clusters, "t")
    assert table["percent"].tolist() == [75, 25, 0, 100]
    assert table["maps"].tolist() == [6, 2, 0, 3]
    y = chart.to_dict()["layer"][0]["encoding"]["y"]
    assert y["sort"] == ["cluster 1 (9 maps)", "no cluster (3 maps)"]


@pytest.mark.thorough
@pytest.mark.shipped
@pytest.mark.parametrize(
    ("checkpoint", "found", "classes"),
    [
        ("atlas-encoder", "stable clusters. Cluster 3 mixes", "BERT\\: five classes"),
        ("atlas-decoder", "no clear clusters\\: only 46% are in a cluster", "GPT\\-2\\: four classes"),
    ],
)
def test_the_bundled_result_opens_with_one_sentence_a_heatmap_and_typical_maps(checkpoint, found, classes):
    page = opened("statistics/discovered", rows="sst2", checkpoint=checkpoint)
    assert not page.exception
    assert found in next(text.value for text in page.markdown if text.value.startswith("**The"))
    assert any(text.value.startswith(f"The classes \\(“{classes}”\\) are predicted by") for text in page.caption)
    assert len(page.get("vega_lite_chart")) == 1
    pictures = [html.proto.body for html in page.get("html") if "data:image/png" in html.proto.body]
    assert len(pictures) == 2
    assert pictures[1].count("<img") == 3 * pictures[0].count("<img")
