"""Effects of edges equal path patching in TransformerLens, whose model of GPT-2 shares no code with ours."""

from functools import partial

import pytest
import torch
from transformers import GPT2LMHeadModel

from core.capture.edges import edge_effects, run_pairs
from core.capture.stacks import stack_of
from tests.capture.test_components import double
from tests.capture.test_edges import GRAPH, difference, pairs_of

INPUTS = ("hook_q_input", "hook_k_input", "hook_v_input")


class Bridged:
    """The same weights in TransformerLens; the classifier's matrix is applied to its last LayerNorm by hand."""

    def __init__(self, checkpoint):
        from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

        model = GPT2LMHeadModel(checkpoint.model.config).double().eval()
        model.transformer.load_state_dict(checkpoint.model.transformer.state_dict())
        self.bridge = build_bridge_from_module(model, "GPT2LMHeadModel", hf_config=model.config)
        self.bridge.set_use_split_qkv_input(True)  # a head's query, key and value read a stream each
        self.bridge.set_use_attn_result(True)
        self.bridge.set_use_hook_mlp_in(True)
        self.score = checkpoint.model.score.weight

    def added(self, encoding):
        """What every sender adds, in the order of the graph, from its cache."""
        _, cache = self.bridge.run_with_cache(torch.tensor([encoding.ids]))
        senders = [cache["blocks.0.hook_resid_pre"][0]]
        for layer in range(3):
            senders += list(cache[f"blocks.{layer}.attn.hook_result"][0].unbind(1))
            senders.append(cache[f"blocks.{layer}.hook_mlp_out"][0])
        return senders

    def logits(self, encoding, hooks):
        read = {}

        def keep(value, hook):
            read["last"] = value[0, -1]

        self.bridge.run_with_hooks(torch.tensor([encoding.ids]), fwd_hooks=[*hooks, ("ln_final.hook_out", keep)])
        return self.score @ read["last"]

    def effect(self, first, second, alignment, edge):
        own, theirs = self.added(first)[edge.sender], self.added(second)[edge.sender]
        moved = torch.zeros_like(own)
        for place, other in alignment.pairs:
            moved[place] = theirs[other] - own[place]
        layer, place = divmod(edge.receiver, 13)
        head, kind = divmod(place, 3)

        def add(value, hook, at):
            value = value.clone()
            value[at] += moved
            return value

        if layer == 3:
            name, at = "ln_final.hook_in", 0
        elif place == 12:
            name, at = f"blocks.{layer}.hook_mlp_in", 0
        else:
            name, at = f"blocks.{layer}.attn.{INPUTS[kind]}", (0, slice(None), head)
        with torch.no_grad():
            return float(
                difference(self.logits(first, [])) - difference(self.logits(first, [(name, partial(add, at=at))]))
            )


@pytest.mark.slow  # every tenth edge by two passes of another library
def test_effects_equal_path_patching_in_transformer_lens():
    checkpoint = double("gpt2")
    pairs, every = pairs_of(checkpoint), GRAPH.edges
    found = edge_effects(run_pairs(stack_of(checkpoint, torch.float64), pairs), every, difference)
    elsewhere = Bridged(checkpoint)
    kinds = set()
    for number in [*range(0, len(every), 10), *range(len(every) - GRAPH.senders, len(every))]:
        for row in range(2):
            wanted = elsewhere.effect(pairs.firsts[row], pairs.seconds[row], pairs.alignments[row], every[number])
            name = GRAPH.sender_name(every[number].sender), GRAPH.receiver_name(every[number].receiver)
            assert abs(float(found[number, row]) - wanted) < 1e-6, (name, wanted)
        kinds.add(GRAPH.kind(every[number]))
    assert len(kinds) >= 6
