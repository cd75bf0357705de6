//! Extracts the code from the answer of a chat model.
//!
//! # Blocks
//! Fenced code blocks follow CommonMark 0.31, section 4.5: a line of at least three backticks or
//! tildes, then any info string (without backticks after backticks), opens a block; a line of at
//! least as many of the same character and nothing else closes it; an open block ends with the
//! answer, as it does when the answer was cut at `max_tokens`. The indentation of the opening fence
//! is removed from the lines of its block. A fence may be indented by three more columns than the
//! surrounding text; in a list item, that is the column of the item's text. Two rules are not
//! followed: block quotes are not searched, and the end of an item does not end its block.
//!
//! A fence within a string of the code closes the block if it is as long as the opening one and
//! indented by less than four columns. Fences in docstrings are usually indented further. A model
//! can avoid this with a longer opening fence.
//!
//! # Choice
//! The first block marked `python`, `py` or `python3`; else the first one with a `def `; else the
//! first one. A blank block is only taken if all are blank. Without a fence the whole answer is
//! code. Prompts of doctests, and code within a line between single backticks, are left unchanged.
//!
//! # Reasoning
//! Models mark their thoughts, each family in its way ([`MARKS`]). Text between two marks, including
//! its fences, is not part of the answer.
//!
//! - Without a closing mark, the thoughts run to the end of the answer. A mark in the middle of a
//!   line begins such thoughts only if text or the end of the line follows directly:
//!   `the <think> tag` is about the mark.
//! - A closing mark alone drops everything before it: some chat templates put the opening one into
//!   the prompt. In the middle of a line it does so only if code follows, or if there is none before.
//! - Code may be about marks. They do not count within blocks, nor within quotes or backticks of one
//!   line, nor in an answer that is Python as a whole.

use std::borrow::Cow;
use std::ops::Range;

use galeras_python::parses;

/// The marks around thoughts. Letters may be large or small.
const MARKS: &[Mark] = &[
    // DeepSeek, Qwen, GLM, MiniMax, Nemotron, Phi, Hunyuan and most others.
    Mark { open: "<think>", close: "</think>" },
    Mark { open: "<thinking>", close: "</thinking>" },
    // Gemini's endpoint for OpenAI's protocol, EXAONE.
    Mark { open: "<thought>", close: "</thought>" },
    Mark { open: "<thoughts>", close: "</thoughts>" },
    Mark { open: "<reasoning>", close: "</reasoning>" },
    // Mistral.
    Mark { open: "[THINK]", close: "[/THINK]" },
    Mark { open: "<seed:think>", close: "</seed:think>" },
    Mark { open: "<longcat_think>", close: "</longcat_think>" },
    // Kimi.
    Mark { open: "◁think▷", close: "◁/think▷" },
    // The channels of gpt-oss ("harmony"), with its other messages before the final one.
    Mark { open: "<|channel|>analysis<|message|>", close: "<|channel|>final<|message|>" },
    // Gemma.
    Mark { open: "<|channel>thought", close: "<channel|>" },
    // Cohere.
    Mark { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
    // OpenThinker, Sky-T1.
    Mark { open: "<|begin_of_thought|>", close: "<|end_of_thought|>" },
];

#[derive(Debug, PartialEq)]
struct Mark {
    open: &'static str,
    close: &'static str,
}

const BLANKS: [char; 2] = [' ', '\t'];

/// The code of an answer, and the thoughts in it.
#[derive(Debug, PartialEq)]
pub(super) struct Extracted<'a> {
    /// Without fences; it ends with the line feed before the closing one. Borrowed unless lines were
    /// dedented, or parts joined.
    pub(super) code: Cow<'a, str>,
    pub(super) reasoning: Option<String>,
}

