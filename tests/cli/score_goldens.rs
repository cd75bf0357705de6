//! `score` and the functions of `sql` give the numbers of the peers: sacrebleu, codebleu,
//! CodeXGLUE, rapidfuzz, rouge_score. With `given`, only what the model wrote counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Project, lines};

fn goldens() -> Value {
    serde_json::from_str(include_str!("../reference/scores.json")).unwrap()
}

fn pairs() -> Vec<Value> {
    let goldens = goldens();
    let pairs = goldens["pairs"].as_object().unwrap();
    let row = |(name, pair): (&String, &Value)| json!({"id": name, "code": pair["reference"], "prediction": pair["hypothesis"]});
    pairs.iter().map(row).collect()
}

const READ: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
";

/// A project that scores rows with `reference: code` and these arguments, which it did.
#[track_caller]
fn scored(rows: &[Value], with: &str) -> Project {
    let step =
        format!("  scores: {{ op: score, from: data, with: {{ reference: code{with} }} }}\n");
    ran(rows, &step)
}

#[track_caller]
fn ran(rows: &[Value], steps: &str) -> Project {
    Project::new(&format!("{READ}{steps}")).with("data.jsonl", lines(rows)).ran()
}

/// The rows of a step by their id.
#[track_caller]
fn by_id(project: &Project, step: &str) -> BTreeMap<String, Value> {
    let rows = project.rows(step);
    rows.into_iter().map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect()
}

#[track_caller]
fn close(ours: &Value, theirs: f64, about: &str) {
    let ours = ours.as_f64().unwrap_or_else(|| panic!("{about}: {ours}"));
    assert!((ours - theirs).abs() < 1e-9, "{about}: ours {ours}, theirs {theirs}");
    assert!((0.0..=1.0 + 1e-9).contains(&ours), "{about}: {ours}");
}

#[test]
fn scores_of_texts_are_the_peers() {
    let goldens = goldens();
    for mode in ["correct", "compat", "codexglue"] {
        let rows = by_id(&scored(&pairs(), &format!(", mode: {mode}")), "scores");
        assert_eq!(rows.len(), 15);
        for (name, row) in &rows {
            let theirs = &goldens["text"][name];
            let number = |column: &str| theirs[column].as_f64().unwrap();
            let about = |column: &str| format!("{mode} {name} {column}");
            assert_eq!(row["levenshtein"], theirs["levenshtein"], "{}", about("levenshtein"));
            close(&row["similarity"], number("similarity"), &about("similarity"));
            close(&row["bleu"], number("bleu") / 100.0, &about("bleu"));
            close(&row["chrf"], number("chrf") / 100.0, &about("chrf"));
            // To rouge_score only letters of English make words.
            if name != "unicode" || mode != "correct" {
                close(&row["rouge_l"], number("rouge_l"), &about("rouge_l"));
            }
            let equal = row["code"] == row["prediction"];
            assert_eq!(row["exact_match"], u8::from(equal), "{}", about("exact_match"));
        }
    }
    // BLEU with other tokens and smoothing.
    let mut steps = String::new();
    for tokens in ["13a", "none", "intl", "char"] {
        for smooth in ["exp", "floor", "add-k", "none"] {
            let with = format!("metrics: [bleu], bleu_tokenize: {tokens}, bleu_smooth: {smooth}");
            let step = format!("s_{tokens}_{}", smooth.replace("-", "_"));
            let with = format!("{{ reference: code, {with} }}");
            steps += &format!("  {step}: {{ op: score, from: data, with: {with} }}\n");
        }
    }
    let project = ran(&pairs(), &steps);
    for (tokens, of_tokens) in goldens["bleu"].as_object().unwrap() {
        for (smooth, theirs) in of_tokens.as_object().unwrap() {
            let step = format!("s_{tokens}_{}", smooth.replace('-', "_"));
            let rows = by_id(&project, &step);
            for (name, theirs) in theirs.as_object().unwrap() {
                let theirs = theirs.as_f64().unwrap() / 100.0;
                close(&rows[name]["bleu"], theirs, &format!("{step} {name}"));
            }
            // All fifteen as one text.
            let corpus = project.rows(&format!("{step}.corpus"));
            assert_eq!((&corpus[0]["metric"], &corpus[0]["rows"]), (&json!("bleu"), &json!(15)));
            let theirs = goldens["bleu_corpus"][tokens][smooth].as_f64().unwrap() / 100.0;
            close(&corpus[0]["value"], theirs, &format!("{step} corpus"));
        }
    }
}

