"""What the models of architectures/ look like: the dense ones here, with what all of them are made of.

Keys and tensor names are those of llama.cpp's converters and loaders. Sizes are small, and unlike each other where a mistake
could hide: heads times their size is not the hidden size, six blocks cross every pattern, windows and original contexts end
before the 64 positions do.
"""

import math

# Models by the name of their file: functions that describe them.
MODELS = {}


def model(name, seed):
    """Registers a description under the name of its file, with the seed of its weights."""
    def register(build):
        MODELS[name] = lambda: build().with_seed(seed)
        return build
    return register


class Model:
    """Metadata and tensors of a file, in its order."""

    def __init__(self, architecture, vocabulary=320):
        self.architecture, self.vocabulary, self.seed = architecture, vocabulary, None
        self.metadata = [["general.architecture", "string", architecture]]
        self.tensors = []
        # Experts, how many are used, (groups, groups used), and what experts are chosen by where it is not the last score.
        self.experts, self.used, self.groups, self.selection = 0, 0, None, None

    def with_seed(self, seed):
        self.seed = seed
        return self

    def key(self, name, kind, value):
        """A key of the architecture."""
        self.metadata.append([f"{self.architecture}.{name}", kind, value])

    def keys(self, kind, **values):
        """Several keys of one type; `__` stands for the dot in their names."""
        for name, value in values.items():
            self.key(name.replace("__", "."), kind, value)

    def vector(self, name, size, mean=0.0, scale=0.3):
        self.tensors.append({"name": name, "shape": [size], "mean": mean, "scale": scale})

    def norm(self, name, size):
        self.vector(f"{name}.weight", size, 1.0, 0.3)

    def bias(self, name, size, scale=0.3):
        self.vector(f"{name}.bias", size, 0.0, scale)

    def matrix(self, name, inputs, outputs, *experts, gain=1.0):
        """A product whose results deviate `gain` times as much as its inputs."""
        scale = round(gain * math.sqrt(3 / inputs), 4)
        self.tensors.append({"name": f"{name}.weight", "shape": [inputs, outputs, *experts], "mean": 0.0, "scale": scale})


def start(architecture, hidden=64, blocks=6, heads=4, kv_heads=2, head=32, ff=128, context=256, eps=1e-3, base=10000.0, vocabulary=320):
    """The keys that nearly every architecture has; what is None is left out, and lists have an entry for each block."""
    m = Model(architecture, vocabulary)
    m.hidden, m.blocks, m.heads, m.kv_heads, m.ff = hidden, blocks, heads, kv_heads, ff
    m.head = head or hidden // heads
    m.keys("u32", vocab_size=vocabulary, block_count=blocks, context_length=context, embedding_length=hidden)
    for name, value in (("feed_forward_length", ff), ("attention.head_count", heads), ("attention.head_count_kv", kv_heads)):
        m.key(name, "[i32]" if isinstance(value, list) else "u32", value)
    if head:
        m.keys("u32", attention__key_length=head, attention__value_length=head)
    m.key("attention.layer_norm_rms_epsilon", "f32", eps)
    if base:
        m.key("rope.freq_base", "f32", base)
    return m


def finish(m, tied=False, deviation=4.0, embedding=None):
    """The tokenizer's keys (there is none), the embedding, the last norm and the head, so that logits deviate by `deviation`.

    A tied head sees the embedding again: `embedding`, its deviation, is then so small that what the blocks add decides.
    """
    m.metadata.append(["tokenizer.ggml.model", "string", "none"])
    embedding = embedding or (0.25 if tied else 1.0)
    ends = Model(m.architecture)
    ends.tensors = [{"name": "token_embd.weight", "shape": [m.hidden, m.vocabulary], "mean": 0.0, "scale": round(embedding * math.sqrt(3), 4)}]
    gain = round(deviation / (embedding * math.sqrt(m.hidden)), 4) if tied else 1.0
    ends.vector("output_norm.weight", m.hidden, gain, round(0.3 * gain, 4))
    if not tied:
        ends.matrix("output", m.hidden, m.vocabulary, gain=deviation)
    m.tensors = ends.tensors[:1] + m.tensors + ends.tensors[1:]
    return m


