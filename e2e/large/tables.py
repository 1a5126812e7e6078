#!/usr/bin/env python3
"""Tables of what e2e/large/experts.sh has printed: tables.py FILE."""
import json
import math
import re
import sys

CASE = re.compile(r"== replicas (\S+), hedging (\S+), (\d+) holders of (\S+), delay (\S+) ms, slow (\S+) ?(.*), at")


def read(path):
    """Each room with its case, its rounds, and when a device vanished."""
    rooms = []
    for line in open(path, encoding="utf-8"):
        case = CASE.match(line)
        if case:
            keys = ("replicas", "hedging", "holders", "budget", "delay", "slow", "more")
            rooms.append(dict(zip(keys, case.groups()), rounds=[], vanished=None))
        elif line.startswith("{") and "token_ms" in (parsed := json.loads(line)) and rooms:
            rooms[-1]["rounds"].append(parsed)
        elif (vanished := re.match(r"vanished at (\d+) ms", line)) and rooms:
            rooms[-1]["vanished"] = int(vanished.group(1))
    return rooms


def slowest(median, sigma, asked, copies):
    """Mean milliseconds of the slowest of `asked` answers, each the quickest of `copies` (moex.txt, equations 14 to 18)."""
    step, most = median / 400, 12 * median
    total = 0.0
    for index in range(int(most / step)):
        at = (index + 0.5) * step
        late = 0.5 * math.erfc(math.log(at / median) / sigma / math.sqrt(2))
        total += step * (1 - (1 - late**copies) ** asked)
    return total


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def head(*cells):
    row(*cells)
    print("|" + "---|" * len(cells))


def late(room):
    """Median and deviation of its answers, if all holders are late alike."""
    found = re.fullmatch(r"answers=([\d.]+),([\d.]+)", room["delay"])
    return (float(found.group(1)), float(found.group(2))) if found else None


def phases(rooms):
    """From the router's choice to the last vector, beside the integral. What the same takes without waiting is subtracted."""
    prompt = {}
    for room in rooms:
        if room["delay"] == "0" and room["rounds"]:
            prompt = {phase["asked"]: phase["millis"] for phase in room["rounds"][-1]["expert_phases"] or []}
    head("asked at once", "devices asked for a block", "blocks", "ms", "without waits", "left", "integral", "off by", "MB a token")
    for room in rooms:
        if not late(room) or not room["rounds"]:
            continue
        last = room["rounds"][-1]
        copies = int(room["hedging"]) if room["hedging"].isdigit() else 1
        for phase in last["expert_phases"] or []:
            base = prompt.get(phase["asked"], mean(prompt.values()))
            left, integral = phase["millis"] - base, slowest(*late(room), phase["asked"], copies)
            share = f"{left / integral - 1:+.0%}" if room["hedging"] != "adaptive" else ""
            row(room["hedging"], phase["asked"], phase["passes"], f"{phase['millis']:.1f}", f"{base:.1f}", f"{left:.1f}",
                f"{integral:.1f}", share, f"{last['vector_bytes_a_token'] / 1e6:.3f}")


def tokens(rooms):
    """What a token was expected to take after the round before, and what it took."""
    head("copies", "asked", "holders", "ms late", "slow", "options", "expected", "measured", "off by", "median", "p99")
    for room in rooms:
        if len(room["rounds"]) < 2:
            continue
        before, last = room["rounds"][-2:]
        expected, measured, gap = before["expected_token_ms"], mean(last["token_ms"]), last["gap_ms"]
        row(f"{last['copies'] or 0:.1f}", room["hedging"], last["holders"], room["delay"], room["slow"], room["more"],
            f"{expected:.1f}", f"{measured:.1f}", f"{expected / measured - 1:+.0%}", f"{gap['median']:.1f}", f"{gap['p99']:.1f}")


def vanished(rooms):
    """How long it took until nobody asked the device any more, and until each expert had as many holders again as it should."""
    head("asked", "holders", "ms late", "usual gap, ms", "longest, ms", "times", "not asked any more after, ms", "fewest holders then",
         "copies again after, ms")
    for room in rooms:
        if room["vanished"] is None or not room["rounds"]:
            continue
        for done in room["rounds"][1:]:
            changes = [change for change in done["holder_changes"] if change["unix_ms"] > room["vanished"]]
            before = [change for change in done["holder_changes"] if change["unix_ms"] <= room["vanished"]]
            if not before:
                continue
            gone = next((change for change in changes if change["holders"] < before[-1]["holders"]), None)
            whole = next((change for change in changes if change["short"] == 0 and gone and change["unix_ms"] >= gone["unix_ms"]), None)
            since = lambda change: change["unix_ms"] - room["vanished"] if change else "not in this round"
            gap = done["gap_ms"]
            row(room["hedging"], before[-1]["holders"], room["delay"], f"{gap['median']:.1f}", f"{gap['longest']:.1f}",
                f"{gap['longest'] / gap['median']:.1f}", since(gone), gone["fewest"] if gone else "", since(whole))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    all_rooms = read(sys.argv[1])
    for title, table in (("Expert phase", phases), ("Tokens", tokens), ("A device vanishes", vanished)):
        print(f"\n## {title}\n")
        table(all_rooms)
