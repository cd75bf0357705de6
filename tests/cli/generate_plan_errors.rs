//! Mistakes in steps of `generate`: found at their place before anything runs. Those of templates are
//! in `prompt_mistakes`.

use crate::harness::{Project, every, marked, refused, says, told};

const BEFORE: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: touch ran; printf '{\"id\":\"a\",\"code\":\"x y\",\"size\":1,\"text\":null}'
      output: { id: utf8!, code: utf8!, size: int64!, text: utf8 }
  answers:
    op: generate
    from: ";

/// The arguments of the step, with `@` where those of a case are.
const STEPS: [(&str, &str); 7] = [
    ("any", "@"),
    ("openai", "model: m, base_url: 'URL', messages: code, @"),
    ("completions", "endpoint: completions, model: m, base_url: 'URL', @"),
    (
        "anthropic",
        "provider: anthropic, model: m, base_url: 'URL', messages: code, max_tokens: 5, @",
    ),
    ("ngram", "provider: ngram, seed: 1, messages: code, code: code, @"),
    ("echo", "provider: echo, given: code, @"),
    ("reference", "provider: reference, reference: code, @"),
];

/// The workflow whose step has these arguments; «» is left in.
fn workflow(step: &str, with: &str) -> String {
    let (_, around) = STEPS.iter().find(|(name, _)| *name == step).unwrap();
    let with = around.replace('@', with).replace("URL", "http://127.0.0.1:9/v1");
    let from = if step == "ngram" { "{ input: table, train: table }" } else { "table" };
    format!("{BEFORE}{from}\n    with: {{ {with} }}\n")
}

const CONFLICT: &str = "conflicting-arguments";
const MISSING: &str = "missing-argument";

