//! `prompt`: the conversations that treatments make of rows, their ids and sizes, and what a
//! change costs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Project, lines, says};

fn project(rows: &[Value], with: &str) -> Project {
    Project::new(&workflow(with)).with("data.jsonl", lines(rows))
}

fn workflow(with: &str) -> String {
    let with: String = with.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "galeras: 1
steps:
  data: {{ op: read, with: {{ path: data.jsonl }} }}
  prompts:
    op: prompt
    from: data
    with:
{with}"
    )
}

fn write(project: &Project, rows: &[Value]) {
    project.write("data.jsonl", lines(rows));
}

#[track_caller]
fn prompts(row: Value, with: &str) -> Vec<Value> {
    project(&[row], with).ran().rows("prompts")
}

fn text(row: &Value, column: &str) -> String {
    row[column].as_str().unwrap_or_else(|| panic!("{column} of {row}")).to_owned()
}

fn of<'a>(rows: &'a [Value], snippet: &str, treatment: &str) -> &'a Value {
    let of = |row: &&Value| row["snippet_id"] == snippet && row["treatment"] == treatment;
    rows.iter().find(of).unwrap_or_else(|| panic!("{snippet} {treatment}: {rows:?}"))
}

fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| text(row, "id")).collect()
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

fn methods() -> Vec<Value> {
    vec![
        json!({"id": "a", "code": "def f(a):\n    return a\n", "size": 2, "note": "x"}),
        json!({"id": "b", "code": "def g(b):\n    return -b\n", "size": 3, "note": "y"}),
        json!({"id": "c", "code": "def h():\n    pass\n", "size": 1, "note": "z"}),
    ]
}

const TWO: &str = "system: You know Python.
treatments:
  control: |
    Complete:
    {{ code }}
  two_turns:
    - 'It has {{ size }} lines: {{ code }}'
    - Only the code.";

#[test]
fn a_template_goes_through_the_examples_of_a_row() {
    let template = "{% for shot in shots %}{{ shot.note }}{{ shot.size }} {% endfor %}{{ note }}";
    let project = project(&methods(), &format!("treatments:\n  t: '{template}'"));
    let shown = "  shown:\n    op: few_shot\n    from: data\n    with: { k: 2, columns: [note, size], \
                 choose: ordered, order_by: size, seed: 1 }\n  prompts:\n";
    project.change("from: data", "from: shown");
    project.change("  prompts:\n", shown);
    project.run_ok(&[]);
    let rows = project.rows("prompts");
    // By size `c`, `a`, `b`, without the row itself.
    for (id, wanted) in [("a", "z1 y3 x"), ("b", "z1 x2 y"), ("c", "x2 y3 z")] {
        assert_eq!(text(of(&rows, id, "t"), "prompt"), wanted);
    }
    project.change("choose: ordered, ", "choose: nearest, ");
    project.run(&["check", "w.yaml"]).exits(2).reports(&["`choose: ordered`"]);
    // Of two rows, each has one other.
    project.change(", order_by: size", "");
    project.write("data.jsonl", lines(&methods()[..2]));
    let outcome = project.run_ok(&[]);
    says(&outcome.warnings()[0], &["2 of 2 rows have fewer than 2 examples"]);
    // A row without a value that is shown is not an example.
    let mut rows = methods();
    rows[2]["note"] = Value::Null;
    write(&project, &rows);
    let told = project.run_ok(&[]).warnings();
    assert_eq!(told[0], "left out: 1 of 3 possible examples, with null in `note`");
    says(&told[1], &["2 of 3 rows have fewer than 2 examples"]);
    assert_eq!(text(of(&project.rows("prompts"), "a", "t"), "prompt"), "y3 x");
}

