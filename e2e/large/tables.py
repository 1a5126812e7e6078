#!/usr/bin/env python3
"""Tables of what e2e/large/experts.sh has printed: tables.py FILE."""
import functools
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


def done_ways(asked):
    """Of so many calls, in how many ways can k have been answered so that nobody waits any more? For k from 0."""
    calls = sorted(set(asked) - {" "})
    experts = [sum(1 << calls.index(call) for call in expert) for expert in asked.split()]
    ways = [0] * (len(calls) + 1)
    for answered in range(1 << len(calls)):
        ways[answered.bit_count()] += all(answered & expert for expert in experts)
    return ways


@functools.cache
def expected(median, sigma, asked):
    """Mean milliseconds until each expert has its first answer (moex.txt, equations 14 to 18), if the calls `asked` are answered
    independently of each other: "ab ac" is one expert that the calls a and b ask for, and one of a and c."""
    if not asked.strip() or "?" in asked:
        return 0.0 if not asked.strip() else math.nan
    ways = done_ways(asked)
    calls = len(ways) - 1
    step, most = median / 200, 12 * median
    total = 0.0
    for index in range(int(most / step)):
        at = (index + 0.5) * step
        late = 0.5 * math.erfc(math.log(at / median) / sigma / math.sqrt(2))
        total += step * (1 - sum(count * (1 - late) ** k * late ** (calls - k) for k, count in enumerate(ways)))
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


def by_pattern(done):
    """Of a round: blocks and their mean milliseconds, by whom they waited for."""
    experts = (done.get("recorded") or {}).get("experts") or {}
    return {each["asked"]: (each["passes"], each["ms"]) for each in experts.get("asked", [])}


def phases(rooms):
    """From the router's choice to the last vector, beside the integral. What the same blocks take in the room's last round, in which no answer
    waits (`--last-round`), is subtracted; the round before it is told. A GPU that waits is slower: what its engine takes longer is subtracted, too."""
    head("asked at once", "blocks", "calls that a block waits for", "ms", "without waits", "left", "integral", "off by", "p99", "times the bytes",
         "asked alike in the last round")
    for room in rooms:
        if not late(room) or len(room["rounds"]) < 2 or not room["rounds"][-1].get("is_last"):
            continue
        waiting, without = room["rounds"][-2:]
        told, base = by_pattern(waiting), by_pattern(without)
        told.pop("", None)
        base.pop("", None)
        blocks = sum(passes for passes, _ in told.values())
        if not blocks or not base:
            continue
        whole = sum(passes * millis for passes, millis in base.values()) / sum(passes for passes, _ in base.values())
        over = lambda of: sum(passes * of(asked, millis) for asked, (passes, millis) in told.items()) / blocks
        took = over(lambda asked, millis: millis)
        # The text is the same, so patterns are, unless the plan changed.
        slower = waiting["recorded"]["experts"]["engine_ms"] - without["recorded"]["experts"]["engine_ms"]
        still = over(lambda asked, _: base[asked][1] if asked in base else whole) + slower
        integral = over(lambda asked, _: expected(*late(room), asked))
        off = "" if room["hedging"] == "adaptive" else f"{(took - still) / integral - 1:+.1%}"
        experts = waiting["recorded"]["experts"]
        most = sorted(told.items(), key=lambda each: -each[1][0])[:3]
        row(room["hedging"], blocks, "; ".join(f"{asked} {passes / blocks:.0%}" for asked, (passes, _) in most), f"{took:.1f}", f"{still:.1f}",
            f"{took - still:.1f}", f"{integral:.1f}", off, f"{experts['quantiles_ms']['99']:.1f}", f"{experts['times_the_bytes']:.2f}",
            f"{sum(told[asked][0] for asked in told if asked in base) / blocks:.0%}")


