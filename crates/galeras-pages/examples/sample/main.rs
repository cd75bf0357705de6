//! Writes a page with every kind of section, texts that attack it, and as much as a large study has:
//! `cargo run -p galeras-pages --example sample -- OUT.html`. The numbers are made up. With
//! `OUT.html REPORT.json` it writes the page of another report.
//!
//! `tests/scripts/report_browser.py` looks at it in a browser.

use std::error::Error;
use std::fmt::Write as _;

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
    sections.extend(few_figures());
    sections.push(attrition());
    sections.push(leaderboard());
    sections.push(testbed());
    sections.push(points());
    sections.push(diagnostics());
    sections.push(json!({
        "kind": "text", "title": "Further figures",
        "markdown": "Distributions of each feature, per testbed. <b>HTML is shown as text</b>, \
                     [a script](javascript:alert(1)) leads nowhere, and ![a picture](https://example.org/x.png) is not loaded.",
    }));
    sections.extend(many_figures(27));
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
        "facts": [
            { "name": "Models", "value": "tiny-coder-1b (tiny-coder-1b-20260901), small-coder-3b" },
            { "name": "Answered", "value": "2026-11-21 to 2026-11-22" },
        ],
        "params": [
            { "name": "seed", "value": 42, "help": "every random choice derives from it" },
            { "name": "threshold", "value": 0.7, "help": "methods that are more alike than this count once", "changed": true },
            { "name": "models", "value": ["tiny-coder-1b", "small-coder-3b"], "help": "who is asked" },
        ],
        "missing": [{ "step": "human_review", "reason": "not computed yet", "command": "galeras run casestudy.yaml --select human_review" }],
        "sections": sections,
        "graph": graph(),
    })
}

fn findings() -> Value {
    json!({ "kind": "findings", "title": "What came out", "findings": [
        { "sentence": "With two examples, CodeBLEU of tiny-coder-1b is higher by 0.042 (95 % interval 0.031 to 0.053).",
          "outcome": "codebleu", "contrast": "few_shot against zero_shot", "group": "model = tiny-coder-1b",
          "effect": 0.0421, "low": 0.0312, "high": 0.0531,
          "p_adjusted": 0.00002, "n": 11873, "verdict": "different" },
        { "sentence": "For small-coder-3b the examples make no difference that matters: 0.003 (95 % interval −0.004 to 0.010), within the margin of 0.02.",
          "outcome": "codebleu", "contrast": "few_shot against zero_shot", "group": "model = small-coder-3b",
          "effect": 0.0031, "low": -0.0042, "high": 0.0104,
          "p_adjusted": 0.41, "n": 11873, "verdict": "equivalent" },
        { "sentence": "Whether the answer parses: odds 1.21 times as high with examples, but the interval (0.97 to 1.51) includes none.",
          "outcome": "parses", "contrast": "few_shot against zero_shot", "group": "all models",
          "effect": 1.21, "low": 0.97, "high": 1.51,
          "p_adjusted": 0.084, "n": 23746, "verdict": "inconclusive" },
        { "sentence": "No effect on exact match is given.", "outcome": "exact_match", "contrast": "few_shot against zero_shot",
          "status": "refused" },
    ], "note": "Paired differences within data points; standard errors by repository (CR2); p-values adjusted by Holm's method over 4 tests. See [the step](#step-effect)." })
}

