#!/usr/bin/env python3
"""Two people review 60 data points in headless Chromium, by keyboard alone, at once.

    python3 tests/scripts/view_browser.py --galeras target/debug/galeras [--pictures FOLDER]

Shown: both answer by the keys y, n and u in browser contexts of their own; the server is killed
in between and started again, and no answer is lost; undo and a note by keyboard; the page of
agreement shows the kappa of scikit-learn on the files; what they differ on is decided; a run
that begins while the page of steps is open changes the page without a reload; no page logs an
error or asks another server. Then the same pages of a table of attacks: scripts, escapes, marks
that turn the direction of writing, a line of a megabyte, as values, names of columns, filters and
notes. All of it is shown and does nothing, and axe finds nothing serious in light, dark and narrow.
Installs playwright-core and axe-core (npm) and scikit-learn (pip) at first use and needs Debian's
chromium.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

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


HOSTILE = """galeras: 1
name: "<script>window.attacked = 'name'</script>"
description: "</script><script>window.attacked = 'description'</script>"
steps:
  texts: { op: read, with: { path: texts.jsonl, key: [id] } }
  judged:
    op: review
    from: texts
    with:
      questions: { odd: "Is it odd? <img src=x onerror=window.attacked='question'>" }
      ratings: hostile_ratings
"""

LONG = 1_000_000

# Each with what has to be seen of it.
ATTACKS = {
    "script": "<script>window.attacked = 1</script>",
    "closing": "</script><script>window.attacked = 2</script><!--",
    "attribute": '"\'><img src=x onerror="window.attacked = 3">',
    "template": "{{ 7 * 7 }} ${window.attacked = 4} </pre></textarea>]]>",
    "terminal": "\x1b[31mred\x1b]0;title\x07",
    "direction": "\u202edrawkcab\u2066 \u200bhidden",
    "long": "x" * LONG,
}
HIDDEN = {"terminal": {"ESC", "BEL"}, "direction": {"RLO", "LRI", "ZWSP"}}
COLUMN = '<b onclick=window.attacked=5>col&"umn'


class Server:
    """`galeras view`, whose address is the first line that it prints."""

    def __init__(self, galeras, folder, port=0, file="workflow.yaml"):
        command = [galeras, "view", file, "--port", str(port)]
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


def looked_at(drive, server, visit, picture):
    """Visits a page, wide and narrow, in light and dark; nothing is wrong with it."""
    narrow = {"viewport": {"width": 360, "height": 800}}
    people = [
        {"visit": visit, "axe": True, "picture": picture(look), **more}
        for look, more in {"": {}, "_narrow": narrow}.items()
    ]
    people = drive(server, people)["people"]
    for person in people:
        assert not person["grave"], (visit, person["grave"])
        assert person["attacked"] is None, (visit, person["attacked"])
    return people[0]


def hostile(galeras, folder, drive, picture):
    """The pages of a table of attacks show them, and nothing of it runs."""
    (folder / "hostile.yaml").write_text(HOSTILE)
    (folder / "hostile_ratings").mkdir()
    rows = [
        {"id": name, "code": text, "url": "javascript:window.attacked=6", "commit_id": "0" * 40,
         "path": text[:200], COLUMN: text}
        for name, text in sorted(ATTACKS.items())
    ]  # fmt: skip
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # A run of it first, so that there are tables and a run to look at.
    run = [galeras, "run", "hostile.yaml"]
    subprocess.run(run, cwd=folder, check=True, capture_output=True)
    server = Server(galeras, folder, file="hostile.yaml")
    column = quote(COLUMN)
    pages = {
        "steps": "/",
        "table": "/table?name=texts",
        "sorted": f"/table?name=texts&sort={column}&desc=1",
        "filtered": f"/table?name=texts&column={column}&op=contains&value={quote('<SCRIPT>')}",
        "wrong": f"/table?name=texts&column={quote('</select><script>')}&value=%22%3E%3Cscript%3E",
        "runs": "/runs",
        "review": "/review",
        "agreement": "/review/agreement?step=judged",
    }
    seen = {
        name: looked_at(drive, server, visit, lambda look, name=name: picture(f"odd_{name}{look}"))
        for name, visit in pages.items()
    }
    for name in ("script", "closing", "attribute", "template"):
        assert ATTACKS[name] in seen["table"]["text"], name
    assert len(seen["filtered"]["rows"]) == 2, seen["filtered"]["rows"]
    assert "no column" in seen["wrong"]["text"], seen["wrong"]["text"]
    assert seen["table"]["bytes"] < 500_000, "a table has the beginning of long texts"
    for at, (name, text) in enumerate(sorted(ATTACKS.items())):
        told = looked_at(drive, server, f"/row?name=texts&at={at}", lambda _: "")
        if name in HIDDEN:
            named = {*told["hidden"], *re.findall("⟨(.+?)⟩", told["text"])}
            assert named >= HIDDEN[name], (name, named)
        elif name == "long":
            assert "x" * 200 in told["text"] and told["bytes"] < 3_000_000, told["bytes"]
        else:
            assert text in told["text"], (name, told["text"])
        assert "javascript:" in told["text"], "an address that is no address is a text"
    # Rated by keyboard, with a note that is an attack.
    note = f"text:{ATTACKS['closing']}"
    rate = "/review/rate?step=judged&rater="
    for rater, answer in (("eve", "y"), ("fay", "n")):
        keys = [key for _ in ATTACKS for key in ("t", note, "Escape", answer)]
        drive(server, [{"visit": rate + rater, "keys": keys}])
    given = (folder / "hostile_ratings" / "eve.jsonl").read_text().splitlines()
    assert len(given) >= len(ATTACKS) and ATTACKS["closing"] in json.loads(given[0])["note"], given
    for visit in (f"{rate}eve", f"{rate}adjudicated", pages["agreement"]):
        looked_at(drive, server, visit, lambda look: picture(f"odd_rated{look}"))
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=20) == 0
    print(f"{len(ATTACKS)} attacks on {len(pages) + len(ATTACKS) + 3} pages are shown and inert")


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
        ["npm", "install", "--silent", "playwright-core@1.49.1", "axe-core@4.10.2"],
        cwd=node,
        check=True,
        timeout=300,
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
        looked_at(drive, server, visit, lambda look, name=name: picture(f"{name}{look}"))
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=20) == 0
    print("an interrupt ended the server with 0")
    hostile(galeras, folder, drive, picture)


if __name__ == "__main__":
    os.environ["RUST_BACKTRACE"] = "0"
    main()
