//! The manual validation of `workflows/galeras.yaml`: the sheet that people fill in, how far
//! they agree, and what their ratings stop.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::{Outcome, Project, text};
use crate::paper::{Shipped, method, paper, records, table, written};
use crate::repository::{Repository, at, day};

const RATINGS: [&str; 6] =
    ["code_1", "code_2", "docstring_1", "docstring_2", "message_1", "message_2"];

/// The steps behind the gates.
const GATED: [&str; 3] = ["long_enough", "random_cut", "table_2"];

fn blank() -> String {
    format!("id,{}\n", RATINGS.join(","))
}

/// A project that can be run up to the agreement at once: with one small repository.
fn small() -> Shipped {
    let mut small = Shipped::new("galeras.yaml", "./a");
    let repo = Repository::bare(small.project.path("a"));
    let methods: Vec<String> =
        (0..8).map(|n| method(&format!("m{n}"), 50 + n, Some("Adds one to it."), 3)).collect();
    repo.commit(at(day(9)).message("Add the first module").write("m.py", methods.join("\n\n")));
    small.set("n", "5");
    small.set("validated", "5");
    small.set("ratings", "filled.csv");
    small
}

/// The agreement from the ratings in `filled.csv`, by question.
#[track_caller]
fn agreement(paper: &Shipped) -> BTreeMap<String, Value> {
    let rows = paper.rows("rated.agreement");
    rows.into_iter().map(|row| (text(&row, "question").to_owned(), row)).collect()
}

#[track_caller]
fn number(row: &Value, column: &str, expected: f64) {
    let found = row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"));
    assert!((found - expected).abs() < 1e-12, "{column}: {found}, not {expected}");
}

/// The run stopped at the gates: nothing behind them was made, and the agreement is there.
#[track_caller]
fn stopped(outcome: Outcome) -> Outcome {
    let outcome = outcome.exits(1);
    assert_eq!(outcome.status("data_points"), "failed", "{}", outcome.statuses());
    assert!(["ran", "hit"].contains(&outcome.status("rated").as_str()), "{}", outcome.statuses());
    for step in GATED {
        assert_eq!(outcome.status(step), "skipped", "{step}: {}", outcome.statuses());
    }
    assert!(outcome.stdout.contains("do not allow it yet"), "{outcome}");
    outcome
}

#[test]
fn the_sheet_has_the_drawn_rows_and_room_for_ratings_and_a_long_one_is_read() {
    let paper = paper();
    paper.run(&[]).exits(0);
    let sheet = paper.csv("galeras/validation_sheet.csv");
    assert_eq!(sheet.len(), 20);
    let all = paper.rows("verified");
    let of = |id: &str| all.iter().find(|row| text(row, "id") == id).unwrap();
    for line in &sheet {
        let row = of(&line["id"]);
        for rating in RATINGS {
            assert_eq!(line[rating], "", "{rating}");
        }
        assert!(line["code"].matches('\n').count() > 1, "{line:?}");
        assert_eq!(line["code"], text(row, "code"));
        assert_eq!(line["docstring"], row["docstring"].as_str().unwrap_or_default());
        assert_eq!(line["commit_message"], text(row, "commit_message"));
        let commit = text(row, "commit_id");
        let place = format!("{commit}/{}#L{}", text(row, "path"), row["start_line"]);
        assert!(line["link"].ends_with(&place), "{}", line["link"]);
        let documented = row["d_n_words"].as_i64().is_some_and(|words| words > 3);
        assert_eq!(line["documented"], documented.to_string());
    }
    let project = Project::steps("  sheet: { op: read, with: { path: sheet.csv, key: [id] } }\n");
    let head = ["id", "code", "code_1"].map(str::to_owned).to_vec();
    let code = |n: usize| format!("def f{n}(a, b):\n    x = \"a, b\"\n\n    return x, a, b\n");
    let records: Vec<Vec<String>> = std::iter::once(head)
        .chain((0..2_000).map(|n| vec![format!("{n:04}"), code(n), "y".into()]))
        .collect();
    for (name, text) in [
        ("with CRLF", written(&records)),
        ("with LF", written(&records).replace("\r\n", "\n")),
        ("after a byte order mark", format!("\u{feff}{}", written(&records))),
    ] {
        project.write("sheet.csv", text);
        assert_eq!(project.run_ok(&[]).step("sheet")["rows"], 2_000, "{name}");
        let rows = project.rows("sheet");
        let right = |(n, row): (usize, &Value)| row["code"] == code(n) && row["code_1"] == "y";
        assert!(rows.iter().enumerate().all(right), "{name}");
    }
}

