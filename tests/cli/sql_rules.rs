//! `sql`: queries whose result depends on more than their input are refused, and so is SQL that
//! would overflow the stack of a thread. SQL as deep as the limit allows is computed.

use crate::harness::{Project, every, hides, marked, says};

fn workflow(query: &str) -> String {
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: touch ran; printf '{{\"id\":\"a\",\"x\":1}}\\n{{\"id\":\"b\",\"x\":2}}\\n{{\"id\":\"c\",\"x\":2}}\\n'
      output: {{ id: utf8!, x: int64! }}
  asked: {{ op: sql, from: table, with: {{ query: «'{query}', key: [id] }} }}
"
    )
}

#[track_caller]
fn refused(query: &str, word: &str) {
    let (text, place) = marked(&workflow(query));
    let project = Project::new(&text);
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 1, "{outcome}");
    // The wrong word if it is known, else the whole query.
    says(&found[0], &[&format!("w.yaml:{}:", place.split(':').next().unwrap())]);
    let message = outcome.events("diagnostic")[0].to_string();
    says(&message.to_lowercase(), &[&word.to_lowercase()]);
    hides(&message, &["datafusion"]);
    assert!(!project.path("ran").exists() && project.stored_nothing());
}

#[track_caller]
fn allowed(query: &str) -> Project {
    Project::new(&marked(&workflow(query)).0).ran()
}

/// Queries that are refused, and a word of the message.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("SELECT id, now() AS t FROM input", "in every run"),
    ("SELECT id, current_timestamp AS t FROM input", "in every run"),
    ("SELECT id, current_date AS t FROM input", "in every run"),
    ("SELECT id, current_time AS t FROM input", "in every run"),
    ("SELECT id, random() AS r FROM input", "random"),
    ("SELECT id, uuid() AS r FROM input", "uuid"),
    ("SELECT id FROM input WHERE random() < 0.5", "random"),
    ("SELECT id FROM input ORDER BY random() LIMIT 1", "random"),
    ("SELECT id FROM (SELECT id, random() AS r FROM input) WHERE r > 0", "random"),
    ("SELECT id FROM input LIMIT 1", "add ORDER BY with the key columns `id`, or draw rows"),
    ("SELECT id FROM input OFFSET 1", "ORDER BY"),
    ("SELECT id FROM (SELECT id FROM input LIMIT 2) ORDER BY id", "LIMIT"),
    ("WITH t AS (SELECT id FROM input LIMIT 2) SELECT id FROM t", "LIMIT"),
    ("SELECT id FROM input WHERE id IN (SELECT id FROM input LIMIT 1)", "LIMIT"),
    ("SELECT x AS id, array_agg(id) AS ids FROM input GROUP BY x", "array_agg"),
    ("SELECT first_value(id) AS id FROM input", "first_value"),
    ("SELECT string_agg(id, '''') AS id FROM input", "string_agg"),
    ("SELECT id, row_number() OVER () AS n FROM input", "row_number"),
    ("SELECT max(id) AS id, approx_median(x) AS n FROM input", "approx_median"),
    ("DROP TABLE input", "SELECT"),
    ("INSERT INTO input VALUES (1)", ""),
    ("SELECT id FROM input; SELECT id FROM input", ""),
    ("COPY input TO ''x.csv''", ""),
    ("SET datafusion.execution.batch_size = 1", ""),
    ("SELEC id FROM input", ""),
    ("", ""),
    ("SELECT * FROM ''/etc/passwd''", "/etc/passwd"),
    ("SELECT * FROM read_csv(''/etc/passwd'')", "read_csv"),
    ("SELECT * FROM information_schema.tables", "information_schema"),
    ("SELECT id, x, x + 1 AS x FROM input", "x"),
    ("SELECT id, x IN (SELECT x FROM input) AS known FROM input", "subquery cannot be computed"),
    ("SELECT id FROM input a WHERE x > (SELECT max(x) FROM input b WHERE b.x < a.x)", "cannot be computed"),
    ("SELECT id FROM input a WHERE 0 IN (SELECT count(*) FROM input b WHERE b.x = a.x)", "an aggregate without GROUP BY"),
];

