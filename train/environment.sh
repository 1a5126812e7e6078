#!/usr/bin/env bash
# A Python environment for everything in train/ but the training itself, made once: prints its python.
# PyTorch's wheel wants gigabytes of CUDA libraries that a machine without a GPU has no use for; it comes without them, and
# empty stand-ins take their place (cpu_torch.py).
# usage: environment.sh [FOLDER]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../.run/train}
if [ ! -e "$folder/ready" ]; then
  echo "Making a Python environment for train/ (about 1 GB, some minutes)" >&2
  rm -rf "$folder"
  python3 -m venv "$folder"
  python=$folder/bin/python
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps torch >&2
  grep -v '^torch' "$here/requirements.txt" | "$python" -m pip install --quiet --disable-pip-version-check \
    -r /dev/stdin filelock sympy networkx jinja2 fsspec typing_extensions setuptools >&2
  "$python" "$here/cpu_torch.py" "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >&2
  "$python" -c 'import torch; assert torch.ones(2).sum() == 2' >&2
  touch "$folder/ready"
fi
echo "$folder/bin/python"
