//! The graph of the sample: sixty steps.

use serde_json::{Value, json};

use crate::hostile;

/// Names and operators.
const MAIN: &[(&str, &str)] = &[
    ("mined", "mine"),
    ("features", "ast"),
    ("valid", "validate"),
    ("unique", "dedup"),
    ("testbed", "cut"),
    ("prompts", "prompt"),
    ("answers[model=tiny-coder-1b]", "generate"),
    ("scored", "score"),
    ("describe_scores", "describe"),
    ("effect", "regress"),
    ("human_review", "review"),
];

pub(crate) fn graph() -> Value {
    let mut steps: Vec<Value> = Vec::new();
    let mut arrows: Vec<Value> = Vec::new();
    for (level, (name, operator)) in MAIN.iter().enumerate() {
        let state = if *name == "human_review" { "missing" } else { "stored" };
        steps.push(step(name, operator, state, level));
        if level > 0 {
            arrows.push(json!({ "from": MAIN[level - 1].0, "to": name }));
        }
    }
    for i in 0..49 {
        let name = match i {
            7 => "<img src=x onerror=alert(1)>".to_string(),
            _ => format!("figure_{i:02}"),
        };
        let state = match i {
            11 => "failed",
            12 => "skipped",
            13 => "running",
            _ => "stored",
        };
        steps.push(step(&name, "figure", state, i));
        let port = if i % 9 == 0 { "rejects" } else { "" };
        arrows.push(json!({ "from": MAIN[1 + i / 5].0, "to": name, "port": port }));
    }
    json!({ "steps": steps, "arrows": arrows })
}

fn step(name: &str, operator: &str, state: &str, i: usize) -> Value {
    let bins: Vec<Value> = (0..20)
        .map(|bin| {
            let at = f64::from(bin);
            json!({ "low": at * 5.0, "high": at * 5.0 + 5.0, "count": (4000.0 * (-(at - 6.0).powi(2) / 18.0).exp()) as u64 })
        })
        .collect();
    let number = |name: &str, unit: &str, about: &str| {
        json!({ "name": name, "data_type": "int64!", "unit": unit, "description": about, "statistics": {
            "count": 12000, "nulls": 0, "distinct": 97, "min": 0, "q1": 17, "median": 29.5, "mean": 31.27, "std": 14.9, "q3": 44, "max": 99, "bins": bins } })
    };
    let columns = json!([
        { "name": "id", "data_type": "utf8!", "description": "The id of the data point.", "statistics": { "count": 12000, "distinct": 12000, "distinct_estimated": true, "min": "000a", "max": "ffe1" } },
        number("nloc", "lines", "Lines of code without comments."),
        number("complexity", "", "Cyclomatic complexity (McCabe 1976)."),
        { "name": "repo", "data_type": "utf8", "description": "The repository.", "statistics": { "count": 12000, "nulls": 3, "distinct": 3, "min": "django/django", "max": "psf/requests",
            "top": [{ "value": "django/django", "count": 7100 }, { "value": "psf/requests", "count": 3200 }, { "value": hostile::SCRIPT, "count": 1697 }] } },
    ]);
    json!({
        "name": name, "operator": operator, "state": state,
        "description": "The purpose of this step, in the words of the workflow.",
        "arguments": format!("column: code\nthreshold: 0.7\nnote: \"{}\"\n", if i == 1 { hostile::SCRIPT } else { "as published" }),
        "reason": if state == "stored" { "hit: nothing changed" } else { "ARG_CHANGED: threshold 0.8 -> 0.7" },
        "seconds": 0.42 * i as f64, "rows": if state == "stored" { Some(12000 + i) } else { None },
        "digest": format!("b3:{:064x}", i * 7919),
        "assertions": [{ "test": "unique: [id]", "passed": true }, { "test": "expr: nloc > 1", "passed": i % 5 != 3, "warns": true, "detail": if i % 5 == 3 { "17 rows fail" } else { "" } }],
        "ports": [{ "name": "out", "rows": 12000, "digest": format!("b3:{:064x}", i * 7919), "columns": columns,
            "first_rows": { "title": format!("First rows of {name}"), "file_name": "first_rows", "total": 12000,
                "columns": [{ "name": "id", "data_type": "utf8!" }, { "name": "nloc", "data_type": "int64!" }, { "name": "repo", "data_type": "utf8" }],
                "rows": [["000a", 12, "psf/requests"], ["000b", 31, "django/django"], ["000c", 7, null]] } }],
    })
}