/// Takes an answer apart, in time linear in its length.
pub(super) fn extract(answer: &str) -> Extracted<'_> {
    let mut parts = Parts::default();
    // The parts before a closing mark that may only be mentioned.
    let mut before_close: Option<Parts> = None;
    let mut opened: Option<Opened> = None;
    let mut open: Option<Open> = None;
    // The column of the innermost list item's text.
    let mut margin = 0;
    let mut at = 0;
    let mut end = 0;
    while at < answer.len() {
        // The rest of a line after a mark is read as a line with a known end.
        if at >= end {
            end = line_end(answer, at);
        }
        let line = &answer[at..end];
        let start = at;
        at = end;
        if let Some(block) = &open {
            if block.is_closed_by(line) {
                choose(&mut parts.best, answer, block, start);
                open = None;
            }
            continue;
        }
        let text = line.trim_start_matches(BLANKS);
        let indent = columns(line);
        if let Some(fence) = Fence::opening(text)
            && indent <= margin + 3
        {
            margin = margin.min(indent);
            open = Some(Open { fence, indent, margin, from: end });
        } else if let Some(tag) = first_tag(line) {
            margin = 0;
            let begins_line = tag.at == line.len() - text.len();
            let (from, to) = (start + tag.at, start + tag.at + tag.len);
            at = to;
            if tag.closes {
                match opened.take().filter(|opened| opened.mark == tag.mark) {
                    Some(opened) => parts.close(opened, from, to),
                    None => {
                        let before = std::mem::take(&mut parts);
                        if begins_line {
                            before_close = None;
                        } else if before.best.is_some() {
                            before_close = Some(before);
                        }
                        parts.leave_out(0, 0..from, to);
                    }
                }
            } else if begins_line {
                let thoughts = closing(answer, to, tag.mark);
                parts.leave_out(from, to..thoughts.start, thoughts.end);
                at = thoughts.end;
            } else if opened.is_none() {
                opened = Some(parts.open(tag.mark, from, to));
            }
        } else if !text.trim_start().is_empty() {
            margin = list_item(text)
                .filter(|_| indent <= margin + 3)
                .map_or_else(|| margin.min(indent), |width| indent + width);
        }
    }
    if let Some(block) = &open {
        choose(&mut parts.best, answer, block, answer.len());
    }
    if let Some(opened) = opened.filter(|opened| opened.begins_thoughts(answer)) {
        parts.close(opened, answer.len(), answer.len());
    }
    if parts.best.is_none() && !parts.thoughts.is_empty() && is_python(answer) {
        return Extracted { code: Cow::Borrowed(answer), reasoning: None };
    }
    if let Some(before) = before_close
        && parts.best.is_none()
    {
        let rest = parts.text(answer);
        if rest.starts_with(' ') || !is_python(&rest) {
            parts = before;
        }
    }
    let code = match &parts.best {
        Some((_, block)) => block.text(answer),
        None => parts.text(answer),
    };
    Extracted { code, reasoning: parts.reasoning(answer) }
}

/// Longest text that is parsed to find out if it is code about marks.
const MAX_PARSED: usize = 1 << 16;

fn is_python(text: &str) -> bool {
    text.len() <= MAX_PARSED && matches!(parses(text), Ok(true))
}

/// The parts of an answer up to a position.
#[derive(Default)]
struct Parts {
    /// The best block, with its rank.
    best: Option<(u8, Block)>,
    /// The text outside of thoughts, up to `kept_from`.
    kept: Vec<Range<usize>>,
    kept_from: usize,
    thoughts: Vec<Range<usize>>,
}

/// An opening mark within a line, and the parts at it.
struct Opened {
    mark: &'static Mark,
    from: usize,
    to: usize,
    best: Option<(u8, Block)>,
    kept: usize,
    kept_from: usize,
    thoughts: usize,
}

impl Opened {
    /// True for a mark without a closing one that is not just mentioned.
    fn begins_thoughts(&self, answer: &str) -> bool {
        let next = answer[self.to..].chars().next();
        next.is_none_or(|next| matches!(next, '\r' | '\n') || next.is_alphanumeric())
    }
}

