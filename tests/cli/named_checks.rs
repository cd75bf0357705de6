//! The named checks of `validate` that count again, look at cuts and docstrings, and leave
//! methods out; and the SQL functions behind them.

use serde_json::{Value, json};

use crate::harness::{Project, lines, says, told, values};

/// Methods of all sorts; all features of theirs are right as `ast` measures them.
const GOOD: [(&str, &str); 10] = [
    ("plain", "def f(a):\n    b = a + 1\n    return b\n"),
    (
        "branches",
        "def f(a, b):\n    if a and b or a:\n        return 1\n    elif a:\n        return 2\n    for x in a:\n        while x:\n            x -= 1\n    return [y for y in a if y]\n",
    ),
    (
        "documented",
        "def f(a):\n    \"\"\"Adds one to a.\n\n    More of it.\n    \"\"\"\n    b = a + 1\n    return b\n",
    ),
    (
        "nested",
        "def f(a):\n    def g(b):\n        if b:\n            return b\n        return 1\n    h = lambda c: c if c else 0\n    return g(h(a))\n",
    ),
    (
        "caught",
        "async def f(a):\n    try:\n        await a\n    except (KeyError, ValueError) as e:\n        raise e\n    finally:\n        print('x  y')\n",
    ),
    (
        "matched",
        "def f(a):\n    match a:\n        case 1:\n            return 1\n        case [x, *_]:\n            return x\n",
    ),
    (
        "wide",
        "def größe(α, β=\"ä \\u00a0 ß\"):\n    naïve = f\"{α!r} {β:>{α}} 🎉\"\n    return naïve\n",
    ),
    (
        "signed",
        "def f(\n    a: int,  # the first\n    b: dict[str, int] = {},\n    *,\n    c=lambda: 0,\n) -> list[int]:\n    # nothing\n    return [a, *b, c]\n",
    ),
    ("tabs", "def f(a):\n\tif a:\n\t\treturn  a\n\n\treturn a\n"),
    ("single", "def f(a):\n    'In single quotes.'\n    b = '''x  y'''\n    return b\n"),
];

