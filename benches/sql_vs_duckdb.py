"""Generated queries, answered by `sql` steps and by DuckDB over the same Parquet files.

What it shows: of 2,000 queries drawn from a seed (joins, GROUPING SETS, ROLLUP, CUBE, windows,
DISTINCT, set operations, subqueries with IN, NOT IN, ANY, ALL and EXISTS, LIMIT with a total order,
each nested in each), every one that Galeras accepts has exactly the rows of DuckDB; the others are
counted by the reason of the refusal. Each query reads stored tables of three kinds: sorted by
the columns that it groups by, sorted by a column that it ignores, and of more than one batch.

How to run it: `python3 benches/sql_vs_duckdb.py [--galeras PATH] [--queries 2000] [--seed 1]`.
duckdb and pyarrow are installed from their registry into a virtual environment.

What it prints: queries, refusals by their reason, differences with their queries. Exit code 1 if
there is a difference, or if more than a tenth is refused.
"""

import collections
import datetime
import decimal
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, command, environment, in_venv, pinned, table, work_folder  # noqa: E402

VERSIONS = {"duckdb": "2.0.1", "pyarrow": "26.0.1"}
MOST_REFUSED = 0.1
# Queries per workflow: one refused query refuses its workflow, which is then run without it.
PER_RUN = 100

COLUMNS = {
    "id": "s",
    "g": "s",
    "h": "i",
    "x": "i",
    "z": "i",
    "y": "f",
    "s": "s",
    "b": "b",
    "d": "d",
}
# Rows of a table, and the key by which it is stored.
TABLES = {
    "t": (240, ["g", "h", "id"]),
    "u": (90, ["x", "id"]),
    "v": (240, ["id"]),
    "w": (2600, ["h", "g", "id"]),
    "e": (0, ["id"]),
}


def rows_of(rng: random.Random, rows: int) -> dict:
    def some(value, nulls):
        return None if rng.random() < nulls else value

    def column(name):
        match name:
            case "g":
                return some(rng.choice("abcd"), 0.1)
            case "h":
                return some(rng.randrange(6), 0.1)
            case "x":
                return some(rng.randrange(-3, 12), 0.15)
            case "z":
                return rng.randrange(20)
            case "y":
                return some(rng.randrange(-40, 40) / 4, 0.1)
            case "s":
                return some(rng.choice(["", "a", "b", "ab", "Ab", "é", "zz"]), 0.1)
            case "b":
                return some(rng.random() < 0.5, 0.2)
            case "d":
                return some(datetime.date(2024, 2, 27) + datetime.timedelta(rng.randrange(9)), 0.1)

    ids = rng.sample(range(10 * rows), rows)
    table = {"id": [f"{n:06}" for n in ids]}
    return table | {name: [column(name) for _ in range(rows)] for name in COLUMNS if name != "id"}


class Relation:
    """A query with the names and types of its columns; `unique` names a key of its rows."""

    def __init__(self, sql, columns, unique=None):
        self.sql, self.columns, self.unique = sql, columns, unique


