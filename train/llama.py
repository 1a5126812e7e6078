"""llama.cpp through the driver that the golden answers use."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "golden"))

from llama_cpp import Library  # noqa: E402

THREADS = int(os.environ.get("POTLUCK_THREADS", min(8, os.cpu_count() or 1)))
"""How many threads llama.cpp computes with; fewer than the free cores when others work too."""

__all__ = ["Library", "THREADS"]
