"""What the models of architectures/ look like: those with experts. See shapes.py."""

from shapes import attention, block_norms, feed_forward, finish, model, start, yarn

# Gating functions as files number them.
SOFTMAX, SIGMOID = 1, 2


def experts(m, count=8, used=2, groups=None):
    m.experts, m.used, m.groups = count, used, groups
    m.keys("u32", expert_count=count, expert_used_count=used)
    if groups:
        m.keys("u32", expert_group_count=groups[0], expert_group_used_count=groups[1])


def expert_block(m, block, ff=64, router_gain=2.0, selection_bias=False, shared=0, biases=False, gain=1.0, router_bias=False):
    """The router and its experts, and an expert for everyone of width `shared`."""
    name = f"blk.{block}.ffn"
    m.matrix(f"{name}_gate_inp", m.hidden, m.experts, gain=router_gain)
    if router_bias:
        m.bias(f"{name}_gate_inp", m.experts)
    if selection_bias:
        m.bias(f"blk.{block}.exp_probs_b", m.experts)
    for part, inputs, outputs, part_gain in (("gate", m.hidden, ff, gain), ("up", m.hidden, ff, gain), ("down", ff, m.hidden, 1.5 / gain**2)):
        m.matrix(f"{name}_{part}_exps", inputs, outputs, m.experts, gain=part_gain)
        if biases:
            m.tensors.append({"name": f"{name}_{part}_exps.bias", "shape": [outputs, m.experts], "mean": 0.0, "scale": 0.3})
    if shared:
        feed_forward(m, block, shared, suffix="_shexp")


@model("olmoe", seed=1)
def olmoe():
    m = start("olmoe", heads=4, kv_heads=4, head=None, ff=64)
    experts(m)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="whole")
        block_norms(m, block, "ffn_norm")
        expert_block(m, block)
    return finish(m)


@model("granitemoe", seed=13)
def granitemoe():
    m = start("granitemoe", head=None, ff=64)
    m.key("rope.dimension_count", "u32", m.head)
    m.keys("f32", attention__scale=0.125, embedding_scale=12.0, residual_scale=0.5, logit_scale=2.0)
    m.key("expert_shared_feed_forward_length", "u32", 96)
    experts(m)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block)
        block_norms(m, block, "ffn_norm")
        expert_block(m, block, shared=96)
    return finish(m, tied=True, deviation=8.0, embedding=0.03125)


@model("qwen2moe", seed=3)
def qwen2moe():
    m = start("qwen2moe", head=None, base=1000000.0)
    experts(m)
    m.keys("u32", expert_feed_forward_length=64, expert_shared_feed_forward_length=128)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, biases=True)
        block_norms(m, block, "ffn_norm")
        expert_block(m, block, shared=128)
        m.vector(f"blk.{block}.ffn_gate_inp_shexp.weight", m.hidden)
    return finish(m)


@model("ernie4_5-moe", seed=4)
def ernie4_5_moe():
    m = start("ernie4_5-moe", base=500000.0)
    experts(m)
    m.keys("u32", interleave_moe_layer_step=1, leading_dense_block_count=1, expert_feed_forward_length=64, expert_shared_count=2,
           expert_shared_feed_forward_length=128)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block)
        block_norms(m, block, "ffn_norm")
        if block < 1:
            feed_forward(m, block)
        else:
            expert_block(m, block, selection_bias=True, shared=128)
    return finish(m, tied=True)


def qwen3vl_keys(m):
    # Every pair lies in a section. llama.cpp does not rotate the others in text, Transformers rotates them by the position.
    m.key("rope.dimension_sections", "[i32]", [6, 5, 5, 0])
    m.key("n_deepstack_layers", "u32", 3)


@model("qwen3vl", seed=1)
def qwen3vl():
    """Dense, beside its sibling with experts."""
    m = start("qwen3vl", base=5000000.0)
    qwen3vl_keys(m)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="head")
        block_norms(m, block, "ffn_norm")
        feed_forward(m, block)
    return finish(m, tied=True)


@model("qwen3vlmoe", seed=15)
def qwen3vlmoe():
    m = start("qwen3vlmoe", base=5000000.0)
    qwen3vl_keys(m)
    experts(m)
    m.key("expert_feed_forward_length", "u32", 64)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="head")
        block_norms(m, block, "ffn_norm")
        expert_block(m, block)
    return finish(m)