#[test]
fn every_row_gives_one_row_per_treatment() {
    let project = project(&methods(), TWO);
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.step("prompts")["rows"], 6, "{outcome}");
    let rows = project.rows("prompts");
    for method in methods() {
        let snippet = text(&method, "id");
        let row = of(&rows, &snippet, "control");
        // The columns of the data point stay; its id is the unit of a paired analysis.
        let found = (&row["code"], &row["size"], &row["note"]);
        assert_eq!(found, (&method["code"], &method["size"], &method["note"]));
        assert_ne!(row["id"], method["id"]);
        // The block ends with a line break, which is left out; that of the code is not.
        let prompt = format!("Complete:\n{}", text(&method, "code"));
        assert_eq!(row["prompt"], prompt);
        let system = json!({"role": "system", "content": "You know Python."});
        assert_eq!(row["messages"], json!([system, user(&prompt)]));
        let row = of(&rows, &snippet, "two_turns");
        let first = format!("It has {} lines: {}", method["size"], text(&method, "code"));
        assert_eq!(row["messages"], json!([system, user(&first), user("Only the code.")]));
        assert_eq!(row["prompt"], format!("{first}\nOnly the code."));
    }
    assert_eq!(ids(&rows).len(), 6);
    assert!(project.rows("prompts.rejects").is_empty());
}

#[test]
fn examples_and_a_system_message_of_its_own() {
    let rows = prompts(
        methods().remove(0),
        "system: For all.
treatments:
  few:
    - { role: user, content: 'Negate {{ size }}.' }
    - { role: assistant, content: '-{{ size }}' }
    - Negate 7.
  own:
    - { role: system, content: 'Only here: {{ note }}.' }
    - Go.
  plain: Go.",
    );
    let system = |content: &str| json!({"role": "system", "content": content});
    let answer = json!({"role": "assistant", "content": "-2"});
    let few = of(&rows, "a", "few");
    let wanted = json!([system("For all."), user("Negate 2."), answer, user("Negate 7.")]);
    assert_eq!(few["messages"], wanted);
    // The example is part of what the model is shown, so of the prompt; the system is not.
    assert_eq!(few["prompt"], "Negate 2.\n-2\nNegate 7.");
    assert_eq!(few["template"], "Negate {{ size }}.\n-{{ size }}\nNegate 7.");
    let own = of(&rows, "a", "own");
    assert_eq!(own["messages"], json!([system("Only here: x."), user("Go.")]));
    let plain = of(&rows, "a", "plain");
    assert_eq!(plain["messages"], json!([system("For all."), user("Go.")]));
    for (column, count) in [("prompt_size", 1), ("p_vocab_size", 1), ("p_n_whitespaces", 0)] {
        assert_eq!(plain[column], count, "{column}");
        assert_eq!(own[column], count, "{column}");
    }
}

#[test]
fn sizes_are_counted_over_the_prompt() {
    let row = json!({"id": "a", "x": "to be  or\tnot\nto  be\u{a0}é é"});
    let rows = prompts(row.clone(), "treatments: { t: 'x {{ x }} x' }\nsystem: '{{ x }} {{ x }}'");
    // x to be or not to be é é x; the space that does not break a line parts words as well.
    // White space is U+0020 only: 1 + 1 + 2 + 2 + 1 + 1.
    let sizes = ["prompt_size", "p_vocab_size", "p_n_whitespaces"];
    assert_eq!(sizes.map(|column| rows[0][column].clone()), [10, 6, 8]);
    // A list of turns is joined by line breaks, which are words' ends and no spaces.
    let with = "treatments: { t: ['a b{{ x | first | trim | replace(\"t\", \"\") }}', c, a] }";
    let rows = prompts(row, with);
    assert_eq!(sizes.map(|column| rows[0][column].clone()), [4, 3, 1]);
}

/// The text that each template, written as one line of YAML, makes of a row.
#[track_caller]
fn all_written(row: &Value, templates: &[(&str, &str)]) {
    let treatments: Vec<String> = (templates.iter().enumerate())
        .map(|(at, (template, _))| format!("  t{at:02}: {}\n", json!(template)))
        .collect();
    let rows = prompts(row.clone(), &format!("treatments:\n{}", treatments.concat()));
    for (at, (template, wanted)) in templates.iter().enumerate() {
        let row = of(&rows, row["id"].as_str().unwrap(), &format!("t{at:02}"));
        assert_eq!(row["prompt"], *wanted, "{template}");
    }
}