#[test]
fn documented_and_other_data_points_are_drawn_in_proportion() {
    let mut paper = paper();
    let documented = |row: &&Value| row["d_n_words"].as_i64().is_some_and(|words| words > 3);
    for seed in ["1", "2", "3"] {
        paper.set("seed", seed);
        paper.run(&["--select", "spreadsheet"]).exits(0);
        let all = paper.rows("verified");
        let share = all.iter().filter(documented).count() as f64 / all.len() as f64;
        let sheet = paper.rows("spreadsheet");
        let drawn = sheet.iter().filter(|row| row["documented"] == true).count() as f64;
        assert!((drawn - 20.0 * share).abs() <= 0.5, "seed {seed}: {drawn} of 20, {share} of all");
    }
}

#[test]
fn cells_that_a_spreadsheet_would_compute_are_defused() {
    let mut paper = small();
    paper.project.write("filled.csv", blank());
    let repo = Repository::bare(paper.project.path("b"));
    let points = [
        ("=HYPERLINK(\"http://x\";\"see\") gives it a link to follow", "=1+1 gives us two"),
        ("+ adds a thing to it", "+49 is a prefix"),
        ("- removes a thing of it", "- a list, of one thing"),
        ("@ann, adds a thing to it", "@param is no formula"),
        (
            "Adds a = b to it,\n\n=not a formula; \"quoted\"\r\nand more",
            "Says \\\"=1\\\", and, more\n    =2",
        ),
    ];
    for (n, (message, docstring)) in points.iter().enumerate() {
        let code = method(&format!("p{n}"), 90 + n as u64, Some(docstring), 3);
        repo.commit(at(day(20 + n as i64)).message(message).write(format!("p{n}.py"), code));
    }
    paper.set("repos", "./b");
    paper.set("validated", "1000");
    paper.run(&[]).exits(0);
    let sheet = paper.csv("galeras/validation_sheet.csv");
    assert_eq!(sheet.len(), points.len());
    let all = paper.rows("verified");
    let defused = |text: &str| match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    for line in &sheet {
        let row = all.iter().find(|row| text(row, "id") == line["id"]).unwrap();
        for column in ["commit_message", "docstring"] {
            assert_eq!(line[column], defused(text(row, column)), "{column}");
        }
        for cell in line.values() {
            assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell}");
        }
    }
    assert_eq!(sheet.iter().filter(|line| line["docstring"].starts_with('\'')).count(), 4);
}

/// The published sheet with ratings, and of its columns those that are wanted.
fn filled(paper: &Shipped, wanted: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let sheet = records(&paper.project.read("galeras/validation_sheet.csv"));
    let header = &sheet[0];
    let rated = |(at, record): (usize, &Vec<String>)| -> Vec<String> {
        let cells = header.iter().zip(record).filter(|(name, _)| wanted(name));
        let cell = |(name, cell): (&String, &String)| match RATINGS.contains(&name.as_str()) {
            true if at > 0 && name.ends_with('1') => "y".into(),
            true if at > 0 => "Yes ".into(),
            _ => cell.clone(),
        };
        cells.map(cell).collect()
    };
    sheet.iter().enumerate().map(rated).collect()
}

/// The digests of all steps but those of the ratings.
fn testbeds(outcome: &Outcome) -> Vec<(String, String, String)> {
    let rated = ["rated", "data_points"];
    outcome.digests().into_iter().filter(|d| !rated.contains(&d.0.as_str())).collect()
}

#[test]
fn ratings_that_pass_change_no_testbed() {
    let mut paper = paper();
    let first = paper.run(&[]).exits(0);
    let mut sheet = filled(&paper, |name| name == "id" || RATINGS.contains(&name));
    paper.project.write("validated/filled.csv", written(&sheet));
    paper.set("ratings", "validated/filled.csv");
    let rated = paper.run(&[]).exits(0);
    let statuses = rated.statuses();
    let ran: BTreeSet<&str> =
        statuses.split(' ').filter_map(|word| word.strip_suffix("=ran")).collect();
    assert_eq!(ran, ["data_points", "rated"].into(), "all else is a hit");
    assert_eq!(testbeds(&rated), testbeds(&first));
    for (question, row) in agreement(&paper) {
        assert_eq!((&row["raters"], &row["rated_by_all"]), (&2.into(), &row["points"]));
        assert_eq!(row["points"] == 20, question != "docstring", "{row}");
        for share in ["yes", "least_yes", "agreement"] {
            number(&row, share, 1.0);
        }
        assert!(row["kappa"].is_null(), "always the same answer: {row}");
    }
    assert_eq!(table(&paper.project.read("galeras/agreement.csv")).len(), 3);
    // One rating is another one: a new agreement, and the point is none any more.
    let at = sheet[0].iter().position(|name| name == "code_1").unwrap();
    sheet[1][at] = "n".into();
    paper.project.write("validated/filled.csv", written(&sheet));
    paper.set("min_kappa", "-1");
    let other = paper.run(&[]).exits(0);
    number(&agreement(&paper)["code"], "least_yes", 0.95);
    assert_eq!(other.status("data_points"), "ran");
    let left = paper.rows("data_points");
    assert_eq!(left.len() + 1, paper.rows("verified").len());
    let gone = paper.rows("data_points.rejects");
    assert_eq!((gone.len(), text(&gone[0], "id")), (1, sheet[1][0].as_str()));
    assert_eq!(text(&gone[0], "rule"), "code", "{}", gone[0]);
    assert_eq!(text(&gone[0], "reason"), "code: no by filled-1");
    assert!(left.iter().all(|row| row["id"] != gone[0]["id"]));
    assert!(left[0].get("rule").is_none());
    assert!(paper.trace(&sheet[1][0]).exits(0).stdout.contains("no by filled-1"));
    // The sheet itself may be filled in.
    paper.project.write("filled.csv", written(&filled(&paper, |_| true)));
    paper.set("ratings", "filled.csv");
    assert_eq!(testbeds(&paper.run(&[]).exits(0)), testbeds(&first));
    assert_eq!(agreement(&paper)["message"]["rated_by_all"], 20);
}

