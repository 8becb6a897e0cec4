"""BERT-like and GPT-2-like models as stacks of blocks, so that an ablation sweep can share computations between heads.

`stack_of` copies the weights of a model into blocks with the same arithmetic: project to Q, K, V; mix; project to the
residual stream; feed forward. Unsupported families have no stack; callers then run the model itself.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..models.checkpoint import Checkpoint
from ..models.classifier import POOLING_KEY
from ..models.encoding import Encoding
from ..models.memory import has_bfloat16

# ---------------------------------------------------------------- linear layers with weights laid out for this CPU


Activation = Literal["gelu", "gelu_new", "relu"]
_POINTWISE = {"gelu": ("gelu", "none"), "gelu_new": ("gelu", "tanh"), "relu": ("relu", "")}


def packs(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether oneDNN's packed kernels can be used. For float32, they need a CPU with AVX-512, and for bfloat16,
    a CPU with bfloat16 instructions."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    if dtype == torch.float32:
        return torch.backends.cpu.get_cpu_capability() == "AVX512"
    return dtype == torch.bfloat16 and has_bfloat16()


class Linear:
    """A linear layer y = x W^T + b with detached copies of its weights in a given dtype. `gradients` states whether x
    needs gradients, which packed kernels do not support."""

    def __init__(
        self,
        weight: Float[Tensor, "out into"],
        bias: Float[Tensor, " out"] | None,
        dtype: torch.dtype,
        *,
        gradients: bool = False,
    ) -> None:
        self.bias = None if bias is None else bias.detach().to(dtype)
        plain = weight.detach().to(dtype).contiguous()
        self.packed = not gradients and packs(weight.device, dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(plain, None) if self.packed else plain

    def __call__(
        self,
        x: Float[Tensor, "*rows into"],
        *,
        activation: Activation | None = None,
        plus: Float[Tensor, "*rows out"] | None = None,
    ) -> Float[Tensor, "*rows out"]:
        """Return activation(x W^T + b), or x W^T + b + plus; `activation` and `plus` exclude each other."""
        if not self.packed:
            y = nn.functional.linear(x, self.weight, self.bias)
            y = _activated(y, activation) if activation else y
            return y if plus is None else y.add_(plus)
        if plus is not None:
            return torch.ops.mkldnn._linear_pointwise.binary(x, plus, self.weight, self.bias, "add")
        kind, algorithm = _POINTWISE[activation] if activation else ("none", "")
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, kind, [], algorithm)


def _activated(y: Tensor, activation: Activation) -> Tensor:
    if activation == "relu":
        return y.relu_()
    return torch.ops.aten.gelu_(y, approximate="tanh" if activation == "gelu_new" else "none")


FEWEST = 2048  # tokens of a pass from which laying out the weights pays
SMALLEST = 2**19  # weights of a matrix
MOST = 2**30  # bytes of all copies


class _PackedProducts(TorchFunctionMode):
    """Replaces products with large float32 parameters, in this thread only."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0
        self._laid_out: dict[int, tuple[Tensor, Linear]] = {}  # with the parameter, so that its ID stays its own

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is nn.functional.linear and not kwargs:
            x, weight, bias = (*args, None)[:3]
            layer = self._layer(x, weight, weight, bias)
        elif func is torch.addmm and not kwargs:  # transformers' Conv1D
            bias, x, weight = args
            layer = self._layer(x, weight, weight.t(), bias)
        else:
            layer = None
        return func(*args, **(kwargs or {})) if layer is None else layer(x)

    def _layer(self, x: Tensor, weight: Tensor, rows: Tensor, bias: Tensor | None) -> Linear | None:
        if id(weight) in self._laid_out:
            return self._laid_out[id(weight)][1]
        if not isinstance(weight, nn.Parameter) or weight.dtype != torch.float32 or x.dtype != torch.float32:
            return None
        if weight.numel() < SMALLEST or self._bytes + weight.nbytes > MOST:
            return None
        self._bytes += weight.nbytes
        self._laid_out[id(weight)] = weight, Linear(rows, bias, torch.float32)
        return self._laid_out[id(weight)][1]


@contextmanager
def packed(device: torch.device, tokens: int) -> Iterator[None]:
    """Within this context, use packed matrix products if there are enough tokens for them to be faster. Gradients are
    not supported."""
    if tokens < FEWEST or not packs(device, torch.float32):
        yield
        return
    with _PackedProducts():
        yield


# ---------------------------------------------------------------- blocks and stacks


Reading = Literal["cls", "last", "mean"]
_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "relu": "relu",
}