#[test]
fn templates_have_loops_conditions_filters_and_lists() {
    let row = json!({
        "id": "a", "n": 3, "share": 0.25, "yes": true, "none": "", "code": "if x:\n  y",
        "names": ["b", "a", "b"], "of": {"path": "x.py", "lines": [1, 2]}, "no": 0, "x": " x ",
    });
    all_written(
        &row,
        &[
            ("{% for n in names %}{{ loop.index }}{{ n }} {% endfor %}", "1b 2a 3b "),
            ("{{ names | unique | sort | join(', ') }}", "a, b"),
            ("{{ names | length }} {{ names[0] }} {{ names[-1] }}", "3 b b"),
            ("{% if yes and n > 2 %}many{% else %}few{% endif %}", "many"),
            ("{% if none %}some{% elif share == 0.25 %}quarter{% endif %}", "quarter"),
            ("{{ n + 1 }} {{ share * 2 }} {{ n // 2 }} {{ yes }}", "4 0.5 1 True"),
            ("{{ code | upper }} {{ code[:2] }} {{ code | length }}", "IF X:\n  Y if 9"),
            ("{% set m = n * n %}{{ m }}{# {{ nothing }} of this #}", "9"),
            ("{% for line in code | lines %}> {{ line }}\n{% endfor %}", "> if x:\n>   y\n"),
            ("{%- for i in range(n) -%} {{ i }} {%- endfor %}", "012"),
            ("{{ of.path }}:{{ of.lines | last }}", "x.py:2"),
            ("{{ 'a' if n == 3 else 'b' }}{{ 'x' ~ n }}", "ax3"),
            ("{{ code | indent(2) }}", "if x:\n    y"),
            ("{{ names | map('upper') | join }}", "BAB"),
            // Parts of columns, also next to another thing of that name.
            ("{{ id }} {{ code[:2] }}", "a if"),
            ("{{ id }} {{ names[1:] | join }}", "a ab"),
            ("{{ code[n:5] }}", "x:"),
            ("{% for code in names %}{{ code }}{% endfor %} {{ code[:2] }}", "bab if"),
            ("{{ names }}{{ names[:no] }}", "['b', 'a', 'b'][]"),
            // A column may be set again.
            ("{{ id }}{% set x = x | trim %}{{ x }}", "ax"),
            ("{{ id }}{% with x = x | trim %}{{ x }}{% endwith %}", "ax"),
            ("{% filter indent(n) %}{{ id }}\nb{% endfilter %}", "a\n   b"),
            // Braces that are no template, and comments.
            ("{% raw %}{{ a | b }} {% c %}{% endraw %} {{ id }}", "{{ a | b }} {% c %} a"),
            ("{# {{ code | nope }} #}{{ id }}", "a"),
            ("{{ '{{ a | b }}' }} {{ id }}", "{{ a | b }} a"),
            ("{ code } {x} }} %} | upper {{ id }}", "{ code } {x} }} %} | upper a"),
            // One line break at the end of a template is left out, and one only.
            ("{{ id }}\n", "a"),
            ("{{ id }}\n\n", "a\n"),
            ("{{ id }}\r\n", "a"),
            ("  {{ id }} \n b  ", "  a \n b  "),
        ],
    );
    let code = "def f():\r\n    return 1\r\n\r\n";
    let windows = json!({"id": "a", "code": code});
    let between = format!("a\r\n{code}b");
    let both = [("{{ code }}", code), ("a\r\n{{ code }}b", &*between), ("{{ code }}\n", code)];
    all_written(&windows, &both);
    all_written(
        &json!({"id": "a", "range": "R", "dict": "D", "debug": "B", "loop": "L", "namespace": "N"}),
        &[
            ("{{ id }} {{ range }}", "a R"),
            ("{{ id }} {{ dict }}", "a D"),
            ("{{ id }} {{ debug }}", "a B"),
            ("{{ id }} {{ namespace }}", "a N"),
            ("{{ loop }}", "L"),
        ],
    );
}