impl Parts {
    /// Leaves out the answer from `from` to `to`, with these thoughts.
    fn leave_out(&mut self, from: usize, thoughts: Range<usize>, to: usize) {
        self.kept.push(self.kept_from..from);
        self.kept_from = to;
        self.thoughts.push(thoughts);
    }

    fn open(&self, mark: &'static Mark, from: usize, to: usize) -> Opened {
        let (kept, thoughts) = (self.kept.len(), self.thoughts.len());
        let (best, kept_from) = (self.best.clone(), self.kept_from);
        Opened { mark, from, to, best, kept, kept_from, thoughts }
    }

    /// Leaves out everything from an opening mark to the closing one.
    fn close(&mut self, opened: Opened, from: usize, to: usize) {
        self.best = opened.best;
        self.kept.truncate(opened.kept);
        self.kept_from = opened.kept_from;
        self.thoughts.truncate(opened.thoughts);
        self.leave_out(opened.from, opened.to..from, to);
    }

    /// The answer without thoughts.
    fn text<'a>(&self, answer: &'a str) -> Cow<'a, str> {
        let rest = self.kept_from..answer.len();
        let mut parts = self
            .kept
            .iter()
            .chain([&rest])
            .filter_map(|part| answer.get(part.clone()))
            .filter(|part| !part.is_empty());
        let first = parts.next().unwrap_or_default();
        match parts.next() {
            None => Cow::Borrowed(first),
            Some(second) => Cow::Owned([first, second].into_iter().chain(parts).collect()),
        }
    }

    fn reasoning(&self, answer: &str) -> Option<String> {
        let thoughts = self.thoughts.iter().filter_map(|part| answer.get(part.clone()));
        let thoughts = thoughts.map(str::trim).filter(|thought| !thought.is_empty());
        Some(thoughts.collect::<Vec<_>>().join("\n\n")).filter(|all| !all.is_empty())
    }
}

/// A mark in a text.
struct Tag {
    at: usize,
    len: usize,
    mark: &'static Mark,
    closes: bool,
}

/// The first mark in `line` that is not in quotes or backticks.
fn first_tag(line: &str) -> Option<Tag> {
    let mut at = 0;
    while let Some(&byte) = line.as_bytes().get(at) {
        if matches!(byte, b'"' | b'\'' | b'`') {
            let after = at + run(&line[at..], byte);
            let quote = &line[at..after];
            let opens = byte != b'\'' || !is_apostrophe(&line[..at]);
            let end = opens.then(|| line[after..].find(quote)).flatten();
            at = end.map_or(after, |offset| after + offset + quote.len());
            continue;
        }
        if let Some(tag) = tag_at(line, at) {
            return Some(tag);
        }
        at += 1;
    }
    None
}

/// The mark at a position of a text.
fn tag_at(text: &str, at: usize) -> Option<Tag> {
    let rest = &text.as_bytes()[at..];
    if !matches!(rest.first(), Some(b'<' | b'[' | 0xe2)) {
        return None;
    }
    let is = |mark: &str| {
        rest.get(..mark.len()).is_some_and(|part| part.eq_ignore_ascii_case(mark.as_bytes()))
    };
    MARKS.iter().find_map(|mark| {
        let closes = is(mark.close);
        let len = if closes { mark.close.len() } else { mark.open.len() };
        (closes || is(mark.open)).then_some(Tag { at, len, mark, closes })
    })
}

/// True if a quote after this text is the apostrophe of a word (`it's`), not the quote of a string,
/// which may have a prefix (`rb'`).
fn is_apostrophe(before: &str) -> bool {
    let word = &before[before.trim_end_matches(char::is_alphanumeric).len()..];
    let is_prefix = word.len() <= 2 && word.bytes().all(|byte| b"bfrtuBFRTU".contains(&byte));
    !word.is_empty() && !is_prefix
}

/// The closing mark after `from`; the end of the answer if there is none.
fn closing(answer: &str, from: usize, mark: &'static Mark) -> Range<usize> {
    let mut tags = (from..answer.len()).filter_map(|at| tag_at(answer, at));
    let tag = tags.find(|tag| tag.closes && tag.mark == mark);
    tag.map_or(answer.len()..answer.len(), |tag| tag.at..tag.at + tag.len)
}

