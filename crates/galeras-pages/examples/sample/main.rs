//! Writes a page with every kind of section, texts that attack it, and as much as a large study has:
//! `cargo run -p galeras-pages --example sample -- OUT.html`. The numbers are made up. With
//! `OUT.html REPORT.json` it writes the page of another report.
//!
//! `tests/scripts/report_browser.py` looks at it in a browser.

mod figures;
mod hostile;
mod points;
mod steps;

use std::error::Error;

use galeras_pages::model::Report;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: sample OUT.html [REPORT.json]")?;
    let report: Report = match args.next() {
        Some(json) => serde_json::from_str(&std::fs::read_to_string(json)?)?,
        None => serde_json::from_value(study())?,
    };
    std::fs::write(path, galeras_pages::report(&report)?)?;
    Ok(())
}

fn study() -> Value {
    let mut sections = vec![findings()];
    sections.extend(figures::few());
    sections.push(attrition());
    sections.push(leaderboard());
    sections.push(testbed());
    sections.push(points::section());
    sections.push(diagnostics());
    sections.push(json!({
        "kind": "text", "title": "Further figures",
        "markdown": "Distributions of each feature, per testbed. <b>HTML is shown as text</b>, \
                     [a script](javascript:alert(1)) leads nowhere, and ![a picture](https://example.org/x.png) is not loaded.",
    }));
    sections.extend(figures::many(27));
    sections.push(reproduce());
    json!({
        "title": "Do two examples in the prompt help small models to complete Python methods?",
        "workflow": "casestudy",
        "question": "Two models complete Python methods that were cut at a random place, from a prompt \
            without examples (`zero_shot`) and from one with two examples of the same repository \
            (`few_shot`). **Asked is the average causal effect of the examples on CodeBLEU**, and \
            whether it depends on the length of the method.",
        "made_at": "2026-11-22 21:53 UTC",
        "made_by": "galeras 0.1.0",
        "run": { "id": "20261122T214001Z-7f3a", "started": "2026-11-22 21:40 UTC", "status": "done", "seconds": 412.6 },
        "params": [
            { "name": "seed", "value": 42, "help": "every random choice derives from it" },
            { "name": "threshold", "value": 0.7, "help": "methods that are more alike than this count once", "changed": true },
            { "name": "models", "value": ["tiny-coder-1b", "small-coder-3b"], "help": "who is asked" },
        ],
        "missing": [{ "step": "human_review", "reason": "not computed yet", "command": "galeras run casestudy.yaml --select human_review" }],
        "sections": sections,
        "graph": steps::graph(),
    })
}

fn findings() -> Value {
    json!({ "kind": "findings", "title": "What came out", "findings": [
        { "sentence": "With two examples, CodeBLEU of tiny-coder-1b is higher by 0.042 (95 % interval 0.031 to 0.053).",
          "outcome": "codebleu", "contrast": "few_shot against zero_shot", "group": "model = tiny-coder-1b",
          "measure": "difference", "effect": 0.0421, "low": 0.0312, "high": 0.0531, "null_value": 0.0, "level": 0.95,
          "p_adjusted": 0.00002, "n": 11873, "verdict": "different" },
        { "sentence": "For small-coder-3b the examples make no difference that matters: 0.003 (95 % interval −0.004 to 0.010), within the margin of 0.02.",
          "outcome": "codebleu", "contrast": "few_shot against zero_shot", "group": "model = small-coder-3b",
          "measure": "difference", "effect": 0.0031, "low": -0.0042, "high": 0.0104, "null_value": 0.0, "level": 0.95,
          "p_adjusted": 0.41, "n": 11873, "verdict": "equivalent" },
        { "sentence": "Whether the answer parses: odds 1.21 times as high with examples, but the interval (0.97 to 1.51) includes none.",
          "outcome": "parses", "contrast": "few_shot against zero_shot", "group": "all models",
          "measure": "odds_ratio", "effect": 1.21, "low": 0.97, "high": 1.51, "null_value": 1.0, "level": 0.95,
          "p_adjusted": 0.084, "n": 23746, "verdict": "inconclusive" },
        { "sentence": "No effect on exact match is given.", "outcome": "exact_match", "contrast": "few_shot against zero_shot",
          "status": "refused", "reason": "The outcome is the same in all but 3 of 23,746 rows: there is nothing to compare." },
    ], "note": "Paired differences within data points; standard errors by repository (CR2); p-values adjusted by Holm's method over 4 tests. See [the step](#step-effect)." })
}

fn attrition() -> Value {
    json!({ "kind": "attrition", "title": "Where the rows went", "unit": "methods", "stages": [
        { "step": "mined", "operator": "mine", "rows": 48210 },
        { "step": "valid", "operator": "validate", "rows": 21044, "lost": 27166, "reasons": [
            { "reason": "long_enough: fewer than 10 tokens", "rows": 19860, "examples": [
                { "name": "0a91…", "value": "def size(self):\n    return self._size" },
                { "name": "77e0…", "value": hostile::SCRIPT } ] },
            { "reason": "parses: syntax errors", "rows": 5210 },
            { "reason": "documented: a docstring of fewer than 3 words", "rows": 2096 } ] },
        { "step": "unique", "operator": "dedup", "rows": 12000, "lost": 9044, "reasons": [
            { "reason": "more than 0.7 alike to another method", "rows": 9044, "examples": [{ "name": "c4d2…", "value": "duplicate of 11f0…, Jaccard 0.93" }] } ] },
        { "step": "testbed", "operator": "cut", "rows": 11873, "lost": 127, "reasons": [{ "reason": "no place to cut after the signature", "rows": 127 }] },
    ], "note": "Answers that could not be had count as zero, not as lost." })
}

