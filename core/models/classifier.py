"""Classification heads on Transformers: new for fine-tuning, or reopened from a folder that this project saved.

Encoders that classify from [CLS] and decoders that classify from the last real token are transformers' own
`AutoModelForSequenceClassification` and can be opened anywhere. Other poolings ([SEP], the mean, another end) are
`PooledForSequenceClassification`: the folder contains the plain Transformer, the head is in head.safetensors, and
`atlas_pooling` in config.json names the pooling.
"""

import copy
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..errors import CheckpointError, check_choice
from .checkpoint import Checkpoint
from .encoding import POOLINGS
from .family import family_of
from .weights import HEAD_FILE

if TYPE_CHECKING:
    from transformers import PreTrainedModel


# -------------------- A checkpoint's architecture with initial random weights


RANDOM = "random weights"


def random_copy(checkpoint: Checkpoint, *, seed: int = 0, classifier: bool = False) -> Checkpoint:
    """Return a checkpoint with the same architecture and tokenizer but random weights, which depend on the seed.

    If `classifier` is True, the classification head is also initialised.
    """
    how = "sdpa" if checkpoint.family.interceptable else "eager"
    config = copy.deepcopy(checkpoint.model.config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if classifier and isinstance(checkpoint.model, transformers.PreTrainedModel):
            model = type(checkpoint.model)._from_config(config, attn_implementation=how, dtype=torch.float32)
        else:
            model = transformers.AutoModel.from_config(config, attn_implementation=how, dtype=torch.float32)
            if classifier:
                known = checkpoint.model
                model = PooledForSequenceClassification(model, known.head.out_features, known.separator)
    mark = hashlib.sha256(f"{RANDOM} {seed} {config.to_json_string()}".encode()).hexdigest()
    model = model.to(checkpoint.device).eval().requires_grad_(requires_grad=False)
    return Checkpoint(f"{checkpoint.name}, {RANDOM}", model, checkpoint.tokenizer, mark)


POOLING_KEY = "atlas_pooling"


def pooled(
    states: Float[Tensor, "batch position hidden"],
    pooling: str,
    *,
    ids: Int[Tensor, "batch position"],
    mask: Int[Tensor, "batch position"],
    separator: int | None,
) -> Float[Tensor, "batch hidden"]:
    """Pool hidden states into one vector per input, which is the input of a classification head.

    Args:
        pooling: the first position ("cls"), the last separator ("sep"), the mean ("mean") or the last ("last") of the
            positions with mask 1.
        mask: 1 for real tokens, 0 for padding.
        separator: ID of the separator, for "sep".
    """
    if pooling == "cls":
        return states[:, 0]
    if pooling == "mean":
        weights = mask.to(states.dtype)[:, :, None]
        return (states * weights).sum(1) / weights.sum(1)
    real = mask.bool()
    if pooling == "sep":
        real = real & (ids == separator)
    positions = torch.arange(states.shape[1], device=states.device)
    last = torch.where(real, positions, 0).max(1).values
    return states[torch.arange(len(states), device=states.device), last]


class PooledForSequenceClassification(nn.Module):
    """A Transformer with a linear classifier on pooled hidden states. `config.atlas_pooling` names the pooling."""

    def __init__(self, base: "PreTrainedModel", outputs: int, separator: int | None) -> None:
        super().__init__()
        self.base, self.separator = base, separator
        rate = getattr(base.config, "hidden_dropout_prob", getattr(base.config, "resid_pdrop", 0.0))
        self.dropout = nn.Dropout(rate or 0.0)
        self.head = nn.Linear(base.config.hidden_size, outputs)
        nn.init.normal_(self.head.weight, std=getattr(base.config, "initializer_range", 0.02))
        nn.init.zeros_(self.head.bias)

    @property
    def config(self) -> Any:
        return self.base.config

    @property
    def base_model(self) -> nn.Module:
        return self.base

    def set_attn_implementation(self, name: str) -> None:
        self.base.set_attn_implementation(name)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **options: Any) -> Any:
        """Return the logits of padded token IDs [batch, position]; `attention_mask` is 1 for tokens, 0 for padding."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        outputs = self.base(input_ids, attention_mask=mask, **options)
        vector = pooled(
            outputs.last_hidden_state,
            getattr(self.config, POOLING_KEY),
            ids=input_ids,
            mask=mask,
            separator=self.separator,
        )
        return transformers.modeling_outputs.SequenceClassifierOutput(
            logits=self.head(self.dropout(vector)), attentions=getattr(outputs, "attentions", None)
        )

    def save_pretrained(self, folder: Path, **options: Any) -> None:

        self.base.save_pretrained(folder, **options)
        save_file({name: value.contiguous() for name, value in self.head.state_dict().items()}, folder / HEAD_FILE)


def fresh_classifier(
    base: Checkpoint, labels: tuple[str, ...], *, pooling: str = "auto", random_weights: bool = False, seed: int = 0
) -> nn.Module:
    """Return a float32 sequence classifier that consists of a Transformer and a new classification head. The weights of
    the Transformer are kept unless `random_weights` is set.

    Raises CheckpointError if the pooling is unknown, "sep" without a separator token, or "cls" for a causal model, or
    the tokenizer cannot pad.

    Args:
        labels: names of the outputs; one output ("score") for a regression.
        pooling: one of POOLINGS; "auto" is [CLS] for encoders and the last real token for decoders.
        random_weights: also initialise the Transformer.
    """
    check_choice("The pooling of a classifier", pooling, POOLINGS, CheckpointError)
    chosen = pooling if pooling != "auto" else "last" if base.causal else "cls"
    separator = base.tokenizer.sep_token_id
    if chosen == "sep" and separator is None:
        raise CheckpointError(
            f'The pooling "sep" needs a separator token; the tokenizer of {base.name} has none. Choose last or mean.'
        )
    if chosen == "cls" and base.causal:
        raise CheckpointError(
            'The pooling "cls" cannot be used with a causal model, because its first token does not attend '
            "to the rest of the sentence. Choose last or mean."
        )
    config = copy.deepcopy(base.model.config)
    config.id2label = dict(enumerate(labels))
    config.label2id = {name: k for k, name in enumerate(labels)}
    config.problem_type = None
    config.pad_token_id = padding_id(base)
    config.architectures = None
    native = chosen == ("last" if base.causal else "cls")
    if not native:
        setattr(config, POOLING_KEY, chosen)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _built(config, native, len(labels), separator)
    if not random_weights:
        report = model.base_model.load_state_dict(base.model.state_dict(), strict=False)
        missing = [name for name in report.missing_keys if "pooler" not in name]
        if missing:
            raise CheckpointError(
                f"A new classifier needs all weights of its base checkpoint; {len(missing)} weights are missing, "
                f"such as {missing[0]}. Choose a checkpoint of a supported family."
            )
    return model.float()


def padding_id(base: Checkpoint) -> int:
    """Return the ID of the padding token; if there is none, of the end-of-text or beginning-of-text token."""
    tokenizer = base.tokenizer
    for token_id in (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id):
        if token_id is not None:
            return int(token_id)
    raise CheckpointError(
        "The tokenizer must have a padding, end-of-text or beginning-of-text token; the tokenizer of "
        f"{base.name} has none of them. Set pad_token in its tokenizer_config.json."
    )


def with_head(folder: Path, base: "PreTrainedModel", tokenizer: Any) -> nn.Module:
    """Return a classifier that consists of a loaded Transformer and a classification head saved in a folder."""

    weights = load_file(folder / HEAD_FILE)
    model = PooledForSequenceClassification(base, len(weights["bias"]), tokenizer.sep_token_id)
    model.head.load_state_dict(weights)
    return model.to(next(base.parameters()).dtype)


def _built(
    config: Any, native: bool, outputs: int, separator: int | None
) -> "PreTrainedModel | PooledForSequenceClassification":
    # None: SDPA where transformers has it for the family (Gemma 2's soft cap and gpt-oss' sinks have not), else eager
    how = None if family_of(config.model_type).interceptable else "eager"
    if native:
        return transformers.AutoModelForSequenceClassification.from_config(
            config, attn_implementation=how, dtype=torch.float32
        )
    base = transformers.AutoModel.from_config(config, attn_implementation=how, dtype=torch.float32)
    return PooledForSequenceClassification(base, outputs, separator)
