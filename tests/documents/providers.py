"""A service on this machine with the APIs of embedding models and rerankers."""

import hashlib
import json
import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIMENSIONS = 1024


def vector(text):
    """Returns a vector of length 1 of the words of a text. Texts with the same words are near each other."""
    numbers = [0.0] * DIMENSIONS
    for word in text.lower().split():
        digest = hashlib.sha256(word.encode()).digest()
        numbers[int.from_bytes(digest[:4], "big") % DIMENSIONS] += 1.0
    numbers[0] += 0.01
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


def answer(path, body):
    """Returns the body of a response."""
    if path.endswith("/rerank"):
        count = len(body["documents"])
        return {"results": [{"index": index, "relevance_score": 1.0 - index / (count + 1)} for index in range(count)]}
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    return {"object": "list", "data": [{"index": at, "embedding": vector(text)} for at, text in enumerate(texts)]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        sent = json.dumps(answer(self.path, body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


class Providers:
    """The running service. `with` stops it."""

    def __enter__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def settings(self):
        """Returns the tables of a configuration that use the service."""
        return (
            f'[embedding]\nprovider = "http"\nurl = "{self.url}"\nmodel = "voyage/voyage-3"\ndimensions = {DIMENSIONS}\n'
            f'query_timeout = "30s"\n[rerank]\nprovider = "http"\nurl = "{self.url}"\nmodel = "reranker"\ntimeout = "30s"\n'
        )