@model("gpt-oss", seed=1)
def gpt_oss():
    m = start("gpt-oss", ff=64, base=150000.0, context=512)
    yarn(m, 32.0, 16)
    m.key("attention.sliding_window", "u32", 16)
    experts(m)
    m.key("expert_feed_forward_length", "u32", 64)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, biases=True)
        m.bias(f"blk.{block}.attn_output", m.hidden)
        m.vector(f"blk.{block}.attn_sinks.weight", m.heads, 0.5, 1.5)
        block_norms(m, block, "post_attention_norm")
        # Wide enough for the clamps at 7 to show.
        expert_block(m, block, biases=True, router_bias=True, gain=3.0)
    return finish(m)


@model("glm4moe", seed=2)
def glm4moe():
    """The last block predicts one token more, and takes no part here."""
    m = start("glm4moe", blocks=7, base=1000000.0)
    m.key("rope.dimension_count", "u32", m.head // 2)
    experts(m, groups=(1, 1))
    m.keys("u32", expert_feed_forward_length=64, expert_shared_count=1, leading_dense_block_count=1, expert_gating_func=SIGMOID)
    m.key("expert_weights_scale", "f32", 1.5)
    m.key("expert_weights_norm", "bool", True)
    m.key("nextn_predict_layers", "u32", 1)
    m.groups = None
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="head", biases=True)
        block_norms(m, block, "post_attention_norm")
        if block < 1:
            feed_forward(m, block)
        else:
            expert_block(m, block, selection_bias=True, shared=64)
    next_block(m, m.blocks - 1)
    return finish(m)


def next_block(m, block):
    """What joins an embedding and a hidden vector in a block that predicts one token more."""
    m.matrix(f"blk.{block}.nextn.eh_proj", 2 * m.hidden, m.hidden)
    block_norms(m, block, "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm")


@model("dots1", seed=1)
def dots1():
    m = start("dots1", kv_heads=4, base=10000000.0)
    experts(m, groups=(1, 1))
    m.groups = None
    m.keys("u32", expert_feed_forward_length=64, expert_shared_count=2, leading_dense_block_count=1, expert_gating_func=SIGMOID)
    m.key("expert_weights_scale", "f32", 2.5)
    m.key("expert_weights_norm", "bool", True)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="head")
        block_norms(m, block, "ffn_norm")
        if block < 1:
            feed_forward(m, block)
        else:
            expert_block(m, block, selection_bias=True, shared=128)
    return finish(m)


@model("bailingmoe2", seed=1)
def bailingmoe2():
    """As Ling 2.0: stacked queries, keys and values, groups of experts, half of each head turns."""
    m = start("bailingmoe2", heads=2, kv_heads=1, head=None, base=600000.0)
    m.key("rope.dimension_count", "u32", m.head // 2)
    experts(m, 16, 4, groups=(4, 2))
    m.keys("u32", expert_feed_forward_length=64, expert_shared_feed_forward_length=48, expert_shared_count=2, leading_dense_block_count=1,
           expert_gating_func=SIGMOID)
    m.key("expert_weights_scale", "f32", 2.5)
    m.key("expert_weights_norm", "bool", True)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="head", fused=True)
        block_norms(m, block, "ffn_norm")
        if block < 1:
            feed_forward(m, block)
        else:
            expert_block(m, block, selection_bias=True, shared=96)
    return finish(m)


@model("minimax-m2", seed=1)
def minimax_m2():
    m = start("minimax-m2", ff=64, base=5000000.0)
    m.key("rope.dimension_count", "u32", m.head // 2)
    experts(m)
    m.keys("u32", expert_feed_forward_length=64, expert_gating_func=SIGMOID)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, norms="whole")
        block_norms(m, block, "ffn_norm")
        expert_block(m, block, selection_bias=True)
    return finish(m)


