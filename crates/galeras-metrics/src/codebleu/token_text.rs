//! The text of a token, as each mode reads it.
//!
//! The peers cut a token out of its line by columns, which tree-sitter counts in bytes and Python
//! in code points. So after a non-ASCII character all tokens of a line are shifted. They also drop
//! line feeds inside tokens. The peers' modes copy both; [`CodeBleuMode::Strict`] takes the text
//! unchanged.

use std::ops::Range;

use super::scorer::CodeBleuMode;

/// Cuts tokens out of one text. Keeps its buffers between texts.
#[derive(Debug, Default)]
pub(super) struct TokenCutter {
    /// By lines and code points, as the peers do.
    by_lines: bool,
    ascii: bool,
    /// The line to which `starts` belongs.
    line: Range<usize>,
    /// The byte offset of each code point of the line.
    starts: Vec<u32>,
    buffer: Vec<u8>,
}

impl TokenCutter {
    pub(super) fn start(&mut self, text: &str, mode: CodeBleuMode) {
        self.by_lines = mode != CodeBleuMode::Strict;
        self.ascii = text.is_ascii();
        self.line = 0..0;
        self.starts.clear();
    }

    /// The text from `start` to `end`. Fastest if tokens are requested in their order.
    pub(super) fn slice<'a>(&'a mut self, text: &'a str, start: usize, end: usize) -> &'a [u8] {
        let bytes = text.as_bytes();
        let whole = bytes.get(start..end).unwrap_or_default();
        if !self.by_lines || (self.ascii && !whole.contains(&b'\n')) {
            return whole;
        }
        self.buffer.clear();
        if self.ascii {
            self.buffer.extend(whole.iter().filter(|&&byte| byte != b'\n'));
            return &self.buffer;
        }
        let mut at = start;
        loop {
            let line = self.line_at(bytes, at);
            let from = if at == start { start - line.start } else { 0 };
            let last = end <= line.end;
            let to = if last { end - line.start } else { usize::MAX };
            let cut = self.byte_of(&line, from)..self.byte_of(&line, to);
            self.buffer.extend_from_slice(bytes.get(cut).unwrap_or_default());
            if last {
                return &self.buffer;
            }
            at = line.end + 1;
        }
    }

    /// The line, without its line feed, that contains the byte or ends at it.
    fn line_at(&mut self, bytes: &[u8], at: usize) -> Range<usize> {
        if self.line.contains(&at) || (at == self.line.end && at != 0) {
            return self.line.clone();
        }
        let start = bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |i| i + 1);
        let end =
            bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |i| at + i);
        self.line = start..end;
        self.starts.clear();
        if !bytes[start..end].is_ascii() {
            let starts = (start..end).filter(|&i| bytes[i] & 0xc0 != 0x80);
            self.starts.extend(starts.map(|i| i as u32));
        }
        start..end
    }

    /// The byte offset of code point `column` of the line.
    fn byte_of(&self, line: &Range<usize>, column: usize) -> usize {
        if self.starts.is_empty() {
            return line.end.min(line.start.saturating_add(column));
        }
        self.starts.get(column).map_or(line.end, |start| *start as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_take_bytes_for_code_points() {
        let text = "añb = c\nd = '''x\ny\né'''z\n";
        let mut slices = TokenCutter::default();
        let mut at = |mode, part: &str| {
            let start = text.find(part).unwrap();
            slices.start(text, mode);
            String::from_utf8(slices.slice(text, start, start + part.len()).to_vec()).unwrap()
        };
        assert_eq!(at(CodeBleuMode::Published, "añb"), "añb ");
        assert_eq!(at(CodeBleuMode::Published, "c"), "");
        assert_eq!(at(CodeBleuMode::Published, "d"), "d");
        assert_eq!(at(CodeBleuMode::Published, "'''x\ny\né'''"), "'''xyé'''z");
        assert_eq!(at(CodeBleuMode::Strict, "'''x\ny\né'''"), "'''x\ny\né'''");
        // Line feeds are also dropped from ASCII tokens.
        let text = "'''a\n\nb'''";
        slices.start(text, CodeBleuMode::CodeXGlue);
        assert_eq!(slices.slice(text, 0, text.len()), b"'''ab'''");
    }
}
