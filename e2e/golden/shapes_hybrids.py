"""What the models of architectures/ look like: Gemma 4, and those whose blocks keep more than keys and values. See shapes.py."""

import math

from shapes import attention, block_norms, feed_forward, finish, model, start
from shapes_experts import SIGMOID, expert_block, experts, next_block

# Gemma 4's heads in blocks that see everything and in blocks with a window.
FULL, SLIDING = 64, 32


def gemma4_start(blocks, sliding, kv_heads, ff, per_layer, shared, full=FULL, sliding_head=SLIDING, window=16, **more):
    m = start("gemma4", blocks=blocks, head=full, kv_heads=kv_heads, ff=ff, base=1000000.0, **more)
    m.keys("f32", rope__freq_base_swa=10000.0, final_logit_softcapping=30.0)
    m.keys("u32", rope__dimension_count=full, rope__dimension_count_swa=sliding_head, attention__key_length_swa=sliding_head,
           attention__value_length_swa=sliding_head, attention__sliding_window=window, attention__shared_kv_layers=shared,
           embedding_length_per_layer_input=per_layer)
    m.key("attention.sliding_window_pattern", "[bool]", sliding)
    # Real files have 1 and, for what does not turn, 1e30.
    m.vector("rope_freqs.weight", full // 2, 8.0, 7.0)
    return m


def gemma4_attention(m, block, head, kv_heads, keys=True, values=True):
    name = f"blk.{block}.attn"
    block_norms(m, block, "attn_norm")
    m.matrix(f"{name}_q", m.hidden, m.heads * head)
    # Scores are not divided by the root of the head's size: the norms' gains keep them small.
    m.vector(f"{name}_q_norm.weight", head, 0.5, 0.15)
    if keys:
        m.matrix(f"{name}_k", m.hidden, kv_heads * head)
        m.vector(f"{name}_k_norm.weight", head, 0.5, 0.15)
    if keys and values:
        m.matrix(f"{name}_v", m.hidden, kv_heads * head)
    m.matrix(f"{name}_output", m.heads * head, m.hidden)
    block_norms(m, block, "post_attention_norm")


@model("gemma4", seed=1)
def gemma4():
    """As E2B: per-layer embeddings, and half of the blocks use the keys and values of two others, with a wider feed-forward."""
    blocks, shared, per_layer = 10, 5, 32
    sliding = [block % 5 != 4 for block in range(blocks)]
    widths = [128 if block < blocks - shared else 256 for block in range(blocks)]
    m = gemma4_start(blocks, sliding, 2, widths, per_layer, shared)
    m.tensors.append({"name": "per_layer_token_embd.weight", "shape": [per_layer * blocks, m.vocabulary], "mean": 0.0,
                      "scale": round(math.sqrt(3 / per_layer), 4)})
    m.matrix("per_layer_model_proj", m.hidden, per_layer * blocks)
    m.norm("per_layer_proj_norm", per_layer)
    for block in range(blocks):
        # Some files carry the unused matrices of blocks that share.
        gemma4_attention(m, block, SLIDING if sliding[block] else FULL, 2, keys=block < blocks - shared or block % 2 == 0)
        block_norms(m, block, "ffn_norm")
        feed_forward(m, block, widths[block])
        block_norms(m, block, "post_ffw_norm")
        m.matrix(f"blk.{block}.inp_gate", m.hidden, per_layer)
        m.matrix(f"blk.{block}.proj", per_layer, m.hidden)
        block_norms(m, block, "post_norm")
        m.vector(f"blk.{block}.layer_output_scale.weight", 1, 1.0, 0.3)
    return finish(m, tied=True, embedding=0.125)


@model("gemma4-moe", seed=2)
def gemma4_moe():
    """As 26B-A4B: experts beside a dense feed-forward; where nothing slides keys are values too, for fewer heads."""
    blocks = 6
    sliding = [block % 6 != 5 for block in range(blocks)]
    heads = [2 if slides else 1 for slides in sliding]
    m = gemma4_start(blocks, sliding, heads, 128, 0, 0)
    experts(m)
    m.key("expert_feed_forward_length", "u32", 32)
    for block in range(blocks):
        gemma4_attention(m, block, SLIDING if sliding[block] else FULL, heads[block], values=sliding[block])
        block_norms(m, block, "ffn_norm")
        feed_forward(m, block)
        gemma4_experts(m, block, 32)
    return finish(m, tied=True, embedding=0.125)


def gemma4_experts(m, block, ff):
    """What is beside and after the feed-forward of a block with experts."""
    block_norms(m, block, "post_ffw_norm", "post_ffw_norm_1", "post_ffw_norm_2", "pre_ffw_norm_2")
    # The router's input is divided by the root of the hidden size.
    m.matrix(f"blk.{block}.ffn_gate_inp", m.hidden, m.experts, gain=2 * math.sqrt(m.hidden))
    m.vector(f"blk.{block}.ffn_gate_inp.scale", m.hidden, 1.0, 0.3)
    m.matrix(f"blk.{block}.ffn_gate_up_exps", m.hidden, 2 * ff, m.experts)
    m.matrix(f"blk.{block}.ffn_down_exps", ff, m.hidden, m.experts, gain=1.5)
    m.vector(f"blk.{block}.ffn_down_exps.scale", m.experts, 1.0, 0.5)
    m.vector(f"blk.{block}.layer_output_scale.weight", 1, 1.0, 0.3)


def lfm2_block(m, block, kv_heads):
    block_norms(m, block, "attn_norm")
    if kv_heads:
        attention(m, block, norms="head", kv_heads=kv_heads)
    else:
        name = f"blk.{block}.shortconv"
        m.matrix(f"{name}.conv", 3, m.hidden)
        m.matrix(f"{name}.in_proj", m.hidden, 3 * m.hidden)
        m.matrix(f"{name}.out_proj", m.hidden, m.hidden)
    block_norms(m, block, "ffn_norm")


def lfm2_finish(m):
    """The last norm is called after the embedding, as it always was."""
    finish(m, tied=True)
    for tensor in m.tensors:
        if tensor["name"] == "output_norm.weight":
            tensor["name"] = "token_embd_norm.weight"
    return m


# Where LFM2 attends, of ten blocks.
ATTENDS = [2, 5, 8]


@model("lfm2", seed=1)
def lfm2():
    heads = [2 if block in ATTENDS else 0 for block in range(10)]
    m = start("lfm2", blocks=10, head=None, heads=2, kv_heads=heads, base=1000000.0)
    m.key("shortconv.l_cache", "u32", 3)
    for block in range(m.blocks):
        lfm2_block(m, block, heads[block])
        feed_forward(m, block)
    return lfm2_finish(m)


@model("lfm2moe", seed=2)
def lfm2moe():
    heads = [1 if block in ATTENDS else 0 for block in range(10)]
    m = start("lfm2moe", blocks=10, head=None, heads=2, kv_heads=heads, base=1000000.0)
    experts(m)
    m.keys("u32", expert_feed_forward_length=32, leading_dense_block_count=2, expert_gating_func=SIGMOID, shortconv__l_cache=3)
    for block in range(m.blocks):
        lfm2_block(m, block, heads[block])
        if block < 2:
            feed_forward(m, block)
        else:
            expert_block(m, block, 32, selection_bias=True)
    return lfm2_finish(m)


# Of a gated delta net: the size of its heads, how many have keys and how many have values, and the width of its convolution.
DELTA, KEY_HEADS, VALUE_HEADS, TAPS = 32, 2, 4, 4
# A block of Qwen 3.5 attends to everything every so often.
INTERVAL = 4


def qwen35_start(architecture, blocks, heads=2, kv_heads=1, head=64, ff=128, rotated=16, sections=(3, 3, 2, 0),
                 delta=(DELTA, KEY_HEADS, VALUE_HEADS), **more):
    m = start(architecture, blocks=blocks, heads=heads, kv_heads=kv_heads, head=head, ff=ff, base=10000000.0, **more)
    m.delta = size, key_heads, value_heads = delta
    m.keys("u32", rope__dimension_count=rotated, ssm__conv_kernel=TAPS, ssm__state_size=size, ssm__group_count=key_heads,
           ssm__time_step_rank=value_heads, ssm__inner_size=size * value_heads, full_attention_interval=INTERVAL)
    if sections:
        m.key("rope.dimension_sections", "[i32]", list(sections))
    return m


def gated_attention(m, block):
    """Attention whose queries come with a gate for its output."""
    name = f"blk.{block}.attn"
    queries, keys = m.heads * m.head, m.kv_heads * m.head
    m.matrix(f"{name}_q", m.hidden, 2 * queries, gain=1.5)
    m.matrix(f"{name}_k", m.hidden, keys)
    m.matrix(f"{name}_v", m.hidden, keys)
    m.norm(f"{name}_q_norm", m.head)
    m.norm(f"{name}_k_norm", m.head)
    m.matrix(f"{name}_output", queries, m.hidden, gain=2.0)


def delta_net(m, block, joined):
    size, key_heads, value_heads = m.delta
    name, inner = f"blk.{block}", size * value_heads
    channels = 2 * size * key_heads + inner
    m.matrix(f"{name}.attn_qkv", m.hidden, channels)
    m.matrix(f"{name}.attn_gate", m.hidden, inner)
    m.matrix(f"{name}.ssm_conv1d", TAPS, channels)
    # What is kept fades over some ten to a hundred positions.
    m.bias(f"{name}.ssm_dt", value_heads, 1.5)
    m.tensors[-1]["mean"] = -3.0
    m.vector(f"{name}.ssm_a", value_heads, -1.5, 1.4)
    if joined:
        m.matrix(f"{name}.ssm_ba", m.hidden, 2 * value_heads)
    else:
        m.matrix(f"{name}.ssm_beta", m.hidden, value_heads)
        m.matrix(f"{name}.ssm_alpha", m.hidden, value_heads)
    m.norm(f"{name}.ssm_norm", size)
    m.matrix(f"{name}.ssm_out", inner, m.hidden, gain=1.5)


def qwen35_mixer(m, block, attends, joined=False):
    block_norms(m, block, "attn_norm")
    if attends:
        gated_attention(m, block)
    else:
        delta_net(m, block, joined)
    block_norms(m, block, "post_attention_norm")


@model("qwen35", seed=1)
def qwen35():
    """The last block predicts one token more, and takes no part here."""
    m = qwen35_start("qwen35", 9)
    m.key("nextn_predict_layers", "u32", 1)
    for block in range(m.blocks):
        qwen35_mixer(m, block, (block + 1) % INTERVAL == 0 or block == 8)
        feed_forward(m, block)
    next_block(m, 8)
    return finish(m, tied=True)


def qwen35_experts(m, count=8, used=2, ff=32, shared=64):
    experts(m, count, used)
    m.keys("u32", expert_feed_forward_length=ff, expert_shared_feed_forward_length=shared)


def qwen35_expert_block(m, block, ff=32, shared=64):
    expert_block(m, block, ff, shared=shared)
    m.vector(f"blk.{block}.ffn_gate_inp_shexp.weight", m.hidden)


@model("qwen35moe", seed=13)
def qwen35moe():
    m = qwen35_start("qwen35moe", 8)
    qwen35_experts(m)
    for block in range(m.blocks):
        qwen35_mixer(m, block, (block + 1) % INTERVAL == 0)
        qwen35_expert_block(m, block)
    return finish(m)


@model("qwen3next", seed=6)
def qwen3next():
    m = qwen35_start("qwen3next", 8, sections=None)
    qwen35_experts(m)
    for block in range(m.blocks):
        qwen35_mixer(m, block, (block + 1) % INTERVAL == 0, joined=True)
        qwen35_expert_block(m, block)
    return finish(m)


def mamba2_keys(m, heads, size, groups, state):
    m.mamba = heads, size, groups, state
    m.keys("u32", ssm__conv_kernel=TAPS, ssm__state_size=state, ssm__group_count=groups, ssm__inner_size=heads * size,
           ssm__time_step_rank=heads)


def mamba2(m, block):
    name = f"blk.{block}.ssm"
    heads, size, groups, state = m.mamba
    inner = heads * size
    channels = inner + 2 * groups * state
    m.matrix(f"{name}_in", m.hidden, inner + channels + heads)
    m.matrix(f"{name}_conv1d", TAPS, channels)
    m.bias(f"{name}_conv1d", channels)
    m.bias(f"{name}_dt", heads, 1.0)
    m.tensors[-1]["mean"] = -3.0
    for part, mean in (("a", -1.5), ("d", 1.0)):
        m.tensors.append({"name": f"{name}_{part}", "shape": [1, heads], "mean": mean, "scale": 0.8})
    m.tensors.append({"name": f"{name}_norm.weight", "shape": [inner // groups, groups], "mean": 1.0, "scale": 0.3})
    m.matrix(f"{name}_out", inner, m.hidden)


@model("granitehybrid", seed=1)
def granitehybrid():
    """As Granite 4 Tiny: Mamba 2, now and then attention without positions, experts everywhere."""
    heads = [2 if block == 5 else 0 for block in range(8)]
    m = start("granitehybrid", blocks=8, head=None, kv_heads=heads, ff=32)
    m.keys("f32", attention__scale=0.25, embedding_scale=12.0, residual_scale=0.5, logit_scale=2.0)
    m.key("rope.dimension_count", "u32", m.head)
    m.key("rope.scaling.finetuned", "bool", False)
    experts(m)
    m.key("expert_shared_feed_forward_length", "u32", 64)
    mamba2_keys(m, heads=4, size=32, groups=1, state=32)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        if heads[block]:
            attention(m, block, kv_heads=heads[block])
        else:
            mamba2(m, block)
        block_norms(m, block, "ffn_norm")
        expert_block(m, block, 32, shared=64)
    return finish(m, tied=True, deviation=8.0, embedding=0.03125)


@model("nemotron_h_moe", seed=2)
def nemotron_h_moe():
    """As Nemotron 3 Nano: a block mixes (M), attends (*) or has experts (E), one of these."""
    pattern = "MEMEM*EMEM*E"
    heads = [2 if kind == "*" else 0 for kind in pattern]
    m = start("nemotron_h_moe", blocks=len(pattern), kv_heads=heads, ff=[64 if kind == "E" else 0 for kind in pattern])
    m.key("attention.layer_norm_epsilon", "f32", 1e-5)
    mamba2_keys(m, heads=6, size=32, groups=2, state=32)
    experts(m, groups=(1, 1))
    m.groups = None
    m.keys("u32", expert_feed_forward_length=64, expert_shared_feed_forward_length=96, expert_shared_count=1)
    m.key("expert_weights_norm", "bool", True)
    m.key("expert_weights_scale", "f32", 2.5)
    for block, kind in enumerate(pattern):
        block_norms(m, block, "attn_norm")
        if kind == "M":
            mamba2(m, block)
        elif kind == "*":
            attention(m, block, kv_heads=heads[block])
        else:
            ungated_experts(m, block, 64, 96)
    return finish(m)


def ungated_experts(m, block, ff, shared):
    name = f"blk.{block}.ffn"
    m.matrix(f"{name}_gate_inp", m.hidden, m.experts, gain=2.0)
    m.bias(f"blk.{block}.exp_probs_b", m.experts)
    m.matrix(f"{name}_up_exps", m.hidden, ff, m.experts)
    m.matrix(f"{name}_down_exps", ff, m.hidden, m.experts, gain=0.5)
    m.matrix(f"{name}_up_shexp", m.hidden, shared)
    m.matrix(f"{name}_down_shexp", shared, m.hidden, gain=0.5)
