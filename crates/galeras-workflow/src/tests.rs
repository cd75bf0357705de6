//! Tests of the whole layer: files in, specifications and diagnostics out.

use std::time::{Duration, Instant};

use super::*;
use crate::code::Code;

const EXAMPLE: &str = r#"# yaml-language-server: $schema=../schemas/workflow.schema.json
galeras: 1                          # format version, required
name: random-cut
description: Complete a Python method from a random cut.

params:                             # --set name=value overrides; typed and checked
  seed:      { type: int,   default: 42, help: every random choice derives from it }
  threshold: { type: float, default: 0.8, min: 0, max: 1 }

steps:
  methods:
    op: methods
    with: { corpus: python-stdlib }
  features:
    op: ast
    from: methods
  valid:
    op: validate
    from: features
    with:
      rules:
        - { name: parses,       check: "n_ast_errors = 0" }
        - { name: long_enough,  check: "token_counts > 10 OR char_length(code) > 100" }
    assert:                         # data tests; they gate downstream, never rerun the step
      - unique: [id]
      - { expr: "nloc > 1", severity: warn }
      - { rows: { min: 100 } }
  unique:
    op: dedup
    from: valid
    with: { column: code, threshold: "${{ params.threshold }}" }
  testbed:
    op: cut
    from: unique
    with: { seed: "${{ params.seed }}" }
    schema: { id: utf8!, random_cut: utf8! }   # contract, checked at plan time

outputs:
  testbed:  { from: testbed,        path: testbeds/random_cut.parquet }
  rejected: { from: valid.rejects,  path: testbeds/rejected.jsonl }
"#;

/// `code line:column text` of every diagnostic.
fn found(text: &str) -> Vec<String> {
    let (_, all) = parse("f.yaml", text);
    all.iter()
        .map(|d| {
            let at = d.span.source.position(d.span.start);
            let shown = d.span.source.slice(Span::new(d.span.start, d.span.end()));
            format!("{} {}:{} {}", d.code, at.line, at.column, shown)
        })
        .collect()
}

#[test]
fn the_example_of_the_design_reads_without_a_diagnostic() {
    let (workflow, all) = parse("random_cut.yaml", EXAMPLE);
    assert!(all.is_empty(), "{}", render(all.as_slice(), false, 100));
    let w = workflow.unwrap();
    let text = |span| w.source.slice(span);
    assert_eq!(w.name.as_ref().unwrap().value, "random-cut");
    assert_eq!(w.params.len(), 2);
    assert_eq!(w.param("threshold").unwrap().max.as_ref().unwrap().as_i64(), Some(1));
    let steps: Vec<&str> = w.steps.iter().map(|s| s.name.value.as_str()).collect();
    assert_eq!(steps, ["methods", "features", "valid", "unique", "testbed"]);

    let valid = w.step("valid").unwrap();
    assert!(text(valid.span).starts_with("op: validate"));
    assert!(text(valid.span).ends_with("{ rows: { min: 100 } }"));
    let with = valid.with.as_ref().unwrap();
    assert!(text(with.span).starts_with("rules:"));
    let check = with.at_pointer("rules[1].check").unwrap();
    assert_eq!(text(check.span), "\"token_counts > 10 OR char_length(code) > 100\"");
    assert!(text(with.at_pointer("rules[0]").unwrap().span).ends_with("\"n_ast_errors = 0\" }"));
    assert_eq!(valid.asserts.len(), 3);
    assert_eq!(valid.asserts[1].severity, AssertSeverity::Warn);
    assert_eq!(text(valid.asserts[1].span), "{ expr: \"nloc > 1\", severity: warn }");

    let Some(Contract::Fields(fields)) = &w.step("testbed").unwrap().schema else {
        panic!("no contract");
    };
    assert_eq!(text(fields[1].span), "utf8!");
    assert!(fields[1].ty.non_null);
    let from = w.outputs[1].from.fixed().unwrap();
    assert_eq!(from.to_string(), "valid.rejects");
    assert_eq!(text(from.port_span.unwrap()), "rejects");

    let mut scope = Scope::default();
    scope.params.insert("threshold".into(), 0.8.into());
    let mut all = Diagnostics::new();
    let args = w.step("unique").unwrap().with.as_ref().unwrap();
    let args = substitute_node(args, &w.source, &scope, &mut all);
    assert_eq!(args.to_json(), serde_json::json!({"column": "code", "threshold": 0.8}));
}

