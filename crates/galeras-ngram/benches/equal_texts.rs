//! Times a completion that leaves out many equal texts.
//!
//! `cargo bench -p galeras-ngram --bench equal_texts` trains on 5,000 and 20,000 equal texts among
//! others and completes one of them without the equal ones, listed one by one or once with their
//! number. Both must give the same text. Prints milliseconds per completion and their ratio.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use galeras_ngram::{CompletionBuffers, CompletionSettings, NgramModel, NgramPrompt};

const EQUAL: &str = "def total(self, prices, rate):\n    result = 0\n    for price in prices:\n        \
                     result += price * rate\n    return result";

const ROUNDS: u64 = 20;

fn main() {
    let others: Vec<String> = (0..2_000)
        .map(|n| format!("def f{n}(self, x):\n    self.y{} = x + {n}\n    return x", n % 50))
        .collect();
    println!("equal texts | one by one, ms | by number, ms | ratio");
    for equal in [5_000, 20_000] {
        let mut texts: Vec<&str> = others.iter().map(String::as_str).collect();
        texts.extend(std::iter::repeat_n(EQUAL, equal));
        let Ok(model) = NgramModel::train(6, &texts) else { return };
        let one_by_one = vec![(EQUAL, 1); equal];
        let by_number = [(EQUAL, equal as u32)];
        let (slow, first) = time(&model, &one_by_one);
        let (fast, second) = time(&model, &by_number);
        assert_eq!(first, second, "both leave out the same");
        println!("{equal:>11} | {slow:>14.3} | {fast:>13.3} | {:.0}", slow / fast);
    }
}

/// Milliseconds per completion, and the texts.
fn time(model: &NgramModel, own: &[(&str, u32)]) -> (f64, Vec<String>) {
    let mut buffers = CompletionBuffers::default();
    let prompt = NgramPrompt { context: EQUAL, code: "def total(self, prices", own };
    let start = Instant::now();
    let texts = (0..ROUNDS)
        .map(|seed| {
            let settings =
                CompletionSettings { temperature: 0.8, seed, ..CompletionSettings::default() };
            model.complete(&mut buffers, &prompt, &settings).text
        })
        .collect();
    (start.elapsed().as_secs_f64() * 1e3 / ROUNDS as f64, texts)
}