class Generator:
    """Draws queries in the SQL that both engines read alike: the order of nulls is stated, and no
    quotients."""

    def __init__(self, rng: random.Random):
        self.rng, self.names, self.tables = rng, 0, [*TABLES]

    def name(self, kind="c"):
        self.names += 1
        return f"{kind}{self.names}"

    def pick(self, *makers):
        return self.rng.choice(makers)()

    # Scalar expressions over columns: a list of (text, type).

    def of_type(self, columns, kind):
        found = [text for text, its in columns if its == kind]
        return self.rng.choice(found) if found else self.literal(kind)

    def literal(self, kind):
        rng = self.rng
        return {
            "i": lambda: str(rng.randrange(-3, 12)),
            "f": lambda: f"CAST({rng.randrange(-20, 20) / 4} AS DOUBLE)",
            "s": lambda: f"'{rng.choice(['', 'a', 'b', 'ab', 'zz'])}'",
            "b": lambda: rng.choice(["true", "false"]),
            "d": lambda: f"DATE '2024-02-{rng.randrange(27, 30)}'",
        }[kind]()

    def value(self, columns, kind, depth=1):
        rng, deeper = self.rng, depth - 1
        if depth <= 0 or rng.random() < 0.5:
            return self.of_type(columns, kind)
        one = self.value(columns, kind, deeper)
        choices = [
            lambda: f"coalesce({one}, {self.literal(kind)})",
            lambda: f"nullif({one}, {self.literal(kind)})",
            lambda: (
                f"CASE WHEN {self.condition(columns, deeper)} THEN {one} "
                f"ELSE {self.value(columns, kind, deeper)} END"
            ),
            lambda: f"CASE WHEN {self.condition(columns, deeper)} THEN {one} END",
        ]
        if kind in "if":
            other = self.value(columns, kind, deeper)
            choices += [lambda: f"({one} {rng.choice('+-*')} {other})", lambda: f"abs({one})"]
        if kind == "i":
            choices += [lambda: f"({one} % 4)"]
        if kind == "s":
            choices += [lambda: f"({one} || 'q')", lambda: f"upper({one})"]
        if kind == "b":
            choices += [lambda: f"({self.condition(columns, deeper)})"]
        return rng.choice(choices)()

    def condition(self, columns, depth=1, sub=None):
        """`sub` draws conditions with a subquery; they have no place within CASE."""
        rng = self.rng
        if sub and rng.random() < 0.7:
            return sub(columns)
        kind = rng.choice([its for _, its in columns])
        one = self.value(columns, kind, depth - 1)
        choices = [
            lambda: (
                f"{one} {rng.choice(['=', '<>', '<', '>='])} {self.value(columns, kind, depth - 1)}"
            ),
            lambda: f"{one} IS {rng.choice(['', 'NOT '])}NULL",
            lambda: (
                f"{one} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {self.value(columns, kind, 0)}"
            ),
            lambda: (
                f"{one} {rng.choice(['', 'NOT '])}IN ({self.literal(kind)}, {self.literal(kind)})"
            ),
            lambda: f"{one} BETWEEN {self.literal(kind)} AND {self.literal(kind)}",
        ]
        if depth > 0:
            inner = lambda: self.condition(columns, depth - 1, sub)  # noqa: E731
            choices += [
                lambda: f"({inner()} AND {inner()})",
                lambda: f"({inner()} OR {inner()})",
                lambda: f"NOT ({inner()})",
            ]
        return f"({rng.choice(choices)()})"

    # Conditions with subqueries.

    def correlation(self, columns, inner, equal):
        rng = self.rng
        kind = rng.choice("isd")
        theirs = [text for text, its in inner if its == kind]
        ours = [text for text, its in columns if its == kind]
        if not theirs or not ours:
            return "true"
        how = "=" if equal else rng.choice(["=", "=", "=", "<", "<>"])
        return f"{rng.choice(theirs)} {how} {rng.choice(ours)}"

    def subquery_condition(self, columns):
        rng = self.rng
        source = rng.choice(list(TABLES))
        alias = source if rng.random() < 0.3 else self.name("q")
        inner = [(f"{alias}.{name}", kind) for name, kind in COLUMNS.items()]
        group, scalar = rng.random() < 0.2, rng.random() < 0.1
        where = [self.condition(inner, 0)] if rng.random() < 0.5 else []
        if rng.random() < 0.4:
            # DataFusion has no other comparison for what is aggregated.
            where.append(self.correlation(columns, inner, group or scalar))
        where = " WHERE " + " AND ".join(where) if where else ""
        origin = f"FROM {source} AS {alias}{where}"
        kind = rng.choice("isdf")
        member = self.value(inner, kind, 1)
        one = rng.choice(
            [self.value(columns, kind, 1), self.literal(kind), self.of_type(columns, kind)]
        )
        members = (
            f"SELECT max({member}) {origin} GROUP BY {alias}.g"
            if group
            else f"SELECT {member} {origin}"
        )
        if scalar:
            found = f"{rng.choice(['max', 'min', 'count'])}({alias}.{rng.choice('xhz')})"
            return f"({self.of_type(columns, 'i')} >= (SELECT {found} {origin}))"
        found = rng.choice(
            [
                f"{one} IN ({members})",
                f"{one} NOT IN ({members})",
                f"{one} NOT IN ({members})",
                f"NOT ({one} IN ({members}))",
                f"({one} NOT IN ({members})) IS NULL",
                f"({one} IN ({members})) IS NOT TRUE",
                f"{one} = ANY ({members})",
                f"{one} <> ALL ({members})",
                f"{one} > ALL ({members})",
                f"EXISTS (SELECT 1 {origin})",
                f"NOT EXISTS (SELECT 1 {origin})",
            ]
        )
        return f"({found})"

    # Relations.

    def base(self):
        source = self.rng.choice(
            [name for name in self.tables for _ in range(1 if name == "e" else 6)]
        )
        return Relation(source, [*COLUMNS.items()], TABLES[source][1])

    def source(self, depth, alone=True):
        """An item of FROM with an alias: its text, and its columns."""
        alias = self.name("r")
        if depth <= 0 or self.rng.random() < 0.35:
            relation = self.base()
            # Under its own name, a subquery may have the same names.
            if alone and self.rng.random() < 0.4:
                alias = relation.sql
            text = f"{relation.sql} AS {alias}"
        else:
            relation = self.relation(depth - 1)
            text = f"({relation.sql}) AS {alias}"
        return text, [(f"{alias}.{name}", kind) for name, kind in relation.columns]

    def where(self, columns):
        if self.rng.random() < 0.4:
            return ""
        return f" WHERE {self.condition(columns, 2, self.subquery_condition)}"

    def selected(self, columns, count=None):
        rng = self.rng
        named, items = [], []
        for _ in range(count or rng.randrange(1, 5)):
            kind = rng.choice([its for _, its in columns])
            name = self.name()
            items.append(f"{self.value(columns, kind, 2)} AS {name}")
            named.append((name, kind))
        return ", ".join(items), named

    def plain(self, depth):
        source, columns = self.source(depth)
        items, named = self.selected(columns)
        return Relation(f"SELECT {items} FROM {source}{self.where(columns)}", named)

    def join(self, depth):
        rng = self.rng
        # Rows of a large table on both sides would be millions.
        self.tables, every = ["t", "u", "e"], self.tables
        (one, ours), (two, theirs) = self.source(depth - 1, False), self.source(depth - 1, False)
        self.tables = every
        kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "JOIN"])
        shared = [its for _, its in ours if its in [k for _, k in theirs] and its != "b"]
        if not shared:
            return self.plain(depth)
        its = rng.choice(shared)
        on = f"{self.of_type(ours, its)} = {self.of_type(theirs, its)}"
        if rng.random() < 0.3:
            side = rng.choice([ours, theirs])
            on += f" AND {self.condition(side, 0)}"
        columns = ours + theirs
        items, named = self.selected(columns)
        return Relation(
            f"SELECT {items} FROM {one} {kind} {two} ON {on}{self.where(columns)}", named
        )

    def aggregate(self, columns):
        rng = self.rng
        kind = rng.choice("iifsd")
        value = self.value(columns, kind, 1)
        calls = [("count(*)", "i"), (f"count({value})", "i"), (f"count(DISTINCT {value})", "i")]
        calls += [(f"min({value})", kind), (f"max({value})", kind)]
        if kind in "if":
            calls += [(f"sum({value})", kind)] * 2 + [(f"avg({value})", "f")]
        call, its = rng.choice(calls)
        if rng.random() < 0.2:
            call += f" FILTER (WHERE {self.condition(columns, 0)})"
        # Both engines give sums of whole numbers a wider type.
        if call.startswith("sum(") and its == "i":
            call = f"CAST({call} AS BIGINT)"
        return call, its

    def grouped(self, depth):
        rng = self.rng
        source, columns = self.source(depth)
        plain = [(text, its) for text, its in columns if its in "isbd"] or columns
        by = rng.sample(plain, min(len(plain), rng.randrange(1, 4)))
        texts = [text for text, _ in by]
        inner = ", ".join(texts)
        style = rng.choice(["plain", "plain", "sets", "sets", "rollup", "cube", "mixed"])
        if style == "plain":
            grouping = inner
        elif style == "rollup":
            grouping = f"ROLLUP ({inner})"
        elif style == "cube":
            grouping = f"CUBE ({inner})"
        elif style == "mixed" and len(texts) > 1:
            grouping = f"{texts[0]}, ROLLUP ({', '.join(texts[1:])})"
        else:
            sets = [
                rng.sample(texts, rng.randrange(len(texts) + 1)) for _ in range(rng.randrange(1, 4))
            ]
            sets = list({tuple(sorted(one)) for one in sets} | {tuple(sorted(texts))})
            rng.shuffle(sets)
            grouping = "GROUPING SETS (" + ", ".join(f"({', '.join(one)})" for one in sets) + ")"
        names = [(self.name(), its) for _, its in by]
        items = [f"{text} AS {name}" for text, (name, _) in zip(texts, names, strict=True)]
        unique = [name for name, _ in names]
        if style != "plain":
            for text in texts:
                name = self.name()
                items.append(f"grouping({text}) AS {name}")
                names.append((name, "i"))
                unique.append(name)
        for _ in range(rng.randrange(1, 4)):
            call, its = self.aggregate(columns)
            name = self.name()
            items.append(f"{call} AS {name}")
            names.append((name, its))
        having = f" HAVING count(*) > {rng.randrange(3)}" if rng.random() < 0.2 else ""
        where = self.where(columns)
        text = f"SELECT {', '.join(items)} FROM {source}{where} GROUP BY {grouping}{having}"
        return Relation(text, names, unique)

    def window(self, depth):
        rng = self.rng
        if depth > 0 and rng.random() < 0.5:
            inner = self.grouped(depth - 1)
            alias = self.name("r")
            source, columns = (
                f"({inner.sql}) AS {alias}",
                [(f"{alias}.{n}", k) for n, k in inner.columns],
            )
            # Rows of grouping sets are identified by all of their columns.
            unique = [text for text, _ in columns]
        else:
            relation = self.base()
            alias = self.name("r")
            source, columns = (
                f"{relation.sql} AS {alias}",
                [(f"{alias}.{n}", k) for n, k in relation.columns],
            )
            unique = [f"{alias}.{name}" for name in relation.unique]
        items, names = [], []
        for text in unique:
            name = self.name()
            items.append(f"{text} AS {name}")
            names.append((name, dict(columns)[text]))
        keys = [name for name, _ in names]
        for _ in range(rng.randrange(1, 4)):
            part = rng.sample(columns, rng.randrange(0, 3))
            part = f"PARTITION BY {', '.join(t for t, _ in part)} " if part else ""
            first = rng.sample(columns, rng.randrange(0, 2))
            order = "ORDER BY " + ", ".join(
                f"{t} {rng.choice(['ASC', 'DESC'])} NULLS {rng.choice(['FIRST', 'LAST'])}"
                for t in [*(t for t, _ in first), *unique]
            )
            kind = rng.choice("iisd")
            value = self.of_type(columns, kind)
            number = self.of_type(columns, "i")
            frame = rng.choice(
                [
                    "",
                    "",
                    " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
                    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                    " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
                ]
            )
            call, its = rng.choice(
                [
                    (f"CAST(row_number() OVER ({part}{order}) AS BIGINT)", "i"),
                    (f"CAST(rank() OVER ({part}{order}) AS BIGINT)", "i"),
                    (f"CAST(dense_rank() OVER ({part}{order}) AS BIGINT)", "i"),
                    (f"CAST(ntile(3) OVER ({part}{order}) AS BIGINT)", "i"),
                    (f"lag({value}) OVER ({part}{order})", kind),
                    (f"lead({value}, 2) OVER ({part}{order})", kind),
                    (f"first_value({value}) OVER ({part}{order}{frame})", kind),
                    (f"last_value({value}) OVER ({part}{order}{frame})", kind),
                    (f"count({value}) OVER ({part}{order}{frame})", "i"),
                    (f"min({value}) OVER ({part}{order}{frame})", kind),
                    (f"CAST(sum({number}) OVER ({part}{order}{frame}) AS BIGINT)", "i"),
                    (f"max({value}) OVER ({part.strip()})", kind),
                    (f"count(*) OVER ({part.strip()})", "i"),
                ]
            )
            name = self.name()
            items.append(f"{call} AS {name}")
            names.append((name, its))
        return Relation(
            f"SELECT {', '.join(items)} FROM {source}{self.where(columns)}", names, keys
        )

    def distinct(self, depth):
        source, columns = self.source(depth)
        items, named = self.selected(columns)
        text = f"SELECT DISTINCT {items} FROM {source}{self.where(columns)}"
        return Relation(text, named, [name for name, _ in named])

    def united(self, depth):
        rng = self.rng
        kinds = [rng.choice("isd") for _ in range(rng.randrange(1, 4))]
        names = [(self.name(), kind) for kind in kinds]

        def part():
            source, columns = self.source(depth)
            items = ", ".join(f"{self.value(columns, kind, 1)} AS {name}" for name, kind in names)
            return f"SELECT {items} FROM {source}{self.where(columns)}"

        how = rng.choice(["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
        unique = None if how == "UNION ALL" else [name for name, _ in names]
        return Relation(f"{part()} {how} {part()}", names, unique)

    def limited(self, depth):
        rng = self.rng
        inner = self.pick(
            lambda: self.grouped(depth), lambda: self.distinct(depth), lambda: self.window(depth)
        )
        order = rng.sample(inner.columns, len(inner.columns))
        order = ", ".join(
            f"{name} {rng.choice(['ASC', 'DESC'])} NULLS {rng.choice(['FIRST', 'LAST'])}"
            for name, _ in order
        )
        offset = f" OFFSET {rng.randrange(4)}" if rng.random() < 0.3 else ""
        alias = self.name("r")
        limit = f"LIMIT {rng.randrange(1, 30)}{offset}"
        text = f"SELECT * FROM ({inner.sql}) AS {alias} ORDER BY {order} {limit}"
        return Relation(text, inner.columns, inner.unique)

    def with_name(self, depth):
        inner, name = self.limited(depth - 1), self.name("k")
        (one, two) = self.name("r"), self.name("r")
        shared, kind = self.rng.choice(inner.columns)
        columns = [(f"{alias}.{n}", k) for alias in (one, two) for n, k in inner.columns]
        items, named = self.selected(columns)
        compare = "=" if kind != "b" else "IS NOT DISTINCT FROM"
        return Relation(
            f"WITH {name} AS ({inner.sql}) SELECT {items} FROM {name} AS {one} "
            f"JOIN {name} AS {two} ON {one}.{shared} {compare} {two}.{shared}{self.where(columns)}",
            named,
        )

    def relation(self, depth):
        makers = [self.plain, self.grouped, self.grouped, self.window, self.distinct, self.united]
        makers += [self.join, self.join, self.limited] if depth > 0 else []
        return self.rng.choice(makers)(depth)

    def query(self):
        """A query whose rows are distinct, with the number of copies where they need not be."""
        relation = self.with_name(2) if self.rng.random() < 0.05 else self.relation(2)
        if relation.unique:
            return relation.sql, [name for name, _ in relation.columns]
        names = [name for name, _ in relation.columns]
        listed = ", ".join(names)
        sql = (
            f"SELECT {listed}, count(*) AS copies FROM ({relation.sql}) AS every GROUP BY {listed}"
        )
        return sql, [*names, "copies"]


def plain(value):
    """A value as both engines write it."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    if isinstance(value, (int, decimal.Decimal)):
        return float(value)
    return str(value)


def counted(rows):
    return collections.Counter(tuple(plain(value) for value in row) for row in rows)


def workflow(queries: dict) -> str:
    steps = [f"  raw_{name}: {{ op: read, with: {{ path: {name}.parquet }} }}" for name in TABLES]
    for name, (_, key) in TABLES.items():
        steps.append(
            f"  {name}: {{ op: sql, from: raw_{name}, with: "
            f"{{ query: SELECT * FROM input, key: [{', '.join(key)}] }} }}"
        )
    outputs = []
    for name, (sql, columns) in queries.items():
        used = {t for t in TABLES if re.search(rf"\b{t} AS ", sql)}
        inputs = "{ " + ", ".join(f"{t}: {t}" for t in sorted(used)) + " }"
        steps.append(
            f"  {name}: {{ op: sql, from: {inputs}, with: {{ query: {json.dumps(sql)}, "
            f"key: {json.dumps(columns)} }} }}"
        )
        outputs.append(f"  {name}: {{ from: {name}, path: {name}.parquet }}")
    return (
        "galeras: 1\nname: queries\nsteps:\n"
        + "\n".join(steps)
        + "\noutputs:\n"
        + "\n".join(outputs)
        + "\n"
    )


def failures(done: subprocess.CompletedProcess, queries: dict) -> dict:
    """The steps that were refused or failed, with the reasons."""
    found, lines = {}, workflow(queries).splitlines()
    for line in done.stdout.splitlines():
        event = json.loads(line)
        if event["event"] == "diagnostic":
            named, text = lines[event["line"] - 1].split(":")[0].strip(), event["message"]
        elif event.get("status") == "failed" and "step" in event:
            named, text = event["step"], event.get("detail", "")
        else:
            continue
        if named in queries:
            found.setdefault(named, text)
    return found


def reason(text: str) -> str:
    """A refusal without what is particular to its query."""
    text = re.sub(
        r"`[^`]*`|\"[^\"]*\"|'[^']*'", "…", text.strip().splitlines()[0] if text.strip() else ""
    )
    text = re.sub(r"\b[a-z]+\d+(\.\w+)?\b|__\w+|\d+", "…", text)
    return text[:110]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", default="2")
    args = parser.parse_args()
    in_venv(*pinned(VERSIONS))
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as parquet

    types = {
        "s": pa.string(),
        "i": pa.int64(),
        "f": pa.float64(),
        "b": pa.bool_(),
        "d": pa.date32(),
    }
    schema = pa.schema(
        [
            pa.field(name, types[kind], nullable=name not in ("id", "z"))
            for name, kind in COLUMNS.items()
        ]
    )
    work, verdict = work_folder(args), Verdict()
    peer = duckdb.connect(config={"memory_limit": "2GB"})
    for name, (rows, _) in TABLES.items():
        data = rows_of(random.Random(f"{args.seed} {name}"), rows)
        parquet.write_table(pa.table(data, schema=schema), work / f"{name}.parquet")
        peer.sql(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{work / f'{name}.parquet'}')")

    refused, peer_failed, same = collections.Counter(), collections.Counter(), 0
    examples: dict = {}
    for first in range(0, args.queries, PER_RUN):
        queries = {}
        for at in range(first, min(first + PER_RUN, args.queries)):
            generator = Generator(random.Random(f"{args.seed} {at}"))
            queries[f"q{at:05}"] = generator.query()
        expected = {}
        for name, (sql, _) in list(queries.items()):
            try:
                expected[name] = counted(peer.execute(sql).fetchall())
            except duckdb.Error as error:
                peer_failed[reason(str(error))] += 1
                del queries[name]
        out = work / "cache-out"
        file = work / "queries.yaml"
        while queries:
            file.write_text(workflow(queries))
            call = command(args.galeras, file, work / "cache", "--jobs", args.jobs)
            done = subprocess.run(call, cwd=work, env=environment(), capture_output=True, text=True)
            if done.returncode == 0:
                break
            failed = failures(done, queries)
            if not failed:
                sys.exit(
                    f"the run failed without a step:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
                )
            for name, text in failed.items():
                why = reason(text)
                refused[why] += 1
                examples.setdefault(why, queries.pop(name, None) or examples.get(why))
        for name, (sql, columns) in queries.items():
            found = parquet.read_table(out / f"{name}.parquet").select(columns).to_pylist()
            found = counted(tuple(row.values()) for row in found)
            if found == expected[name]:
                same += 1
                continue
            missing, extra = expected[name] - found, found - expected[name]
            verdict.check(
                False,
                f"{name}: {missing.total()} rows are missing, {extra.total()} too many: "
                f"{[*missing][:2]} {[*extra][:2]}\n{sql}",
            )
        drawn = min(first + PER_RUN, args.queries)
        print(f"{drawn} drawn, {same} equal, {sum(refused.values())} refused", flush=True)

    counts = [
        *((n, why) for why, n in refused.most_common()),
        *((n, f"DuckDB: {w}") for w, n in peer_failed.most_common()),
    ]
    table(["queries", "refused, and why"], counts)
    for why, query in examples.items():
        print(f"{why}\n  {query and query[0]}")
    asked = args.queries - sum(peer_failed.values())
    verdict.check(
        sum(refused.values()) <= MOST_REFUSED * asked, "more than a tenth of the queries is refused"
    )
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