/// `points.jsonl` -> features -> `told`, a query over them -> `valid`, with these rules.
fn project(points: &[(&str, Value)], query: &str, rules: &[&str]) -> Project {
    let rules: String = rules.iter().map(|rule| format!("        - {rule}\n")).collect();
    let project = Project::steps(&format!(
        "  points: {{ op: read, with: {{ path: points.jsonl }} }}
  features: {{ op: ast, from: points }}
  told: {{ op: sql, from: features, with: {{ query: \"{query}\", key: [id] }} }}
  valid:
    op: validate
    from: told
    with:
      rules:
{rules}"
    ));
    let row = |(id, code): &(&str, Value)| json!({"id": id, "code": code});
    project.with("points.jsonl", lines(&points.iter().map(row).collect::<Vec<_>>()))
}

fn good() -> Vec<(&'static str, Value)> {
    GOOD.iter().map(|(id, code)| (*id, Value::from(*code))).collect()
}

const ALL: &str = "SELECT * FROM input";

/// The ids of these codes that a rule keeps, in the order of ids.
#[track_caller]
fn kept(points: &[(&str, &str)], rule: &str) -> Vec<String> {
    let points: Vec<(&str, Value)> =
        points.iter().map(|(id, code)| (*id, Value::from(*code))).collect();
    let project = project(&points, ALL, &[rule]).ran();
    let kept = project.cells("valid", "id");
    assert_eq!(kept.len() + project.rows("valid.rejects").len(), points.len());
    kept
}

const RECOMPUTED: [(&str, &[&str]); 6] = [
    ("ast_features_recomputed", &["n_ast_errors", "ast_levels", "n_ast_nodes", "n_identifiers"]),
    ("complexity_recomputed", &["complexity"]),
    ("nloc_recomputed", &["nloc"]),
    ("token_counts_recomputed", &["token_counts"]),
    ("n_words_recomputed", &["n_words", "vocab_size"]),
    ("n_whitespaces_recomputed", &["n_whitespaces"]),
];

#[test]
fn what_is_right_is_so_when_counted_again() {
    let rules: Vec<String> = RECOMPUTED.iter().map(|(c, _)| format!("{{ use: {c} }}")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let project = project(&good(), ALL, &rules).ran();
    let rejects = project.rows("valid.rejects");
    assert!(rejects.is_empty(), "{rejects:#?}");
    let summary = project.rows("valid.summary");
    for (check, _) in RECOMPUTED {
        let row = summary.iter().find(|row| row["rule"] == check).unwrap();
        assert_eq!((&row["checked"], &row["failed"]), (&json!(GOOD.len()), &json!(0)), "{row}");
    }
}

#[test]
fn a_false_or_missing_number_is_rejected() {
    for (check, columns) in RECOMPUTED {
        for column in columns {
            for change in ["+ 1", "- 1"] {
                let query = format!(
                    "SELECT * REPLACE (CASE WHEN id = 'nested' THEN {column} {change} ELSE {column} END AS {column}) FROM input"
                );
                let project = project(&good(), &query, &[&format!("{{ use: {check} }}")]).ran();
                let row = project.only("valid.rejects");
                let found = values(&row, "id step rule");
                assert_eq!(found, json!(["nested", "valid", check]), "{check} {column}");
                let reason = row["reason"].as_str().unwrap();
                let told = format!("{column} = {}", row[column]);
                assert!(reason.contains(&told), "{told}: {reason}");
                assert!(reason.len() < 600 && !reason.contains("def f"), "{reason}");
            }
        }
    }
    let query = "SELECT * REPLACE (nullif(complexity, 1) AS complexity) FROM input";
    let project = project(&good(), query, &["{ use: complexity_recomputed }"]).ran();
    let rejects = project.rows("valid.rejects");
    assert!(!rejects.is_empty() && rejects.iter().all(|row| row["complexity"].is_null()));
    assert!(project.rows("valid").iter().all(|row| row["complexity"].as_i64().unwrap() > 1));
}

#[test]
fn a_method_without_code_passes_nothing() {
    let checks = RECOMPUTED.iter().map(|(check, _)| *check);
    for check in checks.chain(["no_one_line_body", "no_pass_body", "several_returns"]) {
        let zeros = "0 AS n_ast_errors, 0 AS ast_levels, 0 AS n_ast_nodes, 0 AS n_identifiers, 0 AS complexity, 0 AS nloc, 0 AS token_counts, 0 AS n_words, 0 AS vocab_size, 0 AS n_whitespaces";
        let query = format!("SELECT id, nullif(code, code) AS code, {zeros} FROM input");
        let rule = match check {
            "several_returns" => "{ use: several_returns, with: { more_than: 0 } }".into(),
            check => format!("{{ use: {check} }}"),
        };
        let project = project(&good()[..2], &query, &[&rule]).ran();
        assert_eq!(project.cells("valid", "id"), [""; 0], "{check}");
    }
    // A rule has its own name, its own column, and may flag.
    let rule = "{ use: complexity_recomputed, name: counted_twice, with: { column: other }, on_fail: flag }";
    let query = "SELECT *, CASE WHEN id = 'plain' THEN 'def f():\\n  if a: pass' ELSE code END AS other FROM input";
    let rows = project(&good(), query, &[rule]).ran().rows("valid");
    assert_eq!(rows.len(), GOOD.len());
    assert!(rows.iter().all(|row| row["counted_twice"] == json!(row["id"] != "plain")), "{rows:?}");
}

#[test]
fn a_cut_inside_of_a_signature_is_rejected() {
    let project = project(&good(), ALL, &["{ use: cut_after_signature }"]);
    let cut = "  cuts: { op: cut, from: features, with: { seed: 3, min: 0.02, max: 0.5, after: none } }\n";
    project.change("  valid:", &format!("{cut}  valid:"));
    project.rerun("from: told", "from: cuts");
    let whole = |row: &Value| {
        let (cut, signature) = (row["random_cut"].as_str(), row["signature"].as_str());
        cut.unwrap().starts_with(signature.unwrap())
    };
    let (kept, rejected) = (project.rows("valid"), project.rows("valid.rejects"));
    assert!(kept.len() > 1 && rejected.len() > 1, "{} {}", kept.len(), rejected.len());
    assert!(kept.iter().all(whole) && !rejected.iter().any(whole));
    assert!(rejected.iter().all(|row| row["rule"] == "cut_after_signature"));
    // A cut that starts after the signature always passes, wherever the signature ends.
    project.rerun("after: none", "after: signature");
    assert!(project.rows("valid.rejects").is_empty());
    assert_eq!(project.rows("valid").len(), GOOD.len());
    // The other column that is cut.
    project.rerun("after: signature", "column: code_no_docstring");
    assert!(project.rows("valid.rejects").is_empty());
    project.rerun("cut_after_signature }", "cut_after_signature, with: { column: cut_rest } }");
    assert!(project.rows("valid").is_empty(), "what follows the cut has no signature");
    // A cut has some of the body on both sides.
    let codes = [
        // The text before or after the cut is nothing, white space or a comment.
        ("a", "def f(a):\n    ", "return a\n"),
        ("b", "def f(a):\n    # first\n    ", "return a\n"),
        ("c", "def f(a):\n    return a", "\n"),
        ("d", "def f(a):\n    return a", "  # that is all\n"),
        ("e", "def f(", "a):\n    return a\n"),
        ("f", "def f(a):\n    b = '#' + a  # it's [all,", " of it]\n    # and that\n"),
        // And here not.
        ("g", "def f(a):\n    # first\n    b = a", "\n    return b\n"),
        ("h", "def f(a): return", " '#'\n"),
        ("i", "def f(a):\n    b = a  # all", " of it\n    return b\n"),
        ("j", "def f(a):\n    return '#", " of it'\n"),
    ];
    let points: Vec<(&str, Value)> =
        codes.iter().map(|(id, head, rest)| (*id, Value::from(format!("{head}{rest}")))).collect();
    let case = |pick: fn(&(&str, &str, &str)) -> String| -> String {
        let cases = codes.iter().map(|code| {
            let text = pick(code).replace('\'', "''").replace('\n', "' || chr(10) || '");
            format!("WHEN '{}' THEN '{text}' ", code.0)
        });
        format!("CASE id {}END", cases.collect::<String>())
    };
    let (head, rest) = (case(|code| code.1.into()), case(|code| code.2.into()));
    let query = format!("SELECT *, {head} AS random_cut, {rest} AS cut_rest FROM input");
    let project = self::project(&points, &query, &["{ use: cut_inside_body }"]).ran();
    assert_eq!(project.cells("valid", "id"), ["g", "h", "i", "j"]);
    let turned = "{ use: cut_inside_body, with: { column: cut_rest, rest: random_cut } }";
    project.rerun("{ use: cut_inside_body }", turned);
    assert!(project.rows("valid").is_empty(), "no signature in front");
}

/// Methods by their docstring.
const DOCSTRINGS: [(&str, &str); 7] = [
    ("blank", "def f(a):\n    \"\"\"   \"\"\"\n    return a\n"),
    ("empty", "def f(a):\n    \"\"\"\"\"\"\n    return a\n"),
    ("five", "def f(a):\n    \"\"\"One two\n\n    three\tfour, five.\n    \"\"\"\n    return a\n"),
    ("four", "def f(a):\n    \"\"\"One two three-and-a-half four\"\"\"\n    return a\n"),
    ("lines", "def f(a):\n    \"\"\"\n\n\t\n    \"\"\"\n    return a\n"),
    ("none", "def f(a):\n    return a\n"),
    ("three", "def f(a):\n    '''One two three.'''\n    return a\n"),
];

#[test]
fn methods_are_kept_by_their_docstrings_bodies_and_returns() {
    let bodies = [
        ("beside", "def f(): return 1\n"),
        ("below", "def f(a):\n    return a\n"),
        ("comment", "def f(a):\n    # of this\n    # and that\n    return a\n"),
        ("documented", "def f(a):\n    \"\"\"Doc of\n    two lines.\n    \"\"\"\n\n    return a\n"),
        ("only_doc", "def f(a):\n    \"\"\"Doc of\n    two lines.\n    \"\"\"\n"),
        ("semicolon", "def f(a):\n    a += 1; return a\n"),
        ("signed", "def f(\n    a,\n    b,\n):\n    return a\n"),
        ("spread", "def f(a):\n    return [\n        a,\n    ]\n"),
        ("two", "def f(a):\n    a += 1\n    return a\n"),
        ("under_if", "def f(a):\n    if a:\n        return a\n"),
    ];
    let passes = [
        ("dots", "def f(a): ...\n"),
        ("documented", "def f(a):\n    \"\"\"Doc.\"\"\"\n    pass\n"),
        ("many", "def f(a):\n    pass\n    ...\n    pass  # yet\n"),
        ("only_doc", "def f(a):\n    \"\"\"Doc.\"\"\"\n"),
        ("pass", "def f(a):\n    pass\n"),
        ("passes_on", "def f(a):\n    pass\n    return a\n"),
        ("raises", "def f(a):\n    raise NotImplementedError\n"),
        ("text", "def f(a):\n    passed = ...\n"),
        ("under_if", "def f(a):\n    if a:\n        pass\n"),
    ];
    // Only the returns of the method itself count.
    let returns = [
        ("inner", "def f(a):\n    def g():\n        return 1\n    return g\n"),
        ("none", "def f(a):\n    print('return 1; return 2')\n"),
        (
            "three",
            "def f(a):\n    if a:\n        return 1\n    for x in a:\n        return\n    return 3\n",
        ),
        ("two", "def f(a):\n    if a: return 1\n    return 2\n"),
    ];
    let (documented, all_returns) = (&["five", "four", "three"], &["inner", "three", "two"]);
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);
    let cases: [Case<'_>; 10] = [
        (&DOCSTRINGS, "docstring_present", documented),
        (&DOCSTRINGS, "docstring_words", &["five", "four"]),
        (&DOCSTRINGS, "docstring_words, with: { more_than: 4 }", &["five"]),
        (&DOCSTRINGS, "docstring_words, with: { more_than: 0 }", documented),
        // The words of the whole method.
        (&DOCSTRINGS, "docstring_words, with: { more_than: 9, column: code }", &["five"]),
        (&bodies, "no_one_line_body", &["spread", "two", "under_if"]),
        (&passes, "no_pass_body", &["passes_on", "raises", "text", "under_if"]),
        (&returns, "several_returns", &["three", "two"]),
        (&returns, "several_returns, with: { more_than: 2 }", &["three"]),
        (&returns, "several_returns, with: { more_than: 0, column: code }", all_returns),
    ];
    for (points, rule, wanted) in cases {
        assert_eq!(kept(points, &format!("{{ use: {rule} }}")), wanted, "{rule}");
    }
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    for (rule, said) in [
        ("{ use: complexity_recomputd }", "did you mean `complexity_recomputed`?"),
        ("{ use: no_passbody }", "did you mean `no_pass_body`?"),
        ("{ use: docstring_words, with: { more_then: 3 } }", "more_than"),
        ("{ use: several_returns, with: { more_than: many } }", "more_than"),
        ("{ use: several_returns, with: { more_than: -1 } }", "more_than"),
        ("{ use: no_pass_body, with: { columns: code } }", "column"),
        ("{ use: no_pass_body, with: { column: coed } }", "did you mean `code`?"),
        ("{ use: cut_after_signature }", "random_cut"),
    ] {
        let project = project(&good(), ALL, &[rule]);
        let outcome = project.run_json(&[]).exits(2);
        let found = outcome.events("diagnostic");
        assert_eq!(found.len(), 1, "{rule}: {outcome}");
        says(&told(&found[0]), &[said]);
        // The line of the rule, not of the step.
        assert_eq!(found[0]["line"], 11, "{rule}: {}", found[0]);
        assert!(project.stored_nothing(), "{rule}");
    }
    // Features that were not measured.
    let rule = "{ use: complexity_recomputed }";
    let project = project(&good(), "SELECT id, code FROM input", &[rule]);
    project.run_json(&[]).exits(2).prints(&["complexity"]);
    // Numbers are neither code nor docstrings.
    for rule in [
        "{ use: n_words_recomputed, with: { column: n_words } }",
        "{ use: no_pass_body, with: { column: n_words } }",
        "{ use: docstring_words, with: { column: d_n_words } }",
        "{ use: cut_after_signature, with: { column: n_words } }",
    ] {
        let outcome = self::project(&good(), ALL, &[rule]).run_json(&[]).exits(2);
        let found = outcome.events("diagnostic");
        assert!(found.len() == 1 && found[0].to_string().contains("n_words"), "{rule}: {outcome}");
    }
}

#[test]
fn sql_counts_methods_and_names_what_they_call() {
    let steps = "  points: { op: read, with: { path: points.jsonl } }
  counted:
    op: sql
    from: points
    with:
      query: >
        SELECT id, python_recount(code) AS counted, python_calls(code) AS calls,
               python_recount(code)['n_returns'] AS n_returns FROM input
      key: [id]
  called:
    op: sql
    from: points
    with: { query: \"SELECT id, unnest(python_calls(code)) AS callee FROM input\", key: [id, callee] }
";
    let project = Project::steps(steps);
    let code = "def f(a):\n    \"\"\"Doc of it.\"\"\"\n    if a.b(c(1)):\n        return d()()\n    a.b(2)\n    return e\n";
    let codes = [("a", json!(code)), ("b", json!(null)), ("c", json!("def f(): pass"))];
    let rows = codes.map(|(id, code)| json!({"id": id, "code": code}));
    project.write("points.jsonl", lines(&rows));
    project.run_ok(&[]);
    let rows = project.rows("counted");
    let counted = &rows[0]["counted"];
    let columns = "n_ast_errors n_identifiers n_words vocab_size n_returns complexity \
                   one_line_body pass_body";
    assert_eq!(values(counted, columns), json!([0, 6, 9, 8, 2, 2, false, false]), "{counted}");
    for field in ["n_ast_nodes", "ast_levels", "n_whitespaces"] {
        assert!(counted[field].as_i64().unwrap() > 5, "{field} of {counted}");
    }
    assert_eq!(values(&rows[0], "calls n_returns"), json!([["b", "c", "d"], 2]));
    let none = &rows[1];
    assert!(none["n_returns"].is_null() && none["calls"].is_null(), "{none}");
    let empty = none["counted"].as_object();
    assert!(empty.is_none_or(|counted| counted.values().all(Value::is_null)), "{none}");
    assert_eq!((&rows[2]["calls"], &rows[2]["counted"]["pass_body"]), (&json!([]), &json!(true)));
    assert_eq!(project.cells("called", "id callee"), ["a | b", "a | c", "a | d"]);
}
