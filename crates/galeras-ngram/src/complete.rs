//! Writing a completion, token by token.
//!
//! Here: what callers pass and get, the half token at the end of the code, and when to stop.
//! Not here: what comes next (`candidates`, `draw`).

use super::cache;
use super::candidates::{Counts, History};
use super::draw::{Drawer, Stream, Temperature};
use super::model::{LeftOut, NgramModel};
use super::tokens::split;
use super::vocabulary::{BEGIN, END};

/// What is completed.
#[derive(Debug, Clone, Copy, Default)]
pub struct NgramPrompt<'a> {
    /// The whole conversation. Its last MiB is read for names and phrases.
    pub context: &'a str,
    /// The code to go on from. It may start and end anywhere, also inside of a word. Where
    /// `context` has it too, it should be there byte for byte.
    pub code: &'a str,
    /// Training texts that must not count, and how often each of them is left out. Texts that
    /// the model was not trained on, or not so often, are ignored. Time is linear in the texts
    /// that are listed, however often they are left out.
    pub own: &'a [(&'a str, u32)],
}

/// How a completion is made.
#[derive(Debug, Clone, Copy)]
pub struct CompletionSettings<'a> {
    /// Weights are taken to the power of `1 / temperature`. 0 means always the greatest
    /// weight, of equal ones the token whose text is least (as bytes; the end is less than
    /// any token). Rounded to thousandths; weights are quantised to 2^-32 of the greatest
    /// unless the temperature is 1.
    pub temperature: f64,
    /// Most tokens to write.
    pub max_tokens: u64,
    /// Strings that end the text; they are not part of it. Empty ones are ignored.
    pub stop: &'a [String],
    /// Where random choices come from: derive it from the workflow's seed and the row's id.
    pub seed: u64,
}

impl Default for CompletionSettings<'_> {
    fn default() -> Self {
        Self { temperature: 0.0, max_tokens: 256, stop: &[], seed: 0 }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What follows the code.
    pub text: String,
    /// How many tokens were written: also the one that a stop string cut, and the rest of
    /// one that the code had begun.
    pub tokens: u64,
    /// Why the text ends.
    pub finish_reason: Finish,
}

/// Why a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The end was drawn, a stop string was written, or there is nothing to draw from.
    Stop,
    /// The most tokens were written.
    Length,
}

impl Finish {
    /// The name that chat interfaces give it: `stop` or `length`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// Memory that is used again from one completion to the next: one for each thread, for any
/// models. What it held before has no influence.
#[derive(Default)]
pub struct CompletionBuffers {
    own: LeftOut,
    prompt: cache::Buffers,
    candidates: Vec<(u32, u64)>,
    drawer: Drawer,
}

impl NgramModel {
    /// Goes on from the code of a prompt: a function of the model, the prompt and the settings.
    /// Each token is drawn from what followed the longest context that was seen, as the head of
    /// the crate says. Empty, with [`Finish::Stop`], if leaving out the prompt's own texts leaves
    /// none.
    ///
    /// `buffers` only saves allocations; what it was used for before makes no difference.
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
            // Code from its start, unless it is a fragment: then such a context is unknown,
            // and a shorter one is looked at.
            history.push(&counts, BEGIN, "");
        }
        for token in tail.drain(..) {
            history.push(&counts, lexicon.find(token), token);
        }
        let temperature = Temperature::new(settings.temperature);
        let mut stream = Stream::new(settings.seed);
        let mut half = half;
        while writer.tokens < settings.max_tokens {
            let within = (!half.is_empty()).then(|| lexicon.with_prefix(half));
            counts.gather(&mut history, within.as_ref(), &mut buffers.candidates);
            if within.is_some() && buffers.candidates.is_empty() {
                // Nothing starts so: it is taken for a whole token.
                history.push(&counts, lexicon.find(half), half);
                half = "";
                continue;
            }
            let drawn = buffers.drawer.draw(&buffers.candidates, temperature, &mut stream);
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

/// The last tokens of a text, at most `most`, and after them the last one of all, which may
/// go on. It is empty only if the text is.
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

/// The text that is written.
struct Writer<'a> {
    text: String,
    tokens: u64,
    settings: &'a CompletionSettings<'a>,
}

impl Writer<'_> {
    /// Adds a token. Returns whether a stop string ended the text.
    fn write(&mut self, token: &str) -> bool {
        if token.is_empty() {
            return false;
        }
        let before = self.text.len();
        self.tokens += 1;
        self.text.push_str(token);
        // What was there before has no stop string: it must end in the new token.
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
