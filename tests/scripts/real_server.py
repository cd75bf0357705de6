"""A workflow asks a real OpenAI-compatible server: llama-cpp-python's, with a tiny random model.

What it shows: a workflow that asks a model gets its answers from a program that others wrote.
The script writes a GGUF model (llama architecture, random weights drawn from a seed, a small
vocabulary of bytes and scraps of Python, a chat template), serves it with `llama_cpp.server` on
the loopback address, and runs the workflow with the server's base URL and model name. Every
request goes through a proxy in this script, which counts. The run must end well, must have asked
for at least one completion, and must have got no error. A second run on the same store must hit
everywhere and send nothing.

How to run it: `python3 tests/scripts/real_server.py [--galeras PATH] [--venv FOLDER]
[--set NAME=VALUE ...] WORKFLOW`. The workflow needs two parameters, by default `base_url` and
`model` (`--base-url-param`, `--model-param`). `--api-key NAME` makes the server ask for a key,
which the program gets in the variable NAME; the key must then be in no file of the work folder
(looked for as it is: not in compressed columns).
With `--only-serve` it runs nothing, prints the base URL and serves until it is stopped.
It needs PyPI, a C++ compiler and some five minutes of two cores at its first use, since
llama-cpp-python has no wheels; a folder given by `--venv` keeps what was built, a part of it as
well if the script is stopped, otherwise it is gone at the end.

What it prints: the program's events of both runs, the requests by status, the sizes of the
answers in characters and tokens, the reported model names and finish reasons, the violations.
Exit code 1 if there is one. The end of the server's log if it does not start.
"""

import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Verdict, arguments, in_venv, pinned, run, table, work_folder  # noqa: E402
from llama_build import build  # noqa: E402

PINS = {
    "llama-cpp-python": "0.3.36",
    "gguf": "0.19.0",
    "numpy": "2.4.6",
    "fastapi": "0.165.0",
    "starlette": "1.10.0",
    "uvicorn": "0.54.0",
    "pydantic": "2.14.3",
    "pydantic-settings": "2.16.3",
    "sse-starlette": "3.7.0",
    "starlette-context": "0.3.6",
    "jinja2": "3.1.6",
    "PyYAML": "6.0.3",
}
# The folder that was made for one start of the script, if `--venv` was not given.
MADE_VENV = "REAL_SERVER_MADE_VENV"
COMPLETIONS = "/v1/chat/completions"