/// The step, its arguments with the mark at the only mistake, the code, words of the message.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &str, &[&str])] = &[
    ("openai", "«top_k: 4", "unknown-argument", &["help: a field that only the server knows", "`extra_body: { top_k: … }`"]),
    ("openai", "«temprature: 1", "unknown-argument", &["temprature", "did you mean `temperature`?"]),
    ("openai", "price: { input: 1, output: 1, «cached: 1 }", "unknown-argument", &["cached"]),
    ("openai", "api_key_env: «'sk-abc'", "wrong-value", &["the name of a variable, not the key", "OPENAI_API_KEY"]),
    ("openai", "api_key_env: «'$KEY'", "wrong-value", &["without `$`"]),
    ("openai", "provider: «gemini", "wrong-value", &["openai", "ngram", "replay"]),
    ("openai", "extract: «python", "wrong-value", &["code", "raw"]),
    // Arguments of other providers.
    ("openai", "order: «3", CONFLICT, &["order", "ngram"]),
    ("openai", "train_column: «code", CONFLICT, &["train_column", "ngram"]),
    ("openai", "code: «code", CONFLICT, &["code", "ngram"]),
    ("openai", "on: «[id]", CONFLICT, &["on", "replay"]),
    ("openai", "answer: «code", CONFLICT, &["answer", "replay"]),
    ("ngram", "base_url: «'http://h/v1'", CONFLICT, &["base_url", "openai"]),
    ("ngram", "api_key_env: «KEY", CONFLICT, &["api_key_env", "openai"]),
    ("ngram", "concurrency: «4", CONFLICT, &["concurrency", "openai"]),
    ("ngram", "extra_body: «{ a: 1 }", CONFLICT, &["extra_body", "openai"]),
    ("ngram", "price: «{ input: 1, output: 1 }", CONFLICT, &["price", "openai"]),
    ("ngram", "max_usd: «1", CONFLICT, &["max_usd", "openai"]),
    ("ngram", "top_p: «0.5", CONFLICT, &["top_p", "openai"]),
    ("ngram", "tries: «2", CONFLICT, &["tries", "openai"]),
    ("ngram", "min_answered: «1", CONFLICT, &["min_answered", "openai"]),
    ("ngram", "timeout_seconds: «2", CONFLICT, &["timeout_seconds", "openai"]),
    ("ngram", "requests_per_minute: «2", CONFLICT, &["requests_per_minute", "openai"]),
    ("ngram", "tokens_per_minute: «2", CONFLICT, &["tokens_per_minute", "openai"]),
    ("openai", "prompt: «code", CONFLICT, &["`endpoint: completions`", "`messages`"]),
    ("openai", "suffix: «code", CONFLICT, &["`endpoint: completions`"]),
    ("openai", "given: «code", CONFLICT, &["echo", "did you mean `messages`?"]),
    ("openai", "reference: «code", CONFLICT, &["reference", "did you mean `messages`?"]),
    ("completions", "messages: «code, prompt: code", CONFLICT, &["`endpoint: chat`", "did you mean `prompt`?"]),
    ("completions", "prompt: «cod", "unknown-column", &["cod", "code"]),
    ("completions", "prompt: «size", "wrong-type", &["size", "int64"]),
    ("completions", "prompt: code, suffix: «cod", "unknown-column", &["cod", "code"]),
    ("any", "endpoint: «completion, model: m, prompt: code", "wrong-value", &["did you mean `completions`?"]),
    ("any", "endpoint: completions, model: m, prompt: code, base_url: «'http://h/v1/chat/completions'", "bad-url", &["not chats"]),
    ("any", "endpoint: completions, model: m, prompt: code, base_url: «'http://h/api/generate'", "bad-url", &["/v1"]),
    ("anthropic", "seed: «1", CONFLICT, &["seed", "belongs to", "`provider: anthropic` takes", "temperature"]),
    ("anthropic", "logprobs: «true", CONFLICT, &["logprobs", "belongs to"]),
    ("anthropic", "endpoint: «chat", CONFLICT, &["endpoint", "belongs to"]),
    ("anthropic", "prompt: «code", CONFLICT, &["prompt", "belongs to"]),
    ("anthropic", "suffix: «code", CONFLICT, &["suffix", "belongs to"]),
    ("anthropic", "order: «3", CONFLICT, &["order", "belongs to"]),
    ("anthropic", "given: «code", CONFLICT, &["given", "belongs to"]),
    ("anthropic", "temperature: «1.5", "out-of-range", &["at most 1"]),
    ("any", "provider: anthropic, max_tokens: 5, model: m, messages: code, base_url: «'http://h/v1/chat/completions'", "bad-url", &["/v1/messages"]),
    ("echo", "code: «code", CONFLICT, &["ngram", "did you mean `given`?"]),
    ("echo", "reference: «code", CONFLICT, &["reference", "did you mean `given`?"]),
    ("echo", "temperature: «0", CONFLICT, &["openai", "takes"]),
    ("echo", "max_tokens: «5", CONFLICT, &["openai"]),
    ("echo", "seed: «5", CONFLICT, &["ngram"]),
    ("echo", "max_usd: «5", CONFLICT, &["anthropic"]),
    ("echo", "base_url: «'http://h/v1'", CONFLICT, &["openai"]),
    ("echo", "logprobs: «false", CONFLICT, &["openai"]),
    ("reference", "given: «code", CONFLICT, &["did you mean `reference`?"]),
    ("reference", "messages: «code", CONFLICT, &["did you mean `reference`?"]),
    ("any", "provider: echo, given: «cod", "unknown-column", &["cod", "code"]),
    ("any", "provider: echo, given: «size", "wrong-type", &["size", "int64"]),
    ("any", "provider: reference, reference: «cod", "unknown-column", &["cod", "code"]),
    ("any", "provider: echo, messages: «cod", "unknown-column", &["cod", "code"]),
    ("any", "provider: «ecko, messages: code", "wrong-value", &["did you mean `echo`?"]),
    ("any", "model: «' ', base_url: 'URL', messages: code", "missing-argument", &["model"]),
    // Addresses.
    ("any", "model: m, messages: code, base_url: «'localhost:8000/v1'", "bad-url", &["https://"]),
    ("any", "model: m, messages: code, base_url: «'https:host/v1'", "bad-url", &["https://"]),
    ("any", "model: m, messages: code, base_url: «'ftp://host/v1'", "bad-url", &["https://"]),
    ("any", "model: m, messages: code, base_url: «'/v1'", "bad-url", &["https://"]),
    ("any", "model: m, messages: code, base_url: «'http://host/v1#x'", "bad-url", &["`#`"]),
    ("any", "model: m, messages: code, base_url: «'http://host:port/v1'", "bad-url", &["invalid"]),
    ("any", "model: m, messages: code, base_url: «'http://host/v1/completions'", "bad-url", &["/completions"]),
    ("any", "model: m, messages: code, base_url: «'http://host/api/chat'", "bad-url", &["/v1"]),
    // A limit of the cost needs prices and lengths.
    ("openai", "max_tokens: 5, max_usd: «1", "missing-argument", &["price"]),
    ("openai", "price: { input: 1, output: 1 }, max_usd: «1", "missing-argument", &["max_tokens"]),
    ("openai", "price: { input: 1, output: 1 }, max_tokens: 5, max_usd: «-1", "out-of-range", &["0 or more"]),
    ("openai", "price: «{ input: -1, output: 1 }", "out-of-range", &["-1"]),
    ("openai", "price: «{ input: 1e-13, output: 1 }", "out-of-range", &["decimals"]),
    ("openai", "price: «{ input: 1 }", "missing-argument", &["output"]),
    ("openai", "price: «1", "wrong-type", &["price"]),
    ("openai", "samples: «0", "wrong-value", &["1"]),
    ("openai", "samples: «10001", "wrong-value", &["10000"]),
    ("openai", "temperature: «-0.1", "wrong-value", &["0"]),
    ("openai", "top_p: «1.5", "wrong-value", &["1"]),
    ("openai", "max_tokens: «0", "wrong-value", &["1"]),
    ("openai", "concurrency: «0", "wrong-value", &["1"]),
    ("openai", "concurrency: «5000", "wrong-value", &["4096"]),
    ("openai", "requests_per_minute: «0", "wrong-value", &["1"]),
    ("openai", "tokens_per_minute: «0", "wrong-value", &["1"]),
    ("openai", "tries: «0", "wrong-value", &["1"]),
    ("openai", "min_answered: «1.5", "wrong-value", &["1"]),
    ("openai", "timeout_seconds: «0", "out-of-range", &["more than 0"]),
    ("openai", "timeout_seconds: «1e9", "out-of-range", &["day"]),
    ("openai", "stop: «['']", "out-of-range", &["empty"]),
    ("openai", "stop: «END", "wrong-type", &["list"]),
    ("openai", "seed: «1.5", "wrong-type", &["integer"]),
    ("openai", "samples: «two", "wrong-type", &["integer"]),
    ("any", "model: m, base_url: 'URL', messages: «coed", "unknown-column", &["coed", "code"]),
    ("any", "model: m, base_url: 'URL', messages: «size", "wrong-type", &["size", "int64", "messages"]),
    // Ports.
    ("any", "provider: «replay", "wrong-inputs", &["answers"]),
    ("any", "provider: «ngram, seed: 1, messages: code, code: code", "wrong-inputs", &["train"]),
];