const COMPONENTS: [&str; 5] =
    ["codebleu", "codebleu_ngram", "codebleu_weighted", "codebleu_syntax", "codebleu_dataflow"];

#[test]
fn codebleu_and_its_components_are_the_peers() {
    let goldens = goldens();
    // Without a word about the mode it is the package's.
    for (mode, peer) in [("correct", "compat"), ("compat", "compat"), ("codexglue", "codexglue")] {
        let project = scored(&pairs(), &format!(", metrics: [codebleu], mode: {mode}"));
        for (name, row) in by_id(&project, "scores") {
            for column in COMPONENTS {
                let theirs = goldens["codebleu"][peer][&name][column].as_f64().unwrap();
                close(&row[column], theirs, &format!("{mode} {name} {column}"));
            }
        }
    }
    // And that of a corpus.
    let rows: Vec<Value> =
        pairs().into_iter().filter(|row| row["code"] != "" && row["prediction"] != "").collect();
    assert_eq!(rows.len(), 12);
    let project = scored(&rows, ", metrics: [codebleu]");
    let corpus = project.rows("scores.corpus");
    assert_eq!(corpus.len(), 5);
    for row in corpus {
        let metric = row["metric"].as_str().unwrap();
        assert_eq!(row["rows"], 12);
        let theirs = goldens["codebleu"]["corpus_of_non_empty"][metric].as_f64().unwrap();
        close(&row["value"], theirs, metric);
    }
}

#[test]
fn functions_of_sql_are_the_scores_of_the_operator() {
    let steps = "  scores: { op: score, from: data, with: { reference: code } }
  asked:
    op: sql
    from: data
    with:
      query: >-
        SELECT id, levenshtein(code, prediction) AS levenshtein,
        levenshtein_similarity(code, prediction) AS similarity, bleu(code, prediction) AS bleu,
        chrf(code, prediction) AS chrf, rouge_l(code, prediction) AS rouge_l,
        exact_match(code, prediction) AS exact_match, codebleu(code, prediction) AS codebleu
        FROM input
";
    let mut rows = pairs();
    rows.push(json!({"id": "null", "code": null, "prediction": "x"}));
    rows.push(json!({"id": "spaces", "code": " x \n", "prediction": "\tx"}));
    let project = ran(&rows, steps);
    let scores = by_id(&project, "scores");
    for (id, row) in by_id(&project, "asked") {
        for (column, value) in row.as_object().unwrap() {
            assert_eq!(value, &scores[&id][column], "{id} {column}");
        }
    }
}