#[test]
fn ten_mistakes_are_ten_diagnostics() {
    let text = "\
galeras: 1
paramz: {}
params:
  seed: { type: int, default: many }
steps:
  a:
    op: read
    form: b
  b:
    op: cut
    uses: ./x.yaml
    from: [a, c]
    with: { seed: '${{ parms.seed }}' }
    schema: { id: string }
    assert:
      - unique: id
  a:
    op: read
outputs:
  o: { from: a, path: /etc/x.parquet }
";
    let all = found(text);
    assert_eq!(all.len(), 10);
    insta::assert_snapshot!(all.join("\n"), @r"
        unknown-key 2:1 paramz
        wrong-type 4:31 many
        unknown-key 8:5 form
        conflicting-keys 11:5 uses
        wrong-type 12:11 [a, c]
        bad-expression 13:20 ${{ parms.seed }}
        unknown-type 14:19 string
        wrong-type 16:17 id
        duplicate-key 17:3 a
        bad-path 20:23 /etc/x.parquet
        ");
}

#[test]
fn mistakes_do_not_hide_the_rest_of_the_workflow() {
    let (w, all) = parse("f", "steps:\n  a: { op: read }\n  b: 3\n  1: { op: x }\n");
    let w = w.unwrap();
    assert_eq!(w.steps.len(), 2);
    assert_eq!(w.step("b").unwrap().kind, StepKind::Invalid);
    assert_eq!(all.len(), 3);
}

#[test]
fn documents_that_are_no_workflow_say_so() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "~", "\u{feff}"] {
        assert_eq!(found(text), ["empty-file 1:1 "], "{text:?}");
    }
    assert_eq!(found("- a\n- b\n"), ["wrong-type 1:1 - a"]);
    assert_eq!(found("galeras: 1\nsteps: {}\n"), ["missing-key 2:1 steps"]);
    assert_eq!(found("galeras: 1\nsteps:\n"), ["wrong-type 2:6 "]);
}

#[test]
fn syntax_errors_have_their_place() {
    insta::assert_snapshot!(
        [
            "a: [1, 2\nb: 3\n",
            "é: b: c\n",
            "\u{feff}é: b: c\n",
            "a: 1\r\né: \"x\\q\"\r\n",
            "steps:\n\ta: 1\n",
            "steps:\n  a: 1\n\tb: 2\n",
            "a: 1\n---\nb: 2\n",
            "a: é !foo x\nb: !foo x\n",
            "a: *nope\n",
            "a: &x [*x]\n",
            "a: \"open\n",
            "a: %\u{0}\n",
        ]
        .map(|text| {
            let (_, all) = parse("f", text);
            let lines: Vec<String> = all.iter().map(plain).collect();
            let help = all.iter().filter_map(|d| d.help.clone()).collect::<Vec<_>>();
            format!("{}{}", lines.concat(), help.join("\n"))
        })
        .join("\n"),
        @r#"
        f:1:4: error[yaml-syntax]: this `[` is never closed
        write `]` behind the last entry
        f:1:5: error[yaml-syntax]: the value of `é` has a second colon in it
        put the value in quotes: é: "b: c"
        f:1:5: error[yaml-syntax]: the value of `é` has a second colon in it
        put the value in quotes: é: "b: c"
        f:2:4: error[yaml-syntax]: while parsing a quoted scalar, found unknown escape character

        f:2:1: error[yaml-syntax]: a tab cannot indent a line
        YAML is indented with spaces, never with tabs: most editors can be told to write spaces for the Tab key
        f:3:1: error[yaml-syntax]: a tab cannot indent a line
        YAML is indented with spaces, never with tabs: most editors can be told to write spaces for the Tab key
        f:3:1: error[yaml-syntax]: the file has more than one YAML document
        one file is one workflow: remove the `---` and the text after it
        f:2:9: error[yaml-syntax]: unknown YAML tag `!foo`
        workflows use no tags; write a value that begins with `!` in quotes
        f:1:4: error[yaml-syntax]: alias references unknown anchor

        f:1:8: error[yaml-syntax]: an alias refers to the value that contains it

        f:2:1: error[yaml-syntax]: invalid indentation in multiline quoted scalar

        f:1:4: error[yaml-syntax]: a value cannot begin with `%`
        put the value in quotes: this sign has a special meaning in YAML
        "#
    );
}

