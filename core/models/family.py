"""Properties of model families: causality, access to attention, classification.

To support a family, add a record here and a line in the parametrised test of capture.
"""

import inspect
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

INTERFACE = "ALL_ATTENTION_FUNCTIONS"  # the table of transformers that a model's code looks its attention up in


@dataclass(frozen=True)
class Family:
    """Properties of a model family, such as BERT or Llama, with its `model_type` in transformers.

    Attributes:
        interceptable: attention uses the AttentionInterface of transformers, so that layers can be observed and
            changed; otherwise weights are observed at the softmax (core.capture.reach), and outputs of heads are not
            available.
        sinks: a learnt score per head takes a part of every row, as a last key that belongs to no token.
        translates: is an encoder-decoder, with three sets of heads (core.models.head_sets).
        streams: attention of long inputs can be computed in blocks; not if a layer creates its own mask.
    """

    model_type: str
    causal: bool
    interceptable: bool = True
    positions: tuple[str, ...] = ("max_position_embeddings", "n_positions")
    sinks: bool = False
    translates: bool = False
    streams: bool = True


_RECORDS = (
    Family("bert", causal=False),
    Family("roberta", causal=False),
    Family("albert", causal=False),
    Family("electra", causal=False),
    Family("distilbert", causal=False),
    Family("mobilebert", causal=False),
    Family("modernbert", causal=False),
    Family("xlm-roberta", causal=False),
    Family("eurobert", causal=False),
    Family("deberta", causal=False, interceptable=False),
    Family("deberta-v2", causal=False, interceptable=False),  # v3 too
    Family("xlnet", causal=False, interceptable=False, positions=()),
    Family("gpt2", causal=True),
    Family("opt", causal=True),
    Family("llama", causal=True),
    Family("gpt_neox", causal=True),
    Family("gpt_neo", causal=True, interceptable=False),
    Family("falcon", causal=True, interceptable=False),
    Family("mistral", causal=True),
    Family("qwen2", causal=True),  # 2.5 too
    Family("qwen3", causal=True),
    Family("gemma", causal=True),
    Family("gemma2", causal=True),
    Family("gemma3_text", causal=True),
    Family("phi", causal=True),
    Family("phi3", causal=True),
    Family("olmo2", causal=True),
    Family("gpt_oss", causal=True, sinks=True),
    Family("bert-generation", causal=False),
    Family("clip_text_model", causal=True),
    Family("glm5_next_text", causal=True),
    Family("molmo2_text", causal=True),
    Family("imagegpt", causal=True, interceptable=False),
    Family("doge", causal=True, streams=False),
    Family("bart", causal=False, translates=True),
    Family("mbart", causal=False, translates=True),
    Family("marian", causal=False, translates=True),
    Family("t5", causal=False, translates=True),  # Flan-T5 too
    Family("mt5", causal=False, translates=True),
)
FAMILIES = {record.model_type: record for record in _RECORDS}

# Encoders of transformers that see earlier tokens only where config.is_decoder is set.
_ALSO_DECODERS = frozenset({
    "bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "electra", "ernie", "esm", "megatron-bert",
    "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta", "xlm-roberta-xl", "xmod",
})  # fmt: skip


def family_in(config: Any) -> Family:
    """Return the properties of the model family that a config belongs to."""
    record = family_of(config.model_type)
    if record.translates:
        return record
    causal = record.causal
    if getattr(config, "is_causal", None) is False or getattr(config, "use_bidirectional_attention", None) in (
        True, "all",
    ):  # fmt: skip
        causal = False
    elif record.model_type in _ALSO_DECODERS:
        causal = bool(getattr(config, "is_decoder", False))
    elif record.model_type in ("xlm", "flaubert"):
        causal = bool(getattr(config, "causal", False))
    elif record.model_type == "xlnet":
        causal = getattr(config, "attn_type", "bi") == "uni"
    return replace(record, causal=causal)


def family_of(model_type: str) -> Family:
    """Return the properties of the model family with this `model_type`. Properties of a family
    without an entry in FAMILIES are derived from the source code of transformers."""
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    from transformers.models.auto import modeling_auto  # 2.6 s of start-up

    translates = model_type in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    causal = model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not translates
    interceptable, sinks, masks_later = _read_off(model_type)
    causal = (causal or masks_later) and not translates
    causal = causal and model_type not in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return Family(model_type, causal=causal, translates=translates, interceptable=interceptable, sinks=sinks)


@cache
def _read_off(model_type: str) -> tuple[bool, bool, bool]:
    """Return whether the code of a family calls the attention interface, passes sinks, and uses only causal masks."""
    from transformers import MODEL_MAPPING  # imports torch: 3 s at start
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # as above

    try:
        model = MODEL_MAPPING[CONFIG_MAPPING[model_type]]
    except KeyError:
        return True, False, False  # AutoModel does not open this family; opening it raises the error
    modules = [sys.modules[one.__module__] for one in (model if isinstance(model, tuple) else (model,))]
    interceptable = any(hasattr(module, INTERFACE) for module in modules)
    source = "".join(map(inspect.getsource, modules))
    causal = "create_causal_mask(" in source and "create_bidirectional_mask(" not in source
    return interceptable, interceptable and "s_aux=" in source, causal
