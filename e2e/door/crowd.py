"""Many clients at once, each with a secret of its own: none is lost, none gets another's, and memory stays as it is.

    python3 crowd.py http://127.0.0.1:8788 --clients 50 --requests 1000 --pid PID --person http://127.0.0.1:8789

`--pid` is the server's process; `--person` is a second `serve` in the same room, through which one person chats meanwhile.
"""

import argparse
import random
import re
import threading
import time

from client import Refused, Server, median, share

STORY = {"messages": [{"role": "user", "content": "Tell a long story of a lighthouse."}], "temperature": 0, "max_tokens": 96}


def question(secret):
    text = f"The secret number is {secret}. Repeat the secret number."
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 24}


def resident(pid):
    """Megabytes of a process."""
    with open(f"/proc/{pid}/status", encoding="utf8") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1000


class Crowd:
    def __init__(self, url, requests):
        self.url, self.left = url, list(range(requests))
        self.secrets = [str(number) for number in random.Random(7).sample(range(100_000, 1_000_000), requests)]
        self.lock = threading.Lock()
        self.took, self.lost, self.mixed, self.wrong, self.waited = [], [], [], [], 0

    def client(self):
        server = Server(self.url)
        while True:
            with self.lock:
                if not self.left:
                    return
                number = self.left.pop()
            secret = self.secrets[number]
            start = time.perf_counter()
            try:
                reply = self.ask(server, question(secret))
            except (Refused, OSError) as error:
                self.lost.append(str(error))
                server.connection = None
                continue
            said = reply["choices"][0]["message"]["content"]
            self.took.append(time.perf_counter() - start)
            others = set(re.findall(r"\d{6}", said)) & set(self.secrets) - {secret}
            if others:
                self.mixed.append((secret, said))
            elif secret not in said:
                self.wrong.append((secret, said))

    def ask(self, server, body):
        """A client that is told to come later does so."""
        while True:
            try:
                return server.ask("/v1/chat/completions", body)[0]
            except Refused as error:
                if error.status != 429:
                    raise
                self.waited += 1
                server.connection = None
                time.sleep(1)


def pace(url, rounds, ends=lambda: False):
    """Milliseconds a token of a person's answers, one after another."""
    server, paces = Server(url), []
    while len(paces) < rounds and not ends():
        _, first, last, usage = server.stream("/v1/chat/completions", STORY)
        paces.append((last - first) / max(1, usage["completion_tokens"] - 1) * 1000)
    return paces


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("url")
    arguments.add_argument("--clients", type=int, default=50)
    arguments.add_argument("--requests", type=int, default=1000)
    arguments.add_argument("--pid", type=int)
    arguments.add_argument("--person")
    given = arguments.parse_args()
    alone = pace(given.person, 4)[1:] if given.person else []
    crowd, beside, memory = Crowd(given.url, given.requests), [], []
    threads = [threading.Thread(target=crowd.client) for _ in range(given.clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    person = threading.Thread(target=lambda: beside.extend(pace(given.person, 1_000, lambda: not crowd.left)) if given.person else None)
    person.start()
    while any(thread.is_alive() for thread in threads):
        if given.pid:
            memory.append((len(crowd.took), resident(given.pid)))
        time.sleep(0.5)
    seconds = time.perf_counter() - start
    person.join()
    # What the model says of a secret when nobody else asks.
    server = Server(given.url)
    alike = sum(server.ask("/v1/chat/completions", question(secret))[0]["choices"][0]["message"]["content"] == said for secret, said in crowd.wrong)
    print(f"crowd: {len(crowd.took)} of {given.requests} answered in {seconds:.1f} s by {given.clients} clients, {len(crowd.lost)} lost, {len(crowd.mixed)} mixed up, {crowd.waited} told to wait")
    print(f"crowd: {len(crowd.wrong)} answers without their secret, {alike} of them the same when asked alone; first: {crowd.wrong[:1]} {crowd.mixed[:1]} {crowd.lost[:1]}")
    print(f"crowd: a request took {share(crowd.took, 0.5):.2f} s (p50), {share(crowd.took, 0.99):.2f} s (p99)")
    if memory:
        tenth = [value for done, value in memory if done >= given.requests / 10] or [memory[-1][1]]
        print(f"crowd: memory {memory[0][1]:.1f} MB at first, {tenth[0]:.1f} MB after a tenth, {memory[-1][1]:.1f} MB at the end, {max(value for _, value in memory):.1f} MB at most")
    if given.person:
        print(f"crowd: a person's token took {median(alone):.2f} ms alone, {median(beside):.2f} ms beside the crowd ({len(beside)} answers, slowest {max(beside):.2f})")


main()
