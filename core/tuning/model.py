"""The model of a run: initialisation, trainable parameters, weight masks, and predictions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn.utils import prune

from ..errors import InputError, check_choice, check_range
from ..models.checkpoint import Checkpoint
from ..models.classifier import fresh_classifier, padding_id
from ..tasks.glue import Task
from .batches import Example, by_length, collate
from .recipe import Recipe, check_initialisation

# ---------------------------------------------------------------- weights fixed at 0


Scope = Literal["global", "layer"]
SCOPES: tuple[str, ...] = ("global", "layer")
Masks = Mapping[str, Bool[Tensor, "..."]]


def prunable(model: nn.Module) -> dict[str, list[str]]:
    """Return prunable weight names by layer. Raises InputError for model families whose layers share weights."""
    stack, layers = layers_of(model)
    groups = {}
    for number, layer in enumerate(layers):
        names = [f"{stack}.{number}.{name}" for name, value in layer.named_parameters() if value.ndim == 2]
        groups[f"L{number + 1}"] = names
    return groups


def magnitude_masks(model: nn.Module, share: float, scope: Scope) -> dict[str, Bool[Tensor, "_ _"]]:
    """Return weight masks that are False for the smallest weights by magnitude. `share` is the fraction of these
    weights.

    `scope` is "global" (over all layers) or "layer" (within each layer). Raises InputError for an invalid share or
    scope, and for families whose layers share weights.
    """
    check_range("The fraction of weights to prune", share, 0, 1)
    check_choice("The scope of pruning", scope, SCOPES)
    layers, values = prunable(model), dict(model.named_parameters())
    groups = [[name for names in layers.values() for name in names]] if scope == "global" else list(layers.values())
    return {
        name: mask
        for group in groups
        for name, mask in _smallest({parameter: values[parameter] for parameter in group}, share).items()
    }


def _smallest(values: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    flat = torch.cat([value.detach().abs().flatten() for value in values.values()])
    kept = torch.ones(len(flat), dtype=torch.bool, device=flat.device)
    kept[flat.argsort(stable=True)[: round(share * len(flat))]] = False
    parts = kept.split([value.numel() for value in values.values()])
    return {name: part.view(value.shape) for (name, value), part in zip(values.items(), parts, strict=True)}


def hold(model: nn.Module, masks: Masks) -> None:
    """Prune the weights whose mask is False, so that they are 0 and remain 0 in training."""
    for name, mask in masks.items():
        path, _, parameter = name.rpartition(".")
        prune.custom_from_mask(model.get_submodule(path), parameter, mask.to(next(model.parameters()).device))


def zeroed(model: nn.Module, masks: Masks) -> None:
    """Set the weights whose mask is False to 0 once. Later training can change these weights."""
    values = dict(model.named_parameters())
    with torch.no_grad():
        for name, mask in masks.items():
            values[name].mul_(mask.to(values[name]))


EVALUATED_AT_ONCE = 64  # inputs
SCORE_NAME = "score"


def initialised(base: Checkpoint, task: Task, initialisation: str, recipe: Recipe, seed: int) -> nn.Module:
    """Create a classifier for a task with the requested initial weights. `base` is not changed.

    The head is always new. "frozen" trains only the head and "untrained" nothing; otherwise everything is trained, or
    the last `recipe.train_last` layers with pooler and head. Raises InputError for an unknown initialisation, or if
    only some layers of a family with shared layers are to be trained.
    """
    check_initialisation(initialisation)
    labels = task.labels or (SCORE_NAME,)
    model = fresh_classifier(base, labels, pooling=recipe.pooling, random_weights=initialisation == "random", seed=seed)
    if recipe.reset_last:
        # Reset the last layers to newly initialised weights
        fresh = fresh_classifier(base, labels, pooling=recipe.pooling, random_weights=True, seed=seed + 1)
        layers, new = layers_of(model)[1], layers_of(fresh)[1]
        for layer in range(max(0, len(layers) - recipe.reset_last), len(layers)):
            layers[layer].load_state_dict(new[layer].state_dict())
    if recipe.dropout is not None:
        # Set the dropout rates, which are in Dropout modules or in floats used by SDPA
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = recipe.dropout
            for name in ("attention_dropout", "dropout_prob", "dropout"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, recipe.dropout)
    base_model: Any = model.base_model
    inside = {id(parameter) for parameter in base_model.parameters()}
    for name, parameter in model.named_parameters():
        of_the_head = id(parameter) not in inside
        learns = of_the_head or (initialisation != "frozen" and _learns(model, name, recipe))
        parameter.requires_grad_(learns and initialisation != "untrained")
    return model


def layers_of(model: nn.Module) -> tuple[str, nn.ModuleList]:
    """Return the name and list of a model's layers. Raises InputError if layers share weights, or there is only one."""
    config: Any = model.config
    wanted = config.num_hidden_layers
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == wanted and wanted > 1:
            return name, module
    found = f"the layers of {config.model_type} models share weights" if wanted > 1 else "this model has one layer"
    raise InputError(
        "Single layers can be trained, reset or pruned only if the model has several layers with their own weights; "
        f"{found}. Train all layers, or choose another checkpoint."
    )


def _learns(model: nn.Module, name: str, recipe: Recipe) -> bool:
    if recipe.train_last is None or "pooler" in name:
        return True
    stack, layers = layers_of(model)
    first = len(layers) - recipe.train_last
    return name.startswith(f"{stack}.") and int(name[len(stack) + 1 :].split(".")[0]) >= first


def loss_of(task: Task, logits: Float[Tensor, "batch output"], labels: Shaped[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Compute the loss of a batch in float32: mean cross-entropy in nats or, for regression, mean squared error."""
    if task.is_score:
        return nn.functional.mse_loss(logits[:, 0].float(), labels.float())
    return nn.functional.cross_entropy(logits.float(), labels.long())


def logits_of(model: nn.Module, base: Checkpoint, examples: Sequence[Example]) -> Float[Tensor, "input output"]:
    """Compute the logits of examples in eval mode without gradients, as float32 on the CPU."""
    was_training, device = model.training, next(model.parameters()).device
    logits: dict[int, Tensor] = {}
    model.eval()
    with torch.no_grad():
        for chosen in by_length([len(example) for example in examples], EVALUATED_AT_ONCE):
            inputs, _ = collate(
                [examples[k] for k in chosen], padding=padding_id(base), segments=base.takes_token_types, device=device
            )
            logits |= dict(zip(chosen, model(**inputs).logits.float().cpu(), strict=True))
    model.train(was_training)
    return torch.stack([logits[k] for k in range(len(examples))])


def predictions(task: Task, logits: Float[Tensor, "input output"]) -> list[int] | list[float]:
    """Convert logits to predicted labels or, for regression tasks, to predicted scores."""
    return logits[:, 0].tolist() if task.is_score else logits.argmax(1).tolist()
