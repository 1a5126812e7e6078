"""Exports a dense Llama of a shape, with random weights, to ONNX for Transformers.js: 4-bit weights in blocks of 32, f32 activations.

    pip install torch transformers onnx onnxruntime onnxruntime-genai
    python e2e/peers/export_onnx.py --out MODELS/dense-95m --hidden 640 --blocks 12 --heads 10 --kv-heads 5 --intermediate 1728 --vocabulary 32000

The same options, given to `cargo run -p potluck-gguf --example synthetic -- --arch llama --type Q4_0 --fill blocks --head-dim 64`, make
the GGUF file of that shape for the others.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx
import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM

HEAD = 64

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--out", type=pathlib.Path, required=True)
for name, value in {"hidden": 640, "blocks": 12, "heads": 10, "kv-heads": 5, "intermediate": 1728, "vocabulary": 32000}.items():
    arguments.add_argument(f"--{name}", type=int, default=value)
shape = arguments.parse_args()

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    hidden_size=shape.hidden, num_hidden_layers=shape.blocks, num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
    head_dim=HEAD, intermediate_size=shape.intermediate, vocab_size=shape.vocabulary, max_position_embeddings=2048,
    tie_word_embeddings=False,
))
with tempfile.TemporaryDirectory() as work:
    source, made = pathlib.Path(work) / "source", pathlib.Path(work) / "made"
    model.save_pretrained(source)
    # The builder copies a tokenizer; nobody reads it, prompts are token ids.
    words = {f"w{index}": index for index in range(shape.vocabulary)}
    Tokenizer(models.WordLevel(words, unk_token="w0")).save(str(source / "tokenizer.json"))
    (source / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", made, "-p", "int4", "-e", "webgpu"]
    subprocess.run([*builder, "--extra_options", "use_webgpu_fp32=true"], check=True)
    graph = onnx.load(made / "model.onnx")
    # Transformers.js reads the size of a head from the inputs, where the builder leaves a name.
    for put in graph.graph.input:
        if put.name.startswith("past_key_values"):
            put.type.tensor_type.shape.dim[3].dim_value = HEAD
    (shape.out / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(graph, shape.out / "onnx" / "model_q4.onnx")
    (shape.out / "config.json").write_text((source / "config.json").read_text())
    (shape.out / "generation_config.json").write_text((source / "generation_config.json").read_text())
