//! JSON as servers send it. An answer that was paid for is not lost over a detail of its form.

use serde_json::Value;

/// Reads a body. If it is not JSON, it is read again without the usual faults of servers and
/// gateways:
///
/// - comments of server-sent events before it (`: PROCESSING`), a byte-order mark, zero bytes after it;
/// - `NaN` and `Infinity`, as Python's `json` writes them, which become null;
/// - half of a surrogate pair (`\ud83d`) and bytes that are not UTF-8, which become U+FFFD;
/// - control characters within a text.
///
/// Of a key that occurs twice, the last value counts.
///
/// # Errors
/// The error of the body as it is.
pub(super) fn read(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(body).or_else(|error| {
        let mended = mended(&String::from_utf8_lossy(body));
        serde_json::from_str(&mended).map_err(|_| error)
    })
}

fn mended(text: &str) -> String {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while rest.starts_with(':') {
        rest = rest.split_once('\n').map_or("", |(_, next)| next).trim_start();
    }
    rest = rest.trim_end_matches(|c: char| c == '\0' || c.is_whitespace());
    let mut mended = String::with_capacity(rest.len());
    let mut quoted = false;
    while let Some(first) = rest.chars().next() {
        let names = ["NaN", "Infinity", "-Infinity"];
        let name = names.iter().find(|name| !quoted && rest.starts_with(**name));
        let taken = match (first, name) {
            (_, Some(name)) => {
                mended.push_str("null");
                name.len()
            }
            ('\\', None) if quoted => escape(rest, &mut mended),
            (control, None) if quoted && control < ' ' => {
                mended.push_str(&format!("\\u{:04x}", u32::from(control)));
                1
            }
            (other, None) => {
                quoted ^= other == '"';
                mended.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    mended
}

/// Adds the escape at the beginning of `text`, and returns the number of its bytes.
fn escape(text: &str, mended: &mut String) -> usize {
    let half = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
    };
    let Some(unit) = half(text) else {
        let taken = 1 + text[1..].chars().next().map_or(0, char::len_utf8);
        mended.push_str(&text[..taken]);
        return taken;
    };
    let pair = unit < 0xdc00 && half(&text[6..]).is_some_and(|low| low >= 0xdc00);
    let taken = if pair { 12 } else { 6 };
    mended.push_str(if pair { &text[..taken] } else { "\\ufffd" });
    taken
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_faulty_body_is_read() {
        for (body, value) in [
            (": A\n\n: B\r\n\r\n{\"a\": 1}", json!({"a": 1})),
            ("\u{feff}{\"a\": 1}\n\0", json!({"a": 1})),
            (
                r#"{"a": NaN, "b": [-Infinity, Infinity], "c": "NaN"}"#,
                json!({"a": null, "b": [null, null], "c": "NaN"}),
            ),
            (r#"{"a": "x\ud83d", "b": NaN}"#, json!({"a": "x\u{fffd}", "b": null})),
            (
                r#""\ud83d\ude00 \ude00 \ud83dx \ud83d\n \\ud83d""#,
                json!("😀 \u{fffd} \u{fffd}x \u{fffd}\n \\ud83d"),
            ),
            ("\"a\u{1}\tb\n\"", json!("a\u{1}\tb\n")),
            (r#"{"a": 1, "a": 2}"#, json!({"a": 2})),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap(), value, "{body}");
        }
        assert_eq!(read(b"\"a\xf0\x9f\"").unwrap(), json!("a\u{fffd}"));
    }

    #[test]
    fn what_is_not_json_is_told_as_it_is() {
        for body in
            ["", "<html>", ":", ": only a comment\n", "{\"a\": ", "\"\\", "\"\\u12", "{} {}", "nan"]
        {
            let plain = serde_json::from_str::<Value>(body).unwrap_err().to_string();
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), plain, "{body}");
        }
    }
}
