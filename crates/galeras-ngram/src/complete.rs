//! Writes a completion, token by token.

use super::cache;
use super::candidates::{Counts, History};
use super::draw::{RandomStream, Sampler, Temperature};
use super::model::{ExcludedTexts, NgramModel};
use super::tokens::split;
use super::vocabulary::{BEGIN, END};

/// The input of a completion.
#[derive(Debug, Clone, Copy, Default)]
pub struct NgramPrompt<'a> {
    /// The whole conversation. Its last MiB is read for names and phrases.
    pub context: &'a str,
    /// The code to continue. It may start and end anywhere, even inside a word. If `context`
    /// contains it, it should be there byte for byte.
    pub code: &'a str,
    /// Training texts to leave out, each with a number of copies. Texts that the model does not
    /// have, or not so often, are ignored. Time is linear in the listed texts, regardless of the
    /// numbers.
    pub own: &'a [(&'a str, u32)],
}

/// Settings of a completion.
#[derive(Debug, Clone, Copy)]
pub struct CompletionSettings<'a> {
    /// Weights are taken to the power of `1 / temperature`. 0 always takes the greatest weight, and
    /// among equal ones the token whose text is least (as bytes; the end is less than any token).
    /// Rounded to thousandths; weights are quantised to 2^-32 of the greatest unless the
    /// temperature is 1.
    pub temperature: f64,
    /// The maximum number of tokens.
    pub max_tokens: u64,
    /// Strings that end the text and are not part of it. Empty ones are ignored.
    pub stop: &'a [String],
    /// The source of random choices: derive it from the workflow's seed and the row's id.
    pub seed: u64,
}

impl Default for CompletionSettings<'_> {
    fn default() -> Self {
        Self { temperature: 0.0, max_tokens: 256, stop: &[], seed: 0 }
    }
}

/// The result of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text after the code.
    pub text: String,
    /// The number of tokens, including one that a stop string cut, and the rest of one that the
    /// code began.
    pub tokens: u64,
    /// The reason why the text ends.
    pub finish_reason: Finish,
}

/// The reason why a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The end was drawn, a stop string was written, or there is nothing to draw from.
    Stop,
    /// The maximum number of tokens was written.
    Length,
}

impl Finish {
    /// Its name in chat interfaces: `stop` or `length`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// Memory for completions that may be reused: one for each thread, for any models. Its contents do
/// not affect results.
#[derive(Default)]
pub struct CompletionBuffers {
    own: ExcludedTexts,
    prompt: cache::Buffers,
    candidates: Vec<(u32, u64)>,
    sampler: Sampler,
}

impl NgramModel {
    /// Continues the code of a prompt: a function of the model, the prompt and the settings. Each
    /// token is drawn from those that followed the longest known context, as described at the top
    /// of the crate. Empty, with [`Finish::Stop`], if no text remains after leaving out the
    /// prompt's own.
    pub fn complete(
        &self,
        buffers: &mut CompletionBuffers,
        prompt: &NgramPrompt<'_>,
        settings: &CompletionSettings<'_>,
    ) -> Completion {
        let mut writer = Writer { text: String::new(), tokens: 0, settings };
        let remaining = self.count_own(prompt.own, &mut buffers.own);
        if remaining == 0 {
            return writer.finish(Finish::Stop);
        }
        let (mut tail, half) = tail(prompt.code, self.order);
        let lexicon = buffers.prompt.read(self, prompt.context, prompt.code, half);
        let mut counts = Counts {
            model: self,
            lexicon: &lexicon,
            own: &mut buffers.own.trie,
            prompt: &mut buffers.prompt,
        };
        let mut history = History::START;
        if tail.len() < self.order {
            // The code is complete from its start, unless it is a fragment: then this context is
            // unknown, and a shorter one is used.
            history.push(&counts, BEGIN, "");
        }
        for token in tail.drain(..) {
            history.push(&counts, lexicon.find(token), token);
        }
        let temperature = Temperature::new(settings.temperature);
        let mut stream = RandomStream::new(settings.seed);
        let mut half = half;
        while writer.tokens < settings.max_tokens {
            let within = (!half.is_empty()).then(|| lexicon.with_prefix(half));
            counts.gather(&history, within.as_ref(), &mut buffers.candidates);
            if within.is_some() && buffers.candidates.is_empty() {
                // No token starts so: treat it as a whole token.
                history.push(&counts, lexicon.find(half), half);
                half = "";
                continue;
            }
            let drawn = buffers.sampler.draw(&buffers.candidates, temperature, &mut stream);
            let token = drawn.and_then(|at| buffers.candidates.get(at)).map_or(END, |c| c.0);
            if token == END {
                return writer.finish(Finish::Stop);
            }
            let text = lexicon.text(token);
            history.push(&counts, token, text);
            if writer.write(text.get(half.len()..).unwrap_or_default()) {
                return writer.finish(Finish::Stop);
            }
            half = "";
        }
        writer.finish(Finish::Length)
    }
}

/// The last tokens of a text, up to `most`, and the very last one, which may continue. It is empty
/// only if the text is.
fn tail(text: &str, most: usize) -> (Vec<&str>, &str) {
    let mut tokens = Vec::new();
    for token in split(text) {
        if tokens.len() > 64 + most {
            tokens.drain(..64);
        }
        tokens.push(token);
    }
    let half = tokens.pop().unwrap_or_default();
    (tokens.split_off(tokens.len().saturating_sub(most)), half)
}

struct Writer<'a> {
    text: String,
    tokens: u64,
    settings: &'a CompletionSettings<'a>,
}

impl Writer<'_> {
    /// Adds a token. Returns true if a stop string ended the text.
    fn write(&mut self, token: &str) -> bool {
        if token.is_empty() {
            return false;
        }
        let before = self.text.len();
        self.tokens += 1;
        self.text.push_str(token);
        // The earlier text has no stop string, so one must end in the new token.
        let first = self.settings.stop.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| {
            let from = self.text.floor_char_boundary((before + 1).saturating_sub(stop.len()));
            let at = self.text.get(from..)?.find(stop.as_str())?;
            Some(from + at)
        });
        let first = first.min();
        if let Some(at) = first {
            self.text.truncate(at);
        }
        first.is_some()
    }

    fn finish(self, finish_reason: Finish) -> Completion {
        Completion { text: self.text, tokens: self.tokens, finish_reason }
    }
}
