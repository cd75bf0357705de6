//! The manual validation of `workflows/galeras.yaml`: the sheet that people fill in, how far
//! they agree, and what their ratings stop.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::{Outcome, Project};
use crate::paper::{Shipped, method, paper, records, table, text, written};
use crate::repository::{Repository, at, day};

const RATINGS: [&str; 6] =
    ["code_1", "code_2", "docstring_1", "docstring_2", "message_1", "message_2"];

/// The steps from the gate on.
const GATED: [&str; 4] = ["gate", "data_points", "random_cut", "table_2"];

/// Ratings of as many data points as there are pairs, the same ones in all three questions.
fn ratings(pairs: &[(&str, &str)]) -> String {
    let mut text = format!("id,{}\n", RATINGS.join(","));
    for (at, (one, two)) in pairs.iter().enumerate() {
        text.push_str(&format!("point-{at},{one},{two},{one},{two},{one},{two}\n"));
    }
    text
}

/// So many times each pair.
fn pairs<'a>(counts: &[(usize, &'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    counts.iter().flat_map(|&(n, one, two)| std::iter::repeat_n((one, two), n)).collect()
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

/// What the ratings in `filled.csv` make of the agreement, by question.
#[track_caller]
fn agreement(paper: &Shipped) -> BTreeMap<String, Value> {
    let rows = paper.rows("agreement");
    rows.into_iter().map(|row| (text(&row, "question").to_owned(), row)).collect()
}

#[track_caller]
fn number(row: &Value, column: &str, expected: f64) {
    let found = row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"));
    assert!((found - expected).abs() < 1e-12, "{column}: {found}, not {expected}");
}

/// The run stopped at the agreement: exit code 3, and nothing behind it was made.
#[track_caller]
fn stopped(outcome: Outcome, paper: &Shipped) -> Outcome {
    let outcome = outcome.exits(3);
    assert_eq!(outcome.status("agreement"), "failed", "{}", outcome.statuses());
    for step in GATED {
        assert_eq!(outcome.status(step), "skipped", "{step}: {}", outcome.statuses());
    }
    assert!(!paper.project.path("testbeds").exists());
    assert!(!outcome.events("assertion").is_empty(), "{outcome}");
    outcome
}