def attention(m, block, norms=None, biases=False, fused=False, gain=1.5, heads=None, kv_heads=None, head=None):
    """Queries, keys and values and the output; `norms` of a head or of the whole vector."""
    name, heads, kv_heads, head = f"blk.{block}.attn", heads or m.heads, kv_heads or m.kv_heads, head or m.head
    queries, keys = heads * head, kv_heads * head
    if fused:
        m.matrix(f"{name}_qkv", m.hidden, queries + 2 * keys, gain=gain)
    else:
        m.matrix(f"{name}_q", m.hidden, queries, gain=gain)
        m.matrix(f"{name}_k", m.hidden, keys, gain=gain)
        m.matrix(f"{name}_v", m.hidden, keys)
    if biases:
        m.bias(f"{name}_q", queries)
        m.bias(f"{name}_k", keys)
        m.bias(f"{name}_v", keys)
    if norms:
        m.norm(f"{name}_q_norm", head if norms == "head" else queries)
        m.norm(f"{name}_k_norm", head if norms == "head" else keys)
    m.matrix(f"{name}_output", queries, m.hidden)


def feed_forward(m, block, ff=None, fused=False, name="ffn", suffix=""):
    ff = ff or m.ff
    if not fused:
        m.matrix(f"blk.{block}.{name}_gate{suffix}", m.hidden, ff)
    m.matrix(f"blk.{block}.{name}_up{suffix}", m.hidden, ff * (2 if fused else 1))
    m.matrix(f"blk.{block}.{name}_down{suffix}", ff, m.hidden, gain=1.5)


def block_norms(m, block, *names):
    for name in names:
        m.norm(f"blk.{block}.{name}", m.hidden)


def yarn(m, factor, original, **more):
    m.key("rope.scaling.type", "string", "yarn")
    m.keys("f32", rope__scaling__factor=factor)
    m.keys("u32", rope__scaling__original_context_length=original)
    m.keys("f32", **{f"rope__scaling__{name}": value for name, value in more.items()})


@model("gemma3", seed=1)
def gemma3():
    m = start("gemma3", base=1000000.0)
    m.key("rope.scaling.type", "string", "linear")
    m.key("rope.scaling.factor", "f32", 8.0)
    m.key("attention.sliding_window", "u32", 16)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="head")
        block_norms(m, block, "post_attention_norm", "ffn_norm")
        feed_forward(m, block)
        block_norms(m, block, "post_ffw_norm")
    return finish(m, tied=True, embedding=0.125)


@model("gemma2", seed=3)
def gemma2():
    m = start("gemma2", base=None)
    # Low enough to bend attention; real files have 50 and 30.
    m.keys("f32", attn_logit_softcapping=5.0, final_logit_softcapping=10.0)
    m.key("attention.sliding_window", "u32", 16)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block)
        block_norms(m, block, "post_attention_norm", "ffn_norm")
        feed_forward(m, block)
        block_norms(m, block, "post_ffw_norm")
    return finish(m, tied=True, embedding=0.125)


@model("smollm3", seed=1)
def smollm3():
    m = start("smollm3", blocks=8, base=5000000.0)
    for block in range(m.blocks):
        plain_block(m, block)
    return finish(m, tied=True)


def plain_block(m, block, **options):
    """A block of `llama`."""
    block_norms(m, block, "attn_norm")
    attention(m, block, **options)
    block_norms(m, block, "ffn_norm")
    feed_forward(m, block)


@model("mistral3", seed=1)
def mistral3():
    m = start("mistral3", base=1000000.0)
    m.key("rope.dimension_count", "u32", m.head)
    yarn(m, 16.0, 32, yarn_beta_fast=2.0, yarn_beta_slow=0.8, yarn_log_multiplier=1.0)
    m.key("attention.temperature_scale", "f32", 0.1)
    for block in range(m.blocks):
        plain_block(m, block)
    return finish(m)


