"""llama.cpp's own tests of its server, against `potluck-node serve`: which pass, and why others do not.

    python3 suite.py LLAMA_CPP/tools/server/tests BINARY MODEL > table.md

LLAMA_CPP is a source tree of llama.cpp; its requirements and `pytest-timeout` are installed. The tests run in their mode for a server that runs already: what they
want of its command line (a model of their own, slots, a key) this one does not have. Only the name of the model in their requests is replaced by the served one.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import xml.etree.ElementTree as xml

PORT = "8080"
SECONDS = "30"  # for a test
# The first that is found in what a test says of its failure, and in the error of the server's last reply.
CAUSES = [
    (r"today's date|eneration prompt|end with|in prompt:|in content \(", "a template chosen on llama.cpp's command line"),
    (r"assert 403 == 200", "a web page's request, which is refused here"),
    (r"huggingface", "a model from the network"),
    (r"no model of that name|model_not_found", "another model's name"),
    (r"unknown_url|method_not_allowed|nothing at that address|assert 404 ==|404 == 501", "a route that is not there"),
    (r"not_implemented", "needs the model's file"),
    (r"non empty content delta|assert '' is None", "an empty text in the first chunk, as OpenAI has it"),
    (r"xpected (1|no) tool call|assert \(?None\)?$|tool_calls", "the model calls otherwise, or not"),
    (r"unsupported_value", "a field that is refused"),
    (r"context_length_exceeded|prompt is too long", "a context of another size"),
    (r"== 401|No such file|__verbose|all\(\[|(?i:access-control)|cors|FileNotFound", "an option of llama.cpp's command line"),
    (r"KeyError|is None|NoneType|assert \S+ in \{", "a field of llama.cpp's own in the reply"),
    (r"200 == [45]00|200 == 501|DID NOT RAISE", "what llama.cpp refuses is answered"),
    (r"match_regex|tinyllama|assert .* (==|>|>=|<|<=|!=) |assert False|assert None", "what their model says, or how many tokens it takes"),
    (r"Timeout|timed out", "waits for what does not come"),
]
PLUGIN = """
import os, requests
post = requests.post
def with_model(url, json=None, **more):
    if isinstance(json, dict) and "model" in json:
        json = {**json, "model": os.environ["SERVED_MODEL"]}
    return post(url, json=json, **more)
requests.post = with_model
"""


def cause(text):
    return next((why for pattern, why in CAUSES if re.search(pattern, text)), "another answer")


def said(case, failure):
    """What a test says of its failure, without its source, and the code of the last error."""
    lines = [line for line in (failure.text or "").splitlines() if line.startswith("E ")]
    codes = re.findall(r'"code": "?([\w ]+)', case.findtext("system-out") or "")
    return "\n".join([failure.get("message") or "", *lines, *codes[-1:]])


def run(tests, file, plugin, served):
    report = pathlib.Path("/tmp") / f"suite-{os.getpid()}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "served_model", f"--timeout={SECONDS}", "-o", "junit_logging=system-out", f"--junitxml={report}", f"unit/{file}"]
    subprocess.run(command, cwd=tests, env={**os.environ, "DEBUG_EXTERNAL": "1", "PORT": PORT, "PYTHONPATH": str(plugin), "SERVED_MODEL": served, "PYTHONDONTWRITEBYTECODE": "1"}, stdout=subprocess.DEVNULL, check=False)
    outcomes = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        failed, skipped = [*case.iter("failure"), *case.iter("error")], case.find("skipped")
        why = said(case, failed[0]) if failed else None
        outcomes[case.get("name")] = ("fails", cause(why), why) if failed else ("skipped", "", "") if skipped is not None else ("passes", "", "")
    report.unlink()
    return outcomes


def main():
    tests, binary, model = sys.argv[1:4]
    only = sys.argv[4:] or [path.name for path in sorted(pathlib.Path(tests, "unit").glob("test_*.py"))]
    serving = subprocess.Popen([binary, "serve", model, "--listen", f"127.0.0.1:{PORT}", "--context", "512"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    base = serving.stdout.readline().decode().strip()
    with urllib.request.urlopen(f"{base}/models") as reply:
        served = json.load(reply)["data"][0]["id"]
    plugin = pathlib.Path(tempfile.mkdtemp())
    plugin.joinpath("served_model.py").write_text(PLUGIN)
    print("| tests | pass | skipped | fail, and why |\n|---|---|---|---|")
    sums = {"passes": 0, "skipped": 0, "fails": 0}
    for file in only:
        outcomes = run(tests, file, plugin, served).values()
        count = {kind: sum(outcome == kind for outcome, _, _ in outcomes) for kind in sums}
        causes = {why: sum(why == other for _, other, _ in outcomes) for outcome, why, _ in outcomes if outcome == "fails"}
        said = "; ".join(f"{many} {why}" for why, many in sorted(causes.items(), key=lambda row: -row[1]))
        print(f"| `{file}` | {count['passes']} | {count['skipped']} | {said} |", flush=True)
        for outcome, cause_, why in outcomes:
            if outcome == "fails" and os.environ.get("VERBOSE"):
                print(f"=== {file}: {cause_}\n{why[:3_000]}", file=sys.stderr)
        sums = {kind: sums[kind] + count[kind] for kind in sums}
    print(f"| all | {sums['passes']} | {sums['skipped']} | {sums['fails']} |")
    serving.terminate()
    shutil.rmtree(plugin)


main()
