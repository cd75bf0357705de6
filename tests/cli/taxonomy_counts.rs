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
      sandbox: none
      command: touch ran; printf '{{\"id\":\"a\",\"code\":\"x y\",\"size\":1}}'
      output: {{ id: utf8!, code: utf8!, size: int64! }}
  tokens: {{ op: taxonomy, from: table, with: {with} }}
"
        );
        refused(&workflow, code, &[]);
    }
}

#[test]
fn tokens_of_a_tokenizer_count_as_a_whole() {
    let pieces = "make_array('def', 'Ġf', '(', '):', 'Ġif', 'Ġ+', 'Ġ1', 'match', 'Ġasync', '▁for')";
    for (mode, found) in [
        // `(`; `def` and `async`; `if`; `for`; `+`. A token of two marks is in no list.
        ("correct", "blocks 1 declaration 2 conditional 1 loops 1 operators 1"),
        // The published list has no `def`, and an `async` that never occurs.
        ("compat", "blocks 1 declaration 0 conditional 1 loops 1 operators 1"),
    ] {
        let row = Project::steps(&format!(
            "  data: {{ op: read, with: {{ path: data.jsonl }} }}
  pieces: {{ op: sql, from: data, with: {{ query: \"SELECT id, {pieces} AS code FROM input\" }} }}
  tokens: {{ op: taxonomy, from: pieces, with: {{ column: code, tokens: bpe, mode: {mode} }} }}
"
        ))
        .with("data.jsonl", lines(&[json!({"id": "a"})]))
        .ran()
        .only("tokens");
        let words: Vec<&str> = found.split(' ').collect();
        for pair in words.chunks(2) {
            assert_eq!(row[pair[0]].to_string(), pair[1], "{mode} {}: {row}", pair[0]);
        }
        let all: i64 = CATEGORIES.iter().map(|name| row[*name].as_i64().unwrap()).sum();
        let wanted: i64 = words.chunks(2).map(|pair| pair[1].parse::<i64>().unwrap()).sum();
        assert_eq!(all, wanted, "{mode}: {row}");
    }
    let project = project(&[json!({"id": "a", "code": "x"})], ", tokens: bpe");
    project.run(&["run", "w.yaml"]).exits(2).reports(&["a list of texts", "bpe_tokens"]);
}

#[test]
fn the_tokens_of_a_column_are_those_of_its_tokenizer() {
    let code = "def name(self):\n    return self.name + self.name\n";
    let rows: Vec<Value> = [Some(code), Some(""), None]
        .into_iter()
        .enumerate()
        .map(|(at, code)| json!({"id": format!("r{at}"), "code": code}))
        .collect();
    let project = Project::steps(
        "  data: { op: read, with: { path: data.jsonl } }
  bpe: { op: tokenizer, from: data, with: { column: code, vocab_size: 270 } }
  counted:
    op: sql
    from: { data: data, bpe: bpe }
    with:
      query: >
        SELECT id, bpe_tokens(code, (SELECT model FROM bpe)) AS tokens,
               bpe_count(code, (SELECT model FROM bpe)) AS n
        FROM data
      key: [id]
",
    )
    .with("data.jsonl", lines(&rows))
    .ran();
    let rows = project.rows("counted");
    let tokens: Vec<&str> =
        rows[0]["tokens"].as_array().unwrap().iter().map(|token| token.as_str().unwrap()).collect();
    // Byte-level models write a space as `Ġ` and a line feed as `Ċ`.
    assert_eq!(tokens.concat().replace('Ġ', " ").replace('Ċ', "\n"), code);
    assert!(tokens.len() < code.len() && tokens.contains(&"name"), "{tokens:?}");
    assert_eq!(rows[0]["n"], tokens.len());
    assert_eq!((&rows[1]["tokens"], &rows[1]["n"]), (&json!([]), &json!(0)));
    assert!(rows[2]["tokens"].is_null() && rows[2]["n"].is_null(), "{}", rows[2]);
}
