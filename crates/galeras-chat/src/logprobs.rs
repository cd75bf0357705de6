//! Log-probabilities of tokens, in the forms in which servers give them.
//!
//! Sources: OpenAI's references of chat completions (`{"content": [{"token", "logprob", …}],
//! "refusal": …}`) and of completions (`{"tokens": […], "token_logprobs": […], …}`). llama.cpp's
//! server gives the first form at both endpoints, Together's the second one. Any other
//! form is treated as none: the answer was paid, and is good without.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::answer::TokenLogprob;

/// The tokens of an answer with their log-probabilities, if they can be read.
#[derive(Default)]
pub(super) struct Logprobs(pub(super) Option<Vec<TokenLogprob>>);

/// A value that is empty if the JSON has another type.
trait Lenient: Default {
    fn text(_: &str) -> Self {
        Self::default()
    }

    fn number(_: f64) -> Self {
        Self::default()
    }

    fn list<'de, A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn object<'de, A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Reads a [`Lenient`].
struct Read<T>(T);

impl<'de, T: Lenient> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData)).map(Self)
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Lenient> Visitor<'de> for LenientVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        Ok(T::number(number as f64))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number as f64))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        Ok(T::number(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::object(fields)
    }
}

impl Lenient for Option<String> {
    fn text(text: &str) -> Self {
        Some(text.to_string())
    }
}

impl Lenient for Option<f64> {
    fn number(number: f64) -> Self {
        Some(number).filter(|number| number.is_finite())
    }
}

/// A list, if there is one.
struct List<T>(Option<Vec<T>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Lenient> Lenient for List<T> {
    fn list<'de, A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(Read(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Self(Some(all)))
    }
}

/// `{"token": "…", "logprob": -0.5}`; none without the text of the token.
impl Lenient for Option<TokenLogprob> {
    fn object<'de, A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let (mut token, mut logprob) = (Read(None), Read(None));
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "token" => token = fields.next_value()?,
                "logprob" => logprob = fields.next_value()?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(token.0.map(|token| TokenLogprob { token, logprob: logprob.0 }))
    }
}

impl Lenient for Logprobs {
    fn object<'de, A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let empty = || Read(List::<Option<TokenLogprob>>::default());
        let (mut content, mut refusal) = (empty(), empty());
        let mut tokens = Read(List::<Option<String>>::default());
        let mut numbers = Read(List::<Option<f64>>::default());
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "content" => content = fields.next_value()?,
                "refusal" => refusal = fields.next_value()?,
                "tokens" => tokens = fields.next_value()?,
                "token_logprobs" => numbers = fields.next_value()?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        if let Some(listed) = content.0.0.or(refusal.0.0) {
            return Ok(Self(listed.into_iter().collect()));
        }
        let (Some(tokens), Some(numbers)) = (tokens.0.0, numbers.0.0) else {
            return Ok(Self::default());
        };
        if tokens.len() != numbers.len() {
            return Ok(Self::default());
        }
        let pair =
            |(token, logprob): (Option<String>, _)| Some(TokenLogprob { token: token?, logprob });
        Ok(Self(tokens.into_iter().zip(numbers).map(pair).collect()))
    }
}

impl<'de> Deserialize<'de> for Logprobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Read::deserialize(deserializer).map(|Read(logprobs)| logprobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<(String, Option<f64>)>> {
        let Logprobs(tokens) = serde_json::from_str(text).unwrap();
        Some(tokens?.into_iter().map(|token| (token.token, token.logprob)).collect())
    }

    #[test]
    fn both_forms_are_read() {
        let both = Some(vec![("a".to_string(), Some(-0.25)), (" b".to_string(), Some(-3.0))]);
        for text in [
            r#"{"content": [{"token": "a", "logprob": -0.25, "bytes": [97], "top_logprobs": []},
                {"logprob": -3, "token": " b", "id": 7}], "refusal": null}"#,
            r#"{"content": null, "refusal": [{"token": "a", "logprob": -0.25},
                {"token": " b", "logprob": -3.0}]}"#,
            r#"{"text_offset": [0, 1], "token_logprobs": [-0.25, -3], "tokens": ["a", " b"],
                "top_logprobs": [{"a": -0.25}, {" b": -3.0}]}"#,
        ] {
            assert_eq!(read(text), both, "{text}");
        }
        let none = Some(vec![("a".to_string(), None)]);
        assert_eq!(read(r#"{"tokens": ["a"], "token_logprobs": [null]}"#), none);
        assert_eq!(read(r#"{"content": [{"token": "a", "logprob": "low"}]}"#), none);
        assert_eq!(read(r#"{"content": []}"#), Some(vec![]));
    }

    #[test]
    fn what_has_neither_form_is_none() {
        for text in [
            "null",
            "true",
            "3",
            "-2.5",
            r#""x""#,
            "[]",
            "[[1, {}], null]",
            "{}",
            r#"{"content": null}"#,
            r#"{"content": 5, "tokens": {}}"#,
            r#"{"content": [null]}"#,
            r#"{"content": [{"logprob": -1}]}"#,
            r#"{"tokens": ["a"]}"#,
            r#"{"tokens": ["a", "b"], "token_logprobs": [-1]}"#,
            r#"{"tokens": [1], "token_logprobs": [-1]}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