/// The position after the line that begins at `start`.
fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |offset| start + offset + 1)
}

/// The width of the leading spaces and tabs of `line`; a tab goes to the next multiple of four.
fn columns(line: &str) -> usize {
    let blanks = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.fold(0, |column, byte| if byte == b'\t' { column / 4 * 4 + 4 } else { column + 1 })
}

/// The column where the item's text starts, if `text` begins a list item.
fn list_item(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match (digits, text.as_bytes().get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1..=9, b'.' | b')') => digits + 1,
        _ => return None,
    };
    match columns(&text[mark..]) {
        // The rest of the line is blank, or begins with a code block.
        0 if text[mark..].trim().is_empty() => Some(mark + 1),
        0 => None,
        blanks if blanks > 4 => Some(mark + 1),
        blanks => Some(mark + blanks),
    }
}

/// The beginning of a block.
struct Fence {
    byte: u8,
    len: usize,
    is_python: bool,
}

impl Fence {
    /// Reads `text`, a line without its indentation.
    fn opening(text: &str) -> Option<Self> {
        let byte = *text.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let len = run(text, byte);
        let info = &text[len..];
        if len < 3 || (byte == b'`' && info.contains('`')) {
            return None;
        }
        let info = info.trim_start_matches([' ', '\t', '{', '.']);
        let end = info.find(|c: char| c.is_whitespace() || ",:;{}()[]=".contains(c));
        let language = &info[..end.unwrap_or(info.len())];
        let is_python =
            ["python", "py", "python3"].iter().any(|name| name.eq_ignore_ascii_case(language));
        Some(Self { byte, len, is_python })
    }
}

fn run(text: &str, byte: u8) -> usize {
    text.bytes().take_while(|&other| other == byte).count()
}

/// An unclosed block.
struct Open {
    fence: Fence,
    indent: usize,
    /// The indentation of the surrounding list.
    margin: usize,
    from: usize,
}

impl Open {
    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim_start_matches(BLANKS);
        let len = run(text, self.fence.byte);
        len >= self.fence.len
            && text[len..].trim_start_matches([' ', '\t', '\r', '\n']).is_empty()
            && columns(line) <= self.margin + 3
    }
}

#[derive(Clone)]
struct Block {
    range: Range<usize>,
    indent: usize,
}

impl Block {
    fn text<'a>(&self, answer: &'a str) -> Cow<'a, str> {
        let text = &answer[self.range.clone()];
        if self.indent == 0 || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut moved = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let mut column = 0;
            let mut bytes = 0;
            for byte in line.bytes() {
                column = match byte {
                    b' ' if column < self.indent => column + 1,
                    b'\t' if column < self.indent => column / 4 * 4 + 4,
                    _ => break,
                };
                bytes += 1;
            }
            // A tab may be wider than the removed indentation.
            moved.extend(std::iter::repeat_n(' ', column.saturating_sub(self.indent)));
            moved.push_str(&line[bytes..]);
        }
        Cow::Owned(moved)
    }
}

/// Replaces the best block, with its rank, by one that ends at `to` and has a higher rank.
fn choose(best: &mut Option<(u8, Block)>, answer: &str, open: &Open, to: usize) {
    let text = &answer[open.from..to];
    let rank = match text {
        _ if text.trim_start().is_empty() => 0,
        _ if open.fence.is_python => 3,
        _ if has_def(text) => 2,
        _ => 1,
    };
    if best.as_ref().is_none_or(|(known, _)| rank > *known) {
        *best = Some((rank, Block { range: open.from..to, indent: open.indent }));
    }
}

/// `text` seems to have the keyword `def`, judging by the characters around it.
fn has_def(text: &str) -> bool {
    text.match_indices("def ")
        .any(|(at, _)| !text[..at].ends_with(|c: char| c == '_' || c.is_alphanumeric()))
}

#[cfg(test)]
mod tests;