@model("llama4", seed=1)
def llama4():
    """As in Maverick every other block has experts, one of which is used; 64 positions cannot show the chunks of 8192."""
    m = start("llama4", blocks=8, head=None, base=500000.0)
    m.key("rope.dimension_count", "u32", m.head)
    experts(m, used=1)
    # Experts are chosen by logits, of which llama.cpp computes the probabilities as well.
    m.selection = "ffn_moe_logits"
    m.keys("u32", interleave_moe_layer_step=2, expert_feed_forward_length=64)
    m.vector("rope_freqs.weight", m.head // 2, 4.0, 3.0)
    for block in range(m.blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block)
        block_norms(m, block, "ffn_norm")
        if block % 2 == 0:
            feed_forward(m, block)
        else:
            expert_block(m, block, shared=64)
    return finish(m)


# Of a head of DeepSeek's attention: the part without positions, the part with them, values; and the rank of what is kept.
WITHOUT, WITH, VALUE, RANK = 32, 16, 24, 64


def deepseek2_start(blocks=6, dense=1, groups=None, experts_of=(8, 2), split=True, **more):
    """`split`: keys and values have a matrix each and the cache holds what both are made from; older files do not."""
    m = start("deepseek2", blocks=blocks, head=None, kv_heads=1 if split else 4, **more)
    m.dense = dense
    experts(m, *experts_of, groups=groups)
    m.keys("u32", leading_dense_block_count=dense, attention__kv_lora_rank=RANK)
    if split:
        m.keys("u32", attention__key_length=RANK + WITH, attention__value_length=RANK, attention__key_length_mla=WITHOUT + WITH,
               attention__value_length_mla=VALUE)
    else:
        m.keys("u32", attention__key_length=WITHOUT + WITH, attention__value_length=VALUE)
    m.keys("u32", rope__dimension_count=WITH, expert_feed_forward_length=32, expert_shared_count=2)
    return m


def deepseek2_block(m, block, query_rank=0, split=True, **more):
    name, heads = f"blk.{block}.attn", m.heads
    block_norms(m, block, "attn_norm")
    if query_rank:
        m.matrix(f"{name}_q_a", m.hidden, query_rank)
        m.norm(f"{name}_q_a_norm", query_rank)
        m.matrix(f"{name}_q_b", query_rank, heads * (WITHOUT + WITH))
    else:
        m.matrix(f"{name}_q", m.hidden, heads * (WITHOUT + WITH))
    m.matrix(f"{name}_kv_a_mqa", m.hidden, RANK + WITH)
    m.norm(f"{name}_kv_a_norm", RANK)
    if split:
        m.matrix(f"{name}_k_b", WITHOUT, RANK, heads)
        m.matrix(f"{name}_v_b", RANK, VALUE, heads)
    else:
        m.matrix(f"{name}_kv_b", RANK, heads * (WITHOUT + VALUE))
    m.matrix(f"{name}_output", heads * VALUE, m.hidden)
    block_norms(m, block, "ffn_norm")
    if block < m.dense:
        feed_forward(m, block)
    else:
        expert_block(m, block, 32, shared=64, **more)


@model("deepseek2", seed=2)
def deepseek2():
    """As DeepSeek V3: a rank for queries, groups of experts, a selection bias, YaRN."""
    m = deepseek2_start(groups=(4, 2), experts_of=(16, 4), context=640)
    m.key("attention.q_lora_rank", "u32", 48)
    m.key("expert_weights_scale", "f32", 2.5)
    m.key("expert_weights_norm", "bool", True)
    m.key("expert_gating_func", "u32", SIGMOID)
    # A tenth of `mscale_all_dim`, as converters write it.
    yarn(m, 40.0, 16, yarn_log_multiplier=0.1)
    for block in range(m.blocks):
        deepseek2_block(m, block, 48, selection_bias=True)
    return finish(m)


@model("deepseek2-lite", seed=2)
def deepseek2_lite():
    """As DeepSeek V2 Lite: no rank for queries, which files of 27 blocks alone may do without."""
    m = deepseek2_start(blocks=27, dense=21, hidden=32, ff=64, context=640)
    m.key("expert_weights_scale", "f32", 1.0)
    m.key("expert_gating_func", "u32", SOFTMAX)
    yarn(m, 40.0, 16, yarn_log_multiplier=0.0707)
    for block in range(m.blocks):
        deepseek2_block(m, block)
    return finish(m)


@model("deepseek2-old", seed=3)
def deepseek2_old():
    """As files were before llama.cpp kept what keys and values are made from: GLM 4.7 Flash's router, no YaRN."""
    m = deepseek2_start(split=False, base=1000000.0)
    m.key("attention.q_lora_rank", "u32", 48)
    m.key("expert_weights_scale", "f32", 1.8)
    m.key("expert_weights_norm", "bool", True)
    m.key("expert_gating_func", "u32", SIGMOID)
    for block in range(m.blocks):
        deepseek2_block(m, block, 48, split=False, selection_bias=True)
    return finish(m)