#[test]
fn bombs_and_depth_end_in_a_limit_quickly() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..40 {
        let refs = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
    }
    let mut deep_aliases = format!("a0: &a0 {}{}\n", "[".repeat(50), "]".repeat(50));
    for i in 1..100 {
        let (open, close) = ("[".repeat(50), "]".repeat(50));
        deep_aliases.push_str(&format!("a{i}: &a{i} {open}*a{}{close}\n", i - 1));
    }
    let long = format!("x: &x \"{}\"\ny: [{}]\n", "v".repeat(100_000), "*x, ".repeat(50_000));
    let block: String = (0..5_000).map(|i| format!("{}k:\n", " ".repeat(i))).collect();
    let cases = [
        bomb,
        deep_aliases,
        long,
        "[".repeat(1_000_000),
        "{a: ".repeat(100_000),
        format!("a: {}", "- ".repeat(1_000_000)),
        "- ".repeat(1_000_000),
        "? ".repeat(100_000),
        block[..3_000_000].to_owned(),
        "a: 1\n".repeat(800_000),
    ];
    for text in cases {
        let start = Instant::now();
        let (_, all) = parse("f", &text);
        let took = start.elapsed();
        let head: String = text.chars().take(30).collect();
        assert!(all.has_errors(), "{head}");
        assert!(took < Duration::from_secs(10), "{took:?} {head}");
        assert!(render(all.as_slice(), false, 80).len() < 2_000_000);
    }
}

#[test]
fn a_file_of_ten_megabytes_is_refused_at_once_and_a_large_one_is_read() {
    let ten = "a: 1\n".repeat(2_000_000);
    let start = Instant::now();
    assert_eq!(found(&ten), ["yaml-limit 1:1 "]);
    assert!(start.elapsed() < Duration::from_secs(1));

    let mut large = String::from("galeras: 1\nsteps:\n");
    for i in 0..12_000 {
        large.push_str(&format!(
            "  s{i}:\n    op: read\n    with: {{ path: 'data/{i}.csv', columns: {{ a: b }} }}\n"
        ));
    }
    let filler = format!("description: {}\n", "x".repeat(3_000_000));
    large.push_str(&filler);
    let start = Instant::now();
    let (w, all) = parse("f", &large);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(all.is_empty(), "{}", render(all.as_slice(), false, 80));
    assert_eq!(w.unwrap().steps.len(), 12_000);
}

#[test]
fn places_survive_unicode_crlf_and_a_byte_order_mark() {
    let text =
        "\u{feff}galeras: 1 # é\r\nsteps:\r\n  a: { op: 'é→', wiht: 1 }\r\n  b:\r\n    op: [x]\r\n";
    assert_eq!(found(text), ["unknown-key 3:18 wiht", "wrong-type 5:9 [x]"]);
    let (w, _) = parse("f", text);
    let w = w.unwrap();
    let StepKind::Op(op) = &w.step("a").unwrap().kind else {
        panic!("no op");
    };
    assert_eq!((op.value.as_str(), w.source.slice(op.span)), ("é→", "'é→'"));
}

