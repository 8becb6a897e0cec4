"""A decoder of a billion parameters in bfloat16: 512 heads, 512 tokens, within its weights and one gigabyte."""

import pytest

from core.models.memory import free_bytes
from tests.benchmarks.families import of_a_billion


@pytest.mark.slow  # writes 2 GB of random weights and computes in bfloat16: minutes
def test_block_maxima_of_512_heads_take_a_gigabyte_beside_the_weights():
    if free_bytes("cpu") < 7e9:
        pytest.skip("needs 7 GB of free memory")
    found = of_a_billion()
    assert found["billion_parameters"] > 1e9
    assert found["billion_dtype"] == "bfloat16"
    assert found["billion_heads"] == 512
    assert found["billion_beyond_weights_gb"] <= 1.0
