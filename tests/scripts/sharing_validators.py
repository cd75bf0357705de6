"""What others make of bundles and data sets: the validators of their formats, and their readers.

What it shows: `galeras bundle` writes an RO-Crate that roc-validator passes, of RO-Crate 1.2 and of
the profile Workflow Run Crate; `galeras verify` finds one flipped byte wherever it is (200 seeded
trials), and neither a planted secret, nor the user's name, nor the home folder is in it. So it is
for a small workflow, and for `workflows/galeras.yaml` on three repositories with histories.
`galeras export` writes a data set whose Croissant metadata `mlcroissant` passes and reads, whose
card `huggingface_hub` reads, and whose rows are the same for `datasets.load_dataset`, pandas,
polars and DuckDB as for `galeras sql`; the card's numbers are those of SQL.

How to run it: `python3 tests/scripts/sharing_validators.py [--galeras PATH]`. The validators are
installed from their registries into a virtual environment (see `harness.in_venv`), and nothing else
is asked of a network: the context of RO-Crate comes from the npm package `ro-crate`.

What it prints: a line per check, and the violations. Exit code 1 if there is one.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import ROOT, Verdict, arguments, in_venv, pinned, work_folder  # noqa: E402

VERSIONS = {
    "datasets": "5.2.0",
    "duckdb": "2.0.0",
    "huggingface_hub": "2.4.0",
    "mlcroissant": "1.1.1",
    "pandas": "3.1.1",
    "polars": "2.1.0",
    "pyarrow": "26.0.1",
    "roc-validator": "0.13.0",
}
CONTEXT = "https://w3id.org/ro/crate/1.2/context"
CONTEXT_PACKAGE = "ro-crate@3.7.2"
PROFILES = [
    "ro-crate-1.2",
    "process-run-crate-0.5",
    "workflow-ro-crate-1.0",
    "workflow-run-crate-0.5",
]
OF_VERSION_1_1 = (
    "The RO-Crate metadata file descriptor MUST have a `conformsTo` property with the RO-Crate "
    "specification version"
)
TRIALS = 200
USER = "zaphodbeeblebrox"
SECRET = "sk-planted-8c1d2e3f4a5b"

WORKFLOW = """galeras: 1
name: methods
description: Methods of the standard library, and of three repositories.
steps:
  repositories:
    op: read
    with: { path: ../data/repos.csv, key: [repo] }
  library:
    op: methods
    with: { corpus: python-stdlib, include: ["json/*.py", "email/*.py"] }
  features: { op: ast, from: library }
  cut:
    op: cut
    from: features
    with: { seed: 7 }
  prompts:
    op: prompt
    from: cut
    with:
      treatments:
        plain: "Complete: {{ random_cut }}"
        turns: ["You complete code.", "Complete: {{ random_cut }}"]
  licensed:
    op: sql
    from: { left: repositories, right: features }
    with:
      key: [id]
      query: >
        SELECT right.id || left.repo AS id, left.repo, right.code, right.nloc, right.ast_errors
        FROM right CROSS JOIN left
  described: { op: describe, from: features, with: { columns: [nloc, complexity] } }
outputs:
  described: { from: described, path: described.csv }
  cut: { from: cut, path: cut.parquet }
