//! The n-gram model: leaving texts out equals training without them.

use galeras_ngram::{
    CompletionBuffers, CompletionSettings, Finish, NgramModel, NgramPrompt, count_tokens,
};

/// Longer completions find nothing more.
const TOKENS: u64 = 24;

/// Training texts, separated by lines of `%%`; the last two are a conversation and code to
/// continue. The first byte selects the settings.
pub(crate) fn leaving_out(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let mut texts = crate::texts(rest);
    let code = texts.pop().unwrap_or_default();
    let context = texts.pop().unwrap_or_default();
    let all: Vec<&str> = texts.iter().map(String::as_str).collect();
    let order = usize::from(how % 10);
    let temperature = [0.0, 0.7, 1.0, 2.0][usize::from(how >> 4 & 3)];
    let stop = ["\n\n".to_owned(), String::new()];
    let stop = if how >> 6 & 1 == 1 { &stop[..] } else { &[] };
    let settings = CompletionSettings { temperature, max_tokens: TOKENS, stop, seed: 7 };
    // The first text twice, though it may be there once, and one that is not there.
    let own: Vec<(&str, u32)> =
        all.first().into_iter().flat_map(|own| [(*own, 2), ("never", 1)]).collect();
    let mut left = all.clone();
    for (text, times) in &own {
        for _ in 0..*times {
            if let Some(at) = left.iter().position(|other| other == text) {
                left.remove(at);
            }
        }
    }
    let model = NgramModel::train(order, &all).expect("the texts are short");
    let without = NgramModel::train(order, &left).expect("the texts are short");
    let mut backwards = all.clone();
    backwards.reverse();
    let backwards = NgramModel::train(order, &backwards).expect("the texts are short");

    let mut buffers = CompletionBuffers::default();
    let prompt = NgramPrompt { context: &context, code: &code, own: &own };
    let everything = NgramPrompt { own: &[], ..prompt };
    let here = model.complete(&mut buffers, &prompt, &settings);
    let there = without.complete(&mut buffers, &everything, &settings);
    assert_eq!(here, there, "leaving out equals never having seen");
    let fresh = model.complete(&mut CompletionBuffers::default(), &prompt, &settings);
    assert_eq!(here, fresh, "buffers have no say");
    let whole = model.complete(&mut buffers, &everything, &settings);
    assert_eq!(whole, backwards.complete(&mut buffers, &everything, &settings));
    assert!(here.tokens <= TOKENS && (here.finish_reason == Finish::Stop || here.tokens == TOKENS));
    assert!(count_tokens(&code) <= code.len() as u64);
}