@model("internlm2", seed=1)
def internlm2():
    m = start("internlm2", heads=2, kv_heads=1, head=None, base=1000000.0)
    for block in range(m.blocks):
        plain_block(m, block)
    return finish(m)


@model("seed_oss", seed=1)
def seed_oss():
    m = start("seed_oss", base=1000000.0)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, biases=True)
        block_norms(m, block, "post_attention_norm")
        feed_forward(m, block)
    return finish(m)


@model("granite", seed=1)
def granite():
    m = start("granite", head=None, base=10000000.0)
    m.key("rope.dimension_count", "u32", m.head)
    m.keys("f32", attention__scale=0.125, embedding_scale=12.0, residual_scale=0.5, logit_scale=2.0)
    for block in range(m.blocks):
        plain_block(m, block)
    return finish(m, tied=True, deviation=8.0, embedding=0.03125)


@model("olmo2", seed=2)
def olmo2():
    m = start("olmo2", head=None, base=500000.0)
    yarn(m, 8.0, 32, yarn_attn_factor=1.2079441541679836)
    m.key("attention.sliding_window", "u32", 16)
    m.key("attention.sliding_window_pattern", "[bool]", [block % 4 != 3 for block in range(m.blocks)])
    for block in range(m.blocks):
        attention(m, block, norms="whole")
        block_norms(m, block, "post_attention_norm")
        feed_forward(m, block)
        block_norms(m, block, "post_ffw_norm")
    return finish(m)


def phi3_model(context, original):
    m = start("phi3", context=context, head=None, heads=2, kv_heads=1)
    m.key("rope.scaling.original_context_length", "u32", original)
    # Phi 4 mini turns three quarters of a head.
    rotated = 3 * m.head // 4
    m.key("rope.dimension_count", "u32", rotated)
    m.key("attention.sliding_window", "u32", 48)
    m.key("rope.scaling.attn_factor", "f32", 1.19)
    m.vector("rope_factors_long.weight", rotated // 2, 5.0, 4.0)
    m.vector("rope_factors_short.weight", rotated // 2, 1.2, 0.2)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, fused=True)
        block_norms(m, block, "ffn_norm")
        feed_forward(m, block, fused=True)
    return finish(m)


@model("phi3", seed=1)
def phi3():
    """A context longer than the original one: the long factors."""
    return phi3_model(256, 32)


@model("phi3-short", seed=1)
def phi3_short():
    """A context no longer than the original one: the short factors."""
    return phi3_model(256, 512)


@model("exaone4", seed=1)
def exaone4():
    m = start("exaone4", head=None, heads=2, kv_heads=1, base=1000000.0)
    m.vector("rope_freqs.weight", m.head // 2, 4.0, 3.0)
    for block in range(m.blocks):
        exaone4_block(m, block)
    return finish(m, tied=True)


def exaone4_block(m, block):
    attention(m, block, norms="head")
    block_norms(m, block, "post_attention_norm")
    feed_forward(m, block)
    block_norms(m, block, "post_ffw_norm")


@model("exaone4-32b", seed=1)
def exaone4_32b():
    """Windows, and blocks without RoPE, come with 64 blocks only."""
    m = start("exaone4", hidden=32, blocks=64, heads=2, kv_heads=1, head=None, ff=32, base=1000000.0, vocabulary=256)
    m.key("attention.sliding_window", "u32", 16)
    m.key("attention.sliding_window_pattern", "[bool]", [block % 4 != 3 for block in range(m.blocks)])
    for block in range(m.blocks):
        exaone4_block(m, block)
    return finish(m)


@model("glm4", seed=2)
def glm4():
    m = start("glm4")
    m.key("rope.dimension_count", "u32", m.head // 2)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, biases=True)
        block_norms(m, block, "post_attention_norm", "ffn_norm")
        feed_forward(m, block, fused=True)
        block_norms(m, block, "post_ffw_norm")
    return finish(m)


@model("ernie4_5", seed=1)
def ernie4_5():
    m = start("ernie4_5", base=500000.0)
    for block in range(m.blocks):
        plain_block(m, block)
    return finish(m, tied=True)