/// The commands of docs/testbeds.md, on repositories of a test: two people rate where the page says
/// that they do.
#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let paper = paper();
    let page = include_str!("../../docs/testbeds.md");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("$ galeras ")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let small = ["--set", "n=40", "--set", "validated=20", "--set", "tokens=word"];
    for command in commands {
        if command == "view workflows/galeras.yaml" {
            let rated = filled(&paper, |name| name == "id" || RATINGS.contains(&name));
            paper.project.write("ratings/filled.csv", written(&rated));
            continue;
        }
        let command = command.replace("workflows/", "").replace("min_rated=960", "min_rated=20");
        let command = command.replace("owner/name,/path/to/a/clone", "./a,./b,./c");
        let command = command.replace("repos=…", "repos=./a,./b,./c");
        let words: Vec<&str> = command.split(' ').collect();
        paper.project.run(&[&words[..], &small[..]].concat()).exits(0);
    }
    let undocumented = |row: &Value| row["docstring"].is_null();
    let sheet = paper.csv("galeras/validation_sheet.csv");
    let rated = |row: &&Value| sheet.iter().any(|line| line["id"] == text(row, "id"));
    let all = paper.project.json(&["show", "galeras.yaml", "verified"]);
    assert!(all.iter().filter(rated).any(undocumented), "not every question is asked of all");
}

#[test]
fn the_gates_stop_the_testbeds_and_a_point_leaves_for_what_it_has() {
    let mut paper = paper();
    paper.run(&[]).exits(0);
    let mut sheet = filled(&paper, |name| name == "id" || RATINGS.contains(&name));
    let message = sheet[0].iter().position(|name| name == "message_2").unwrap();
    sheet.iter_mut().skip(1).take(3).for_each(|line| line[message] = "n".into());
    paper.project.write("filled.csv", written(&sheet));
    paper.set("ratings", "filled.csv");
    paper.set("min_kappa", "-1");
    let outcome = stopped(paper.run(&["--keep-going"]));
    // 17 of 20 are fewer than 0.9.
    let told = "`message`: a rater says yes to 0.85 of the points, and min_valid asks for 0.9";
    assert!(outcome.stdout.contains(told), "{outcome}");
    number(&agreement(&paper)["message"], "least_yes", 0.85);
    assert_eq!(table(&paper.project.read("galeras/agreement.csv")).len(), 3);
    paper.set("min_valid", "0.85");
    paper.run(&[]).exits(0);
    paper.set("min_rated", "21");
    let outcome = stopped(paper.run(&[]));
    assert!(outcome.stdout.contains("20 points have the answers of 2 people"), "{outcome}");
    // A docstring can be wrong only where there is one.
    let mut paper = self::paper();
    paper.run(&[]).exits(0);
    let mut sheet = filled(&paper, |name| name == "id" || RATINGS.contains(&name));
    let all = paper.rows("verified");
    let documented =
        |id: &str| all.iter().any(|row| row["id"] == id && row["docstring"].is_string());
    let column = |name: &str| sheet[0].iter().position(|other| other == name).unwrap();
    let (docstring, message) = (column("docstring_2"), column("message_1"));
    let (mut expected, mut spoken) = (BTreeSet::new(), 0);
    for line in sheet.iter_mut().skip(1) {
        line[docstring] = "No".into();
        if documented(&line[0]) {
            expected.insert(line[0].clone());
        } else if spoken == 0 {
            (line[message], spoken) = ("false".into(), 1);
            expected.insert(line[0].clone());
        }
    }
    assert!(expected.len() > 2 && expected.len() < 20, "{}", expected.len());
    paper.project.write("filled.csv", written(&sheet));
    for (name, value) in [("ratings", "filled.csv"), ("min_valid", "0"), ("min_kappa", "-1")] {
        paper.set(name, value);
    }
    paper.run(&[]).exits(0);
    let gone = paper.rows("data_points.rejects");
    let ids: BTreeSet<String> = gone.iter().map(|row| text(row, "id").to_owned()).collect();
    assert_eq!(ids, expected);
    assert_eq!(paper.csv("galeras/called_invalid.csv").len(), expected.len());
}
