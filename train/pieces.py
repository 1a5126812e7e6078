"""Weights as bfloat16 in a few small compressed files: a machine that gives back files only in pieces needs them. Or in single precision in one
large file, which is written at once."""

import glob
import json
import os
import zlib

import numpy
import torch

PIECE = 15 * 1024 * 1024
SINGLE = "weights.pt"


def save(model, folder):
    """Writes `weights.json` and `weights.N.bin` below `folder`; high and low bytes are compressed apart."""
    os.makedirs(folder, exist_ok=True)
    index, planes = [], [[], []]
    for name, tensor in model.state_dict().items():
        raw = tensor.detach().to(torch.bfloat16).contiguous().cpu().view(torch.int16).numpy().astype("<i2")
        data = numpy.frombuffer(raw.tobytes(), dtype=numpy.uint8).reshape(-1, 2)
        planes[0].append(data[:, 0].tobytes())
        planes[1].append(data[:, 1].tobytes())
        index.append((name, list(tensor.shape)))
    packed = [zlib.compress(b"".join(plane), 6) for plane in planes]
    whole = b"".join(packed)
    for old in glob.glob(os.path.join(folder, "weights.*.bin")):
        os.remove(old)
    for number, at in enumerate(range(0, len(whole), PIECE)):
        with open(os.path.join(folder, f"weights.{number}.bin"), "wb") as file:
            file.write(whole[at : at + PIECE])
    with open(os.path.join(folder, "weights.json"), "w") as file:
        json.dump({"config": model.c.as_dict(), "tensors": index, "low": len(packed[0])}, file)


def save_single(model, folder):
    """Writes `weights.pt` below `folder`."""
    os.makedirs(folder, exist_ok=True)
    state = {name: tensor.detach().float().cpu() for name, tensor in model.state_dict().items()}
    torch.save({"config": model.c.as_dict(), "state": state}, os.path.join(folder, SINGLE))


def load(folder):
    """The configuration and state that `save` or `save_single` wrote."""
    if os.path.exists(os.path.join(folder, SINGLE)):
        saved = torch.load(os.path.join(folder, SINGLE), map_location="cpu", weights_only=True)
        return saved["config"], saved["state"]
    with open(os.path.join(folder, "weights.json")) as file:
        index = json.load(file)
    names = sorted(glob.glob(os.path.join(folder, "weights.*.bin")), key=lambda n: int(n.rsplit(".", 2)[1]))
    whole = b"".join(open(name, "rb").read() for name in names)
    planes = [numpy.frombuffer(zlib.decompress(part), dtype=numpy.uint8) for part in (whole[: index["low"]], whole[index["low"] :])]
    flat = torch.from_numpy(numpy.stack(planes, 1).reshape(-1).view("<i2").copy()).view(torch.bfloat16).float()
    state, at = {}, 0
    for name, shape in index["tensors"]:
        size = int(numpy.prod(shape))
        state[name] = flat[at : at + size].view(shape)
        at += size
    return index["config"], state


def load_gguf(path):
    """The configuration and state in a GGUF file of `export.py`, whatever type its matrices have got since."""
    import gguf

    from export import NAMES, TOP

    reader = gguf.GGUFReader(path)
    names = {written: name for name, written in TOP.items()}
    blocks = reader.fields["qwen3moe.block_count"].contents()
    names |= {f"blk.{block}.{written}.weight": f"blocks.{block}.{part}" for block in range(blocks) for part, written in NAMES.items()}
    state = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape([int(n) for n in reversed(tensor.shape)])
        state[names[tensor.name]] = torch.from_numpy(values.astype(numpy.float32))
    field = lambda key: reader.fields[f"qwen3moe.{key}"].contents()
    config = {
        "vocabulary": len(state["embedding"]), "hidden": field("embedding_length"), "blocks": blocks, "heads": field("attention.head_count"), "kv_heads": field("attention.head_count_kv"),
        "head": field("attention.key_length"), "experts": field("expert_count"), "used": field("expert_used_count"), "inner": field("expert_feed_forward_length"),
        "context": field("context_length"), "rope_base": field("rope.freq_base"), "epsilon": field("attention.layer_norm_rms_epsilon"),
    }
    return config, state
