"""Three servers of one binary, and the proxy in front of them."""

import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

REPLICAS = 3

# Requests that one client address may send in an hour.
RATE_LIMIT = 600

# Static tokens of the callers. Each reads the source of its name.
TOKENS = {name: f"fwt_{(name * 15)[:43]}" for name in ("ann", "bob", "carol")}

_given = set()


def free_port():
    """Returns a port below the range that the system gives to outgoing connections."""
    for port in random.sample(range(20000, 32000), 200):
        with socket.socket() as server:
            try:
                server.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port
    raise AssertionError("no port is free")


def create_database(name):
    """Creates a database on the server of tests/postgres/run, and returns its URL."""
    url = os.environ["FETCHWELL_TEST_POSTGRES"]
    createdb = Path(os.environ["FETCHWELL_TEST_POSTGRES_BIN"]) / "createdb"
    subprocess.run([createdb, f"--maintenance-db={url}", "--encoding=UTF8", name], check=True)
    return f"{url.rsplit('/', 1)[0]}/{name}"


def environment():
    """Returns an environment without settings of the user."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("FETCHWELL_", "MCP_", "OTEL_"))}
    return own | {"XDG_CONFIG_HOME": "/no/such/folder", "NO_COLOR": "1", "CLIENT_SECRET": "s3cret"}


class Replica:
    """A `fetchwell serve` at a fixed port, which can be killed and started again."""

    def __init__(self, binary, config, folder, name):
        self.binary, self.config = binary, config
        self.state, self.log = folder / name, folder / f"{name}.log"
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        command = [self.binary, "serve", "--config", self.config, "--listen", self.address, "--state-dir", str(self.state)]
        command += ["--log", "warn"]
        with self.log.open("a") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=environment(),
            )
        deadline = time.monotonic() + 120
        while "fetchwell serves MCP at " not in self.log.read_text()[begin:]:
            assert self.process.poll() is None and time.monotonic() < deadline, f"a server does not start:\n{self.log.read_text()}"
            time.sleep(0.02)

    def kill(self):
        """Ends the process as `kill -9` does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def start_all(replicas):
    """Starts servers that share their keys."""
    first, *others = replicas
    first.start()
    for other in others:
        # As docs/redis.md says: the keys of one server are copied to the others before they start.
        other.state.mkdir(mode=0o700)
        for keys in ("cursor-keys.json", "change-key.json"):
            shutil.copy2(first.state / keys, other.state / keys)
        other.start()


def start_proxy(folder, port, replicas):
    """Starts a proxy in front of servers, with its files in a folder."""
    configuration = folder / "nginx.conf"
    configuration.write_text(proxy_configuration(folder, port, replicas))
    return subprocess.Popen(["nginx", "-p", str(folder), "-c", str(configuration)], stdin=subprocess.DEVNULL)


def wait_for(port, proxy):
    """Returns as soon as a proxy accepts connections."""
    deadline = time.monotonic() + 60
    while True:
        assert proxy.poll() is None and time.monotonic() < deadline, "nginx does not start"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)


class Cluster:
    """Servers with one configuration, and a proxy that sends each request to the next of them. `with` stops all."""

    def __init__(self, binary, folder, stores, state, authority, port):
        self.folder, self.port = folder, port
        self.proxy = None
        self.kills = 0
        config = folder / "fetchwell.toml"
        config.write_text(configuration(stores, state, authority))
        self.replicas = [Replica(binary, str(config), folder, f"replica-{number}") for number in range(REPLICAS)]

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        start_all(self.replicas)
        self.proxy = start_proxy(self.folder, self.port, self.replicas)
        wait_for(self.port, self.proxy)

    def __exit__(self, *_):
        if self.proxy is not None:
            self.proxy.terminate()
            self.proxy.wait()
        for replica in self.replicas:
            if replica.process is not None and replica.process.poll() is None:
                replica.kill()

    def log(self):
        """Returns the warnings of all servers."""
        lines = "".join(replica.log.read_text() for replica in self.replicas if replica.log.exists()).splitlines()
        return "\n".join(line for line in lines if not line.startswith("fetchwell serves MCP at "))


class Killer:
    """Kills one server after the other and starts it again, while the proxy goes on. `with` ends when all run."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.ends = threading.Event()
        self.problem = None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            number = 0
            while True:
                replica = self.cluster.replicas[number % REPLICAS]
                replica.kill()
                self.cluster.kills += 1
                # The others answer alone for a moment.
                time.sleep(0.3)
                replica.start()
                number += 1
                if self.ends.wait(0.7):
                    return
        except BaseException as problem:
            self.problem = problem

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        if self.problem is not None:
            raise self.problem


def configuration(stores, state, authority):
    """Returns the configuration of all servers."""
    tokens = "".join(
        f'[[auth.token]]\nname = "{name}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\nsources = ["{name}"]\n'
        for name, token in TOKENS.items()
    )
    databases = "".join(f'[[source]]\nname = "{name}"\nstore = "{url}"\n' for name, url in stores.items())
    return f"""state = "{state}"
public_url = "{authority.public}"
[rate_limit]
requests = {RATE_LIMIT}
per = "1h"
[http]
trusted_proxies = ["127.0.0.1"]
[auth]
issuer = "{authority.url}"
[auth.introspection]
url = "{authority.url}/introspect"
client_id = "fetchwell"
client_secret = "env:CLIENT_SECRET"
[auth.pages]
client_id = "fetchwell-pages"
[[auth.subject]]
subject = "ann"
sources = ["ann"]
{tokens}{databases}[[source]]
name = "carol"
url = "{authority.url}"
credential = "env:CLIENT_SECRET"
"""


def proxy_configuration(folder, port, replicas):
    """Returns the configuration of nginx. docs/scaling.md has the same settings."""
    servers = "".join(f"    server {replica.address} max_fails=1 fail_timeout=1s;\n" for replica in replicas)
    temporary = "".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"""daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
{temporary}  upstream fetchwell {{
{servers}    keepalive 16;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://fetchwell;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      # Calls read, so a call that a server did not answer is sent to the next one.
      proxy_next_upstream error timeout non_idempotent;
      # The clients of this test choose their addresses themselves.
      proxy_set_header X-Forwarded-For $http_x_forwarded_for;
      add_header X-Replica $upstream_addr always;
    }}
  }}
}}
"""