#[test]
fn braces_in_columns_are_not_interpreted() {
    let code = "x = f'{{n}}' + '{% if %}' + \"{{ code }}\" # {{ nothing | nope }} ${{ params.x }}";
    let row = json!({"id": "a", "code": code});
    all_written(&row, &[("{{ code }}", code), ("{{ code }}{{ code }}", &code.repeat(2))]);
    // Nor does the second message of a conversation see the first as a template.
    let rows = prompts(row, "treatments:\n  t:\n    - '{{ code }}'\n    - 'Again: {{ code }}'");
    assert_eq!(rows[0]["messages"], json!([user(code), user(&format!("Again: {code}"))]));
    // Texts and names are written as they are.
    let code = "s = 'añ → 世界 👩‍💻 e\u{301}' < \"&amp;\" \\n \\u00e9 \0\u{7}\t";
    let row = json!({"id": "ñ", "code": code});
    let rows = prompts(row, "treatments: { 'Ω: größer': \"Schreibe „{{ code }}“ weiter …\" }");
    assert_eq!(rows[0]["prompt"], format!("Schreibe „{code}“ weiter …"));
    assert_eq!((&rows[0]["treatment"], &rows[0]["snippet_id"]), (&"Ω: größer".into(), &"ñ".into()));
    // Odd names.
    let names = ["a.b", "a[0]", "a", "x y", "ñ", "0", "t.html", "id", "'\"", "\\", "${", "t\nt"];
    let treatments: Vec<String> =
        names.iter().map(|name| format!("  {}: 'of {{{{ id }}}}'\n", json!(name))).collect();
    let rows =
        prompts(json!({"id": "<1>", "n": 1}), &format!("treatments:\n{}", treatments.concat()));
    let found: BTreeSet<String> = rows.iter().map(|row| text(row, "treatment")).collect();
    assert_eq!(found, names.iter().map(ToString::to_string).collect());
    assert_eq!(ids(&rows).len(), names.len());
    // A name that looks like a page of the web escapes nothing.
    assert!(rows.iter().all(|row| row["prompt"] == "of <1>"), "{rows:?}");
}

#[test]
fn a_treatment_may_say_the_same_of_every_row_with_a_warning() {
    for (with, treatments, help) in [
        ("treatments: { a: Write a program., b: ['{{ 1 + 1 }}', Go.] }", 2, "{{ code }}"),
        ("treatments: { a: 'Complete: {size}', b: ['{{ code }}', Go.] }", 1, "{{ size }}"),
        ("system: '{{ code }}'\ntreatments: { a: Go. }", 0, ""),
    ] {
        let told = project(&methods(), with).run_ok(&[]).events("diagnostic");
        assert_eq!(told.len(), treatments, "{with}: {told:?}");
        for warning in told {
            let found = ["code", "severity"].map(|name| text(&warning, name));
            assert_eq!(found, ["constant-prompt", "warning"], "{warning}");
            says(&text(&warning, "help"), &[help]);
        }
    }
    let project =
        project(&methods(), "treatments: { a: Write a program., b: ['{{ 1 + 1 }}', Go.] }").ran();
    let rows = project.rows("prompts");
    assert_eq!((rows.len(), ids(&rows).len()), (6, 6));
    let said = |row: &Value| row["prompt"] == "Write a program." || row["prompt"] == "2\nGo.";
    assert!(rows.iter().all(said));
}

