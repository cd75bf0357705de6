//! Texts for people: durations, and quotes of a server's text.

use std::time::Duration;

/// The longest quote of a server's words, in characters.
const LONGEST_QUOTE: usize = 200;

/// `350 ms`, `12 s`, `6 min 5 s`, `2 h 3 min`.
pub(super) fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1_000 {
        return format!("{millis} ms");
    }
    // Rounded up, so that a try after this time is not too early.
    let seconds = millis.div_ceil(1_000);
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// One line of at most 200 characters, without control characters (and without those that turn
/// the direction of text around).
pub(super) fn line(text: &str) -> String {
    let drop = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
    };
    let words: Vec<&str> = text.split(drop).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_words() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_001, "2 s"),
            (60_000, "1 min"),
            (365_000, "6 min 5 s"),
            (7_380_000, "2 h 3 min"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_quote_is_one_short_line() {
        assert_eq!(line(" a\r\n\tb\u{1b}[31mc\u{202E}d\0 "), "a b [31mc d");
        let long = line(&"é".repeat(1_000));
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with('…'));
    }
}