DIM, LAYERS, HEADS, FEED_FORWARD = 64, 2, 4, 128
PIECES = """\
def class return import from if else elif for while in not and or is None True False self yield
lambda try except finally raise with as pass break continue assert print len range str int list
dict name value result data item index key path file text line count args kwargs __init__ ( ) [ ]
{ } : , . = == != += - + * / % < > >= <= -> @ # ' " \"\"\" ``` ```python """.split()
BLANKS = ["\u2581", "\u2581" * 4, "\n", "\n\u2581\u2581\u2581\u2581", "\n```\n", "\n\n"]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<|{{ message['role'] }}|>\n{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


# ---------------------------------------------------------------- the model


def vocabulary() -> list:
    """(text, score, type) of every token, as SentencePiece has them."""
    from gguf import TokenType

    tokens = [
        ("<unk>", 0.0, TokenType.UNKNOWN),
        ("<s>", 0.0, TokenType.CONTROL),
        ("</s>", 0.0, TokenType.CONTROL),
    ]
    tokens += [(f"<|{role}|>", 0.0, TokenType.CONTROL) for role in ("system", "user", "assistant")]
    tokens += [(f"<0x{byte:02X}>", 0.0, TokenType.BYTE) for byte in range(256)]
    pieces = {chr(c) for c in range(33, 127)} | set("äéßñ中数λ→") | set(BLANKS) | set(PIECES)
    pieces |= {"\u2581" + piece for piece in PIECES if piece.isalpha()}
    tokens += [(piece, float(-at), TokenType.NORMAL) for at, piece in enumerate(sorted(pieces))]
    return tokens


def write_model(path: Path, name: str, context: int, seed: int) -> None:
    """Writes the model; the same arguments write the same bytes."""
    import gguf
    import numpy

    tokens, rng = vocabulary(), numpy.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name(name)
    writer.add_context_length(context)
    writer.add_embedding_length(DIM)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(DIM // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text.encode() for text, _, _ in tokens])
    writer.add_token_scores([score for _, score, _ in tokens])
    writer.add_token_types([int(kind) for _, _, kind in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)  # The template has it.
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHAT_TEMPLATE)

    def tensor(name: str, rows: int, columns: int, scale: float) -> None:
        drawn = rng.standard_normal((rows, columns), dtype=numpy.float32)
        writer.add_tensor(f"{name}.weight", drawn * numpy.float32(scale))

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", numpy.ones(DIM, dtype=numpy.float32))

    tensor("token_embd", len(tokens), DIM, 1.0)
    for block in (f"blk.{at}" for at in range(LAYERS)):
        norm(f"{block}.attn_norm")
        for part in ("q", "k", "v", "output"):
            tensor(f"{block}.attn_{part}", DIM, DIM, DIM**-0.5)
        norm(f"{block}.ffn_norm")
        tensor(f"{block}.ffn_gate", FEED_FORWARD, DIM, DIM**-0.5)
        tensor(f"{block}.ffn_up", FEED_FORWARD, DIM, DIM**-0.5)
        tensor(f"{block}.ffn_down", DIM, FEED_FORWARD, FEED_FORWARD**-0.5)
    norm("output_norm")
    tensor("output", len(tokens), DIM, 0.3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---------------------------------------------------------------- the server and the proxy


class Server:
    """`llama_cpp.server` in a process of its own; its end is the end of the `with`."""

    def __init__(self, model: Path, name: str, context: int, log: Path, key: str | None) -> None:
        self.log, self.key = log, key
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = {
            "model": str(model),
            "model_alias": name,
            "host": "127.0.0.1",
            "port": str(self.port),
            "n_ctx": str(context),
            "n_threads": "1",
            "n_threads_batch": "1",
            "logits_all": "false",
            "verbose": "false",
        }
        # Any of the server's settings would also be taken from a variable of that name.
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "TMPDIR")}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "llama_cpp.server",
                *(part for k, v in options.items() for part in (f"--{k}", v)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log.open("wb"),
            stderr=subprocess.STDOUT,
            env={**env, **({"API_KEY": key} if key else {})},
            start_new_session=True,  # Ctrl-C is for the script, which then stops the server.
        )

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ready(self, seconds: float) -> list:
        """Waits until the server tells its models; their names."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/models")
        if self.key:
            request.add_header("authorization", f"Bearer {self.key}")
        until, why = time.monotonic() + seconds, "no answer"
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return [model["id"] for model in json.load(answer)["data"]]
            except (OSError, ValueError, KeyError) as error:
                why = str(error)
                time.sleep(0.2)
        code = self.process.poll()
        why = why if code is None else f"exit code {code}"
        sys.exit(f"the server did not start ({why}); the end of its log:\n{self.tail()}")

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-30:])


class Proxy(BaseHTTPRequestHandler):
    """Hands every request on to the server, and keeps what was asked and answered."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    port, seen, running, most, lock = 0, [], 0, 0, threading.Lock()

    def log_message(self, *_) -> None:
        pass

    def body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def answer(self) -> None:
        asked, started = self.body(), time.perf_counter()
        with Proxy.lock:
            Proxy.running += 1
            Proxy.most = max(Proxy.most, Proxy.running)
        upstream = HTTPConnection("127.0.0.1", Proxy.port, timeout=3600)
        own = ("host", "connection", "content-length", "transfer-encoding")
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in own}
            upstream.request(self.command, self.path, asked or None, headers)
            response = upstream.getresponse()
            status, got = response.status, response.read()
            headers = [(k, v) for k, v in response.getheaders() if k.lower() not in own]
        except (OSError, HTTPException) as error:
            status, headers, got = 502, [], f"no answer from the server: {error}".encode()
        finally:
            upstream.close()
            with Proxy.lock:
                Proxy.running -= 1
        with Proxy.lock:
            Proxy.seen.append(
                {
                    "method": self.command,
                    "path": self.path.partition("?")[0],
                    "status": status,
                    "asked": asked,
                    "got": got,
                    "seconds": time.perf_counter() - started,
                }
            )
        try:
            self.send_response_only(status)
            for name, value in [*headers, ("content-length", str(len(got)))]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(got)
        except OSError:  # The client went away.
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = answer


def listen(port: int) -> str:
    """Starts the proxy before the server at this port; its address."""
    Proxy.port = port
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{proxy.server_address[1]}/v1"


# ---------------------------------------------------------------- what is told and checked


def requests_table(seen: list) -> None:
    counts = Counter((one["method"], one["path"], one["status"]) for one in seen)
    table(
        ["method", "path", "status", "requests"],
        [[*what, count] for what, count in sorted(counts.items())],
    )


def spread(name: str, values: list) -> None:
    if values:
        print(
            f"{name}: min {min(values)}, median {statistics.median(values):g}, "
            f"max {max(values)}, sum {sum(values)}"
        )


def answers(seen: list) -> int:
    """Prints what the completions are like; their number."""
    found = []
    for one in seen:
        if one["path"] == COMPLETIONS and one["status"] == 200:
            try:
                found.append(json.loads(one["got"]))
            except ValueError:
                print(f"an answer is not JSON: {one['got'][:200]!r}")
    choices = [choice for answer in found for choice in answer["choices"]]
    texts = [choice["message"]["content"] or "" for choice in choices]
    usages = [answer.get("usage") or {} for answer in found]
    print(f"{len(found)} completions, at most {Proxy.most} requests at once")
    print("models reported:", dict(Counter(str(answer.get("model")) for answer in found)))
    print("finish reasons:", dict(Counter(str(choice["finish_reason"]) for choice in choices)))
    spread("characters of an answer", [len(text) for text in texts])
    spread("tokens of an answer", [use.get("completion_tokens", 0) for use in usages])
    spread("tokens of a prompt", [use.get("prompt_tokens", 0) for use in usages])
    print(f"{len(set(texts))} distinct answers, {texts.count('')} empty ones")
    return len(found)