"""
REPOSITORIES = """repo,license
ada/lovely,MIT
bob/free,Apache-2.0
cyd/copyleft,GPL-3.0
"""
TABLES = ["cut", "licensed", "prompts"]
STUDY = ["galeras.yaml", "collect.yaml", "ratings/README.md"]
REPOSITORY_NAMES = ["a", "b", "c"]
SETS = {"n": "40", "validated": "20", "tokens": "word"}
COMMITS = 20
WORDS = "table row column index value record field entry cell line total offset limit".split()


class Program:
    """The program in a folder, in an environment with a planted user, home and secret."""

    def __init__(self, path: str, work: Path) -> None:
        self.path = os.path.abspath(path)
        home = work / "homes" / USER
        self.root = home / "study"
        self.root.mkdir(parents=True)
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "USER": USER,
            "LOGNAME": USER,
            "OPENAI_API_KEY": SECRET,
            "NO_COLOR": "1",
        }

    def __call__(self, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.path, *args],
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
        )

    def ok(self, *args: str, cwd: Path | None = None) -> str:
        done = self(*args, cwd=cwd)
        if done.returncode != 0:
            sys.exit(f"galeras {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def context(work: Path) -> dict:
    """The JSON-LD context of RO-Crate 1.2."""
    packed = subprocess.run(
        ["npm", "pack", CONTEXT_PACKAGE, "--silent"],
        cwd=work,
        capture_output=True,
        text=True,
        check=True,
    )
    with tarfile.open(work / packed.stdout.strip()) as package:
        text = json.load(package.extractfile("package/lib/context.json"))
    assert text["@id"] == CONTEXT, text["@id"]
    return {"@context": text["@context"]}


def serve_context(document: dict) -> None:
    """Whoever asks for the context of RO-Crate gets this document, and nobody anything else."""
    import rdflib.plugins.shared.jsonld.context as jsonld
    import requests
    from rocrate_validator.utils.http import HttpRequester

    def get(_self, url, *_args, **_kwargs):
        response = requests.Response()
        known = str(url) == CONTEXT
        response.status_code = 200 if known else 404
        response.headers["Content-Type"] = "application/ld+json"
        response._content = json.dumps(document).encode() if known else b""
        response.url = str(url)
        return response

    read = jsonld.source_to_json

    def source_to_json(source, *args, **kwargs):
        if str(source) == CONTEXT:
            known = document
            return (known, None) if isinstance(read(DATA), tuple) else known
        return read(source, *args, **kwargs)

    import io

    from rdflib.parser import InputSource

    class Data(InputSource):
        def __init__(self):
            super().__init__()
            self.setByteStream(io.BytesIO(b"{}"))

    DATA = Data()
    jsonld.source_to_json = source_to_json
    HttpRequester.get = get
    HttpRequester.head = get


def validate_crate(crate: Path, verdict: Verdict) -> None:
    """roc-validator, by the specification and by the profiles."""
    from rocrate_validator import models, services

    for profile in PROFILES:
        settings = services.ValidationSettings(
            rocrate_uri=str(crate),
            profile_identifier=profile,
            requirement_severity=models.Severity.REQUIRED,
            skip_availability_check=True,
        )
        issues = [issue.message for issue in services.validate(settings).get_issues()]
        inherited = [issue for issue in issues if issue == OF_VERSION_1_1]
        if profile != PROFILES[0]:
            # The profiles of version 0.5 stand on RO-Crate 1.1, whose check knows no other version.
            issues = [issue for issue in issues if issue != OF_VERSION_1_1]
        print(
            f"roc-validator {profile}: {len(issues)} issues"
            + (f", and that it is not 1.1 ({len(inherited)})" if inherited else "")
        )
        for issue in issues:
            verdict.check(False, f"roc-validator {profile}: {issue}")


def check_bundle(galeras: Program, file: str, unpacked: Path, verdict: Verdict, *sets: str) -> None:
    bundle = galeras.root / "b.zip"
    bundle.unlink(missing_ok=True)
    print(galeras.ok("bundle", file, *sets, "-o", "b.zip").strip())
    print(galeras.ok("verify", "b.zip", "--recompute", "4").strip().replace("\n", "; "))
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(unpacked)
        for name in archive.namelist():
            content = archive.read(name)
            for private in (SECRET, USER, str(galeras.home)):
                found = private.encode() in content or private in name
                verdict.check(not found, f"{private} is in {name}")
    ran = galeras.ok("run", f"workflow/{file}", *sets, "--format", "json", cwd=unpacked)
    finished = json.loads(ran.splitlines()[-1])
    hits = [step["status"] == "hit" for step in finished["steps"]]
    verdict.check(all(hits), f"{hits.count(False)} steps of an unpacked bundle are computed")
    print(f"a run in the unpacked bundle: {hits.count(True)} of {len(hits)} steps are hits")
    whole = bundle.read_bytes()
    draw = random.Random(20)
    damaged = galeras.root / "d.zip"
    found = 0
    for _ in range(TRIALS):
        at = draw.randrange(len(whole))
        content = bytearray(whole)
        content[at] ^= 1 << draw.randrange(8)
        damaged.write_bytes(content)
        code = galeras("verify", "d.zip").returncode
        found += verdict.check(code == 4, f"byte {at} is flipped, and verify ends with {code}")
    print(f"one flipped byte: found in {found} of {TRIALS} trials")
    validate_crate(unpacked, verdict)


def method(draw: random.Random, number: int, edits: int) -> str:
    """A method with a docstring and a body of words of its own."""
    first, second, third = draw.sample(WORDS, 3)
    lines = [f"def {first}_{number}({second}, {third}):"]
    lines += [f'    """Return the {first} of each {second} whose {third} is {number}."""']
    lines += [f"    {first} = [{number}]"]
    for _ in range(draw.randrange(4, 9)):
        one, other = draw.sample(WORDS, 2)
        lines += [f"    for {one} in {second}:", f"        if {one} > {draw.randrange(900)}:"]
        lines += [f"            {first}.append({one} - {other}_{draw.randrange(90)}({third}))"]
    lines += [f"    {first}.append({edit})" for edit in range(edits)]
    return "\n".join([*lines, f"    return {first}", "", ""])


def write_repository(galeras: Program, folder: Path) -> None:
    """A history of 2022 in which each commit adds a module and changes the one before it."""
    folder.mkdir(parents=True)
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True, env=galeras.environment)
    for commit in range(COMMITS):
        for module in range(max(commit - 1, 0), commit + 1):
            draw = random.Random(f"{folder.name}-{module}")
            texts = [method(draw, 6 * module + at, commit - module) for at in range(6)]
            (folder / f"module_{module}.py").write_text("\n".join(texts))
        day = f"2022-{1 + commit // 2:02}-{5 + 14 * (commit % 2):02}T12:00:00Z"
        dates = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
        message = f"Read the {WORDS[commit % len(WORDS)]} of module {commit} of {folder.name} anew"
        subprocess.run([*git, "add", "."], check=True, env=galeras.environment)
        commits = [*git, "commit", "-q", "-m", message]
        subprocess.run(commits, check=True, env={**galeras.environment, **dates})


def serve_repositories(folder: Path) -> str:
    """The repositories in a folder, by `git http-backend` on loopback; where they are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "2",
                "GIT_CONFIG_KEY_0": "uploadpack.allowFilter",
                "GIT_CONFIG_VALUE_0": "true",
                "GIT_CONFIG_KEY_1": "safe.directory",
                "GIT_CONFIG_VALUE_1": "*",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(len(body)),
            }
            command = ["git", "http-backend"]
            done = subprocess.run(command, input=body, capture_output=True, env=environment)
            head, _, answer = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def check_study(galeras: Program, unpacked: Path, verdict: Verdict) -> None:
    """The bundle of `workflows/galeras.yaml` on three repositories."""
    for name in STUDY:
        to = galeras.root / name
        to.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "workflows" / name, to)
    served = unpacked.parent / "served"
    for name in REPOSITORY_NAMES:
        write_repository(galeras, served / name)
    url = serve_repositories(served)
    repositories = ",".join(f"{url}/{name}/.git" for name in REPOSITORY_NAMES)
    values = SETS | {"repos": repositories}
    sets = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    galeras.ok("lock", STUDY[0], *sets)
    galeras.ok("run", STUDY[0], *sets)
    check_bundle(galeras, STUDY[0], unpacked, verdict, *sets)