#[test]
fn spans_cover_scalars_and_collections() {
    let text = "p: plain two  # c\nq: \"a\\tb\"\nb: |\n  one\n  two\n\nf: >-\n  x\n  y\nm: multi\n  line\ns:\n  - [1, { k: v }, ]  # c\n  - []\nan: &an { z: [1] }\nal: *an\nn:\ne: ''\n";
    let source = Source::new("f", text);
    let mut all = Diagnostics::new();
    let node = load(&source, &mut all).unwrap();
    assert!(all.is_empty());
    let of = |path: &str| source.slice(node.at_pointer(path).unwrap().span).to_owned();
    assert_eq!(of("p"), "plain two");
    assert_eq!(of("q"), "\"a\\tb\"");
    assert_eq!(of("b"), "one\n  two");
    assert_eq!(of("f"), "x\n  y");
    assert_eq!(of("m"), "multi\n  line");
    assert_eq!(of("s"), "- [1, { k: v }, ]  # c\n  - []");
    assert_eq!(of("s[0]"), "[1, { k: v }, ]");
    assert_eq!(of("s[0][1]"), "{ k: v }");
    assert_eq!(of("s[1]"), "[]");
    assert_eq!(of("an"), "{ z: [1] }");
    assert_eq!(of("al"), "*an");
    assert_eq!(of("al.z[0]"), "*an");
    assert_eq!(of("n"), "");
    assert_eq!(of("e"), "''");
    assert!(node.get("e").unwrap().quoted && !node.get("p").unwrap().quoted);
    assert_eq!(source.slice(node.span), text.trim_end());
}

