"""A client of the API for programs that knows nothing but HTTP and JSON, and says when each part of an answer came."""

import http.client
import json
import time
import urllib.parse

PATIENCE = 600  # seconds without a byte


class Refused(Exception):
    """The server's answer is an error: its status and its sentence."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Server:
    """A server at `http://HOST:PORT`, over one connection that stays open."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.address = (parts.hostname, parts.port)
        self.connection = None

    def send(self, path, body):
        try:
            reply = self.request(path, body)
        except (http.client.RemoteDisconnected, BrokenPipeError):
            # Some servers close a connection after a stream without saying so.
            self.connection = None
            reply = self.request(path, body)
        if reply.status != 200:
            raise Refused(reply.status, reply.read().decode(errors="replace"))
        return reply

    def request(self, path, body):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        self.connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        return self.connection.getresponse()

    def ask(self, path, body):
        """The reply, and the seconds that it took."""
        start = time.perf_counter()
        reply = json.loads(self.send(path, body).read())
        return reply, time.perf_counter() - start

    def stream(self, path, body):
        """Text, seconds until its first piece, seconds in all, and what it took in tokens."""
        start = time.perf_counter()
        reply = self.send(path, {**body, "stream": True, "stream_options": {"include_usage": True}})
        text, first, usage = "", None, None
        for line in iter(reply.readline, b""):
            if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices", []):
                piece = choice.get("text") or choice.get("delta", {}).get("content") or ""
                if piece and first is None:
                    first = time.perf_counter() - start
                text += piece
            last = time.perf_counter() - start
        return text, first, last, usage


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def share(values, part):
    """The value below which this part of all lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
