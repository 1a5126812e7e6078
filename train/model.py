"""Qwen3-MoE as llama.cpp runs it. A dozen small experts are all computed for every token; of many, each computes a bucket of tokens."""

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Config:
    """The shape of the model."""

    vocabulary: int = 8192
    hidden: int = 512
    blocks: int = 6
    heads: int = 8
    kv_heads: int = 4
    head: int = 64
    experts: int = 12
    used: int = 4
    inner: int = 256
    context: int = 2048
    rope_base: float = 10000.0
    epsilon: float = 1e-6
    capacity: float = 0.0
    """In training: the size of an expert's bucket, as a multiple of its fair share of tokens; what does not fit passes it by. 0 computes
    every expert for every token."""

    def as_dict(self):
        """For checkpoints."""
        return asdict(self)


RECIPES = {
    "small": Config(),
    "study": Config(blocks=12, experts=64, used=6, inner=192, context=1024, capacity=1.6),
}
"""`small` comes with Potluck; `study` has 240 million parameters in many experts, for studies of routing."""


def fake_quantize(weight, group=32):
    """The weight rounded to 4 bits with a scale and an offset for each group of a row; gradients pass straight through."""
    grouped = weight.view(*weight.shape[:-1], -1, group)
    low = grouped.amin(-1, keepdim=True).clamp(max=0.0)
    scale = ((grouped.amax(-1, keepdim=True) - low) / 15).clamp(min=1e-8)
    rounded = (((grouped - low) / scale).round() * scale + low).view_as(weight)
    return weight + (rounded - weight).detach()


def rms_norm(x, weight, epsilon):
    """RMSNorm computed in 32 bits."""
    return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), epsilon).to(x.dtype)


