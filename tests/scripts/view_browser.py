#!/usr/bin/env python3
"""Two people review 60 data points in headless Chromium, by keyboard alone, at once.

    python3 tests/scripts/view_browser.py --galeras target/debug/galeras [--pictures FOLDER]

Shown: both answer by the keys y, n and u in browser contexts of their own; the server is killed
in between and started again, and no answer is lost; undo and a note by keyboard; the page of
agreement shows the kappa of scikit-learn on the files; what they differ on is decided; a run
that begins while the page of steps is open changes the page without a reload; no page logs an
error or asks another server. Installs playwright-core (npm) and scikit-learn (pip) at first use
and needs Debian's chromium.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from harness import arguments, in_venv, pinned, work_folder  # noqa: E402

in_venv(*pinned({"scikit-learn": "1.7.2", "scipy": "1.16.3", "numpy": "2.3.5"}))

from sklearn.metrics import cohen_kappa_score  # noqa: E402

POINTS = 60

WORKFLOW = """galeras: 1
steps:
  methods: { op: methods, with: { corpus: python-stdlib, include: ["json/*.py", "email/*.py"] } }
  drawn: { op: sample, from: methods, with: { n: 60, seed: 1 } }
  judged:
    op: review
    from: { input: methods, sheet: drawn }
    with:
      questions: { whole: Is this a whole method? }
      ratings: ratings
"""


class Server:
    """`galeras view`, whose address is the first line that it prints."""

    def __init__(self, galeras, folder, port=0):
        command = [galeras, "view", "workflow.yaml", "--port", str(port)]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.address = self.process.stdout.readline().strip()
        assert "token=" in self.address, self.address

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def answer(rater, place):
    """What a rater says of the point at that place: they differ on some, and are unsure of some."""
    if place % 11 == 5:
        return "u"
    if place % 7 == (1 if rater == "ann" else 2):
        return "n"
    return "y" if place % 5 else "n"


def ratings(folder, rater):
    """The answers that count: the last line about a data point."""
    last = {}
    for line in (folder / "ratings" / f"{rater}.jsonl").read_text().splitlines():
        event = json.loads(line)
        last[event["id"]] = event
    return {point: event for point, event in last.items() if event["answer"]}


def browser(script, folder, request):
    """Runs the script of Node on a request; its answer."""
    done = subprocess.run(
        ["node", str(script)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stderr[-4000:])
    return json.loads(done.stdout)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--pictures", type=Path, help="keep pictures of the pages here")
    args = parser.parse_args()
    galeras = str(Path(args.galeras).resolve())
    folder = work_folder(args)
    chromium = shutil.which("chromium") or sys.exit("chromium is not installed")
    (folder / "workflow.yaml").write_text(WORKFLOW)
    (folder / "ratings").mkdir()
    node = folder / "node"
    node.mkdir()
    subprocess.run(
        ["npm", "install", "--silent", "playwright-core@1.49.1"], cwd=node, check=True, timeout=300
    )
    script = Path(shutil.copy(HERE / "view_browser.js", node))
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)

    def picture(name):
        return str((args.pictures / f"{name}.png").resolve()) if args.pictures else ""

    def drive(server, people, **more):
        origin = re.match(r"http://[^/]+", server.address)[0]
        people = [{"address": server.address, "origin": origin, **person} for person in people]
        request = {"chromium": chromium, "people": people, "folder": str(folder), **more}
        found = browser(script, node, request)
        assert not found["errors"], found["errors"]
        return found

    # 1. The page of steps follows a run.
    server = Server(galeras, folder)
    run = [galeras, "run", "workflow.yaml"]
    found = drive(server, [{"picture": picture("steps_before")}], live=run)
    assert found["live"] is True, "the page was loaded again, or not at all"
    print("live: the page of steps followed a run without a reload")

    # 2. Both rate the first half; the server is killed; both go on.
    def begin(rater, keys, name):
        visit = f"/review/rate?step=judged&rater={rater}"
        return {"visit": visit, "keys": keys, "picture": picture(name)}

    half = POINTS // 2
    raters = ("ann", "ben")

    def keys(rater, places):
        return [answer(rater, place) for place in places]

    drive(server, [begin(r, keys(r, range(half)), f"review_{r}") for r in raters])
    server.kill()
    for rater in raters:
        assert len(ratings(folder, rater)) == half, f"{rater} lost answers"
    print(f"killed after {half} answers each: nothing lost")
    server = Server(galeras, folder)
    # (the first answer is a mistake, taken back)
    slip = ["n", "z"]
    second = [slip + keys("ann", range(half, POINTS)), keys("ben", range(half, POINTS))]
    found = drive(server, [begin(r, k, f"end_{r}") for r, k in zip(raters, second, strict=True)])
    for person in found["people"]:
        assert "/review/agreement" in person["url"], person["url"]
    for rater in raters:
        assert len(ratings(folder, rater)) == POINTS
    ids = sorted(ratings(folder, "ann"))
    words = {"y": "yes", "n": "no", "u": "unsure"}
    for rater in raters:
        given = [ratings(folder, rater)[point]["answer"] for point in ids]
        assert given == [words[answer(rater, place)] for place in range(POINTS)], rater

    # 3. Kappa is that of scikit-learn.
    one, other = ([ratings(folder, r)[point]["answer"] for point in ids] for r in raters)
    kappa = cohen_kappa_score(one, other)
    seen = [{"visit": "/review/agreement?step=judged", "picture": picture("agreement")}]
    rows = drive(server, seen)["people"][0]["rows"]
    shown = [float(cell) for cell in rows[0] if re.fullmatch(r"-?0\.\d{4,}", cell)]
    assert any(abs(value - kappa) < 1e-9 for value in shown), (kappa, rows)
    print(f"kappa of {POINTS} points is scikit-learn's: {kappa:.12f}")

    # 4. What they differ on is decided, with a note, by keyboard.
    differ = sum(a != b for a, b in zip(one, other, strict=True))
    decide = {
        "visit": "/review/rate?step=judged&rater=adjudicated",
        "keys": ["t", "text:seen by both", "Escape", *["n"] * differ],
        "picture": picture("decided"),
    }
    drive(server, [decide])
    decided = ratings(folder, "adjudicated")
    assert len(decided) == differ
    assert [event.get("note") for event in decided.values()].count("seen by both") == 1
    subprocess.run(run, cwd=folder, check=True, capture_output=True)
    print(f"{differ} disagreements were decided")
    for name, visit in [
        ("table", "/table?name=methods&sort=end_line&desc=1"),
        ("row", "/row?name=methods&at=3"),
        ("runs", "/runs"),
        ("start", "/review"),
        ("point", "/review/rate?step=judged&rater=ann"),
    ]:
        narrow = {"visit": visit, "picture": picture(f"{name}_narrow")}
        narrow["viewport"] = {"width": 360, "height": 800}
        drive(server, [{"visit": visit, "picture": picture(name)}, narrow])
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=20) == 0
    print("an interrupt ended the server with 0")


if __name__ == "__main__":
    os.environ["RUST_BACKTRACE"] = "0"
    main()
