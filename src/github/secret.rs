//! A token that cannot be shown by accident.
//!
//! Lives here: the token, the name of the variable it came from, and taking it out of texts.
//! Does not live here: reading variables, and sending the token (`client`).

use std::fmt;

use super::error::{GithubError, GithubErrorKind};

/// A GitHub token. Its `Debug` shows the name of its variable only; it has no `Display`.
#[derive(Clone)]
pub struct Secret {
    variable: String,
    token: String,
}

impl Secret {
    /// The token that the environment variable `variable` holds; white space around it is
    /// dropped.
    ///
    /// # Errors
    /// [`GithubErrorKind::Denied`] if it is empty or no token: a token has letters, digits and
    /// punctuation of ASCII only. The text names the variable, never its value.
    pub fn new(variable: impl Into<String>, token: &str) -> Result<Self, GithubError> {
        let (variable, token) = (variable.into(), token.trim().to_string());
        let denied =
            |what| GithubError::new(GithubErrorKind::Denied, format!("${variable} {what}"));
        if token.is_empty() {
            return Err(denied("is empty; it has to hold a token"));
        }
        // Anything else cannot be sent in a header.
        if !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(denied("holds characters that no token has"));
        }
        Ok(Self { variable, token })
    }

    /// The variable that held the token, without `$`.
    pub fn variable(&self) -> &str {
        &self.variable
    }

    pub(super) fn expose(&self) -> &str {
        &self.token
    }

    /// `text` without the token, should it occur there.
    pub fn scrub(&self, text: &str) -> String {
        text.replace(&self.token, "***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(${})", self.variable)
    }
}
