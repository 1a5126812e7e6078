"""Published models of experts at full size, for large.py. See shapes.py.

Sizes are those of the published `config.json`; the number of parameters checks them.
"""

from shapes import attention, block_norms, feed_forward, finish, start, yarn
from shapes_experts import expert_block, experts
from shapes_hybrids import (gemma4_attention, gemma4_experts, gemma4_start, qwen35_experts, qwen35_expert_block, qwen35_mixer,
                            qwen35_start)

# Functions that describe a model of so many blocks, by its name; its tokenizer's rule; and its parameters with all blocks.
SHAPES = {}


def shape(name, blocks, pre, parameters):
    def register(build):
        SHAPES[name] = build, blocks, pre, parameters
        return build
    return register


@shape("gpt-oss-20b", blocks=24, pre="gpt-4o", parameters=20_914_757_184)
def gpt_oss_20b(blocks):
    width = 2880
    m = start("gpt-oss", hidden=width, blocks=blocks, heads=64, kv_heads=8, head=64, ff=width, context=131072, eps=1e-5, base=150000.0,
              vocabulary=201088)
    yarn(m, 32.0, 4096)
    m.key("attention.sliding_window", "u32", 128)
    experts(m, count=32, used=4)
    m.key("expert_feed_forward_length", "u32", width)
    for block in range(blocks):
        block_norms(m, block, "attn_norm")
        attention(m, block, biases=True)
        m.bias(f"blk.{block}.attn_output", width)
        m.vector(f"blk.{block}.attn_sinks.weight", m.heads, 0.5, 1.5)
        block_norms(m, block, "post_attention_norm")
        expert_block(m, block, width, biases=True, router_bias=True)
    return finish(m)


@shape("qwen3.5-35b-a3b", blocks=40, pre="qwen35", parameters=34_660_610_688)
def qwen35_35b_a3b(blocks):
    m = qwen35_start("qwen35moe", blocks, hidden=2048, heads=16, kv_heads=2, head=256, ff=512, context=262144, eps=1e-6, vocabulary=248320,
                     rotated=64, sections=(11, 11, 10, 0), delta=(128, 16, 32))
    qwen35_experts(m, count=256, used=8, ff=512, shared=512)
    for block in range(blocks):
        qwen35_mixer(m, block, block % 4 == 3)
        qwen35_expert_block(m, block, 512, shared=512)
    return finish(m)


@shape("gemma-4-26b-a4b", blocks=30, pre="qwen2", parameters=25_233_142_046)
def gemma_4_26b_a4b(blocks):
    full, sliding_head, width = 512, 256, 2112
    sliding = [block % 6 != 5 for block in range(blocks)]
    heads = [8 if slides else 2 for slides in sliding]
    m = gemma4_start(blocks, sliding, heads, width, 0, 0, hidden=2816, heads=16, full=full, sliding_head=sliding_head, window=1024,
                     context=262144, eps=1e-6, vocabulary=262144)
    experts(m, count=128, used=8)
    m.key("expert_feed_forward_length", "u32", 704)
    for block in range(blocks):
        gemma4_attention(m, block, sliding_head if sliding[block] else full, heads[block], values=sliding[block])
        block_norms(m, block, "ffn_norm")
        feed_forward(m, block)
        gemma4_experts(m, block, 704)
    return finish(m, tied=True, embedding=0.125)
