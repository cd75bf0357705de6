//! Mistakes in steps of `generate` and `prompt`: found at their place before anything runs.

use crate::harness::{Project, marked};

const BEFORE: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: touch ran; printf '{\"id\":\"a\",\"code\":\"x y\",\"size\":1,\"text\":null}'
      output: { id: utf8!, code: utf8!, size: int64!, text: utf8 }
";
const URL: &str = "http://127.0.0.1:9/v1";

/// Just one diagnostic, at the mark `«`, which says these words; nothing ran.
#[track_caller]
fn refused(steps: &str, code: &str, words: &[&str]) {
    let (workflow, place) = marked(&format!("{BEFORE}{steps}"));
    let project = Project::new(&workflow);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
    let found = &outcome.events("diagnostic")[0];
    let said = format!("{} {}", found["message"], found["help"]);
    for word in words {
        assert!(said.contains(word), "{word} in {said}");
    }
    let shown = project.run(&["check", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains(&format!("w.yaml:{place}")), "{shown}");
    assert!(shown.stderr.contains('·'), "{shown}");
    assert!(!project.path("ran").exists() && project.stored_nothing());
}

/// A step that asks, with these arguments, has this mistake.
#[track_caller]
fn wrong(with: &str, code: &str, words: &[&str]) {
    let step = "  answers:\n    op: generate\n    from: table\n    with: ";
    refused(&format!("{step}{with}\n"), code, words);
}

/// The same besides what a step of `openai` needs.
#[track_caller]
fn wrong_openai(with: &str, code: &str, words: &[&str]) {
    wrong(&format!("{{ model: m, base_url: '{URL}', messages: code, {with} }}"), code, words);
}

/// Treatments with this mistake.
#[track_caller]
fn wrong_prompt(with: &str, code: &str, words: &[&str]) {
    let step = "  prompts:\n    op: prompt\n    from: table\n    with:\n      ";
    refused(&format!("{step}{with}\n"), code, words);
}

#[test]
fn unknown_arguments() {
    wrong_openai("«temprature: 1", "unknown-argument", &["temprature", "temperature"]);
    wrong_openai("price: { input: 1, output: 1, «cached: 1 }", "unknown-argument", &["cached"]);
    wrong_openai("provider: «gemini", "wrong-value", &["openai", "ngram", "replay"]);
    wrong_openai("extract: «python", "wrong-value", &["code", "raw"]);
}

#[test]
fn arguments_of_another_provider() {
    for (with, name, provider) in [
        ("order: «3", "order", "ngram"),
        ("train_column: «code", "train_column", "ngram"),
        ("code: «code", "code", "ngram"),
        ("on: «[id]", "on", "replay"),
        ("answer: «code", "answer", "replay"),
    ] {
        wrong_openai(with, "conflicting-arguments", &[name, provider]);
    }
    let ngram = |with: &str| {
        format!(
            "  answers:\n    op: generate\n    from: {{ input: table, train: table }}\n    with: \
             {{ provider: ngram, seed: 1, messages: code, code: code, {with} }}\n"
        )
    };
    for (with, name) in [
        ("base_url: «'http://h/v1'", "base_url"),
        ("api_key_env: «KEY", "api_key_env"),
        ("concurrency: «4", "concurrency"),
        ("extra_body: «{ a: 1 }", "extra_body"),
        ("price: «{ input: 1, output: 1 }", "price"),
        ("max_usd: «1", "max_usd"),
        ("top_p: «0.5", "top_p"),
        ("tries: «2", "tries"),
        ("timeout_seconds: «2", "timeout_seconds"),
        ("requests_per_minute: «2", "requests_per_minute"),
        ("tokens_per_minute: «2", "tokens_per_minute"),
    ] {
        refused(&ngram(with), "conflicting-arguments", &[name, "openai"]);
    }
}

#[test]
fn arguments_that_a_server_does_not_take() {
    for (with, words) in [
        ("prompt: «code", &["`endpoint: completions`", "`messages`"][..]),
        ("suffix: «code", &["`endpoint: completions`"]),
        ("given: «code", &["echo", "did you mean `messages`?"]),
        ("reference: «code", &["reference", "did you mean `messages`?"]),
    ] {
        wrong_openai(with, "conflicting-arguments", words);
    }
    let completions =
        |with: &str| format!("{{ endpoint: completions, model: m, base_url: '{URL}', {with} }}");
    let code = "conflicting-arguments";
    wrong(
        &completions("messages: «code, prompt: code"),
        code,
        &["`endpoint: chat`", "did you mean `prompt`?"],
    );
    for name in ["model", "prompt", "suffix", "stream", "n", "echo"] {
        wrong(&completions(&format!("prompt: code, extra_body: {{ {name}: «2 }}")), code, &[name]);
    }
    wrong(&completions("prompt: «cod"), "unknown-column", &["cod", "code"]);
    wrong(&completions("prompt: «size"), "wrong-type", &["size", "int64"]);
    wrong(&completions("prompt: code, suffix: «cod"), "unknown-column", &["cod", "code"]);
    wrong(
        "{ endpoint: «completion, model: m, prompt: code }",
        "wrong-value",
        &["did you mean `completions`?"],
    );
    for (url, word) in
        [("http://h/v1/chat/completions", "not chats"), ("http://h/api/generate", "/v1")]
    {
        let with =
            format!("{{ endpoint: completions, model: m, prompt: code, base_url: «'{url}' }}");
        wrong(&with, "bad-url", &[word]);
    }
}

#[test]
fn arguments_of_anthropic() {
    let anthropic = |with: &str| {
        format!("{{ provider: anthropic, model: m, base_url: '{URL}', messages: code, {with} }}")
    };
    let code = "conflicting-arguments";
    for (with, name) in [
        ("seed: «1", "seed"),
        ("logprobs: «true", "logprobs"),
        ("endpoint: «chat", "endpoint"),
        ("prompt: «code", "prompt"),
        ("suffix: «code", "suffix"),
        ("order: «3", "order"),
        ("given: «code", "given"),
    ] {
        wrong(&anthropic(&format!("max_tokens: 5, {with}")), code, &[name, "belongs to"]);
    }
    wrong(
        &anthropic("max_tokens: 5, seed: «1"),
        code,
        &["`provider: anthropic` takes", "temperature"],
    );
    for name in ["model", "messages", "system", "stream"] {
        wrong(&anthropic(&format!("max_tokens: 5, extra_body: {{ {name}: «2 }}")), code, &[name]);
    }
    wrong(&anthropic("max_tokens: 5, temperature: «1.5"), "out-of-range", &["at most 1"]);
    let chat = "{ provider: anthropic, max_tokens: 5, model: m, messages: code, base_url: «'http://h/v1/chat/completions' }";
    wrong(chat, "bad-url", &["/v1/messages"]);
    // What is missing has no place of its own.
    let step = "  answers:\n    op: generate\n    from: table\n    with: ";
    for (with, words) in [
        (anthropic("top_p: 1"), &["needs `max_tokens`", "max_tokens: 1024"][..]),
        (
            "{ provider: anthropic, max_tokens: 5, messages: code }".to_string(),
            &["needs a `model`"],
        ),
        (
            "{ provider: reference }".to_string(),
            &["column with the right answers", "reference: code"],
        ),
    ] {
        let outcome = Project::new(&format!("{BEFORE}{step}{with}\n")).run_json(&[]).exits(2);
        let found = outcome.events("diagnostic");
        assert_eq!((found.len(), &found[0]["code"]), (1, &"missing-argument".into()), "{outcome}");
        let said = format!("{} {}", found[0]["message"], found[0]["help"]);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn arguments_of_baselines() {
    let code = "conflicting-arguments";
    let echo = |with: &str| format!("{{ provider: echo, given: code, {with} }}");
    for (with, words) in [
        ("code: «code", &["ngram", "did you mean `given`?"][..]),
        ("reference: «code", &["reference", "did you mean `given`?"]),
        ("temperature: «0", &["openai", "takes"]),
        ("max_tokens: «5", &["openai"]),
        ("seed: «5", &["ngram"]),
        ("max_usd: «5", &["anthropic"]),
        ("base_url: «'http://h/v1'", &["openai"]),
        ("logprobs: «false", &["openai"]),
    ] {
        wrong(&echo(with), code, words);
    }
    wrong(
        "{ provider: reference, reference: code, given: «code }",
        code,
        &["did you mean `reference`?"],
    );
    wrong(
        "{ provider: reference, reference: code, messages: «code }",
        code,
        &["did you mean `reference`?"],
    );
    wrong("{ provider: echo, given: «cod }", "unknown-column", &["cod", "code"]);
    wrong("{ provider: echo, given: «size }", "wrong-type", &["size", "int64"]);
    wrong("{ provider: reference, reference: «cod }", "unknown-column", &["cod", "code"]);
    wrong("{ provider: echo, messages: «cod }", "unknown-column", &["cod", "code"]);
    wrong("{ provider: «ecko, messages: code }", "wrong-value", &["did you mean `echo`?"]);
    let from = "  answers:\n    op: generate\n    from: { input: table, train: table }\n    with: ";
    let with = "{ provider: «echo, given: code }\n";
    refused(&format!("{from}{with}"), "wrong-inputs", &["`train`"]);
}

#[test]
fn a_model_is_needed() {
    let step = "  «answers:\n    op: generate\n    from: table\n    with: ";
    let with = format!("{{ base_url: '{URL}', messages: code }}\n");
    let (text, _) = marked(&format!("{BEFORE}{step}{with}"));
    let outcome = Project::new(&text).run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 1, "{outcome}");
    assert!(found[0].starts_with("missing-argument w.yaml:"), "{outcome}");
    assert!(
        outcome.events("diagnostic")[0]["message"].to_string().contains("`model`"),
        "{outcome}"
    );
    wrong(
        &format!("{{ model: «' ', base_url: '{URL}', messages: code }}"),
        "missing-argument",
        &["model"],
    );
}

#[test]
fn addresses_that_are_none() {
    for (url, words) in [
        ("localhost:8000/v1", &["https://"][..]),
        ("https:host/v1", &["https://"]),
        ("ftp://host/v1", &["https://"]),
        ("/v1", &["https://"]),
        ("http://host/v1#x", &["`#`"]),
        ("http://host:port/v1", &["invalid"]),
        ("http://host/v1/completions", &["/completions"]),
        ("http://host/api/chat", &["/v1"]),
    ] {
        wrong(&format!("{{ model: m, messages: code, base_url: «'{url}' }}"), "bad-url", words);
    }
}

#[test]
fn an_address_with_a_password_is_refused_without_quoting_it() {
    for url in ["http://me:hunter2@host/v1", "http://hunter2@host/v1"] {
        let text = format!("{{ model: m, messages: code, base_url: «'{url}' }}");
        wrong(&text, "bad-url", &["user or password"]);
        let step = "  answers:\n    op: generate\n    from: table\n    with: ";
        let (text, _) = marked(&format!("{BEFORE}{step}{text}\n"));
        let outcome = Project::new(&text).run_json(&[]).exits(2);
        assert!(!outcome.stdout.contains("hunter2"), "{outcome}");
    }
}

#[test]
fn a_limit_of_the_cost_needs_prices_and_lengths() {
    let price = "price: { input: 1, output: 1 }";
    wrong_openai("max_tokens: 5, max_usd: «1", "missing-argument", &["price"]);
    wrong_openai(&format!("{price}, max_usd: «1"), "missing-argument", &["max_tokens"]);
    wrong_openai(&format!("{price}, max_tokens: 5, max_usd: «-1"), "out-of-range", &["0 or more"]);
    wrong_openai("price: «{ input: -1, output: 1 }", "out-of-range", &["-1"]);
    wrong_openai("price: «{ input: 1e-13, output: 1 }", "out-of-range", &["decimals"]);
    wrong_openai("price: «{ input: 1 }", "missing-argument", &["output"]);
    wrong_openai("price: «1", "wrong-type", &["price"]);
}

#[test]
fn values_out_of_range() {
    for (with, code, word) in [
        ("samples: «0", "wrong-value", "1"),
        ("samples: «10001", "wrong-value", "10000"),
        ("temperature: «-0.1", "wrong-value", "0"),
        ("top_p: «1.5", "wrong-value", "1"),
        ("max_tokens: «0", "wrong-value", "1"),
        ("concurrency: «0", "wrong-value", "1"),
        ("concurrency: «5000", "wrong-value", "4096"),
        ("requests_per_minute: «0", "wrong-value", "1"),
        ("tokens_per_minute: «0", "wrong-value", "1"),
        ("tries: «0", "wrong-value", "1"),
        ("timeout_seconds: «0", "out-of-range", "more than 0"),
        ("timeout_seconds: «1e9", "out-of-range", "day"),
        ("stop: «['']", "out-of-range", "empty"),
        ("stop: «END", "wrong-type", "list"),
        ("seed: «1.5", "wrong-type", "integer"),
        ("samples: «two", "wrong-type", "integer"),
    ] {
        wrong_openai(with, code, &[word]);
    }
}

#[test]
fn what_the_step_sets_is_not_for_the_extra_body() {
    for name in ["model", "messages", "stream", "n"] {
        let with = format!("extra_body: {{ top_k: 1, {name}: «2 }}");
        wrong_openai(&with, "conflicting-arguments", &[name]);
    }
}

#[test]
fn columns_that_cannot_be_asked() {
    let messages = |name: &str| format!("{{ model: m, base_url: '{URL}', messages: «{name} }}");
    wrong(&messages("coed"), "unknown-column", &["coed", "code"]);
    wrong(&messages("size"), "wrong-type", &["size", "int64", "messages"]);
    // The default column, which only `prompt` makes.
    let step = "  answers:\n    op: generate\n    from: table\n    with: ";
    let outcome = Project::new(&format!("{BEFORE}{step}{{ model: m, base_url: '{URL}' }}\n"));
    let outcome = outcome.run_json(&[]).exits(2);
    assert_eq!(outcome.events("diagnostic").len(), 1, "{outcome}");
    assert_eq!(outcome.events("diagnostic")[0]["code"], "unknown-column");
}

#[test]
fn ports_that_a_provider_does_not_take() {
    let step = |from: &str, with: &str| {
        format!("  answers:\n    op: generate\n    from: {from}\n    with: {with}\n")
    };
    let openai = format!("{{ model: m, base_url: '{URL}', messages: code, provider: «openai }}");
    for port in ["train", "answers"] {
        let from = format!("{{ input: table, {port}: table }}");
        refused(&step(&from, &openai), "wrong-inputs", &[port]);
    }
    let unknown = format!("{{ model: m, base_url: '{URL}', messages: code }}");
    let text = step("{ input: table, «other: table }", &unknown);
    let (text, _) = marked(&format!("{BEFORE}{text}"));
    let outcome = Project::new(&text).run_json(&[]).exits(2);
    assert_eq!(outcome.events("diagnostic").len(), 1, "{outcome}");
    assert_eq!(outcome.events("diagnostic")[0]["code"], "wrong-inputs", "{outcome}");
    let ngram = "{ provider: «ngram, seed: 1, messages: code, code: code }";
    refused(&step("table", ngram), "wrong-inputs", &["train"]);
    let replay = "{ provider: «replay }";
    refused(&step("table", replay), "wrong-inputs", &["answers"]);
}

#[test]
fn templates_with_mistakes() {
    let unknown = ["cod", "code"];
    wrong_prompt("treatments: { a: «'{{ cod }}' }", "unknown-column", &unknown);
    wrong_prompt("treatments: { a: ['{{ code }}', «'{{ cod }}'] }", "unknown-column", &unknown);
    wrong_prompt(
        "treatments: { a: '{{ code }}' }\n      system: «'{{ cod }}'",
        "unknown-column",
        &unknown,
    );
    wrong_prompt("treatments: { a: «'{{ code | trimm }}' }", "bad-template", &["trimm"]);
    wrong_prompt("treatments: { a: «'{{ code' }", "bad-template", &[]);
    wrong_prompt("treatments: { a: «'{% if code %}x' }", "bad-template", &[]);
    wrong_prompt("treatments: { a: «'{{ nope(code) }}' }", "bad-template", &["nope"]);
}

#[test]
fn filters_and_tests_that_there_are_not_wherever_they_are() {
    for text in [
        "{{ code | upper | nope }}",
        "{% if code | nope %}x{% endif %}",
        "{% filter nope %}{{ code }}{% endfilter %}",
        "{% if code is nope %}x{% endif %}",
    ] {
        wrong_prompt(&format!("treatments: {{ a: «'{text}' }}"), "bad-template", &["nope"]);
    }
}

/// Nor the template of another treatment, which would have a name.
#[test]
fn a_template_cannot_include_another() {
    for text in [
        "{{ code }}{% include \"x\" %}",
        "{{ code }}{% include \"b[0]\" %}",
        "{{ code }}{% extends \"x\" %}",
        "{{ code }}{% import \"x\" as y %}",
    ] {
        wrong_prompt(
            &format!("treatments: {{ a: «'{text}', b: '{{{{ code }}}}' }}"),
            "bad-template",
            &[],
        );
    }
}

#[test]
fn turns_without_sense() {
    let code = "bad-turns";
    wrong_prompt("treatments: { a: «[] }", code, &["end with a message of the user"]);
    let last = "treatments: { a: «[x, { role: assistant, content: y }] }";
    wrong_prompt(last, code, &["end with a message of the user"]);
    let late = "treatments: { a: «[x, { role: system, content: y }, z] }";
    wrong_prompt(late, code, &["come first"]);
    wrong_prompt("treatments: «{}", "out-of-range", &["at least one treatment"]);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let step = "  prompts:\n    op: prompt\n    from: table\n    with:\n      treatments: { a: '{{ x }}', b: '{{ y }}' }
  answers:\n    op: generate\n    from: table\n    with: { model: m, base_url: nowhere, max_usd: 1, messages: size }\n";
    let outcome = Project::new(&format!("{BEFORE}{step}")).run_json(&[]).exits(2);
    let codes: Vec<String> = outcome
        .events("diagnostic")
        .iter()
        .map(|d| d["code"].as_str().unwrap().to_owned())
        .collect();
    let count = |code: &str| codes.iter().filter(|c| *c == code).count();
    let counts = ["unknown-column", "bad-url", "wrong-type"].map(count);
    assert_eq!(counts, [2, 1, 1], "{outcome}");
    assert!(count("missing-argument") >= 1, "{outcome}");
}
