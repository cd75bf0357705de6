"""A model server whose answers depend on the question only, and that says who asked how often."""

import contextlib
import json
import threading
import time
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Who asks is told by the key, which enters no result."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked, self.guard, self.open = Counter(), threading.Lock(), 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def process_request(self, request, client_address) -> None:
        with self.guard:
            self.open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.guard:
                self.open -= 1

    def count(self, key: str) -> int:
        """Requests of a case whose program has ended, also those that it sent last."""
        # Connections are taken in their order: with this one, all before it are open.
        with urllib.request.urlopen(self.url) as answer:
            answer.read()
        while self.open:
            time.sleep(0.05)
        with self.guard:
            return sum(n for (at, _), n in self.asked.items() if at == key)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        # Whoever asks is killed at times.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        question = request["messages"][-1]["content"]
        key = self.headers.get("authorization", "").removeprefix("Bearer ")
        with self.server.guard:
            self.server.asked[key, question] += 1
        message = {"role": "assistant", "content": question.replace("Complete this: ", "") + "1"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
        answer = {"id": "x", "object": "chat.completion", "model": "tiny", "created": 1}
        body = json.dumps({**answer, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        try:
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            # Whoever asked has died.
            self.close_connection = True

    def log_message(self, *_) -> None:
        pass