fn attrition() -> Value {
    json!({ "kind": "attrition", "stages": [
        { "step": "mined", "operator": "mine", "rows": 48210 },
        { "step": "valid", "operator": "validate", "rows": 21044, "lost": 27166, "reasons": [
            { "reason": "long_enough: fewer than 10 tokens", "rows": 19860, "examples": [
                { "name": "0a91…", "value": "def size(self):\n    return self._size" },
                { "name": "77e0…", "value": SCRIPT } ] },
            { "reason": "parses: syntax errors", "rows": 5210 },
            { "reason": "documented: a docstring of fewer than 3 words", "rows": 2096 } ] },
        { "step": "unique", "operator": "dedup", "rows": 12000, "lost": 9044, "reasons": [
            { "reason": "more than 0.7 alike to another method", "rows": 9044, "examples": [{ "name": "c4d2…", "value": "duplicate of 11f0…, Jaccard 0.93" }] } ] },
        { "step": "testbed", "operator": "cut", "rows": 11873, "lost": 127, "reasons": [{ "reason": "no place to cut after the signature", "rows": 127 }] },
    ] })
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
    let names = "id repo path fun_name nloc complexity n_words codebleu code flags parses";
    let column = |name: &str| {
        let data_type =
            if ["nloc", "complexity", "n_words"].contains(&name) { "int64" } else { "utf8" };
        json!({ "name": name, "data_type": data_type, "description": format!("the {name} of the method") })
    };
    let columns: Vec<Value> = names.split(' ').map(column).collect();
    let rows: Vec<Value> = (0_u64..40)
        .map(|i| {
            let code = match i { 3 => SCRIPT.to_string(), 4 => RTL.to_string(), 5 => "x".repeat(9000), _ => format!("def f{i}(x):\n\treturn x + {i}") };
            json!([format!("{:032x}", u128::from(i) * 0x9e37_79b9_7f4a_7c15_u128), "psf/requests", format!("src/requests/module_{i}.py"), format!("function_{i}"),
                (i * 7919) % 97, (i * 31) % 11, (i * 104_729) % 20_011, (i as f64 * 0.6180339).fract(), code, { "nested": [i, true] }, i % 3 == 0])
        })
        .collect();
    json!({ "kind": "table", "title": "The testbed", "caption": "The subject of every answer.", "source": "testbed", "file_name": "testbed",
        "columns": columns, "rows": rows, "total": 11873, "choice": "the first by id" })
}

fn diagnostics() -> Value {
    json!({ "kind": "diagnostics", "notes": [
        { "severity": "refusal", "step": "effect", "text": "matching was refused: each cluster lies in one arm." },
        { "severity": "warning", "step": "answers", "text": "113 answers ended at max_tokens." },
        { "severity": "note", "step": "mined", "text": format!("A commit message was {} long.", ESC) } ] })
}

fn reproduce() -> Value {
    json!({ "kind": "reproduce",
        "note": "The lock file pins what comes from outside; with it, every digest below comes out again.",
        "commands": [
            { "name": "Get the workflow and its lock file.", "value": "git clone https://example.org/study && cd study" },
            { "name": "Run it; nothing that is stored is computed again.", "value": "galeras run casestudy.yaml --frozen --set threshold=0.7" },
            { "name": "Compare with these results.", "value": "galeras verify study.zip --recompute 3" } ],
        "facts": [
            { "name": "psf/requests", "value": "0e322af87745eff34caffe4df68456ebc20d9068" },
            { "name": "tiny-coder-1b", "value": "tiny-coder-1b-2026-03-01" } ],
        "digests": [
            { "name": "testbed.out", "value": "b3:7d1f0b2f6a4f5f1f8f3d1c5a9e0b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b" },
            { "name": "effect.findings", "value": "b3:1c0d9e8f7a6b5c4d3e2f1a0b7d1f0b2f6a4f5f1f8f3d1c5a9e0b7c6d5e4f3a2b" } ] })
}

/// Ends elements, and runs if it could.
const SCRIPT: &str = "</script><script>window.attacked = 1</script><img src=x onerror=\"window.attacked = 2\">\n]]> --> </pre></code></textarea></template>\n<svg onload=window.attacked=3><style>* { display: none }</style>\n{{ 7 * 7 }} {% raw %} &lt;b&gt;";

/// Reorders the text around it (CVE-2021-42574).
const RTL: &str = "def check(user):\n    if user != \"user\u{202e} \u{2066}# admin only\u{2069} \u{2066}\":\n        raise PermissionError\n    name = \"שלום\"\n    zero\u{200b}width = 1\n    return name\n";

/// Colours, rings and clears a terminal, with a NUL.
const ESC: &str = "\u{1b}[31mred\u{1b}[0m \u{7} \u{0} \u{9b}2J";

fn few_figures() -> Vec<Value> {
    vec![json!({ "kind": "figure", "title": "", "svg": forest("#fffefb", "#1d1d1b"),
        "caption": "**Effects of two examples on CodeBLEU**, with 95 % intervals. *n* = 11,873 data points in 3 repositories.",
        "alt": "Two intervals: tiny-coder-1b from 0.031 to 0.053, small-coder-3b from -0.004 to 0.010, which includes zero.",
        "source": "figure_00", "file_name": "effects" })]
}