#[test]
fn columns_of_a_prompt_before_are_renamed_by_the_query_of_the_message() {
    let project = project(&methods(), "treatments: { a: '{{ code }}', b: '{{ note }}' }");
    let with = "{ treatments: { c: 'You said: {{ prompt }} {{ treatment }} {{ snippet_id }}' } }";
    project.append(&format!("  again: {{ op: prompt, from: prompts, with: {with} }}\n"));
    let refused = project.run_json(&[]).exits(2);
    let found = &refused.events("diagnostic")[0];
    assert_eq!(found["code"], "duplicate-column", "{refused}");
    says(&text(found, "message"), &["columns `snippet_id`, `treatment`, ", "would be lost"]);
    let help = text(found, "help");
    let (_, query) = help.split_once("before: ").unwrap();
    let renamed =
        format!("  renamed: {{ op: sql, from: prompts, with: {{ query: '{query}' }} }}\n");
    project.change("  again:", &format!("{renamed}  again:"));
    project.change("op: prompt, from: prompts", "op: prompt, from: renamed");
    for name in ["prompt", "treatment", "snippet_id"] {
        project.change(&format!(" {{{{ {name} }}}}"), &format!(" {{{{ input_{name} }}}}"));
    }
    project.run_ok(&[]);
    let (before, rows) = (project.rows("prompts"), project.rows("again"));
    assert_eq!(rows.len(), 6);
    for row in rows {
        // The data point is now the prompt.
        let parent = before.iter().find(|b| b["id"] == row["snippet_id"]).unwrap();
        let said =
            ["prompt", "treatment", "snippet_id"].map(|column| text(parent, column)).join(" ");
        assert_eq!(row["prompt"], format!("You said: {said}"));
        assert_eq!(row["treatment"], "c");
    }
    // Rows with a key of several columns.
    let project = self::project(&methods(), "treatments: { t: '{{ code }}' }");
    project.change(
        "  prompts:\n    op: prompt\n    from: data\n",
        "  pairs:
    op: sql
    from: data
    with: { query: 'SELECT size, note, code FROM input', key: [size, note] }
  prompts:\n    op: prompt\n    from: pairs\n",
    );
    project.run_ok(&[]);
    let rows = project.rows("prompts");
    let snippets: BTreeSet<String> = rows.iter().map(|row| text(row, "snippet_id")).collect();
    assert_eq!((rows.len(), snippets.len(), ids(&rows).len()), (3, 3, 3));
    assert!(snippets.iter().all(|id| id.len() == 32), "{snippets:?}");
}

#[test]
fn ids_come_from_the_data_point_and_the_treatment_alone() {
    let project = project(&methods(), TWO).ran();
    let before = project.rows("prompts");
    // Another text, another system message, another order of rows, one row and treatment more.
    project.change("Only the code.", "Just code, please.");
    project.change("You know Python.", "You know a bit.");
    project.change("        control: |", "        another: Hi.\n        control: |");
    let mut rows = methods();
    rows.reverse();
    rows.push(json!({"id": "d", "code": "", "size": 0, "note": ""}));
    write(&project, &rows);
    project.run_ok(&[]);
    let after = project.rows("prompts");
    assert_eq!(after.len(), 4 * 3);
    for row in &before {
        assert_eq!(of(&after, &text(row, "snippet_id"), &text(row, "treatment"))["id"], row["id"]);
    }
    assert!(ids(&before).is_subset(&ids(&after)));
    // The untouched template gives the same text.
    let said = |rows: &[Value]| text(of(rows, "b", "control"), "prompt");
    assert_eq!(said(&before), said(&after));
    // The same text under another name is another prompt.
    project.rerun("another:", "other:");
    let renamed = project.rows("prompts");
    assert!(ids(&before).is_subset(&ids(&renamed)));
    assert_eq!(ids(&after).intersection(&ids(&renamed)).count(), 4 * 2);
}

