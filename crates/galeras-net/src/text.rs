//! Errors with their causes as text, and texts of servers on one line.

use std::error::Error;

/// The messages of `error` and its causes, from the outside in, joined by `: `. A cause that an error
/// already quotes is left out.
pub fn causes(error: &dyn Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let chain = std::iter::successors(Some(error), |error| (**error).source());
    for text in chain.map(ToString::to_string) {
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

/// `text` on one line of at most `most` characters, without control characters and without those that
/// are invisible or turn the direction of text around.
pub fn one_line(text: &str, most: usize) -> String {
    let is_dropped = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
    };
    let words: Vec<&str> = text.split(is_dropped).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let mut texts = texts.iter().rev();
        let bottom = Layer { text: texts.next().unwrap(), source: None };
        texts.fold(bottom, |inner, text| Layer { text, source: Some(Box::new(inner)) })
    }

    #[test]
    fn each_cause_is_told_once() {
        let error = layers(&["cannot connect: refused", "refused", "os error 111"]);
        assert_eq!(causes(&error), "cannot connect: refused: os error 111");
        assert_eq!(causes(&layers(&["alone"])), "alone");
    }

    #[test]
    fn a_quote_is_one_short_line() {
        assert_eq!(one_line(" a\r\n\tb\u{1b}[31mc\u{202E}d\0 ", 200), "a b [31mc d");
        assert_eq!(one_line(&"é".repeat(1_000), 200), "é".repeat(200) + "…");
    }
}
