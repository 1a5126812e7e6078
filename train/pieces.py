"""Weights as bfloat16 in a few small compressed files: a machine that gives back files only in pieces needs them."""

import glob
import json
import os
import zlib

import numpy
import torch

PIECE = 15 * 1024 * 1024


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


def load(folder):
    """The configuration and state that `save` wrote."""
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