#[test]
fn scalars_follow_yaml_1_2() {
    let source =
        Source::new("f", "[no, on, yes, true, 017, 0x10, 1.5, 1e3, ~, '1', .5, 12e, 2020-01-01]");
    let mut all = Diagnostics::new();
    let node = load(&source, &mut all).unwrap();
    let read = r#"["no","on","yes",true,17,16,1.5,1000.0,null,"1",0.5,"12e","2020-01-01"]"#;
    assert_eq!(node.to_json().to_string(), read);
    assert!(all.is_empty());
    let text = "galeras: 1\nsteps: {a: {op: x, with: {a: .inf, b: 99999999999999999999, c: .nan, d: 18446744073709551615}}}\n";
    insta::assert_snapshot!(found(text).join("\n"), @r"
        wrong-value 2:30 .inf
        wrong-value 2:39 99999999999999999999
        wrong-value 2:64 .nan
        wrong-value 2:73 18446744073709551615
        ");
}

#[test]
fn a_duplicate_step_shows_both_places() {
    let text = "galeras: 1\nsteps:\n  a: {op: x}\n  a: {op: y}\n";
    let (w, all) = parse("f", text);
    assert_eq!(w.unwrap().steps.len(), 2);
    let d = &all.as_slice()[0];
    assert_eq!(d.code, Code::DuplicateKey);
    assert_eq!(d.span.source.position(d.span.start), Position { line: 4, column: 3 });
    assert_eq!(d.related[0].0.start, text.find("a: {op: x}").unwrap());
    assert_eq!(all.len(), 1);
}

#[test]
fn odd_keys_are_refused() {
    let text = "galeras: 1\nsteps:\n  a: {op: x}\n  ? [c]\n  : {op: x}\n  7: {op: x}\n";
    assert_eq!(found(text), ["wrong-type 4:5 [c]", "wrong-type 6:3 7"]);
}

#[test]
fn merge_keys_keep_places_and_order() {
    let text = "\
galeras: 1
steps:
  a: &a
    op: x
    with: &w { m: 1, n: {deep: [1]} }
  b: {<<: *a, from: a}
  c: {op: y, with: {o: 3, <<: [{n: 9, p: 4}, *w], m: 5}}
";
    let (workflow, all) = parse("w.yaml", text);
    assert!(all.is_empty(), "{}", render(all.as_slice(), false, 100));
    let workflow = workflow.unwrap();
    let with = |step: &str| workflow.step(step).unwrap().with.clone().unwrap();
    assert_eq!(with("b").to_json().to_string(), r#"{"m":1,"n":{"deep":[1]}}"#);
    assert_eq!(with("c").to_json().to_string(), r#"{"o":3,"n":9,"p":4,"m":5}"#);
    let key = |step, key| workflow.source.slice(with(step).entry(key).unwrap().0.span).to_owned();
    assert_eq!((key("b", "n"), key("c", "p")), ("n".into(), "p".into()));
}

#[test]
fn parameters_are_checked_against_themselves() {
    insta::assert_snapshot!(
        found("\
galeras: 1
steps: { a: { op: x } }
params:
  a: { type: int, default: 1.5 }
  b: { type: int, min: 3, max: 1 }
  c: { type: string, min: 3 }
  d: { type: float, default: 2, max: 1 }
  e: { type: string, choices: [x, y], default: z }
  f: { type: integer }
  g: 42
  h: { default: 1 }
  i j: { type: path }
  k: { type: bool, default: no }
  l: { type: string, default: '${{ params.a }}' }
  ok: { type: float, default: 1, min: 0.5, choices: [1, 2.5] }
").join("\n"),
        @r"
        wrong-type 4:28 1.5
        wrong-value 5:24 3
        conflicting-keys 6:22 min
        wrong-value 7:30 2
        wrong-value 8:48 z
        unknown-type 9:14 integer
        wrong-type 10:6 42
        missing-key 11:3 h
        bad-name 12:3 i j
        wrong-type 13:29 no
        bad-expression 14:31 '${{ params.a }}'
        "
    );
}

#[test]
fn assertions_and_outputs_are_checked() {
    insta::assert_snapshot!(
        found("\
galeras: 1
steps:
  a:
    op: x
    assert:
      - { unique: [id], not_null: [id] }
      - { uniqe: [id] }
      - { severity: warn }
      - { expr: '', port: p }
      - { rows: { min: 5, max: 1 } }
      - { rows: { min: -1 } }
      - { rows: { min: '${{ params.n }}' } }
      - { accepted_values: { column: c, valuez: [1] } }
      - { expr: a > 1, severity: warning }
      - unique
    matrix: { m: [1, 1], n: [], o: '${{ params.o }}', p: [[1]] }
    schema: { a: list<utf, b: utf8! }
outputs:
  a: { from: a, path: a.xlsx }
  b: { from: a, path: ../a.csv }
  c: { from: 'a[m=1].p', path: 'x/${{ params.f }}' }
  d: { from: 'a[m=1', path: 'x/${{ params.f }}.csv' }
  e: { from: a, path: e.csv, rows: { min: 5, max: 1 } }
").join("\n"),
        @r"
        conflicting-keys 6:25 not_null
        unknown-key 7:11 uniqe
        missing-key 8:9 { severity: warn }
        wrong-value 9:17 ''
        wrong-value 10:24 5
        wrong-type 11:24 -1
        missing-key 13:30 column
        unknown-key 13:41 valuez
        wrong-value 14:34 warning
        wrong-type 15:9 unique
        wrong-value 16:22 1
        wrong-type 16:29 []
        wrong-type 16:59 [1]
        unknown-type 17:23 utf
        bad-path 19:23 a.xlsx
        bad-path 20:23 ../a.csv
        bad-reference 22:16 [m=1
        wrong-value 23:43 5
        "
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let (_, all) = parse("f", &text);
        let _ = render(all.as_slice(), false, 80);
    }

    #[test]
    fn no_yaml_like_text_makes_it_panic(parts in proptest::collection::vec(
        proptest::sample::select(vec![
            "galeras", "steps", "a", ": ", ":", "\n", "\n  ", "\n    ", "- ", "[", "]", "{", "}",
            ",", "'", "\"", "|\n", ">", "&x ", "*x", "!t ", "#c", "\t", "\r\n", "\u{feff}", "é",
            "${{", "}}", "params.", "1", ".inf", "~", "<<", "? ", "op", "from", "---\n", "%", "\\",
        ]), 0..60)) {
        let text = format!("galeras: 1\nsteps:\n{}", parts.concat());
        for text in [text, parts.concat()] {
            let (_, all) = parse("f", &text);
            let _ = render(all.as_slice(), false, 80);
            for d in &all {
                let _ = to_json(d);
                let text = d.span.source.text();
                assert!(text.is_char_boundary(d.span.start) && text.is_char_boundary(d.span.end()));
            }
        }
    }
}
