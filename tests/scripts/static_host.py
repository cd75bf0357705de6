"""A static web host for scripts: the files of a folder, counted, as slow or as dishonest as wanted.

Not a script of its own: `lying_remote.py` and `remote_kills.py` import it.
"""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class StaticHost:
    """Serves a folder on loopback. `lies` maps a path to (declared length, body); `requests` has
    each answer with a body: path, bytes sent, whether all of it was; `looks` has the paths whose
    size was asked for (HEAD). `pause` is waited after each 64 KiB."""

    def __init__(self, folder: Path, pause: float = 0.0):
        self.folder, self.pause = folder, pause
        self.lies: dict = {}
        self.requests: list = []
        self.looks: list = []
        self._lock = threading.Lock()
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # noqa: N802
                host.answer(self)

            def do_HEAD(self):  # noqa: N802
                host.answer(self, body_wanted=False)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a client that was killed

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, request: BaseHTTPRequestHandler, body_wanted: bool = True) -> None:
        path = request.path.lstrip("/")
        file = self.folder / path
        declared, body = self.lies.get(path, (None, None))
        if body is None:
            if not file.is_file():
                request.send_response(404)
                request.send_header("Content-Length", "0")
                request.end_headers()
                if body_wanted:
                    self.note(path, 0, True)
                return
            body = file.read_bytes()
        request.send_response(200)
        length = len(body) if declared is None else declared
        request.send_header("Content-Length", str(length))
        request.send_header("Last-Modified", "Sun, 01 Nov 2026 12:00:00 GMT")
        if not body_wanted:
            request.end_headers()
            with self._lock:
                self.looks.append(path)
            return
        if length != len(body):
            request.send_header("Connection", "close")
            request.close_connection = True
        request.end_headers()
        sent = 0
        try:
            while sent < len(body):
                part = body[sent : sent + (64 << 10)]
                request.wfile.write(part)
                sent += len(part)
                if self.pause:
                    time.sleep(self.pause)
            request.wfile.flush()
        except OSError:
            request.close_connection = True
        self.note(path, sent, sent == length)

    def note(self, path: str, sent: int, whole: bool) -> None:
        with self._lock:
            self.requests.append((path, sent, whole))

    def asked(self) -> set:
        """The paths of the files that were sent, wholly or in part."""
        with self._lock:
            return {path for path, _, _ in self.requests}

    def forget(self) -> None:
        with self._lock:
            self.requests.clear()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