fn many_figures(count: usize) -> Vec<Value> {
    (0..count)
        .map(|i| {
            json!({ "kind": "figure", "title": "", "svg": curve(i), "caption": format!("Feature {i}: distribution over the testbed. *n* = 11,873."),
                "alt": format!("A curve that rises from 0 to 1, feature {i}."), "source": format!("figure_{:02}", i % 40), "file_name": format!("feature_{i}") })
        })
        .collect()
}

fn forest(paper: &str, ink: &str) -> String {
    let row = |y: f64, name: &str, low: f64, at: f64, high: f64| {
        let x = |value: f64| 220.0 + (value + 0.02) / 0.08 * 380.0;
        format!(
            "<text x=\"200\" y=\"{}\" text-anchor=\"end\">{name}</text><path d=\"M{:.1} {y}H{:.1}\" stroke=\"#1b76a8\" stroke-width=\"2\"/><circle cx=\"{:.1}\" cy=\"{y}\" r=\"5\" fill=\"#1b76a8\"/>",
            y + 4.0,
            x(low),
            x(high),
            x(at)
        )
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"16cm\" height=\"4cm\" viewBox=\"0 0 640 160\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"13\" fill=\"{ink}\"><rect width=\"640\" height=\"160\" fill=\"{paper}\"/><script>window.attacked = 6</script><path d=\"M315 20V120M220 120H600\" stroke=\"{ink}\" stroke-width=\"1\" fill=\"none\"/>{}{}<text x=\"315\" y=\"142\" text-anchor=\"middle\">0</text><text x=\"505\" y=\"142\" text-anchor=\"middle\">0.04</text></svg>",
        row(48.0, "tiny-coder-1b", 0.0312, 0.0421, 0.0531),
        row(88.0, "small-coder-3b", -0.0042, 0.0031, 0.0104)
    )
}

fn curve(i: usize) -> String {
    let mut path = String::from("M40 180");
    for step in 0..7000 {
        let x = f64::from(step) / 7000.0;
        let y = 1.0 / (1.0 + (-(x - 0.3 - i as f64 * 0.01) * 12.0).exp());
        let _ = write!(path, "L{:.2} {:.2}", 40.0 + x * 540.0, 180.0 - y * 160.0);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"600\" height=\"210\" viewBox=\"0 0 600 210\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"12\"><rect width=\"600\" height=\"210\" fill=\"#fffefb\"/><path d=\"{path}\" fill=\"none\" stroke=\"#1b76a8\" stroke-width=\"1.5\"/><path d=\"M40 10V180H590\" fill=\"none\" stroke=\"#444\"/><text x=\"300\" y=\"204\" text-anchor=\"middle\">feature {i}</text></svg>"
    )
}

const REFERENCE: &str = r#"def merge_setting(request_setting, session_setting, dict_class=OrderedDict):
    """Determine the setting of a request, merged with that of its session."""
    if session_setting is None:
        return request_setting
    if request_setting is None:
        return session_setting

    # Bypass if not a dictionary (e.g. verify)
    if not (isinstance(session_setting, Mapping) and isinstance(request_setting, Mapping)):
        return request_setting

    merged_setting = dict_class(to_key_val_list(session_setting))
    merged_setting.update(to_key_val_list(request_setting))
    none_keys = [k for (k, v) in merged_setting.items() if v is None]
    for key in none_keys:
        del merged_setting[key]
    return merged_setting
"#;

const ANSWER: &str = r#"def merge_setting(request_setting, session_setting, dict_class=OrderedDict):
    """Determine the setting of a request, merged with that of its session."""
    if session_setting is None:
        return request_setting
    if request_setting is None:
        return session_setting

    # Bypass if not a dictionary (e.g. verify)
    if not isinstance(session_setting, dict):
        return request_setting

    merged_setting = dict_class(session_setting)
    merged_setting.update(request_setting)
    return {key: value for key, value in merged_setting.items() if value is not None}
"#;

const BROKEN: &str = "def f(x:\n    return [x for x in (1, 2\n  class @@@\n\"\"\"never closed\n";

