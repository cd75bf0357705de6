"""What the workloads talk to, on the loopback address: chat completions that remember who asked
what, a search of repositories, the repositories, and a file."""

import hashlib
import json
import os
import socketserver
import subprocess
import threading
import time
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

BLOCK = 4096


class World(ThreadingHTTPServer):
    """The server, and what it was asked."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, folder: Path, port: int, latency: float, rate: float) -> None:
        self.folder, self.latency, self.rate = folder, latency, rate
        self.lock = threading.Lock()
        self.questions = defaultdict(Counter)
        """Key -> question -> how often it was asked."""
        self.answered = defaultdict(set)
        self.requests = 0
        self.stall, self.stalled, self.seen = None, threading.Event(), Counter()
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_bind(self) -> None:
        # Not HTTPServer's, which looks up the name of the host.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, *_) -> None:
        """A client that was killed is no news."""

    def asked(self, key: str) -> Counter:
        with self.lock:
            return Counter(self.questions[key])

    def take(self, key: str) -> tuple:
        """What was asked since the last call, and what was answered to its last byte."""
        time.sleep(0.05)  # What is under way comes to its end, or fails.
        with self.lock:
            return self.questions.pop(key, Counter()), self.answered.pop(key, set())

    def hold_if(self, stall) -> None:
        """Leaves requests without an answer from now on: `stall` gets what is asked and the how
        manieth of its kind it is; `None` answers all."""
        self.stall, self.seen = stall, Counter()
        self.stalled.clear()

    def holds(self, what: str) -> bool:
        """Whether this request gets no answer."""
        with self.lock:
            self.seen[what] += 1
            number = self.seen[what]
        if self.stall and self.stall(what, number):
            self.stalled.set()
            return True
        return False


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: World

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        body, path = self.body(), urlsplit(self.path).path
        with self.server.lock:
            self.server.requests += 1
        try:
            if path == "/v1/chat/completions":
                self.chat(body)
            elif path == "/api/search/repositories":
                self.send((self.server.folder / "search.json").read_bytes())
            elif path.startswith("/git/"):
                self.git(path, body)
            elif path == "/data.jsonl":
                self.send((self.server.folder / "data.jsonl").read_bytes(), "text/plain")
            else:
                self.send(b'{"message":"Not Found"}', status=404)
        except OSError:  # The client was killed.
            self.close_connection = True

    def body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def send(self, content: bytes, kind: str = "application/json", status: int = 200) -> None:
        head = f"HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}"
        self.wfile.write(head.encode() + b"\r\n\r\n" + content)

    def hang(self) -> None:
        """Waits until the client has gone."""
        self.close_connection = True
        self.connection.settimeout(60)
        self.connection.recv(1)

    def chat(self, body: bytes) -> None:
        key = self.headers.get("authorization", "").removeprefix("Bearer ")
        question = hashlib.sha256(body).hexdigest()
        with self.server.lock:
            self.server.questions[key][question] += 1
        time.sleep(self.server.latency * (0.5 + int(question[:4], 16) / 65_535))
        if self.server.holds("chat"):
            return self.hang()
        asked = json.loads(body)
        name, number = question[:12], int(question[:3], 16)
        code = f"def f_{name}(a, b):\n    total = a * {number}\n    return total + b"
        words = len(asked["messages"][-1]["content"].split())
        message = {"role": "assistant", "content": f"Here:\n```python\n{code}\n```\n"}
        answer = {
            "id": question[:8],
            "object": "chat.completion",
            "model": "tiny-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": words, "completion_tokens": 20},
        }
        self.send(json.dumps(answer).encode())
        with self.server.lock:
            self.server.answered[key].add(question)

    def git(self, path: str, body: bytes) -> None:
        fetches = b"command=fetch" in body
        if self.server.holds(f"{'fetch' if fetches else self.command} {path}"):
            return self.hang()
        settings = {
            "safe.directory": "*",
            "uploadpack.allowFilter": "true",
            "uploadpack.allowAnySHA1InWant": "true",
        }
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": str(self.server.folder / "git"),
            "PATH_INFO": path.removeprefix("/git"),
            "QUERY_STRING": urlsplit(self.path).query,
            "REQUEST_METHOD": self.command,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for at, (key, value) in enumerate(settings.items()):
            env |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        status, headers = 200, []
        for line in head.decode().splitlines():
            name, _, value = line.partition(": ")
            if name.lower() == "status":
                status = int(value.split()[0])
            else:
                headers.append(line)
        lines = [f"HTTP/1.1 {status} -", *headers, f"content-length: {len(content)}"]
        self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        for at in range(0, len(content), BLOCK):
            self.wfile.write(content[at : at + BLOCK])
            time.sleep(BLOCK / self.server.rate)
