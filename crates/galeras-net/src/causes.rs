//! Errors with their causes as text.

use std::error::Error;

/// The messages of `error` and its causes, from the outside in, joined by `: `. A cause that an error
/// already quotes is left out.
pub fn causes(error: &dyn Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in chain(error).map(ToString::to_string) {
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

/// The message of the innermost cause of `error`, or of `error` itself if it has no cause.
pub fn root_cause(error: &dyn Error) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// `error`, its cause, the cause of that, and so on.
fn chain(error: &dyn Error) -> impl Iterator<Item = &dyn Error> {
    std::iter::successors(Some(error), |error| (**error).source())
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
        assert_eq!(root_cause(&error), "os error 111");
        let alone = layers(&["alone"]);
        assert_eq!((causes(&alone), root_cause(&alone)), ("alone".into(), "alone".into()));
    }
}