#[test]
fn pass_at_k_is_the_unbiased_estimate() {
    let goldens = goldens();
    let goldens = goldens["pass_at_k"].as_object().unwrap();
    let mut rows: Vec<Value> = Vec::new();
    for key in goldens.keys() {
        let numbers: Vec<i64> =
            key.split(',').map(|part| part.split_once('=').unwrap().1.parse().unwrap()).collect();
        rows.push(json!({"id": key, "n": numbers[0], "c": numbers[1], "k": numbers[2]}));
    }
    // There is no such chance.
    for (n, c, k) in [(3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1), (-3, 1, 1), (0, 0, 0)] {
        rows.push(json!({"id": format!("none {n} {c} {k}"), "n": n, "c": c, "k": k}));
    }
    rows.push(json!({"id": "none", "n": null, "c": 1, "k": 1}));
    // All wrong, all right, and numbers whose factorials no float holds.
    for (n, c, k, wanted) in [(9, 0, 9, 0.0), (9, 9, 1, 1.0), (100_000, 50_000, 1, 0.5)] {
        rows.push(json!({"id": format!("is {wanted}"), "n": n, "c": c, "k": k}));
    }
    // Fractions of binomial coefficients: C(c, k) / C(n, k), the chance that all are right.
    let all = [(10, 8, 5, 2.0 / 9.0), (10, 3, 2, 1.0 / 15.0), (10, 3, 5, 0.0), (9, 9, 9, 1.0)];
    for (n, c, k, _) in all {
        rows.push(json!({"id": format!("all {n} {c} {k}"), "n": n, "c": c, "k": k}));
    }
    let steps = "  asked:
    op: sql
    from: data
    with: { query: 'SELECT id, pass_at_k(n, c, k) AS p, pass_hat_k(n, c, k) AS q FROM input' }
";
    let asked = by_id(&ran(&rows, steps), "asked");
    for (n, c, k, wanted) in all {
        let id = format!("all {n} {c} {k}");
        close(&asked[&id]["q"], wanted, &id);
    }
    for (id, row) in asked.into_iter().filter(|(id, _)| !id.starts_with("all")) {
        match (goldens.get(&id), id.strip_prefix("is ")) {
            (Some(theirs), _) => close(&row["p"], theirs.as_f64().unwrap(), &id),
            (None, Some(wanted)) => close(&row["p"], wanted.parse().unwrap(), &id),
            (None, None) => assert!(row["p"].is_null() && row["q"].is_null(), "{row}"),
        }
    }
}

/// Real methods of the program's corpus, cut; an echo, the continuation, the whole, and the whole in
/// another layout as predictions.
const WORKFLOW: &str = r#"galeras: 1
steps:
  methods: { op: methods, with: { corpus: python-stdlib, include: ["json/*.py", "email/*.py"] } }
  testbed: { op: cut, from: methods, with: { seed: 7 } }
  answers:
    op: sql
    from: testbed
    with:
      query: >
        SELECT id, code, random_cut, random_cut AS echo, cut_rest AS rest,
               replace(random_cut, '    ', '  ') || cut_rest AS laid_out FROM input
      key: [id]
  echo:     { op: score, from: answers, with: { reference: code, given: random_cut, prediction: echo } }
  rest:     { op: score, from: answers, with: { reference: code, given: random_cut, prediction: rest } }
  whole:    { op: score, from: answers, with: { reference: code, given: random_cut, prediction: code } }
  laid_out: { op: score, from: answers, with: { reference: code, given: random_cut, prediction: laid_out } }
  both:
    op: score
    from: rest
    with: { reference: code, prediction: echo, prefix: whole_, metrics: [bleu, similarity, parses] }
"#;

const SHARES: [&str; 4] = ["bleu", "chrf", "similarity", "rouge_l"];

#[test]
fn an_echo_gets_nothing_and_the_reference_all() {
    let project = Project::new(WORKFLOW).ran();
    let echo = project.rows("echo");
    assert!(echo.len() > 300, "{} rows", echo.len());
    for row in &echo {
        for share in SHARES {
            // A rest of nothing but punctuation has no words for ROUGE: 0 as well.
            assert_eq!(row[share], 0.0, "{share}: {row}");
        }
        let rest = row["code"].as_str().unwrap().strip_prefix(row["random_cut"].as_str().unwrap());
        let missing = rest.unwrap().trim().chars().count();
        assert_eq!(row["levenshtein"], missing, "{row}");
        assert_eq!(row["exact_match"], 0);
    }
    let whole = by_id(&project, "whole");
    for step in ["rest", "laid_out"] {
        for (id, row) in &by_id(&project, step) {
            for column in ["bleu", "chrf", "similarity", "levenshtein", "exact_match", "codebleu"] {
                assert_eq!(row[column], whole[id][column], "{step} {column}: {row}");
            }
        }
    }
    for row in whole.values() {
        for share in ["bleu", "chrf", "similarity"] {
            assert!((row[share].as_f64().unwrap() - 1.0).abs() < 1e-9, "{share}: {row}");
        }
        assert_eq!((&row["exact_match"], &row["levenshtein"]), (&json!(1), &json!(0)));
    }
    // The published way next to it: an echo has a part of the points.
    let both = project.rows("both");
    let mean = |column: &str| {
        both.iter().map(|row| row[column].as_f64().unwrap()).sum::<f64>() / both.len() as f64
    };
    assert!((mean("bleu") - 1.0).abs() < 1e-9);
    assert!(mean("whole_bleu") > 0.2 && mean("whole_similarity") > 0.4);
}