#[test]
fn queries_whose_result_depends_on_more_than_their_input_are_refused() {
    every(REFUSED.iter().map(|case| (case.0, case)), |(query, word)| refused(query, word));
    for query in [
        "SELECT id FROM input ORDER BY id LIMIT 1",
        "SELECT x AS id, array_agg(id ORDER BY id) AS ids FROM input GROUP BY x",
        "SELECT id, row_number() OVER (ORDER BY x, id) AS n FROM input",
        "SELECT a.id, row_number() OVER (ORDER BY a.x, a.id, b.id) AS n
         FROM input a JOIN input b ON a.id = b.id",
        "SELECT id FROM input WHERE x NOT IN (SELECT x FROM input WHERE x < 2)",
        // A HyperLogLog sketch is a function of the set of values.
        "SELECT max(id) AS id, approx_distinct(x) AS n FROM input",
    ] {
        allowed(query);
    }
}

#[test]
fn keys_that_are_not_unique_or_no_column_and_queries_that_are_no_table() {
    let (text, _) = marked(&workflow("SELECT x, id FROM input").replace("key: [id]", "key: [x]"));
    let project = Project::new(&text);
    project.fails("asked", &["x", "id: b", "id: c"]);
    says(&project.run(&["run", "w.yaml"]).exits(1).stderr, &["id: b", "id: c"]);
    let text = workflow("SELECT id FROM input").replace('«', "");
    crate::harness::refused(&text.replace("key: [id]", "key: [«idd]"), "unknown-column", &[]);
    for statement in ["EXPLAIN SELECT id FROM input", "SHOW TABLES", "DESCRIBE input"] {
        let (text, _) = marked(&workflow(statement).replace(", key: [id]", ""));
        Project::new(&text).run_json(&[]).exits(2);
    }
    // Columns that a query does not name do not run it.
    let project = Project::new( "galeras: 1\nsteps:\n  data: { op: read, with: { path: data.jsonl } }\n  asked:\n    op: sql\n    from: data\n    with: { query: 'SELECT id, x FROM input' }\n", ).with("data.jsonl", "{\"id\":\"a\",\"x\":1,\"note\":\"n\"}\n").ran();
    project.write("data.jsonl", "{\"id\":\"a\",\"x\":1,\"note\":\"m\",\"more\":2}\n");
    assert_eq!(project.run_ok(&[]).statuses(), "data=ran asked=hit");
}

const READ: &str = "galeras: 1\nsteps:\n  data: { op: read, with: { path: data.jsonl } }\n";

/// Rows that are equal in what they are ordered by may not be ordered by their arrival.
#[test]
fn ties_do_not_depend_on_threads() {
    let rows: String = (0..20_000)
        .map(|i| format!("{{\"id\":\"{i}\",\"x\":{},\"y\":{}}}\n", i % 7, i % 3))
        .collect();
    let project = Project::empty().with("data.jsonl", &rows);
    let queries = [
        "SELECT id, x FROM input ORDER BY x LIMIT 10",
        "SELECT a.id, a.x FROM input a JOIN input b ON a.id = b.id ORDER BY a.x LIMIT 10",
        "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY x) AS n FROM input) WHERE n <= 10",
        "SELECT id, row_number() OVER (PARTITION BY y ORDER BY x) AS n FROM input",
        "SELECT id, lag(id) OVER (ORDER BY x) AS before FROM input",
        "SELECT id, first_value(id) OVER (PARTITION BY y ORDER BY x) AS first FROM input",
        "SELECT x AS id, array_agg(id ORDER BY x) AS ids FROM input GROUP BY x",
        "SELECT x AS id, string_agg(id, '','' ORDER BY x) AS ids FROM input GROUP BY x",
        "SELECT x AS id, first_value(id ORDER BY x) AS first FROM input GROUP BY x",
        "SELECT x AS id, last_value(id ORDER BY y) AS last FROM input GROUP BY x",
        "SELECT x AS id, nth_value(id, 2 ORDER BY y) AS second FROM input GROUP BY x",
        "SELECT DISTINCT ON (x) x AS id, y, id AS one FROM input ORDER BY x",
    ];
    every(queries.into_iter().zip(queries.iter().enumerate()), |(at, query)| {
        let with = format!("{{ query: '{query}' }}");
        project
            .write("w.yaml", format!("{READ}  asked: {{ op: sql, from: data, with: {with} }}\n"));
        let mut digests = std::collections::BTreeSet::new();
        for (i, jobs) in ["1", "2", "3", "8", "8"].into_iter().enumerate() {
            let outcome = project.run_json(&["--jobs", jobs, "--cache", &format!("cache{at}-{i}")]);
            // Refusing it is right as well.
            if outcome.code != Some(2) {
                digests.insert(outcome.exits(0).step("asked")["digest"].to_string());
            }
        }
        assert!(digests.len() < 2, "{digests:?}");
    });
}

