"""A fake authorization server, which accepts each code any number of times, and a record server with ids of its own."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HITS = 5


class Authority:
    """Serves both on a free port. `public` is the URL of the servers, which is the audience of tokens."""

    def __init__(self, public):
        self.public = public
        self.exchanges = 0
        self.lock = threading.Lock()
        authority = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.answer(authority.get(urlsplit(self.path)))

            def do_POST(self):
                form = parse_qs(self.rfile.read(int(self.headers.get("content-length", 0))).decode())
                self.answer(authority.post(self.path, form))

            def answer(self, body):
                text = json.dumps(body if body is not None else {"error": {"code": "not_found", "message": "there is none"}})
                self.send_response(200 if body is not None else 404)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def get(self, url):
        if url.path == "/.well-known/oauth-authorization-server":
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "code_challenge_methods_supported": ["S256"],
            }
        if url.path == "/v1/schema":
            return {"object": "schema", "connectors": []}
        if url.path == "/v1/search":
            # Ids without an address: they can be fetched only by a server that has seen the hit.
            word = parse_qs(url.query)["q"][0]
            hit = lambda n: {"id": f"own {word} {n}", "title": f"Paper {word} {n}", "snippet": f"text of {word} {n}"}
            return {"results": [hit(number) for number in range(HITS)], "has_more": False}
        return None

    def post(self, path, form):
        if path == "/token":
            with self.lock:
                self.exchanges += 1
            return {"access_token": "ann-browser", "token_type": "Bearer", "expires_in": 600}
        if path == "/introspect" and form.get("token") == ["ann-browser"]:
            audience = f"{self.public}/mcp"
            return {"active": True, "sub": "ann", "client_id": "c", "aud": audience, "grant_id": "g1", "exp": 4_000_000_000, "scope": "records"}
        return {"active": False}