/// The control always gives the right method with a docstring, T1 repeats the given text to the letter and
/// has other vowels after it.
const STUDY: &str = r#"galeras: 1
steps:
  methods: { op: methods, with: { corpus: python-stdlib, include: ["json/*.py", "email/*.py"] } }
  features: { op: ast, from: methods }
  testbed: { op: cut, from: features, with: { seed: 7 } }
  answers:
    op: sql
    from: testbed
    with:
      query: >
        SELECT id AS method, 'control' AS treatment, code, random_cut,
               regexp_replace(code, ':\n', concat(':', chr(10), '        """Does it."""', chr(10)))
                 AS prediction
        FROM input
        WHERE docstring IS NULL AND strpos(random_cut, concat(':', chr(10))) > 0
        UNION ALL
        SELECT id, 'T1', code, random_cut,
               concat(random_cut, regexp_replace(cut_rest, '[aeiou]', 'x'))
        FROM input
        WHERE docstring IS NULL AND strpos(random_cut, concat(':', chr(10))) > 0
      key: [method, treatment]
  scores: { op: score, from: answers, with: { reference: code, given: random_cut } }
  shares: { op: describe, from: scores, with: { columns: [begins, begins_distance], by: [treatment] } }
  effects:
    op: regress
    from: scores
    with: { treatment: treatment, control: control, unit: method, seed: 1, refuters: [],
            outcomes: [bleu, similarity, chrf] }
"#;

#[test]
fn an_effect_on_a_changed_beginning_keeps_its_sign() {
    let project = Project::new(STUDY).ran();
    for row in project.rows("effects.findings") {
        let estimate = row["estimate"].as_f64().unwrap();
        assert!(estimate < 0.0, "{row}");
        let sentence = row["sentence"].as_str().unwrap();
        assert!(sentence.contains("verbatim 100 % (control"), "{sentence}");
    }
    let shares = project.rows("shares");
    let changed = shares
        .iter()
        .find(|row| row["treatment"] == "control" && row["column"] == "begins = changed");
    assert!(changed.unwrap()["mean"].as_f64().unwrap() > 0.5, "{shares:?}");
    for row in project.rows("scores").iter().filter(|row| row["treatment"] == "control") {
        assert_eq!((&row["exact_match"], &row["levenshtein"]), (&json!(1), &json!(0)), "{row}");
        if row["begins"] == "changed" {
            assert_eq!(row["begins_distance"], 0.0, "{row}");
        }
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let given = |given: &str| {
        let row = json!({"id": "1", "code": "a = 1\nb = 2\n", "given": given, "prediction": "b"});
        let with = "{ reference: code, given: given }";
        let step = format!("  scores: {{ op: score, from: data, with: {with} }}\n");
        Project::new(&format!("{READ}{step}")).with("data.jsonl", lines(&[row]))
    };
    let other = given("c = 3").run(&["run", "w.yaml"]).exits(1);
    other.reports(&["does not begin with the given text"]);
    // Nothing is left to write: there is nothing to score.
    let row = given("a = 1\nb = 2").ran().only("scores");
    assert!(row["bleu"].is_null() && row["levenshtein"].is_null(), "{row}");
    let project = given("");
    project.change("given: given", "given: gven");
    project.run(&["run", "w.yaml"]).exits(2).reports(&["given"]);
}