def fingerprint(rows: list) -> str:
    """A digest of rows as JSON, whatever their order."""
    lines = sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def check_readers(folder: Path, card: dict, verdict: Verdict) -> dict:
    """Rows of each table by every reader."""
    import datasets
    import duckdb
    import polars
    import pyarrow.parquet

    datasets.disable_progress_bars()
    rows = {}
    for config in card["configs"]:
        name = config["config_name"]
        path = folder / config["data_files"][0]["path"]
        readers = {
            "pyarrow": pyarrow.parquet.read_table(path).to_pylist(),
            "datasets": list(
                datasets.load_dataset(
                    str(folder), name, split="test", cache_dir=str(folder.parent / "hf")
                )
            ),
            "polars": polars.read_parquet(path).to_dicts(),
            "DuckDB": duckdb.sql(f"FROM '{path}'").to_arrow_table().to_pylist(),
        }
        digests = {reader: fingerprint(rows) for reader, rows in readers.items()}
        import pandas

        number = len(pandas.read_parquet(path))
        counts = {len(rows) for rows in readers.values()} | {number}
        print(f"{name}: {counts} rows by five readers, digests {sorted(set(digests.values()))}")
        verdict.check(len(counts) == 1, f"{name}: readers count {counts}")
        verdict.check(len(set(digests.values())) == 1, f"{name}: {digests}")
        rows[name] = readers["pyarrow"]
    return rows