#[test]
fn groups_of_unnested_groups_are_refused() {
    let steps = "  t: { op: read, with: { path: t.csv } }
  twice:
    op: sql
    from: t
    with:
      query: >
        SELECT g, v, count(*) AS n FROM
        (SELECT g, unnest(make_array(s, n)) AS v FROM
        (SELECT g, sum(x) AS s, count(*) AS n FROM input GROUP BY g)) GROUP BY g, v
      key: [g, v]
";
    let project = Project::steps(steps).with("t.csv", "id,g,x\na,b,3\nb,a,5\nc,b,4\n");
    project.run(&["check", "w.yaml"]).exits(2).reports(&["unnested-groups", "without `v`"]);
    project.write("w.yaml", "galeras: 1\nsteps:\n  t: { op: read, with: { path: t.csv } }\n");
    project.run_ok(&[]);
    let query = "SELECT DISTINCT g, v FROM (SELECT g, unnest(make_array(s, 1)) AS v FROM \
                 (SELECT g, sum(x) AS s FROM t GROUP BY g))";
    project.run(&["sql", "w.yaml", query]).exits(2).reports(&["wrong groups"]);
}

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n";

fn project(workflow: &str) -> Project {
    Project::new(workflow).with("d.jsonl", DATA)
}

fn check_of(sql: &str) -> Project {
    project(&format!(
        "galeras: 1\nsteps:\n  data: {{ op: read, with: {{ path: d.jsonl }} }}\n  valid:\n    \
         op: validate\n    from: data\n    with: {{ rules: [{{ name: r, check: \"{sql}\" }}] }}\n"
    ))
}

fn query_of(sql: &str) -> Project {
    project(&format!(
        "galeras: 1\nsteps:\n  data: {{ op: read, with: {{ path: d.jsonl }} }}\n  out:\n    \
         op: sql\n    from: data\n    with: {{ query: \"{sql}\", key: [id] }}\n"
    ))
}

#[track_caller]
fn refuses(project: &Project) {
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert!(found.len() == 1 && found[0].starts_with("sql-limit w.yaml:7:"), "{found:?}");
    assert!(outcome.events("diagnostic")[0]["help"].is_string(), "{outcome}");
}

#[test]
fn ten_thousand_terms_are_refused_at_their_place() {
    for operator in [" OR x = ", " AND x <> ", " + "] {
        let terms: Vec<String> = (1..=10_000).map(|i| i.to_string()).collect();
        refuses(&check_of(&format!("x = {}", terms.join(operator))));
    }
    refuses(&query_of(&vec!["SELECT id, x FROM input"; 3_000].join(" UNION ALL ")));
    refuses(&query_of(&format!("SELECT id, x{} AS x FROM input", " + x".repeat(10_000))));
    let with: Vec<String> =
        (1..3_000).map(|i| format!("a{i} AS (SELECT id, x FROM a{})", i - 1)).collect();
    let with = format!("WITH a0 AS (SELECT id, x FROM input), {}", with.join(", "));
    refuses(&query_of(&format!("{with} SELECT id, x FROM a2999")));
    // So are assertions, conditions and queries of the command line.
    let long = format!("x = 1{}", " OR x = 2".repeat(10_000));
    let assertion = project(&format!(
        "galeras: 1\nsteps:\n  data:\n    op: read\n    with: {{ path: d.jsonl }}\n    assert:\n      \
         - {{ expr: \"{long}\" }}\n"
    ));
    refuses(&assertion);
    let sound = project("galeras: 1\nsteps:\n  data: { op: read, with: { path: d.jsonl } }\n");
    sound.run_ok(&[]);
    sound.run(&["show", "w.yaml", "data", "--where", &long]).exits(2).reports(&["at most 2000"]);
    let sql = format!("SELECT * FROM data WHERE {long}");
    sound.run(&["sql", "w.yaml", &sql]).exits(2).reports(&["at most 2000"]);
}

#[test]
fn what_the_limit_allows_is_computed() {
    let list: Vec<String> = (2..10_000).map(|i| i.to_string()).collect();
    for check in [
        // Operators that are quick to plan, nearly as many as there may be.
        format!("x > 1{}", " IS TRUE".repeat(990)),
        format!("x = 2{}", " OR x = 3".repeat(150)),
        format!("x IN ({})", list.join(", ")),
    ] {
        assert_eq!(check_of(&check).run_ok(&[]).step("valid")["rows"], 1);
    }
    let casts = query_of(&format!("SELECT id, x{} AS x FROM input", "::bigint".repeat(990)));
    assert_eq!(casts.run_ok(&[]).step("out")["rows"], 2);
}