def told(title: str, done) -> None:
    """Prints the program's events but for its activity, and its messages."""
    print(f"\n{title}: exit code {done.code}, {done.wall:.2f} s")
    for event in done.events:
        if event["event"] != "activity":
            print(" ", json.dumps(event, ensure_ascii=False))
    if done.stderr.strip():
        print(done.stderr.rstrip())


def holding(folder: Path, text: str) -> list:
    """The files in a folder that hold a text."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [str(path) for path in files if text.encode() in path.read_bytes()]


def check_runs(args, base_url: str, work: Path, key: str | None) -> int:
    verdict, cache = Verdict(), work / "store"
    settings = [*args.set, f"{args.base_url_param}={base_url}", f"{args.model_param}={args.model}"]
    more = [part for setting in settings for part in ("--set", setting)]
    if key:
        os.environ[args.api_key] = key

    def started(title: str):
        # Relative paths of the command line and of `--set` start where the script does.
        done = run(args.galeras, args.workflow, cache, *more, cwd=Path.cwd(), check=False)
        told(title, done)
        if verdict.check(done.code == 0, f"{title}: exit code {done.code}"):
            return done
        return None

    first = started("first run")
    seen = list(Proxy.seen)
    print()
    requests_table(seen)
    count = answers(seen)
    verdict.check(count > 0, "the workflow asked for no completion")
    errors = Counter(
        (one["path"], one["status"], one["got"][:300].decode(errors="replace"))
        for one in seen
        if one["status"] >= 400
    )
    for (path, status, text), times in errors.items():
        verdict.check(False, f"{path}: {times} times {status} {text}")
    if first and (second := started("second run")):
        verdict.check(not second.not_hit, f"the second run has steps not hit: {second.not_hit}")
    more_seen = len(Proxy.seen) - len(seen)
    print(f"\n{len(seen)} requests of the first run, {more_seen} of the second")
    verdict.check(more_seen == 0, f"the second run sent {more_seen} requests")
    if key:
        held = holding(work, key)
        verdict.check(not held, f"the key is in {held}")
    return verdict.end()


def serve(base_url: str, server: Server, key: str | None) -> int:
    """Serves until Ctrl-C or SIGTERM, or until the server ends by itself."""
    print(
        f"{base_url}\n(not counted: http://127.0.0.1:{server.port}/v1; "
        f"key: {key or 'none'}; log: {server.log}; Ctrl-C ends it)",
        flush=True,
    )
    try:
        code = server.process.wait()
        print(f"the server ended with {code}; the end of its log:\n{server.tail()}")
        return 1
    except KeyboardInterrupt:
        print()
        requests_table(Proxy.seen)
        answers(Proxy.seen)
        return 0


def interrupted(*_) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("workflow", type=Path, nargs="?")
    parser.add_argument("--only-serve", action="store_true", help="run nothing, keep serving")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value of a parameter of the workflow",
    )
    parser.add_argument("--base-url-param", default="base_url", metavar="NAME")
    parser.add_argument("--model-param", default="model", metavar="NAME")
    parser.add_argument("--model", default="galeras-tiny", help="the name of the served model")
    parser.add_argument("--api-key", metavar="NAME", help="ask for a key, given in this variable")
    parser.add_argument("--seed", type=int, default=1, help="of the model's weights")
    parser.add_argument("--context", type=int, default=8192, help="of the model, in tokens")
    parser.add_argument("--start-timeout", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--venv", type=Path, help="keep the virtual environment in this folder")
    args = parser.parse_args()
    if (args.workflow is None) != args.only_serve:
        parser.error("needs a workflow or --only-serve, and not both")
    if (args.api_key or "").startswith("GALERAS_"):
        parser.error("the program is started without variables GALERAS_*")
    signal.signal(signal.SIGTERM, interrupted)

    venv = args.venv
    if venv is None:
        venv = Path(os.environ.get(MADE_VENV) or tempfile.mkdtemp(prefix="galeras-venv-"))
        os.environ[MADE_VENV] = str(venv)
    try:
        build(venv, PINS["llama-cpp-python"])
        in_venv(*pinned(PINS), folder=venv)
        work = work_folder(args)
        model, key = work / "model.gguf", secrets.token_hex(16) if args.api_key else None
        write_model(model, args.model, args.context, args.seed)
        digest = hashlib.sha256(model.read_bytes()).hexdigest()
        print(f"model: {model.stat().st_size} bytes, seed {args.seed}, SHA-256 {digest}")
        before = time.monotonic()
        with Server(model, args.model, args.context, work / "server.log", key) as server:
            names = server.ready(args.start_timeout)
            print(
                f"llama-cpp-python {PINS['llama-cpp-python']} serves {names} after "
                f"{time.monotonic() - before:.1f} s",
                flush=True,
            )
            base_url = listen(server.port)
            if args.only_serve:
                return serve(base_url, server, key)
            return check_runs(args, base_url, work, key)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        if args.venv is None:
            shutil.rmtree(venv, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
