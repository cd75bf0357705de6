//! `taxonomy`: counts of tokens by category, by hand, through a workflow.

use serde_json::{Value, json};

use crate::harness::{Project, lines, refused};

#[rustfmt::skip]
const CATEGORIES: [&str; 10] = [
    "blocks", "exceptions", "oop", "tests", "declaration", "conditional", "loops", "operators",
    "casting", "extra_tokens",
];

fn project(rows: &[Value], with: &str) -> Project {
    Project::steps(&format!(
        "  data: {{ op: read, with: {{ path: data.jsonl }} }}
  tokens: {{ op: taxonomy, from: data, with: {{ column: code{with} }} }}
"
    ))
    .with("data.jsonl", lines(rows))
}

#[track_caller]
fn counts(code: &str, with: &str) -> [i64; 10] {
    let row = project(&[json!({"id": "a", "code": code})], with).ran().only("tokens");
    CATEGORIES.map(|name| row[name].as_i64().unwrap_or_else(|| panic!("{name}: {row}")))
}

/// Every category is in it; the comments count what is left of them.
const EXAMPLE: &str = "\
import os as system              # declaration 2
class A(Base):                   # oop 1, blocks 3
    @property                    # extra 1
    def m(self, *a, k=None):     # declaration 1, blocks 3, operators 2, extra 1
        try:                     # exceptions 1, blocks 1
            for x in list(a):    # loops 1, operators 1, casting 1, blocks 3
                if x not in k and x is not 1:   # conditional 1, operators 5, blocks 1
                    continue     # loops 1
                elif x == -1:    # conditional 1, operators 2, blocks 1
                    y = x.str or \"if (a): while\"   # operators 2
                else:            # conditional 1, blocks 1
                    y += int(x) ** 2   # operators 2, casting 1, blocks 2
        except ValueError:       # exceptions 1, blocks 1
            raise                # exceptions 1
        assert y, {1: [...]}     # tests 1, blocks 5, extra 1
        with y as z:             # blocks 2, declaration 1
            return lambda: True  # blocks 2, declaration 1, extra 1
";

#[test]
fn categories_by_hand() {
    assert_eq!(
        counts(EXAMPLE, ""),
        [
            3 + 3 + 1 + 3 + 1 + 1 + 1 + 2 + 1 + 5 + 2 + 2,
            3,
            1,
            1,
            2 + 1 + 1 + 1,
            3,
            2,
            2 + 1 + 5 + 2 + 2 + 2,
            2,
            1 + 1 + 1 + 1,
        ]
    );
    // The published lists.
    assert_eq!(
        counts(EXAMPLE, ", mode: compat"),
        [
            // `with` is not listed; 12 colons count twice, with the operators as well.
            25 - 1,
            3,
            // `import` stands in two categories.
            1 + 1,
            1,
            // Of `import as def as lambda` only `import` is listed.
            1,
            // `elif` is not listed.
            2,
            // `continue` and `for`.
            2,
            // = * == - = and the colons: class, def, try, for, if, elif, else, except, the dict,
            // with, lambda. `+=`, `**`, `in`, `not`, `and`, `is`, `or` are not listed.
            2 + 2 + 1 + 11,
            // `list` is not listed; `str` after a dot counts.
            1 + 1,
            // `@` and `...`; `None` and `True` are written small there.
            2,
        ]
    );
    // Java's names, and those that count twice.
    let java = "this = final ? default : break; import x from y; true";
    assert_eq!(counts(java, ", mode: compat"), [1, 0, 3, 0, 4, 1, 1, 3, 0, 1]);
    assert_eq!(counts(java, ""), [1, 0, 0, 0, 2, 0, 1, 1, 0, 0]);
}

#[test]
fn a_null_has_nulls() {
    let codes = [("a", json!(null)), ("b", json!("")), ("c", json!("if"))];
    let rows = codes.map(|(id, code)| json!({"id": id, "code": code}));
    let project = project(&rows, "").ran();
    let found = project.rows("tokens");
    assert!(CATEGORIES.iter().all(|name| found[0][name].is_null()), "{}", found[0]);
    assert!(CATEGORIES.iter().all(|name| found[1][name] == 0), "{}", found[1]);
    assert_eq!(found[2]["conditional"], 1);
    // Two texts of a row side by side.
    let rows = [json!({"id": "a", "code": "if x: pass", "made": "for x in y: pass"})];
    let project = self::project(&rows, ", prefix: reference_");
    project.append("  both: { op: taxonomy, from: tokens, with: { column: made } }\n");
    project.run_ok(&[]);
    let row = &project.rows("both")[0];
    for (name, reference, made) in [("conditional", 1, 0), ("loops", 0, 1), ("blocks", 2, 2)] {
        let found = (&row[format!("reference_{name}")], &row[name]);
        assert_eq!(found, (&json!(reference), &json!(made)), "{name}");
    }
    assert_eq!(row.as_object().unwrap().len(), 3 + 2 * 10);
    // Only new texts are counted.
    let rows = |n: usize| -> Vec<Value> {
        (0..n)
            .map(|i| json!({"id": format!("{i:02}"), "code": format!("x = {i}"), "n": n}))
            .collect()
    };
    let project = self::project(&rows(10), "");
    assert_eq!(project.run_ok(&[]).step("tokens")["computed_rows"], 10);
    let turned: Vec<Value> = rows(12).into_iter().rev().collect();
    project.write("data.jsonl", lines(&turned));
    let more = project.run_ok(&[]);
    assert_eq!(more.step("tokens")["computed_rows"], 2, "{more}");
    assert_eq!(project.run_ok(&["--cache", "fresh", "--jobs", "1"]).digests(), more.digests());
    // Under another name the counts are the same.
    project.rerun("column: code", "column: code, prefix: p_");
    assert!(project.rows("tokens").iter().all(|row| row["p_operators"] == 1));
}

#[test]
fn arguments_that_are_wrong() {
    for (with, code) in [
        ("{ column: «cod }", "unknown-column"),
        ("{ column: «size }", "wrong-type"),
        ("{ column: code, mode: «published }", "wrong-value"),
        ("{ column: code, «prefiks: x }", "unknown-argument"),
    ] {
        let workflow = format!(
            "galeras: 1
steps:
  table:
    op: exec
    with:
      command: touch ran; printf '{{\"id\":\"a\",\"code\":\"x y\",\"size\":1}}'
      output: {{ id: utf8!, code: utf8!, size: int64! }}
  tokens: {{ op: taxonomy, from: table, with: {with} }}
"
        );
        refused(&workflow, code, &[]);
    }
}