def check_export(galeras: Program, verdict: Verdict) -> None:
    import mlcroissant
    from huggingface_hub import DatasetCard

    said = galeras.ok(
        *["export", "flows/w.yaml", *TABLES, "-o", "set", "--format", "json"],
        *["--author", "Ada Lovelace"],
    )
    told = {table["name"]: table for table in json.loads(said)["tables"]}
    folder = galeras.root / "set"
    card = DatasetCard.load(folder / "README.md")
    data = card.data.to_dict()
    verdict.check([config["config_name"] for config in data["configs"]] == TABLES, "configurations")
    rows = check_readers(folder, data, verdict)
    for info in data["dataset_info"]:
        number = info["splits"][0]["num_examples"]
        name = info["config_name"]
        verdict.check(number == len(rows[name]) == told[name]["rows"], f"{name}: {number} rows")
    # Against SQL over the results themselves.
    query = "SELECT count(*) AS n, avg(nloc) AS m, max(nloc) AS most FROM cut"
    sql = json.loads(galeras.ok("sql", "flows/w.yaml", query, "--format", "json"))
    verdict.check(
        told["cut"]["rows"] == sql["n"], f"cut: {told['cut']['rows']} and {sql['n']} rows"
    )
    section = card.text.split("### cut\n")[1].split("\n### ")[0]
    line = next(line for line in section.splitlines() if line.startswith("| `nloc` |"))
    least, mean, most = (cell.strip() for cell in line.split("|")[-4:-1])
    verdict.check(
        abs(float(mean.replace(",", "")) - sql["m"]) <= 1e-3 * sql["m"]
        and int(most.replace(",", "")) == sql["most"],
        f"the card says mean {mean}, most {most}, SQL {sql}",
    )
    print(f"card: {sql['n']} rows, nloc from {least} to {most}, mean {mean}; SQL {sql['m']}")
    kept = "SELECT count(*) AS n FROM licensed WHERE repo <> 'cyd/copyleft'"
    n = json.loads(galeras.ok("sql", "flows/w.yaml", kept, "--format", "json"))["n"]
    verdict.check(told["licensed"]["rows"] == n, f"licensed: {told['licensed']['rows']} and {n}")
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    print(f"mlcroissant: {len(issues.errors)} errors, {len(issues.warnings)} warnings")
    for error in issues.errors:
        verdict.check(False, f"mlcroissant: {error}")
    for warning in issues.warnings:
        print(f"  {warning}")
    records = sum(1 for _ in dataset.records(record_set="cut"))
    verdict.check(records == told["cut"]["rows"], f"mlcroissant reads {records} rows of cut")
    print(f"mlcroissant reads {records} rows of cut")


def main() -> int:
    args = arguments(__doc__).parse_args()
    in_venv(*pinned(VERSIONS))
    os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
    work = work_folder(args)
    verdict = Verdict()
    galeras = Program(args.galeras, work)
    for name, text in {"flows/w.yaml": WORKFLOW, "data/repos.csv": REPOSITORIES}.items():
        path = galeras.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    galeras.ok("run", "flows/w.yaml")
    check_export(galeras, verdict)
    serve_context(context(work))
    check_bundle(galeras, "flows/w.yaml", work / "unpacked", verdict)
    print(f"\n{STUDY[0]} on three repositories")
    check_study(galeras, work / "unpacked-study", verdict)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
