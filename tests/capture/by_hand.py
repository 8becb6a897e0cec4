"""BERT's and GPT-2's classifiers written out in float64, one position and head at a time: the oracle of changes.

`change(layer, what, tensor)` sees, in order, each layer's "weights" [head, query, key], "heads" [query, head, dim]
before W_O, "attention" [query, hidden] (what the block adds), "feedforward" likewise, and "layer" (with the layer's
input as a fourth argument), and returns what goes on.
"""

import math

import numpy as np


def unchanged(layer, what, tensor, before=None):
    return tensor


def logits(checkpoint, encoding, change=unchanged):
    return (bert if checkpoint.model.config.model_type == "bert" else gpt2)(checkpoint, encoding, change)


def arrays(checkpoint):
    return {name: value.detach().double().cpu().numpy() for name, value in checkpoint.model.state_dict().items()}


def norm(x, weight, bias, eps):
    middle = x - x.mean(-1, keepdims=True)
    return middle / np.sqrt((middle**2).mean(-1, keepdims=True) + eps) * weight + bias


def attend(query, key, value, causal, layer, change):
    length, heads, dim = query.shape
    weights = np.zeros((heads, length, length))
    for head in range(heads):
        for i in range(length):
            seen = range(i + 1) if causal else range(length)
            scores = np.array([query[i, head] @ key[j, head] / math.sqrt(dim) for j in seen])
            shares = np.exp(scores - scores.max())
            weights[head, i, list(seen)] = shares / shares.sum()
    weights = change(layer, "weights", weights)
    outputs = np.stack([weights[head] @ value[:, head] for head in range(heads)], 1)
    return change(layer, "heads", outputs)


def bert(checkpoint, encoding, change):
    w, config = arrays(checkpoint), checkpoint.model.config
    eps, heads = config.layer_norm_eps, config.num_attention_heads
    e = "bert.embeddings"
    x = w[f"{e}.word_embeddings.weight"][list(encoding.ids)]
    x = x + w[f"{e}.position_embeddings.weight"][: len(encoding)]
    x = x + w[f"{e}.token_type_embeddings.weight"][list(encoding.segments)]
    x = norm(x, w[f"{e}.LayerNorm.weight"], w[f"{e}.LayerNorm.bias"], eps)

    def linear(name, value):
        return value @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    for layer in range(config.num_hidden_layers):
        p, before = f"bert.encoder.layer.{layer}", x
        qkv = [linear(f"{p}.attention.self.{name}", x).reshape(len(x), heads, -1) for name in ("query", "key", "value")]
        mixed = attend(*qkv, False, layer, change).reshape(len(x), -1)
        added = change(layer, "attention", linear(f"{p}.attention.output.dense", mixed))
        x = norm(x + added, *(w[f"{p}.attention.output.LayerNorm.{k}"] for k in ("weight", "bias")), eps)
        wide = linear(f"{p}.intermediate.dense", x)
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        added = change(layer, "feedforward", linear(f"{p}.output.dense", wide))
        x = norm(x + added, *(w[f"{p}.output.LayerNorm.{k}"] for k in ("weight", "bias")), eps)
        x = change(layer, "layer", x, before)
    return linear("classifier", np.tanh(linear("bert.pooler.dense", x[0])))


def gpt2(checkpoint, encoding, change):
    w, config = arrays(checkpoint), checkpoint.model.config
    eps, heads = config.layer_norm_epsilon, config.n_head
    x = w["transformer.wte.weight"][list(encoding.ids)] + w["transformer.wpe.weight"][: len(encoding)]

    def conv(name, value):
        return value @ w[f"{name}.weight"] + w[f"{name}.bias"]

    for layer in range(config.n_layer):
        p, before = f"transformer.h.{layer}", x
        seen = norm(x, w[f"{p}.ln_1.weight"], w[f"{p}.ln_1.bias"], eps)
        qkv = [part.reshape(len(x), heads, -1) for part in np.split(conv(f"{p}.attn.c_attn", seen), 3, -1)]
        mixed = attend(*qkv, True, layer, change).reshape(len(x), -1)
        x = x + change(layer, "attention", conv(f"{p}.attn.c_proj", mixed))
        wide = conv(f"{p}.mlp.c_fc", norm(x, w[f"{p}.ln_2.weight"], w[f"{p}.ln_2.bias"], eps))
        wide = 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
        x = x + change(layer, "feedforward", conv(f"{p}.mlp.c_proj", wide))
        x = change(layer, "layer", x, before)
    last = norm(x[-1], w["transformer.ln_f.weight"], w["transformer.ln_f.bias"], eps)
    return last @ w["score.weight"].T