def hedged(rooms):
    """What asking another holder after a delay leaves of what two at once gain, at the 99th percentile of the time of a block's experts. Only rooms
    with as many copies and holders are compared."""
    head("copies", "holders", "one asked: p99", "two at once", "adaptive", "of the gain", "times the bytes", "groups of a block's experts, one asked and adaptive")
    alike = {}
    for room in rooms:
        if late(room) and len(room["rounds"]) >= 2 and (room["rounds"][-2].get("recorded") or {}).get("experts"):
            alike.setdefault((room["replicas"], room["holders"], room["budget"], room["delay"]), {})[room["hedging"]] = room["rounds"][-2]
    for (copies, holders, *_), of in alike.items():
        if not all(hedging in of for hedging in ("off", "2", "adaptive")):
            continue
        experts = {hedging: done["recorded"]["experts"] for hedging, done in of.items()}
        one, two, adaptive = (experts[hedging]["quantiles_ms"]["99"] for hedging in ("off", "2", "adaptive"))
        groups = lambda done: mean(len(asked.split()) for asked, (passes, _) in by_pattern(done).items() for _ in range(passes))
        row(copies, holders, f"{one:.1f}", f"{two:.1f}", f"{adaptive:.1f}", f"{(one - adaptive) / (one - two):.0%}" if one > two else "there is none",
            f"{experts['adaptive']['times_the_bytes']:.2f}", f"{groups(of['off']):.1f}, {groups(of['adaptive']):.1f}")


def placements(rooms):
    """Where experts lay in the round that is told: for each rank of copies the devices and how many experts each holds."""
    head("asked", "copies", "experts")
    for room in rooms:
        done = room["rounds"][-2:][:1]
        for line in done[0].get("recorded", {}).get("placement", [])[:6] if done else []:
            row(room["hedging"], room["replicas"], line.replace("|", "/"))


def gaps(rooms):
    """The longest gaps between two pieces of an answer, and what the node recorded meanwhile."""
    head("room", "round", "median, ms", "gap, ms", "piece", "rows", "longest quiet time, ms", "after", "before", "besides")
    for room in rooms:
        for done in room["rounds"]:
            for gap in ((done.get("recorded") or {}).get("gaps") or [])[:3]:
                quiet = gap["quiet"] or {"ms": 0, "after": "", "before": ""}
                row(f"{room['holders']} of {room['budget']}, {room['delay']}", done["round"], f"{done['gap_ms']['median'] or 0:.1f}",
                    f"{gap['ms']:.1f}", gap["piece"], gap.get("rows") or "", f"{quiet['ms']:.1f}", quiet["after"][:60], quiet["before"][:60],
                    "; ".join(other[:70] for other in gap["others"][:4]).replace("|", "/"))


def tokens(rooms):
    """What a token was expected to take after each round, and what it took in the next one; by how much the room itself, and its holders' engines,
    changed between both. Only tokens without drafts beside them count: that is what a forecast is about, and drafts that are right make the mean less."""
    head("copies", "asked", "holders", "ms late", "slow", "options", "after round", "it took", "expected", "the next took", "off by", "room changed by",
         "holders' engines changed by", "median", "p99", "with drafts")
    single = lambda done: ((done.get("recorded") or {}).get("single") or {"ms": mean(done["token_ms"])})["ms"]
    engines = lambda done: ((done.get("recorded") or {}).get("experts") or {}).get("engine_ms")
    for room in rooms:
        for before, after in zip(room["rounds"], room["rounds"][1:]):
            took, measured, gap = single(before), single(after), after["gap_ms"]
            told, (slow, slower) = before["expected_token_ms"], (engines(before), engines(after))
            row(f"{after['copies'] or 0:.1f}", room["hedging"], after["holders"], room["delay"], room["slow"], room["more"], before["round"] + 1,
                f"{took:.1f}", f"{told:.1f}", f"{measured:.1f}", f"{told / measured - 1:+.0%}", f"{measured / took - 1:+.0%}",
                f"{slower / slow - 1:+.0%}" if slow and slower else "", f"{gap['median']:.1f}", f"{gap['p99']:.1f}", f"{mean(after['token_ms']):.1f}")


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
    for title, table in (("Expert phase", phases), ("Hedging after a delay", hedged), ("Where experts lie", placements), ("Tokens", tokens),
                         ("A device vanishes", vanished), ("Longest gaps", gaps)):
        print(f"\n## {title}\n")
        table(all_rooms)