@dataclass(frozen=True)
class LayerNorm:
    """A LayerNorm with its weights in the dtype of the computation."""

    weight: Float[Tensor, " hidden"]
    bias: Float[Tensor, " hidden"]
    eps: float

    def __call__(self, x: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
        return nn.functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


@dataclass(frozen=True)
class Block:
    """One layer of a Transformer, with weights copied in the dtype of the computation.

    Attributes:
        norm_first: LayerNorms precede attention and feed-forward (GPT-2); otherwise they follow (BERT).
        qkv: projects to queries, keys and values of all heads, concatenated.
        separate: matrices for single positions and heads. *Shape:* query, key, value, out (head, dim, hidden),
            query_bias, key_bias, value_bias (head, dim).
    """

    heads: int
    norm_first: bool
    norms: tuple[LayerNorm, LayerNorm]
    qkv: Linear
    out: Linear
    wide: Linear
    narrow: Linear
    activation: Activation
    separate: dict[str, Tensor]

    def seen(self, x: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
        """Return the input of the attention sublayer: LayerNorm(x) if the LayerNorm comes first, otherwise x."""
        return self.norms[0](x) if self.norm_first else x

    def mixed_of(
        self, x: Float[Tensor, "batch length hidden"], causal: bool
    ) -> tuple[Float[Tensor, "batch length head dim"], Float[Tensor, "batch head length dim"]]:
        """Return the outputs (before W_O) and the value vectors of all heads in the layer."""
        batch, length, hidden = x.shape
        shared = self.qkv(self.seen(x)).view(batch, length, 3, self.heads, hidden // self.heads)
        query, key, value = shared.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return mixed.transpose(1, 2), value

    def joined(
        self, mixed: Float[Tensor, "batch length head dim"], x: Float[Tensor, "batch length hidden"]
    ) -> Float[Tensor, "batch length hidden"]:
        """Project the outputs of heads with W_O, and add them to the residual stream."""
        return self.out(mixed.reshape(x.shape), plus=x)

    def without_feedforward(self, joined: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
        """Return the output of the layer without its feed-forward sublayer; in BERT, both LayerNorms are still
        applied."""
        return joined if self.norm_first else self.norms[1](self.norms[0](joined))

    def after(self, joined: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
        """Return the output of a layer, given the residual stream after its attention sublayer."""
        if self.norm_first:
            return self.narrow(self.wide(self.norms[1](joined), activation=self.activation), plus=joined)
        middle = self.norms[0](joined)
        return self.norms[1](self.narrow(self.wide(middle, activation=self.activation), plus=middle))

    def widened(self, x: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows inner"]:
        """Return the first matrix product of the feed-forward sublayer, without biases. The residual stream is first
        centred and multiplied by the LayerNorm weight, but not divided by its standard deviation."""
        norm, bias = self.norms[self.norm_first], self.wide.bias
        product = self.wide((x - x.mean(-1, keepdim=True)) * norm.weight)
        return product if bias is None else product.sub_(bias)

    def begun_by_heads(self) -> "BegunByHead":
        """Return this layer with precomputed matrices that speed up reruns after one head has changed."""
        norm, dtype = self.norms[self.norm_first], self.separate["out"].dtype
        products = [Linear(matrix.t(), None, dtype) for matrix in self.widened(self.separate["out"])]
        return BegunByHead(self, products, self.wide(norm.bias[None]))


@dataclass(frozen=True)
class BegunByHead:
    """A layer prepared for fast reruns after the output of one head has changed. Only the change that this head causes
    in the first feed-forward product is computed.

    Attributes:
        products: `Block.widened` of W_h, for every head.
        constant: the first feed-forward product of the bias of the LayerNorm, with its own bias.
    """

    block: Block
    products: Sequence[Linear]
    constant: Float[Tensor, "1 inner"]

    def after(
        self,
        joined: Float[Tensor, "token hidden"],
        shared: Float[Tensor, "token inner"],
        difference: Float[Tensor, "token dim"],
        head: int,
    ) -> Float[Tensor, "token hidden"]:
        """Return the output of this layer after adding `difference` to the output of one head. It equals
        `Block.after(joined + difference W_h)`, where W_h is the output projection of the head. `shared` is
        `Block.widened(joined)`."""
        block = self.block
        norm, last = block.norms[block.norm_first], block.norms[1]
        changed = torch.addmm(joined, difference, block.separate["out"][head])
        middle, _, scale = torch.native_layer_norm(changed, norm.weight.shape, norm.weight, norm.bias, norm.eps)
        inner = torch.addcmul(self.constant, self.products[head](difference, plus=shared), scale)
        inner = _activated(inner, block.activation)
        return block.narrow(inner, plus=changed) if block.norm_first else last(block.narrow(inner, plus=middle))


@dataclass(frozen=True)
class Stack:
    """A classifier or language model as a stack of layers that can be run one by one.

    Attributes:
        padding: the padding token in the config of a decoder, which its head skips at the end of an input, or None.
        place: position at which a language model predicts (-1: the last); None for classifiers.
        reads: where classifiers read: the first token ("cls"), the "last", or the "mean" over all.
    """

    blocks: tuple[Block, ...]
    causal: bool
    dtype: torch.dtype
    padding: int | None  # of the decoder's config: its head skips these at the end of an input
    embedded: Callable[[dict[str, Tensor]], Float[Tensor, "batch length hidden"]]
    classified: Callable[[Float[Tensor, "rows position hidden"]], Float[Tensor, "rows label"]]
    inputs_of: Callable[[Sequence[Encoding]], dict[str, Tensor]]
    place: int | None = None
    reads: Reading = "cls"

    def read(self, encoding: Encoding) -> Encoding:
        """Return an input without trailing tokens that cannot affect the logits. The removed tokens come after the
        predicted position, or are padding tokens that the output layer of a decoder skips."""
        if self.causal and self.place is not None:
            return encoding.up_to(self.place % len(encoding) + 1)
        if self.padding is None:
            return encoding
        last = max((k for k, piece in enumerate(encoding.ids) if piece != self.padding), default=0)
        return encoding.up_to(last + 1)

    def embed(self, encodings: Sequence[Encoding]) -> Float[Tensor, "batch length hidden"]:
        return self.embedded(self.inputs_of(encodings)).to(self.dtype)

    def classify(self, read: Float[Tensor, "rows position hidden"]) -> Float[Tensor, "rows label"]:
        """Return the logits, at least float32, given the hidden states that the output layer reads."""
        return self.classified(read).to(torch.promote_types(self.dtype, torch.float32))

    def logits(self, last: Float[Tensor, "*rows length hidden"]) -> Float[Tensor, "*rows label"]:
        """Return the logits, at least float32, given the output of the last layer."""
        read = self.read_of(last)
        return self.classify(read.reshape(-1, *read.shape[-2:])).unflatten(0, last.shape[:-2])

    def read_of(self, states: Float[Tensor, "*rows length hidden"]) -> Float[Tensor, "*rows position hidden"]:
        """Return the hidden states that the output layer reads: at one position, or at all if it averages them."""
        position = self.position(states.shape[-2])
        return states if position is None else states[..., position, :].unsqueeze(-2)

    @property
    def device(self) -> torch.device:
        return self.blocks[0].separate["out"].device

    def position(self, length: int) -> int | None:
        """Return the position that the output layer reads, or None if it reads all positions."""
        if self.place is not None:
            return self.place
        return {"cls": 0, "last": length - 1, "mean": None}[self.reads]

    def visible(self, length: int, device: torch.device) -> Bool[Tensor, "1 1 query key"]:
        every = torch.ones(1, 1, length, length, dtype=torch.bool, device=device)
        return every.tril() if self.causal else every


# ---------------------------------------------------------------- reading the weights


def stack_of(checkpoint: Checkpoint, dtype: torch.dtype | None = None, *, gradients: bool = False) -> Stack | None:
    """Return a classifier or language model as a stack of layers; None if a stack cannot reproduce its logits.

    `dtype` is that of the arithmetic (None: of the weights). `gradients`: whether gradients flow to the inputs of
    layers.
    """
    build = _BUILDERS.get(checkpoint.model.config.model_type)
    if build is None or (checkpoint.labels is None and _words(checkpoint.model) is None):
        return None
    return build(checkpoint, dtype or next(checkpoint.model.parameters()).dtype, gradients)


def _transformer(model: Any, name: str) -> Any:
    """Return the Transformer of a model, or None if it has another name or a head that a stack cannot reproduce."""
    pooling = getattr(model.config, POOLING_KEY, None)
    if pooling is None or not hasattr(model, "head"):
        return getattr(model, name, None)
    return model.base_model if pooling in get_args(Reading) else None


def _words(model: Any) -> Callable[[Tensor], Tensor] | None:
    """Return the head of a language model, from last hidden states to logits, or None."""
    if hasattr(model, "generator_lm_head"):  # ELECTRA's generator
        return lambda last: model.generator_lm_head(model.generator_predictions(last))
    return next((getattr(model, name) for name in ("cls", "lm_head") if hasattr(model, name)), None)


def _norm(module: Any, dtype: torch.dtype) -> LayerNorm:
    return LayerNorm(module.weight.detach().to(dtype), module.bias.detach().to(dtype), module.eps)


def _block(
    weights: dict[str, Tensor], biases: dict[str, Tensor], norms: tuple[Any, Any], activation: Activation, heads: int,
    *, norm_first: bool, dtype: torch.dtype, gradients: bool,
) -> Block:  # fmt: skip
    """Copy a layer. `weights` are query, key, value, out, wide and narrow as [out, in]; `biases` likewise."""
    three = ("query", "key", "value")
    linear = partial(Linear, dtype=dtype, gradients=gradients)
    separate = {name: weights[name].detach().to(dtype).unflatten(0, (heads, -1)) for name in three}
    separate |= {f"{name}_bias": biases[name].detach().to(dtype).view(heads, -1) for name in three}
    separate["out"] = weights["out"].detach().to(dtype).t().reshape(heads, -1, weights["out"].shape[0])
    return Block(
        heads=heads,
        norm_first=norm_first,
        norms=(_norm(norms[0], dtype), _norm(norms[1], dtype)),
        qkv=linear(torch.cat([weights[n] for n in three]), torch.cat([biases[n] for n in three])),
        activation=activation,
        separate=separate,
        **{name: linear(weights[name], biases[name]) for name in ("out", "wide", "narrow")},
    )


def _bert_like(checkpoint: Checkpoint, dtype: torch.dtype, gradients: bool) -> Stack | None:
    model, config = checkpoint.model, checkpoint.model.config
    core, words = _transformer(model, config.model_type), _words(model)
    if core is None or config.hidden_act not in _ACTIVATIONS:
        return None

    def block(layer: Any) -> Block:
        attention = layer.attention
        parts = {name: getattr(attention.self, name) for name in ("query", "key", "value")}
        parts |= {"out": attention.output.dense, "wide": layer.intermediate.dense, "narrow": layer.output.dense}
        weights = {name: part.weight for name, part in parts.items()}
        biases = {name: part.bias for name, part in parts.items()}
        norms = (attention.output.LayerNorm, layer.output.LayerNorm)
        activation = _ACTIVATIONS[config.hidden_act]
        return _block(
            weights, biases, norms, activation, checkpoint.heads, norm_first=False, dtype=dtype, gradients=gradients
        )

    def embedded(inputs: dict[str, Tensor]) -> Tensor:
        x = core.embeddings(input_ids=inputs["input_ids"], token_type_ids=inputs.get("token_type_ids"))
        return core.embeddings_project(x) if hasattr(core, "embeddings_project") else x

    def classified(read: Tensor) -> Tensor:
        sequence = read.to(core.dtype)
        if pooling is not None:
            return model.head(sequence.mean(1))
        if words is not None:
            return words(sequence)[:, 0]
        return model.classifier(core.pooler(sequence) if config.model_type == "bert" else sequence)

    blocks, pooling = tuple(block(layer) for layer in core.encoder.layer), getattr(config, POOLING_KEY, None)
    inputs = checkpoint.inputs
    return Stack(blocks, False, dtype, None, embedded, classified, inputs, reads=pooling or "cls")


def _gpt2_like(checkpoint: Checkpoint, dtype: torch.dtype, gradients: bool) -> Stack | None:
    model, config = checkpoint.model, checkpoint.model.config
    core, words = _transformer(model, "transformer"), _words(model)
    if core is None or config.activation_function not in _ACTIVATIONS or config.scale_attn_by_inverse_layer_idx:
        return None
    if not config.scale_attn_weights or config.add_cross_attention:
        return None

    def block(layer: Any) -> Block:
        joint_weight = layer.attn.c_attn.weight.t().chunk(3)
        joint_bias = layer.attn.c_attn.bias.chunk(3)
        weights = dict(zip(("query", "key", "value"), joint_weight, strict=True))
        biases = dict(zip(("query", "key", "value"), joint_bias, strict=True))
        for name, part in (("out", layer.attn.c_proj), ("wide", layer.mlp.c_fc), ("narrow", layer.mlp.c_proj)):
            weights[name], biases[name] = part.weight.t(), part.bias
        norms, activation = (layer.ln_1, layer.ln_2), _ACTIVATIONS[config.activation_function]
        return _block(
            weights, biases, norms, activation, checkpoint.heads, norm_first=True, dtype=dtype, gradients=gradients
        )

    def embedded(inputs: dict[str, Tensor]) -> Tensor:
        ids = inputs["input_ids"]
        return core.wte(ids) + core.wpe(torch.arange(ids.shape[1], device=ids.device))

    def classified(read: Tensor) -> Tensor:
        normed = core.ln_f(read.to(core.dtype))
        return (words or model.score)(normed[:, 0]) if pooling is None else model.head(normed.mean(1))

    blocks, pooling = tuple(block(layer) for layer in core.h), getattr(config, POOLING_KEY, None)
    padding, inputs = None if pooling else config.pad_token_id, checkpoint.inputs
    return Stack(blocks, True, dtype, padding, embedded, classified, inputs, reads=pooling or "last")


_BUILDERS: dict[str, Callable[[Checkpoint, torch.dtype, bool], Stack | None]] = {
    "bert": _bert_like,
    "roberta": _bert_like,
    "electra": _bert_like,
    "gpt2": _gpt2_like,
}