#[test]
fn columns_that_no_template_names_do_not_cost() {
    let project = project(&methods(), TWO);
    let first = project.run_ok(&[]);
    assert_eq!(first.step("prompts")["computed_rows"], 3, "{first}");
    let mut rows = methods();
    rows.iter_mut().for_each(|row| row["note"] = json!("new"));
    write(&project, &rows);
    let second = project.run_ok(&[]);
    assert_eq!(second.step("prompts")["computed_rows"], 0, "{second}");
    assert!(project.rows("prompts").iter().all(|row| row["note"] == "new"));
    // One row that changed in a column which is named.
    rows[1]["size"] = json!(30);
    write(&project, &rows);
    let third = project.run_ok(&[]);
    assert_eq!(third.step("prompts")["computed_rows"], 1, "{third}");
    let prompts = project.rows("prompts");
    assert!(text(of(&prompts, "b", "two_turns"), "prompt").starts_with("It has 30 lines"));
    assert_eq!(project.run_ok(&["--cache", "fresh"]).digests(), third.digests());
    // Another template is read for all rows, and back again for none.
    assert_eq!(project.rerun("Complete:", "Go on:").step("prompts")["computed_rows"], 3);
    project.rerun("Go on:", "Complete:").all_hit();
    // The order of treatments changes nothing.
    let one =
        self::project(&methods(), "treatments:\n  a: '{{ code }}'\n  b: '{{ note }}'\nsystem: Hi.");
    let first = one.run_ok(&[]);
    one.write("w.yaml", workflow("system: Hi.\ntreatments: { b: '{{ note }}', a: '{{ code }}' }"));
    one.run_ok(&[]).all_hit();
    let with = "treatments: { b: ['{{ note }}'], a: '{{ code }}' }\nsystem: Hi.";
    let two = self::project(&methods(), with);
    assert_eq!(two.run_ok(&["--jobs", "1"]).digests(), first.digests());
}

#[test]
fn a_matrix_makes_prompts_of_each_cell() {
    let project = project(
        &methods(),
        "treatments:
  plain: 'Write {{ code }} in ${{ matrix.language }}.'
  kind: \"Be ${{ matrix.kind }}: {{ note }}\"",
    );
    let matrix = "    from: data\n    matrix: { language: [C, Rust], kind: [short] }\n";
    project.change("    from: data\n", matrix);
    project.run_ok(&[]);
    let rows = project.rows("prompts[*]");
    assert_eq!(rows.len(), 2 * 2 * 3);
    let wanted = |row: &Value| match row["treatment"].as_str().unwrap() {
        "kind" => text(row, "prompt").starts_with("Be short: "),
        _ => text(row, "prompt").ends_with(&format!(" in {}.", text(row, "language"))),
    };
    assert!(rows.iter().all(wanted), "{rows:?}");
    // A data point has the same id in each cell, and other prompts.
    let c = project.rows("prompts[language=C,kind=short]");
    assert_eq!(ids(&c), ids(&project.rows("prompts[language=Rust,kind=short]")));
}

#[test]
fn the_id_of_a_prompt_leads_to_its_data_point() {
    let project = project(&methods(), TWO).ran();
    let prompts = project.rows("prompts");
    let row = of(&prompts, "b", "control");
    let told = project.json(&["trace", "w.yaml", &text(row, "id")]).remove(0);
    let steps = |row: &Value| -> Vec<String> {
        row["places"].as_array().unwrap().iter().map(|place| text(place, "step")).collect()
    };
    assert_eq!((told["id"].clone(), steps(&told)), (row["id"].clone(), vec!["prompts".into()]));
    assert_eq!(told["made_from"].as_array().unwrap().len(), 1, "{told}");
    let parent = &told["made_from"][0];
    assert_eq!((parent["id"].clone(), steps(parent)), (json!("b"), vec!["data".into()]));
    let shown = project.run(&["trace", "w.yaml", &text(row, "id")]).exits(0);
    says(&shown.stdout, &[&text(row, "id"), "control", "made from row b", "prompts", "data"]);
    // And from a data point to its prompts.
    let told = project.json(&["trace", "w.yaml", "b"]).remove(0);
    let made = told["leads_to"].as_array().unwrap();
    assert!(made.iter().any(|made| made["id"] == row["id"] && made["step"] == "prompts"), "{told}");
    let shown = project.run(&["trace", "w.yaml", "b"]).exits(0);
    says(&shown.stdout, &["leads to\n", &text(row, "id"), "treatment control"]);
    // An id is found, even if others begin like it.
    for snippet in ["a", "b", "c"] {
        assert_eq!(steps(&project.json(&["trace", "w.yaml", snippet])[0]), ["data"]);
    }
}
