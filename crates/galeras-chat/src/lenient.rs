//! Values of JSON that servers write in more than one way: texts and numbers of tokens.
//!
//! A value of any other type makes the answer malformed.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A text, null, or a list of parts, `{"type": "text", "text": "…"}` or texts themselves, of which
/// those of another type do not count.
#[derive(Default)]
pub(super) struct Text(pub(super) Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_string()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(text))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = String::new();
        while let Some(Text(part)) = parts.next_element()? {
            whole.push_str(part.as_deref().unwrap_or_default());
        }
        Ok(Some(whole))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut text) = (None, None);
        while let Some(key) = part.next_key::<String>()? {
            match key.as_str() {
                "type" => kind = part.next_value::<Text>()?.0,
                "text" => text = part.next_value::<Text>()?.0,
                _ => drop(part.next_value::<IgnoredAny>()?),
            }
        }
        let is_text = kind.is_none_or(|kind| kind == "text" || kind == "output_text");
        Ok(text.filter(|_| is_text))
    }
}

/// A number of tokens; none if it is null or not a whole number.
#[derive(Clone, Copy, Default)]
pub(super) struct Count(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Option::<serde_json::Number>::deserialize(deserializer)?;
        Ok(Self(number.and_then(|number| {
            let float = || number.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n));
            // Whole and far below 2^53.
            number.as_u64().or_else(|| float().map(|n| n as u64))
        })))
    }
}