def rotate(x, cos, sin):
    """Rotary embedding on halves, as `qwen3moe` does; x is [batch, heads, tokens, head]."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Gather(torch.autograd.Function):
    """Rows by index. `back` names for each row, in turn, where it went, so that the gradient is a gather as well; an index past the end is no row."""

    @staticmethod
    def forward(ctx, rows, index, back):
        """`[rows, width]`, `[places]` and `[rows, most places of a row]` to `[places, width]`."""
        ctx.save_for_backward(back)
        ctx.places = len(index)
        return rows[index.clamp(max=len(rows) - 1)] * (index < len(rows)).unsqueeze(-1)

    @staticmethod
    def backward(ctx, gradient):
        """The sum over the places of each row."""
        (back,) = ctx.saved_tensors
        parts = gradient[back.clamp(max=ctx.places - 1)] * (back < ctx.places).unsqueeze(-1)
        return parts.float().sum(1).to(gradient.dtype), None, None


def buckets(chosen, experts, size):
    """Which choice (token × used) lies in each place of the experts' buckets `[experts × size]`, and the place of each choice; one past the end
    is none. Choices `[tokens, used]` come in the order of tokens; those for which there is no room are left out."""
    flat = chosen.flatten()
    order = flat.argsort(stable=True)
    sorted_experts = flat[order]
    counts = torch.zeros(experts, dtype=torch.long, device=flat.device).scatter_add(0, flat, torch.ones_like(flat))
    rank = torch.arange(len(flat), device=flat.device) - (counts.cumsum(0) - counts)[sorted_experts]
    place = torch.where(rank < size, sorted_experts * size + rank, experts * size)
    choice_at = torch.full((experts * size + 1,), len(flat), device=flat.device).scatter(0, place, order)[:-1]
    place_of = torch.empty_like(flat).scatter(0, order, place)
    return choice_at, place_of


class Block(nn.Module):
    """Attention with query and key norms, then a router and its experts."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        deep = 0.02 / (2 * c.blocks) ** 0.5

        def weight(*shape, std=0.02):
            return nn.Parameter(torch.randn(*shape) * std)

        self.attn_norm, self.ffn_norm = nn.Parameter(torch.ones(c.hidden)), nn.Parameter(torch.ones(c.hidden))
        self.q_norm, self.k_norm = nn.Parameter(torch.ones(c.head)), nn.Parameter(torch.ones(c.head))
        self.q, self.k, self.v = weight(c.heads * c.head, c.hidden), weight(c.kv_heads * c.head, c.hidden), weight(c.kv_heads * c.head, c.hidden)
        self.o = weight(c.hidden, c.heads * c.head, std=deep)
        self.router = weight(c.experts, c.hidden)
        self.gate, self.up = weight(c.experts, c.inner, c.hidden), weight(c.experts, c.inner, c.hidden)
        self.down = weight(c.experts, c.hidden, c.inner, std=deep)

    def forward(self, x, cos, sin, quantize):
        c = self.c
        batch, tokens, _ = x.shape
        cast = (lambda w: fake_quantize(w).to(x.dtype)) if quantize else (lambda w: w.to(x.dtype))
        h = rms_norm(x, self.attn_norm, c.epsilon)
        q = F.linear(h, cast(self.q)).view(batch, tokens, c.heads, c.head)
        k = F.linear(h, cast(self.k)).view(batch, tokens, c.kv_heads, c.head)
        v = F.linear(h, cast(self.v)).view(batch, tokens, c.kv_heads, c.head).transpose(1, 2)
        q = rotate(rms_norm(q, self.q_norm, c.epsilon).transpose(1, 2), cos, sin)
        k = rotate(rms_norm(k, self.k_norm, c.epsilon).transpose(1, 2), cos, sin)
        repeat = c.heads // c.kv_heads
        mixed = F.scaled_dot_product_attention(q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), is_causal=True)
        x = x + F.linear(mixed.transpose(1, 2).reshape(batch, tokens, -1), cast(self.o))

        h = rms_norm(x, self.ffn_norm, c.epsilon)
        probabilities = F.linear(h.float(), self.router.float()).softmax(-1)
        top = probabilities.topk(c.used, -1)
        chosen = torch.zeros_like(probabilities).scatter(-1, top.indices, 1.0)
        if self.training and c.capacity:
            x = x + self.in_buckets(h.flatten(0, 1), top, cast).view_as(x)
        else:
            x = x + self.densely(h, probabilities * chosen, cast)
        load = chosen.mean((0, 1)) / c.used
        return x, load, c.experts * (load * probabilities.mean((0, 1))).sum()

    def densely(self, h, weights, cast):
        """Every expert for every token, most of them with the weight 0."""
        weights = weights / weights.sum(-1, keepdim=True)
        inner = F.silu(F.linear(h, cast(self.gate).flatten(0, 1))) * F.linear(h, cast(self.up).flatten(0, 1))
        inner = (inner.unflatten(-1, (self.c.experts, self.c.inner)) * weights.unsqueeze(-1).to(h.dtype)).flatten(2)
        return F.linear(inner, cast(self.down).permute(1, 0, 2).flatten(1))

    def in_buckets(self, h, top, cast):
        """Each expert for its own tokens: buckets of one size, so that all experts are one product. h is [tokens, hidden]."""
        c = self.c
        size = -(-int(c.capacity * len(h) * c.used / c.experts) // 8) * 8
        choice_at, place_of = buckets(top.indices.flatten(0, -2), c.experts, size)
        places = place_of.view(len(h), c.used)
        inputs = Gather.apply(h, choice_at // c.used, places).view(c.experts, size, -1)
        gate, up = torch.bmm(inputs, torch.cat((cast(self.gate), cast(self.up)), 1).mT).chunk(2, -1)
        outputs = torch.bmm(F.silu(gate) * up, cast(self.down).mT).flatten(0, 1)
        outputs = Gather.apply(outputs, place_of, choice_at.unsqueeze(-1)).view(len(h), c.used, -1)
        weights = top.values.flatten(0, -2)
        weights = weights / weights.sum(-1, keepdim=True)
        return (outputs * weights.unsqueeze(-1).to(h.dtype)).sum(1)


class Model(nn.Module):
    """The whole model; the head multiplies with the embedding table."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embedding = nn.Parameter(torch.randn(c.vocabulary, c.hidden) * 0.02)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.blocks))
        self.norm = nn.Parameter(torch.ones(c.hidden))
        frequencies = c.rope_base ** (-torch.arange(0, c.head, 2).float() / c.head)
        angles = torch.arange(c.context).float()[:, None] * frequencies
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def trunk(self, ids, quantize, dtype):
        """The last block's output, each block's share of tokens per expert, and the mean balance loss."""
        x = F.embedding(ids, self.embedding).to(dtype)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        loads, balance = [], 0.0
        for block in self.blocks:
            x, load, loss = block(x, cos, sin, quantize)
            loads.append(load)
            balance = balance + loss
        return x, torch.stack(loads), balance / len(self.blocks)

    def head(self, x):
        """Logits."""
        return F.linear(rms_norm(x, self.norm, self.c.epsilon), self.embedding.to(x.dtype))

    def score(self, x, targets, weights):
        """Weighted mean cross entropy of the last block's output."""
        each = F.cross_entropy(self.head(x).flatten(0, 1).float(), targets.flatten(), reduction="none")
        weights = weights.flatten()
        return (each * weights).sum() / weights.sum().clamp(min=1)

    def forward(self, ids, quantize=False, dtype=torch.bfloat16):
        """Logits, loads and balance."""
        x, loads, balance = self.trunk(ids, quantize, dtype)
        return self.head(x), loads, balance

    def loss(self, ids, targets, weights, quantize=False, dtype=torch.bfloat16):
        """Weighted mean cross entropy, loads and balance."""
        x, loads, balance = self.trunk(ids, quantize, dtype)
        return self.score(x, targets, weights), loads, balance

    def compiled(self):
        """`loss`, faster on a GPU. Of many blocks one is compiled and stands for all, because compiling takes a minute each time."""
        if not self.c.capacity:
            return torch.compile(self.loss, dynamic=False)
        for block in self.blocks:
            block.compile(dynamic=False)
        self.score = torch.compile(self.score, dynamic=False)
        return self.loss


def count_parameters(model):
    """All parameters."""
    return sum(p.numel() for p in model.parameters())