#[test]
fn arguments_and_fields_of_the_extra_body_are_checked_at_their_place() {
    every(MISTAKES.iter().map(|case| (case.1, case)), |(step, with, code, words)| {
        refused(&workflow(step, with), code, words);
    });
    for (step, before, names) in [
        ("openai", "", &["model", "messages", "stream", "n"][..]),
        ("completions", "prompt: code, ", &["model", "prompt", "suffix", "stream", "n", "echo"]),
        ("anthropic", "", &["model", "messages", "system", "stream"]),
    ] {
        for name in names {
            let with = format!("{before}extra_body: {{ top_k: 1, {name}: «2 }}");
            refused(&workflow(step, &with), CONFLICT, &[name]);
        }
    }
}

#[test]
fn missing_arguments_have_no_place_and_all_mistakes_are_told_at_once() {
    for (with, code, words) in [
        ("base_url: 'URL', messages: code", MISSING, &["`model`"][..]),
        (
            "provider: anthropic, model: m, base_url: 'URL', messages: code, top_p: 1",
            MISSING,
            &["needs `max_tokens`", "max_tokens: 1024"],
        ),
        ("provider: anthropic, max_tokens: 5, messages: code", MISSING, &["needs a `model`"]),
        ("provider: reference", MISSING, &["column with the right answers", "reference: code"]),
        // The default column, which only `prompt` makes.
        ("model: m, base_url: 'URL'", "unknown-column", &[]),
    ] {
        says(&told(&Project::new(&workflow("any", with)).refused_once(code, "")), words);
    }
    let prompts = "table\n    with: { model: m, base_url: nowhere, max_usd: 1, messages: size }
  prompts:
    op: prompt
    from: table
    with: { treatments: { a: '{{ x }}', b: '{{ y }}' } }\n";
    let outcome = Project::new(&format!("{BEFORE}{prompts}")).run_json(&[]).exits(2);
    let found = outcome.events("diagnostic");
    let count = |code: &str| found.iter().filter(|found| found["code"] == code).count();
    assert_eq!(["unknown-column", "bad-url", "wrong-type"].map(count), [2, 1, 1], "{outcome}");
    assert!(count("missing-argument") >= 1, "{outcome}");
}

#[test]
fn ports_that_a_provider_does_not_take_and_an_address_with_a_password_are_refused() {
    let with_port = |port: &str, step: &str, with: &str| {
        let from = format!("from: {{ input: table, {port}: table }}");
        workflow(step, with).replacen("from: table", &from, 1)
    };
    for port in ["train", "answers"] {
        refused(&with_port(port, "openai", "provider: «openai"), "wrong-inputs", &[port]);
    }
    let echo = "provider: «echo, given: code";
    refused(&with_port("train", "any", echo), "wrong-inputs", &["`train`"]);
    let (text, _) =
        marked(&with_port("«other", "any", "model: m, base_url: 'URL', messages: code"));
    Project::new(&text).refused_once("wrong-inputs", "");
    for url in ["http://me:hunter2@host/v1", "http://hunter2@host/v1"] {
        let text = workflow("any", &format!("model: m, messages: code, base_url: «'{url}'"));
        let outcome = refused(&text, "bad-url", &["user or password"]);
        assert!(!outcome.stdout.contains("hunter2"), "{outcome}");
    }
}