#[test]
fn the_sheet_has_the_drawn_rows_and_room_for_ratings() {
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
    paper.project.write("filled.csv", ratings(&[]));
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
    let rated = ["ratings", "agreement", "called_invalid"];
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
    let few = ["agreement", "called_invalid", "gate", "judged", "ratings"];
    assert_eq!(ran, few.into(), "all else is a hit");
    assert_eq!(testbeds(&rated), testbeds(&first));
    for (question, row) in agreement(&paper) {
        assert_eq!((&row["rated_1"], &row["rated_2"]), (&20.into(), &20.into()), "{question}");
        for share in ["valid_1", "valid_2", "agreement"] {
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
    number(&agreement(&paper)["code"], "valid_1", 0.95);
    assert_eq!(other.status("data_points"), "ran");
    let left = paper.rows("data_points");
    assert_eq!(left.len() + 1, paper.rows("verified").len());
    let gone = paper.rows("called_valid.rejects");
    assert_eq!((gone.len(), text(&gone[0], "id")), (1, sheet[1][0].as_str()));
    assert_eq!(text(&gone[0], "called_invalid"), "code", "{}", gone[0]);
    assert!(left.iter().all(|row| row["id"] != gone[0]["id"]));
    assert!(left[0].get("called_invalid").is_none());
    assert!(paper.trace(&sheet[1][0]).exits(0).stdout.contains("raters_call_it_valid"));
}

/// A docstring can be wrong only where there is one.
#[test]
fn a_point_leaves_for_what_it_has() {
    let mut paper = paper();
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
    let gone = paper.rows("called_valid.rejects");
    let ids: BTreeSet<String> = gone.iter().map(|row| text(row, "id").to_owned()).collect();
    assert_eq!(ids, expected);
    assert_eq!(paper.csv("galeras/called_invalid.csv").len(), expected.len());
}

#[test]
fn the_sheet_itself_may_be_filled_in() {
    let mut paper = paper();
    let first = paper.run(&[]).exits(0);
    paper.project.write("filled.csv", written(&filled(&paper, |_| true)));
    paper.set("ratings", "filled.csv");
    let rated = paper.run(&[]).exits(0);
    assert_eq!(testbeds(&rated), testbeds(&first));
    assert_eq!(agreement(&paper)["message"]["rated_twice"], 20);
}

/// A sheet of any length comes back, whatever is in its cells.
#[test]
fn a_long_sheet_with_lines_in_its_cells_is_read() {
    let project = Project::new(
        "galeras: 1\nsteps:\n  sheet: { op: read, with: { path: sheet.csv, key: [id] } }\n",
    );
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
fn kappa_is_as_computed_by_hand() {
    let mut paper = small();
    paper.set("min_valid", "0");
    paper.set("min_kappa", "-1");
    for (counts, kappa) in [
        ([(20, "y", "y"), (5, "y", "n"), (10, "n", "y"), (15, "n", "n")], Some(0.4)),
        // Cohen (1960) of these tables, by hand.
        ([(45, "y", "y"), (15, "y", "n"), (25, "n", "y"), (15, "n", "n")], Some(3.0 / 23.0)),
        ([(25, "y", "y"), (35, "y", "n"), (5, "n", "y"), (35, "n", "n")], Some(7.0 / 27.0)),
        ([(3, "y", "y"), (0, "y", "n"), (0, "n", "y"), (7, "n", "n")], Some(1.0)),
        ([(0, "y", "y"), (5, "y", "n"), (5, "n", "y"), (0, "n", "n")], Some(-1.0)),
        ([(0, "y", "y"), (8, "y", "n"), (0, "n", "y"), (0, "n", "n")], Some(0.0)),
        // As spreadsheets write it.
        ([(20, "1", "1"), (5, "1", "0"), (10, "0", "1"), (15, "0", "0")], Some(0.4)),
        (
            [
                (20, "TRUE", "TRUE"),
                (5, "TRUE", "FALSE"),
                (10, "FALSE", "TRUE"),
                (15, "FALSE", "FALSE"),
            ],
            Some(0.4),
        ),
        ([(9, "y", "y"), (0, "y", "n"), (0, "n", "y"), (0, "n", "n")], None),
        ([(9, "y", ""), (0, "y", "n"), (4, "", "n"), (0, "n", "n")], None),
    ] {
        let given = pairs(&counts);
        paper.project.write("filled.csv", ratings(&given));
        paper.run(&["--select", "agreement", "--force", "agreement"]).exits(0);
        let answer = |one: bool, what: [&str; 3]| {
            let of = |(a, b): &&(&str, &str)| what.contains(if one { a } else { b });
            given.iter().filter(of).count() as f64
        };
        let (yes, no) = (["y", "1", "TRUE"], ["n", "0", "FALSE"]);
        for (question, row) in agreement(&paper) {
            match kappa {
                Some(kappa) => number(&row, "kappa", kappa),
                None => assert!(row["kappa"].is_null(), "{question}: {row}"),
            }
            for (share, one) in [("valid_1", true), ("valid_2", false)] {
                let rated = answer(one, yes) + answer(one, no);
                number(&row, share, answer(one, yes) / rated);
            }
            assert_eq!(row["unreadable"], 0);
        }
    }
}

#[test]
fn the_three_questions_are_rated_apart() {
    let mut paper = small();
    paper.set("min_valid", "0");
    paper.set("min_kappa", "-1");
    let header = format!("id,{}\n", RATINGS.join(","));
    let lines = "a,y,y,n,n,,\nb,y,n,n,n,y,\nc,1,TRUE,0,No,,n\nd,true,yes,FALSE,n,Y,N\n";
    paper.project.write("filled.csv", header + lines);
    paper.run(&["--select", "agreement"]).exits(0);
    let found = agreement(&paper);
    let [code, docstring, message] = ["code", "docstring", "message"].map(|name| &found[name]);
    assert_eq!((&code["rated_1"], &code["rated_2"]), (&4.into(), &4.into()));
    number(code, "valid_1", 1.0);
    number(code, "valid_2", 0.75);
    number(code, "kappa", 0.0);
    number(docstring, "valid_2", 0.0);
    assert!(docstring["kappa"].is_null());
    let counts = ["rated_1", "rated_2", "rated_twice"].map(|name| message[name].as_i64());
    assert_eq!(counts, [Some(2), Some(2), Some(1)]);
    number(message, "agreement", 0.0);
}

#[test]
fn too_few_valid_data_points_stop_the_testbeds() {
    let paper = small();
    // 17 of 20 are fewer than 0.9.
    let given = pairs(&[(17, "y", "y"), (3, "n", "n")]);
    paper.project.write("filled.csv", ratings(&given));
    let outcome = stopped(paper.run(&[]), &paper);
    assert!(outcome.stdout.contains("valid_1, valid_2"), "{outcome}");
    // What does not hang on the ratings may be asked for; what does is not made.
    let outcome = stopped(paper.run(&["--keep-going"]), &paper);
    assert!(["ran", "hit"].contains(&outcome.status("spreadsheet").as_str()), "{outcome}");
    assert!(paper.project.path("galeras/validation_sheet.csv").exists());
    // Just as many as needed are enough.
    let given = pairs(&[(18, "y", "y"), (2, "n", "n")]);
    paper.project.write("filled.csv", ratings(&given));
    paper.run(&[]).exits(0);
    assert!(paper.project.path("galeras/table_1.csv").exists());
}

#[test]
fn people_who_disagree_stop_the_testbeds() {
    let mut paper = small();
    // Both call 36 of 40 valid, but not the same ones.
    let given = pairs(&[(32, "y", "y"), (4, "y", "n"), (4, "n", "y")]);
    paper.project.write("filled.csv", ratings(&given));
    let outcome = stopped(paper.run(&[]), &paper);
    assert!(outcome.stdout.contains("kappa"), "{outcome}");
    number(&agreement(&paper)["message"], "kappa", -1.0 / 9.0);
    paper.set("min_kappa", "-0.2");
    paper.run(&[]).exits(0);
    // As far as they agree by chance, a limit between two numbers tells them apart.
    let given = pairs(&[(20, "y", "y"), (5, "y", "n"), (10, "n", "y"), (15, "n", "n")]);
    paper.project.write("filled.csv", ratings(&given));
    paper.set("min_valid", "0.5");
    paper.set("min_kappa", "0.41");
    paper.run(&[]).exits(3);
    paper.set("min_kappa", "0.39");
    paper.run(&[]).exits(0);
}

#[test]
fn ratings_that_cannot_be_read_stop_the_testbeds() {
    for bad in ["x", "maybe", "2", "yn", "-"] {
        let paper = small();
        let given = if bad.len() == 1 { (bad, "y") } else { ("y", bad) };
        let given = pairs(&[(19, "y", "y"), (1, given.0, given.1)]);
        paper.project.write("filled.csv", ratings(&given));
        let outcome = stopped(paper.run(&[]), &paper);
        assert!(outcome.stdout.contains("unreadable"), "{bad}: {outcome}");
        assert_eq!(agreement(&paper)["code"]["unreadable"], 1, "{bad}");
    }
    // A column that is missing, a file that is missing: nothing runs.
    let paper = small();
    paper.project.write("filled.csv", ratings(&[("y", "y")]).replace("message_2", "massage_2"));
    paper.run(&[]).exits(2);
    let paper = small();
    paper.run(&[]).exits(2);
    assert!(paper.project.stored_nothing());
    // A data point that is rated in two lines.
    let paper = small();
    paper
        .project
        .write("filled.csv", ratings(&pairs(&[(2, "y", "y")])).replace("point-1", "point-0"));
    let outcome = paper.run(&[]).exits(1);
    assert!(outcome.stdout.contains("point-0"), "{outcome}");
}
