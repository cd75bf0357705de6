//! Small files with a large effect: workflows that double, files without end, pipes without a writer. They
//! are refused quickly, in little memory. And SQL whose values do not fit; see also `memory_guard`.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Project, TIME_OUT, says};

const READ: &str = "galeras: 1\nsteps:\n  data: { op: read, with: { path: d.csv } }\n";

/// Runs a command; fails if it takes too long. Returns its exit code, its output, and the most
/// memory that it had, in MiB.
#[track_caller]
pub fn measured(project: &Project, args: &[&str]) -> (Option<i32>, String, u64) {
    let said = project.path("said");
    let mut command: Command = project.command(args);
    let file = File::create(&said).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    let mut most = 0;
    let status = loop {
        let about = fs::read_to_string(format!("/proc/{}/status", child.id()));
        let line = about.unwrap_or_default();
        let line = line.lines().find_map(|line| line.strip_prefix("VmHWM:").map(str::to_owned));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0) / 1024);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > TIME_OUT / 2 || most > 3_000 {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("no end after {:?}, in {most} MiB", started.elapsed());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = fs::read_to_string(&said).unwrap();
    (status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// The command refuses the workflow within little memory, with these words.
#[track_caller]
fn refuses_with(project: &Project, args: &[&str], words: &[&str]) {
    let (exit, said, most) = measured(project, args);
    assert_eq!(exit, Some(2), "{said}");
    says(&said, words);
    assert!(most < 700, "{most} MiB");
}

/// Like [`refuses_with`], with this code of a diagnostic.
#[track_caller]
fn refuses(project: &Project, verb: &str, code: &str, words: &str) {
    let code = format!("\"code\":\"{code}\"");
    refuses_with(project, &[verb, "w.yaml", "--format", "json"], &[&code, words]);
}

/// Seventeen files, each of which embeds the next one twice.
fn doubling(with: &str) -> Project {
    let project = Project::steps("  a: { uses: f1.yaml }\n").with("d.csv", "id\na\n");
    for i in 1..17 {
        let next = i + 1;
        let text = format!(
            "galeras: 1\nparams: {{ p: x }}\nsteps:\n  a: {{ uses: f{next}.yaml }}\n  \
             b: {{ uses: f{next}.yaml{with} }}\n"
        );
        project.write(&format!("f{i}.yaml"), text);
    }
    project.with("f17.yaml", format!("galeras: 1\nparams: {{ p: x }}\n{}", &READ[11..]))
}

#[test]
fn files_that_embed_each_other_twice_and_plans_of_too_many_steps_are_refused() {
    for with in ["", ", with: { p: '${{ params.p }}y' }"] {
        let project = doubling(with);
        for verb in ["check", "plan", "graph"] {
            let words = "the plan would embed more than 10000 workflows";
            refuses_with(&project, &[verb, "w.yaml"], &["plan-limit", words, "[w.yaml:3:3]"]);
        }
    }
    let values = (0..240).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let outer = format!("  a: {{ uses: inner.yaml, matrix: {{ m: [{values}] }} }}\n");
    let inner = READ.replace("op: read", &format!("op: read, matrix: {{ k: [{values}] }}"));
    let project = Project::steps(&outer).with("inner.yaml", inner).with("d.csv", "id\na\n");
    refuses(&project, "check", "plan-limit", "the plan would have more than 50000 steps");
}

fn chain(files: usize) -> Project {
    let project = Project::steps("  a: { uses: f1.yaml }\n").with("d.csv", "id\na\n");
    let output = |from: &str| format!("outputs:\n  t: {{ from: {from}, path: t.csv }}\n");
    for i in 1..files {
        let steps = format!("galeras: 1\nsteps:\n  a: {{ uses: f{}.yaml }}\n", i + 1);
        project.write(&format!("f{i}.yaml"), steps + &output("a.t"));
    }
    project.with(&format!("f{files}.yaml"), format!("{READ}{}", output("data")))
}

#[test]
fn depth_is_not_a_cycle() {
    for files in [17, 64] {
        chain(files).run_ok(&[]);
    }
    refuses(&chain(65), "check", "plan-limit", "workflows embed one another more than 64 deep");
    let cyclic = chain(17);
    cyclic.write("f17.yaml", "galeras: 1\nsteps:\n  a: { uses: f3.yaml }\n");
    refuses(&cyclic, "check", "cycle", "`f3.yaml` embeds itself");
}

#[test]
fn files_without_end_are_not_read_and_pipes_are_not_waited_for() {
    let project = Project::new(READ).with("d.csv", "id\na\n");
    let with_schema = READ.replace("with:", "schema: c.json, with:");
    let uses = "galeras: 1\nsteps:\n  a: { uses: d.yaml }\n";
    let kinds = ["it is a device, not a file", "it is a named pipe, not a file"];
    for (name, workflow, code, [device, pipe]) in [
        ("galeras.lock", READ, "bad-lock", kinds),
        ("c.json", with_schema.as_str(), "missing-file", kinds),
        ("d.yaml", uses, "missing-file", ["d.yaml"; 2]),
    ] {
        project.write("w.yaml", workflow);
        let path = project.path(name);
        symlink("/dev/zero", &path).unwrap();
        refuses(&project, "check", code, device);
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        refuses(&project, "run", code, pipe);
        fs::remove_file(&path).unwrap();
    }
    project.write("w.yaml", &with_schema);
    File::create(project.path("c.json")).unwrap().set_len(1 << 40).unwrap();
    refuses(&project, "check", "missing-file", "more than the 16 MiB that are read");
    // A workflow may come through a pipe.
    let text = READ.replace("d.csv", &project.path("d.csv").display().to_string());
    project.write("w.yaml", text);
    let piped = project.sh("cat w.yaml | exec \"$GALERAS\" check /dev/stdin");
    piped.exits(0).prints(&["ok, 1 steps"]);
    fs::remove_file(project.path("w.yaml")).unwrap();
    symlink("/dev/zero", project.path("w.yaml")).unwrap();
    refuses(&project, "check", "missing-file", "no end in sight");
}

#[test]
fn a_download_that_is_too_large_is_refused_before_it_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000000\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            // Until the client goes away.
            let _ = stream.read(&mut [0]);
        }
    });
    let project =
        Project::new(&READ.replace("path: d.csv", &format!("url: 'http://{address}/d.csv'")));
    refuses(&project, "run", "unreachable-url", "it has more than 16384 MiB");
    assert!(project.stored_nothing());
}

