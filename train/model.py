"""Qwen3-MoE as llama.cpp runs it, with every expert computed densely: right for small experts on one GPU."""

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

    def as_dict(self):
        """For checkpoints."""
        return asdict(self)


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
        weights = probabilities * chosen
        weights = weights / weights.sum(-1, keepdim=True)
        inner = F.silu(F.linear(h, cast(self.gate).flatten(0, 1))) * F.linear(h, cast(self.up).flatten(0, 1))
        inner = (inner.view(batch, tokens, c.experts, c.inner) * weights.unsqueeze(-1).to(x.dtype)).flatten(2)
        x = x + F.linear(inner, cast(self.down).permute(1, 0, 2).flatten(1))
        load = chosen.mean((0, 1)) / c.used
        return x, load, c.experts * (load * probabilities.mean((0, 1))).sum()


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

    def forward(self, ids, quantize=False, dtype=torch.bfloat16):
        """Logits, each block's share of tokens per expert, and the mean balance loss."""
        x = F.embedding(ids, self.embedding).to(dtype)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        loads, balance = [], 0.0
        for block in self.blocks:
            x, load, loss = block(x, cos, sin, quantize)
            loads.append(load)
            balance = balance + loss
        x = rms_norm(x, self.norm, self.c.epsilon)
        return F.linear(x, self.embedding.to(dtype)), torch.stack(loads), balance / len(self.blocks)

    def loss(self, ids, targets, weights, quantize=False, dtype=torch.bfloat16):
        """Weighted mean cross entropy, loads and balance."""
        logits, loads, balance = self(ids, quantize, dtype)
        each = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none")
        weights = weights.flatten()
        return (each * weights).sum() / weights.sum().clamp(min=1), loads, balance


def count_parameters(model):
    """All parameters."""
    return sum(p.numel() for p in model.parameters())
