"""The loss curve of every sitting as one SVG picture.

    python plot.py --logs eval/logs/*.jsonl --out ../public/models/loss.svg
"""

import argparse
import json
import math
import os

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 300, 52, 40, 16
COLORS = {"pretrain": "#c8412f", "chat": "#3f7d4e"}


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", nargs="+", required=True, help="in their order")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    runs, offset = [], 0
    for path in args.logs:
        with open(path) as file:
            lines = [json.loads(line) for line in file]
        kind = "chat" if "chat" in os.path.basename(path) else "pretrain"
        runs.append((kind, [(offset + line["tokens"], line["loss"]) for line in lines]))
        offset += lines[-1]["tokens"]
    low, high = 0.1, 6.0

    def x(tokens):
        return LEFT + (WIDTH - LEFT - 12) * tokens / offset

    def y(loss):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (math.log(min(max(loss, low), high)) - math.log(low)) / (math.log(high) - math.log(low)))

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" role="img" aria-label="Loss against tokens">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fffdf8"/>',
    ]
    for loss in (0.1, 0.2, 0.5, 1, 2, 5):
        out.append(f'<path d="M{LEFT} {y(loss):.1f}H{WIDTH - 12}" stroke="#ddd"/><text x="{LEFT - 8}" y="{y(loss) + 4:.1f}" text-anchor="end" fill="#555">{loss}</text>')
    for tokens in range(0, int(offset), 250_000_000):
        out.append(f'<text x="{x(tokens):.1f}" y="{HEIGHT - 22}" text-anchor="middle" fill="#555">{tokens // 1_000_000}</text>')
    for kind, points in runs:
        path = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[kind]}" stroke-width="1.5"/>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 5}" text-anchor="middle" fill="#333">million tokens</text>')
    out.append(f'<text x="{WIDTH - 16}" y="{TOP + 12}" text-anchor="end" fill="{COLORS["pretrain"]}">pretraining: loss on all tokens</text>')
    out.append(f'<text x="{WIDTH - 16}" y="{TOP + 28}" text-anchor="end" fill="{COLORS["chat"]}">chat tuning: loss on the assistant\'s tokens, weights rounded to 4 bits</text></svg>')
    with open(args.out, "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
