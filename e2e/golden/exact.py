"""Measures how exact the reference is: the same models in float64 with numpy, written from the architectures' papers.

`python3 e2e/golden/make.py --exact [NAME ...]` prints, for each model, the largest difference between llama.cpp's logits and
these, and whether any argmax differs. Two programs with nothing in common that agree to the last digits of single precision
are why a small tolerance is enough (README.md).
"""

import gzip
import json

import gguf
import numpy as np

from llama_cpp import HERE


class Exact:
    """A model of models.json in float64."""

    def __init__(self, path, description):
        self.weights = {}
        for tensor in gguf.GGUFReader(path).tensors:
            shape = [int(n) for n in reversed(tensor.shape)]
            self.weights[tensor.name] = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape).astype(np.float64)
        self.d = description

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * self.weights[name]

    def rope(self, x):
        """Rotates pairs of dimensions: neighbours in `llama` files, dimension i and i + half in Qwen's."""
        positions, _, dim = x.shape
        half = dim // 2
        frequency = float(self.d["rope_base"]) ** (-np.arange(half) * 2.0 / dim)
        if "rope_freqs.weight" in self.weights:
            frequency = frequency / self.weights["rope_freqs.weight"]
        angle = np.arange(positions)[:, None, None] * frequency
        cos, sin = np.cos(angle), np.sin(angle)
        out = np.empty_like(x)
        if self.d["architecture"] in ("llama", "mixtral"):
            a, b = x[..., 0::2], x[..., 1::2]
            out[..., 0::2], out[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        else:
            a, b = x[..., :half], x[..., half:]
            out[..., :half], out[..., half:] = a * cos - b * sin, a * sin + b * cos
        return out

    def attention(self, x, block):
        d, w = self.d, self.weights
        heads, kv_heads, dim = d["heads"], d["kv_heads"], d["head_dim"]
        project = {}
        for part, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            y = x @ w[f"{block}attn_{part}.weight"].T
            if f"{block}attn_{part}.bias" in w:
                y = y + w[f"{block}attn_{part}.bias"]
            y = y.reshape(len(x), count, dim)
            if f"{block}attn_{part}_norm.weight" in w:
                y = self.norm(y, f"{block}attn_{part}_norm.weight")
            project[part] = y if part == "v" else self.rope(y)
        out = np.empty((len(x), heads, dim))
        mask = np.triu(np.full((len(x), len(x)), -np.inf), 1)
        for head in range(heads):
            own = head // (heads // kv_heads)
            scores = project["q"][:, head] @ project["k"][:, own].T / np.sqrt(dim) + mask
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = scores / scores.sum(-1, keepdims=True) @ project["v"][:, own]
        return out.reshape(len(x), heads * dim) @ w[f"{block}attn_output.weight"].T

    def swiglu(self, x, gate, up, down):
        inside = x @ gate.T
        return (inside / (1 + np.exp(-inside)) * (x @ up.T)) @ down.T

    def feed_forward(self, x, block):
        """Also returns the smallest gap between the last expert chosen and the first one not."""
        names = ("ffn_gate", "ffn_up", "ffn_down")
        if f"{block}ffn_gate_inp.weight" not in self.weights:
            return self.swiglu(x, *(self.weights[f"{block}{name}.weight"] for name in names)), np.inf
        experts = [self.weights[f"{block}{name}_exps.weight"] for name in names]
        scores = x @ self.weights[f"{block}ffn_gate_inp.weight"].T
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        used = self.d["used"]
        order = np.argsort(-scores, -1)
        ranked = np.take_along_axis(scores, order, -1)
        out = np.zeros_like(x)
        for row in range(len(x)):
            chosen = order[row, :used]
            gates = scores[row, chosen] / scores[row, chosen].sum()
            for expert, weight in zip(chosen, gates):
                out[row] += weight * self.swiglu(x[row:row + 1], *(matrix[expert] for matrix in experts))[0]
        return out, (ranked[:, used - 1] - ranked[:, used]).min()

    def logits(self, ids):
        x = self.weights["token_embd.weight"][ids]
        gap = np.inf
        for number in range(self.d["blocks"]):
            block = f"blk.{number}."
            x = x + self.attention(self.norm(x, block + "attn_norm.weight"), block)
            y, own = self.feed_forward(self.norm(x, block + "ffn_norm.weight"), block)
            x, gap = x + y, min(gap, own)
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return self.norm(x, "output_norm.weight") @ head.T, gap


# Bounds of `compare`: the reference is that exact, and no routing hangs on less than any sound arithmetic keeps.
LARGEST_DIFFERENCE = 1e-4
CLOSEST_CALL = 1e-4


def compare(name, path, description, plain, library):
    golden = json.loads(gzip.decompress((HERE / "data" / f"{name}.json.gz").read_bytes()))
    exact = Exact(path, description)
    worst, flips, gap, rms, f16 = 0.0, [], np.inf, [], 0.0
    with library.load(plain, repack=False) as model:
        context = model.context(length=64, cache="f32", batch=64, threads=1)
        half = model.context(length=64, cache="f16", batch=64, threads=1)
        for prompt in golden["prompts"]:
            context.clear()
            half.clear()
            ours, own_gap = exact.logits(prompt["ids"])
            theirs = context.logits(prompt["ids"])
            worst = max(worst, np.abs(ours - theirs).max())
            f16 = max(f16, np.abs(ours - half.logits(prompt["ids"])).max())
            rms.append(ours.std())
            gap = min(gap, own_gap)
            flips += [m for row, a, m in zip(ours, prompt["argmax"], prompt["margin"]) if row.argmax() != a]
    print(f"{name}: largest difference {worst:.2e} (f16 cache {f16:.2e}), deviation of logits {np.mean(rms):.2f}, "
          f"margins of other answers {flips}, closest call between experts {gap:.1e}")
    if worst > LARGEST_DIFFERENCE or flips:
        raise RuntimeError(f"{name}: llama.cpp and float64 disagree.")
    if gap < CLOSEST_CALL:
        raise RuntimeError(f"{name}: a choice between experts hangs on {gap:.1e}; take the next seed.")
