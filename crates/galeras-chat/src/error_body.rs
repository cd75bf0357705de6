//! The body of an error, in the dialects of many servers: its message, code and type.

use serde_json::Value;

use super::lenient_json;

/// The characters at the start of a message that are searched for words.
const STATEMENT: usize = 300;

/// The body of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorBody {
    /// For people; empty if there is none.
    pub(super) message: String,
    /// `code` and `type`, which servers fill as they like, in lower case.
    pub(super) words: Vec<String>,
    /// The parameter that is wrong.
    pub(super) param: String,
    /// The status that a gateway writes into the body.
    pub(super) status: Option<u16>,
}

impl ErrorBody {
    /// Reads `{"error": {"message", "type", "param", "code"}}` (OpenAI, Anthropic and most),
    /// `{"error": "…"}` (Ollama), `{"message", "type", "code"}` (vLLM before 0.10),
    /// `{"detail": …}` (FastAPI), text, and the title of a web page.
    pub(super) fn read(body: &[u8]) -> Self {
        match lenient_json::read(body) {
            Ok(value) => Self::from_json(&value),
            Err(_) => Self { message: plain(&String::from_utf8_lossy(body)), ..Self::default() },
        }
    }

    fn from_json(value: &Value) -> Self {
        let error = match value.get("error") {
            Some(error @ Value::Object(_)) => error,
            _ => value,
        };
        let text = |name: &str| error.get(name).and_then(Value::as_str);
        let message = [text("message"), text("error"), text("msg"), error.as_str()];
        let message = message.into_iter().flatten().next().map(str::to_string);
        let message = message.or_else(|| error.get("detail").map(detail)).unwrap_or_default();
        let inner = error.get("innererror").and_then(|inner| inner.get("code"));
        let words = [error.get("code"), error.get("type"), inner];
        let words = words.into_iter().flatten().filter_map(Value::as_str).map(str::to_lowercase);
        let status = error.get("code").and_then(Value::as_u64);
        let status = status.and_then(|code| u16::try_from(code).ok());
        Self {
            message,
            words: words.collect(),
            param: text("param").unwrap_or_default().to_string(),
            status: status.filter(|code| (400..600).contains(code)),
        }
    }

    /// Returns true if `code` or `type` is one of these.
    pub(super) fn is(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    /// Returns true if the message has one of these, which are in lower case. Only its beginning
    /// counts: some servers quote the whole request afterwards, with any words in it.
    pub(super) fn mentions(&self, parts: &[&str]) -> bool {
        let message: String = self.message.chars().take(STATEMENT).collect();
        let message = message.to_lowercase();
        parts.iter().any(|part| message.contains(part))
    }
}

/// FastAPI's details: a text, or a list of `{"loc": ["body", "n"], "msg": "…"}`.
fn detail(detail: &Value) -> String {
    let item = |item: &Value| {
        let place = item.get("loc").and_then(Value::as_array).into_iter().flatten();
        let place: Vec<&str> = place.filter_map(Value::as_str).collect();
        let text = item.get("msg").and_then(Value::as_str)?;
        Some(format!("{}: {text}", place.join(".")))
    };
    match detail {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(item).collect::<Vec<_>>().join("; "),
        _ => String::new(),
    }
}

/// A text that is not JSON.
fn plain(text: &str) -> String {
    let text = text.trim();
    if !text.starts_with('<') {
        return text.to_string();
    }
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or_else(|| "a web page".to_string(), |(title, _)| format!("a web page, {title}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_is_read() {
        for (body, message, words, status) in [
            (
                r#"{"error": {"message": "M", "type": "invalid_request_error", "param": "p", "code": "c"}}"#,
                "M",
                &["c", "invalid_request_error"][..],
                None,
            ),
            (r#"{"error": "M"}"#, "M", &[], None),
            (r#"{"error": {"code": 502, "message": "M"}}"#, "M", &[], Some(502)),
            (
                r#"{"object": "error", "message": "M", "type": "NotFoundError", "code": 404}"#,
                "M",
                &["notfounderror"],
                Some(404),
            ),
            (r#"{"detail": "Not Found"}"#, "Not Found", &[], None),
            (r#"{"detail": [{"loc": ["body", "n"], "msg": "bad"}]}"#, "body.n: bad", &[], None),
            (
                r#"{"error": {"message": "M", "code": "content_filter",
                   "innererror": {"code": "ResponsibleAIPolicyViolation"}}}"#,
                "M",
                &["content_filter", "responsibleaipolicyviolation"],
                None,
            ),
            ("404 page not found\n", "404 page not found", &[], None),
            ("<html><title>502 Bad Gateway</title>", "a web page, 502 Bad Gateway", &[], None),
            ("<html>", "a web page", &[], None),
            ("\"M\"", "M", &[], None),
            ("", "", &[], None),
            ("[1]", "", &[], None),
        ] {
            let error = ErrorBody::read(body.as_bytes());
            assert_eq!(error.message, message, "{body}");
            assert_eq!(error.words, words, "{body}");
            assert_eq!(error.status, status, "{body}");
        }
    }

    #[test]
    fn words_of_a_quoted_request_do_not_count() {
        let message = format!("Bad request. {} does not exist", "x".repeat(400));
        let error = ErrorBody { message, ..ErrorBody::default() };
        assert!(error.mentions(&["bad request"]) && !error.mentions(&["does not exist"]));
    }
}