fn leaderboard() -> Value {
    json!({ "kind": "table", "title": "Scores by model and prompt",
        "caption": "Mean scores with 95 % intervals. *n* is the number of data points.",
        "source": "describe_scores", "file_name": "leaderboard",
        "columns": [
            { "name": "model", "data_type": "utf8!" },
            { "name": "prompt", "data_type": "utf8!", "description": "the treatment" },
            { "name": "n", "data_type": "int64!", "description": "data points" },
            { "name": "codebleu", "data_type": "float64", "description": "mean CodeBLEU, from 0 to 1" },
            { "name": "low", "data_type": "float64" }, { "name": "high", "data_type": "float64" },
            { "name": "p", "data_type": "float64", "description": "adjusted p-value" },
            { "name": "cost", "data_type": "float64", "unit": "USD", "description": "price of the answers" } ],
        "rows": [
            ["tiny-coder-1b", "zero_shot", 11873, 0.3120, 0.3061, 0.3179, null, 1.25],
            ["tiny-coder-1b", "few_shot", 11873, 0.3541, 0.3480, 0.3602, 2.1e-5, 2.5],
            ["small-coder-3b", "zero_shot", 11873, 0.4310, 0.4249, 0.4371, null, 4.75],
            ["small-coder-3b", "few_shot", 11873, 0.4341, 0.4279, 0.4403, 0.41, 9.5],
            ["R&D_model {50 %} #1 | a\\b ~ $x^2$", "zero_shot", 9, -0.0012, -0.1, 0.1, 0.0004, 0] ] })
}

fn testbed() -> Value {
    let names = [
        "id",
        "repo",
        "path",
        "fun_name",
        "nloc",
        "complexity",
        "n_words",
        "codebleu",
        "code",
        "flags",
        "parses",
    ];
    let columns: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "data_type": if ["nloc", "complexity", "n_words"].contains(name) { "int64" } else { "utf8" }, "description": format!("the {name} of the method") }))
        .collect();
    let rows: Vec<Value> = (0_u64..40)
        .map(|i| {
            let code = match i { 3 => hostile::SCRIPT.to_string(), 4 => hostile::RTL.to_string(), 5 => "x".repeat(9000), _ => format!("def f{i}(x):\n\treturn x + {i}") };
            json!([format!("{:032x}", u128::from(i) * 0x9e37_79b9_7f4a_7c15_u128), "psf/requests", format!("src/requests/module_{i}.py"), format!("function_{i}"),
                (i * 7919) % 97, (i * 31) % 11, (i * 104_729) % 20_011, (i as f64 * 0.6180339).fract(), code, { "nested": [i, true] }, i % 3 == 0])
        })
        .collect();
    json!({ "kind": "table", "title": "The testbed", "caption": "The subject of every answer.", "source": "testbed", "file_name": "testbed",
        "columns": columns, "rows": rows, "total": 11873, "choice": "the first by id" })
}

fn diagnostics() -> Value {
    json!({ "kind": "diagnostics", "title": "Refusals and warnings", "notes": [
        { "severity": "refusal", "step": "effect", "text": "matching was refused: each cluster lies in one arm.", "help": "Leave `matching` out, or name another `cluster`." },
        { "severity": "warning", "step": "answers", "text": "113 answers ended at max_tokens.", "help": "Raise `max_tokens` to at least 512." },
        { "severity": "note", "step": "mined", "text": format!("A commit message was {} long.", hostile::ESC) } ] })
}

fn reproduce() -> Value {
    json!({ "kind": "reproduce", "title": "How to reproduce this",
        "note": "The lock file pins what comes from outside; with it, every digest below comes out again.",
        "commands": [
            { "purpose": "Get the workflow and its lock file.", "command": "git clone https://example.org/study && cd study" },
            { "purpose": "Run it; nothing that is stored is computed again.", "command": "galeras run casestudy.yaml --frozen --set threshold=0.7" },
            { "purpose": "Compare with these results.", "command": "galeras verify study.zip --recompute 3" } ],
        "facts": [
            { "name": "psf/requests", "value": "0e322af87745eff34caffe4df68456ebc20d9068" },
            { "name": "tiny-coder-1b", "value": "tiny-coder-1b-2026-03-01" } ],
        "digests": [
            { "name": "testbed.out", "value": "b3:7d1f0b2f6a4f5f1f8f3d1c5a9e0b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b" },
            { "name": "effect.findings", "value": "b3:1c0d9e8f7a6b5c4d3e2f1a0b7d1f0b2f6a4f5f1f8f3d1c5a9e0b7c6d5e4f3a2b" } ] })
}