fn points() -> Value {
    let line = |part: &str, count: usize| format!("x = '{}'\ny = 2\n", part.repeat(count));
    let mut points: Vec<Value> = Vec::new();
    for i in 0_u64..100 {
        let (title, reference, answer) = match i {
            0 => ("sessions.py: merge_setting", REFERENCE, ANSWER.to_string()),
            1 => ("broken code", REFERENCE, BROKEN.to_string()),
            2 => ("<script>window.attacked = 4</script>", SCRIPT, format!("{SCRIPT}more")),
            3 => ("direction marks", RTL, RTL.replace('\u{202e}', "")),
            4 => ("terminal codes", ESC, format!("print({:?})\n{ESC}", "é")),
            5 => ("a line of a megabyte", "x = 1\n", line("ab ", 350_000)),
            6 => ("a long line that is kept", "x = 1\n", line("cd ", 20_000)),
            7 => ("no answer", "return 1\n", String::new()),
            _ => ("utils.py: function", REFERENCE, ANSWER.replace("value", &format!("item_{i}"))),
        };
        let reference = match i {
            0..8 => reference.to_string(),
            _ => reference.replace("key", &format!("key_{i}")),
        };
        let score = |factor: f64| (i as f64 * factor).fract();
        points.push(json!({
            "id": format!("{:032x}", u128::from(i) * 0xc2b2_ae3d_27d4_eb4f_u128),
            "title": if i < 8 { title.to_string() } else { format!("{title}_{i}") },
            "groups": [
                { "name": "model", "value": if i % 2 == 0 { "tiny-coder-1b" } else { "small-coder-3b" } },
                { "name": "treatment", "value": if i % 4 < 2 { "zero_shot" } else { "few_shot" } } ],
            "scores": [{ "metric": "codebleu", "value": score(0.618_033_9) }, { "metric": "bleu", "value": if i == 7 { None } else { Some(score(0.414_213_5)) } }],
            "prompt": [
                { "name": "system", "value": "You complete Python methods. Answer with code only." },
                { "name": "user", "value": format!("Complete the method:\n\n{}", &REFERENCE[..200]) } ],
            "answer": answer, "reference": reference,
            "texts": [{ "name": "Given up to the cut", "value": &REFERENCE[..300] }],
            "trace": [
                { "step": "scored", "id": format!("{i:08x}"), "text": "" },
                { "step": "mined", "id": "", "text": "psf/requests at 0e322af8, src/requests/sessions.py, lines 61 to 91",
                  "url": if i == 2 { "javascript:window.attacked = 5" } else { "https://github.com/psf/requests/blob/0e322af8/src/requests/sessions.py#L61-L91" } } ],
        }));
    }
    json!({ "kind": "rows", "title": "Answers beside references", "caption": "", "points": points, "total": 12_000,
        "choice": "a sample of 100, drawn by their ids", "source": "scored" })
}

/// Names and operators.
const MAIN: &str = "mined mine, features ast, valid validate, unique dedup, testbed cut, \
    prompts prompt, answers[model=tiny-coder-1b] generate, scored score, describe_scores describe, \
    effect regress, human_review review";

fn graph() -> Value {
    let mut steps: Vec<Value> = Vec::new();
    let mut arrows: Vec<Value> = Vec::new();
    let main: Vec<(&str, &str)> =
        MAIN.split(", ").filter_map(|step| step.split_once(' ')).collect();
    for (level, (name, operator)) in main.iter().enumerate() {
        let state = if *name == "human_review" { "missing" } else { "stored" };
        steps.push(step(name, operator, state, level));
        if level > 0 {
            arrows.push(json!({ "from": main[level - 1].0, "to": name }));
        }
    }
    for i in 0..49 {
        let image = "<img src=x onerror=alert(1)>".to_string();
        let name = if i == 7 { image } else { format!("figure_{i:02}") };
        let state = if (11..14).contains(&i) { "missing" } else { "stored" };
        steps.push(step(&name, "figure", state, i));
        let port = if i % 9 == 0 { "rejects" } else { "" };
        arrows.push(json!({ "from": main[1 + i / 5].0, "to": name, "port": port }));
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
            "top": [{ "value": "django/django", "count": 7100 }, { "value": "psf/requests", "count": 3200 }, { "value": SCRIPT, "count": 1697 }] } },
    ]);
    json!({
        "name": name, "operator": operator, "state": state,
        "arguments": format!("column: code\nthreshold: 0.7\nnote: \"{}\"\n", if i == 1 { SCRIPT } else { "as published" }),
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