const DATA: &str = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":2}\n";

fn project(step: &str, sql: &str) -> Project {
    let data = "  data: { op: read, with: { path: d.jsonl } }\n";
    let steps = format!("{data}  out:\n    op: {step}: >-\n          {sql}\n");
    Project::steps(&steps).with("d.jsonl", DATA)
}

fn check_of(sql: &str) -> Project {
    let step = "validate\n    from: data\n    with:\n      rules:\n      - name: r\n        check";
    project(step, sql)
}

fn query_of(sql: &str) -> Project {
    project("sql\n    from: data\n    with:\n      key: [id]\n      query", sql)
}

#[test]
fn an_expression_over_one_row_has_no_query_and_no_syntax_pattern_of_brackets() {
    let twice =
        |i: u32| format!(", a{i} AS (SELECT id FROM a{0} UNION ALL SELECT id FROM a{0})", i - 1);
    let all: String = (1..41).map(twice).collect();
    let with =
        format!("WITH a0 AS (SELECT id FROM (VALUES (1)) AS v (id)){all} SELECT id FROM a40");
    let outcome = check_of(&format!("x IN ({with})")).run_json(&[]).exits(2);
    assert!(outcome.diagnostics()[0].starts_with("not-a-row-expression w.yaml:11:"), "{outcome}");
    let sql = format!("python_has(id, '{}')", "(".repeat(400_000));
    let (exit, said, _) = measured(&check_of(&sql), &["check", "w.yaml"]);
    let about = &said[..said.len().min(2_000)];
    assert!(exit == Some(2) && said.contains("8192 are the most"), "{exit:?}: {about}");
}

#[test]
fn values_of_two_types_become_one_that_holds_both_or_an_error() {
    let with = |value: &str| format!("SELECT id, x AS v FROM input UNION ALL SELECT 'c', {value}");
    let case = |cases: &str| format!("SELECT id, CASE {cases} END AS v FROM input");
    for (query, wanted) in [
        (with("'q'"), r#""id":"c","v":"q""#),
        (with("1.5"), r#""id":"c","v":1.5"#),
        (with("CAST(7 AS BIGINT UNSIGNED)"), r#""id":"c","v":7"#),
        (case("WHEN x > 1 THEN 1 WHEN x = 1 THEN 'a'"), r#""id":"a","v":"a""#),
        (case("WHEN x > 1 THEN x ELSE 'small'"), r#""v":"small""#),
    ] {
        let shown = query_of(&query).ran().cli("show w.yaml out --format json");
        shown.exits(0).prints(&[wanted]);
    }
    let large = query_of(&with("CAST(18446744073709551615 AS BIGINT UNSIGNED)"));
    large.run(&["run", "w.yaml"]).exits(1).reports(&["18446744073709551615"]);
}

#[test]
fn a_sum_that_64_bits_do_not_hold_is_an_error() {
    for columns in ["'k' AS id, sum(y)", "id, sum(y + x) OVER ()", "id, sum(y) OVER (ORDER BY id)"]
    {
        let rows = "SELECT id, x, 9223372036854775800 + x AS y FROM input";
        let outcome = query_of(&format!("SELECT {columns} AS s FROM ({rows}) AS t")).run_json(&[]);
        says(&outcome.exits(1).to_string(), &["more than 64 bits hold"]);
    }
}
