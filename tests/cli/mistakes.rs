//! The messages about mistakes, word for word: each is in `snapshots/`, as its readers get it. All
//! mistakes are reported at once, the exit code is 2, and nothing ran.
//!
//! `INSTA_UPDATE=always cargo test -p galeras-tests --test cli mistakes` writes the texts again.

use crate::harness::{Project, every};
use crate::invalid_yaml::workflow;

/// The whole message for a workflow with mistakes in just these lines.
#[track_caller]
fn told(name: &str, workflow: &str, lines: &[usize]) {
    let project = Project::new(workflow);
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stdout.is_empty(), "{shown}");
    assert!(!project.path("ran").exists() && project.stored_nothing(), "{shown}");
    let checked = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
    let mut found: Vec<u64> =
        checked.json_lines().iter().filter_map(|event| event["line"].as_u64()).collect();
    found.sort_unstable();
    let lines: Vec<u64> = lines.iter().map(|line| *line as u64).collect();
    assert_eq!(found, lines, "{shown}");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, shown.stderr);
    });
}

/// Mistakes in the entries behind the table: the name of the snapshot, the lines, the entries.
#[rustfmt::skip]
const MISTAKES: &[(&str, &[usize], &str)] = &[
    ("misspelt_key", &[12], "  b:\n    op: sample\n    form: table\n    with: { n: 1, seed: 1 }\n"),
    ("misspelt_operator", &[11], "  b:\n    op: sampel\n    from: table\n    with: { n: 1, seed: 1 }\n"),
    ("misspelt_argument", &[13], "  b:\n    op: sample\n    from: table\n    with: { n: 1, sed: 1 }\n"),
    ("misspelt_column", &[13], "  b:\n    op: cut\n    from: table\n    with: { column: cod, seed: 1 }\n"),
    ("misspelt_param", &[13], "  b:\n    op: sample\n    from: table\n    with: { n: 1, seed: '${{ params.sed }}' }\n"),
    ("misspelt_port", &[16], "  b:\n    op: dedup\n    from: table\n    with: { column: code }\n  c:\n    op: sample\n    from: b.reject\n    with: { n: 1, seed: 1 }\n"),
    ("misspelt_step", &[12], "  b:\n    op: sample\n    from: tabel\n    with: { n: 1, seed: 1 }\n"),
    ("misspelt_cell", &[17], "  b:\n    op: sample\n    from: table\n    matrix: { model: [small, large] }\n    with: { n: 1, seed: 1 }\n  c:\n    op: sample\n    from: b[model=smal]\n    with: { n: 1, seed: 1 }\n"),
    ("wrong_type", &[13], "  b:\n    op: sample\n    from: table\n    with: { n: many, seed: 1 }\n"),
    ("open_bracket", &[12], "  b:\n    op: sample\n    with: { n: [1, 2, seed: 1 }\n    from: table\n"),
    ("sql_function", &[16], "  b:\n    op: sql\n    from: table\n    with:\n      query: |\n        SELECT code,\n               cuont(*) AS n\n        FROM input\n        GROUP BY code\n"),
    ("python_function", &[15], "  b:\n    op: validate\n    from: table\n    with:\n      rules:\n        - { name: long, check: \"len(code) > 10\" }\n"),
    ("sql_keyword", &[17], "  b:\n    op: sql\n    from: table\n    with:\n      query: >\n        SELECT id, code\n        FROM input\n        WEHRE size > 10\n"),
    ("sql_substituted", &[14], "  b:\n    op: sql\n    from: table\n    with:\n      query: \"SELECT id, ${{ params.seed }} AS \\\"a b\\\" FROM input WHERE sizes > 1\"\n"),
    ("sql_text", &[14], "  b:\n    op: sql\n    from: table\n    with:\n      query: SELECT id FROM input WHERE code = \"x y\"\n"),
    ("sql_group", &[14], "  b:\n    op: sql\n    from: table\n    with:\n      query: SELECT code, size, count(*) AS n FROM input GROUP BY code\n"),
    ("sql_table", &[14], "  b:\n    op: sql\n    from: table\n    with:\n      query: SELECT id FROM \"table\"\n"),
    ("sql_end", &[17], "  b:\n    op: sql\n    from: table\n    with:\n      query: |\n        SELECT id\n        FROM input\n        WHERE size >\n"),
    ("bare_expression", &[13], "  b:\n    op: sample\n    from: table\n    with: { n: 5, seed: ${{ params.seed }} }\n"),
    ("indent", &[12], "  b:\n    op: sample\n   from: table\n    with: { n: 1, seed: 1 }\n"),
    ("indent_too_far", &[12], "  b:\n    op: sample\n      from: table\n    with: { n: 1, seed: 1 }\n"),
    ("step_beside_its_name", &[11], "  b:\n  op: sample\n  from: table\n  with: { n: 1, seed: 1 }\n"),
    ("missing_colon", &[11], "  b:\n    op sample\n    from: table\n    with: { n: 1, seed: 1 }\n"),
    ("colon_without_space", &[11], "  b:\n    op:sample\n    from: table\n"),
    ("tab", &[12], "  b:\n    op: sample\n\tfrom: table\n"),
    ("quotes_within_quotes", &[13], "  b:\n    op: sql\n    from: table\n    with: { query: 'SELECT id FROM input WHERE code = 'x y'' }\n"),
    ("other_language", &[12], "  b:\n    op: methods\n    with: { dir: ., include: [\"**/*.java\"] }\n"),
    ("out_of_range", &[13], "  b:\n    op: sample\n    from: table\n    with: { fraction: 50, seed: 1 }\n"),
    ("sql_two_columns", &[16, 17], "  b:\n    op: sql\n    from: table\n    with:\n      query: |\n        SELECT id,\n               cod AS text,\n               sise\n        FROM input\n"),
    ("arguments_beside_with", &[14, 15], "  b:\n    op: sample\n    from: table\n    with:\n    n: 1\n    seed: 1\n"),
    ("behind_a_mistake", &[13, 13, 19, 21, 27, 29], "  cut:
    op: cut
    from: table
    with: { column: cod, seed: one }
  valid:
    op: validate
    from: cut
    with:
      rules:
        - { name: long, check: char_length(cut_rset) > 10 }
  few:
    op: sampel
    from: valid
    with: { n: 1, seed: 1 }
  last:
    op: sql
    from: few
    with: { query: \"SELECT unknown_to_us, cuont(*) AS n FROM input GROUP BY unknown_to_us\" }
outputs:
  few: { from: few, path: few.xlsx }
"),
];

#[test]
fn mistakes_are_told_in_words() {
    every(MISTAKES.iter().map(|case| (case.0, case)), |(name, lines, rest)| {
        told(name, &workflow(rest), lines);
    });
}

#[test]
fn steps_in_a_circle_of_one_name_or_in_a_list_and_a_wrong_default() {
    let with = "    op: sample\n    with: { n: 1, seed: 1 }\n";
    let circle =
        format!("  b:\n    from: c\n{with}  c:\n    from: b\n{with}  d:\n    from: c\n{with}");
    told("cycle", &workflow(&circle), &[11]);
    let twice =
        format!("  b:\n    from: table\n{with}  b:\n    from: b\n{with}  c:\n    from: b\n{with}");
    told("duplicate_step", &workflow(&twice), &[14]);
    let list = "galeras: 1\nsteps:\n  - op: methods\n    with: { corpus: python-stdlib }\n";
    told("steps_as_a_list", list, &[3]);
    let used =
        "  b:\n    op: sample\n    from: table\n    with: { n: 1, seed: '${{ params.seed }}' }\n";
    told("wrong_default", &workflow(used).replace("default: 1", "default: one"), &[3]);
}

#[test]
fn a_misspelt_operator_makes_up_no_types_and_no_mistake_behind_it() {
    let lines: Vec<&str> = include_str!("../../workflows/quickstart.yaml").lines().collect();
    let mut tried = 0;
    for (at, line) in lines.iter().enumerate() {
        let Some(operator) = line.trim_start().strip_prefix("op: ") else { continue };
        let operator = operator.split(' ').next().unwrap();
        let mut misspelt: Vec<String> = lines.iter().map(ToString::to_string).collect();
        misspelt[at] = line.replacen(operator, &format!("{operator}s"), 1);
        let project = Project::new(&misspelt.join("\n"));
        let checked = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
        let found = checked.diagnostics();
        assert!(found[0].starts_with(&format!("unknown-operator w.yaml:{}", at + 1)), "{found:?}");
        // Of what comes after it not everything is known, and no type is made up.
        let typed = found.iter().any(|told| told.starts_with("wrong-type"));
        assert!(!typed && found.len() <= 3, "{operator}: {checked}");
        tried += 1;
    }
    assert!(tried > 15, "{tried}");
    let rest = "  few: { op: sampel, from: table, with: { n: 1, seed: 1 } }
  chosen: { op: union, from: { A: few, B: table }, with: { label: arm, columns: [code, size] } }
  whole: { op: union, from: { A: table, B: few }, with: { label: arm } }
  last:
    op: sql
    from: { chosen: chosen, whole: whole }
    with:
      query: >
        SELECT chosen.arm, chosen.code, chosen.size + 1 AS more
        FROM chosen JOIN whole ON whole.id = chosen.id
      key: [arm]
";
    let project = Project::new(&workflow(rest));
    let checked = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
    let found = checked.diagnostics();
    assert_eq!(found.len(), 1, "{checked}");
    assert!(found[0].starts_with("unknown-operator w.yaml:10:"), "{found:?}");
}
