//! The attributes in square brackets: which of them mean something, and what.
//!
//! Those that are about the drawing (`pos`, `label`, `color`, ...) are read and ignored.

use super::super::dag::{Edge, Marks};
use super::super::error::GraphError;
use super::lexer::{Lexer, Token};

/// What a default statement of DOT is about.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Nodes,
    Edges,
    Graph,
}

/// DOT's `dir` of an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
    Both,
}

impl Direction {
    /// Turns an edge as its `dir` says.
    pub(super) fn apply(self, edge: &mut Edge) {
        match self {
            Direction::Forward => {}
            Direction::Back => std::mem::swap(&mut edge.from, &mut edge.to),
            Direction::Both => edge.both = true,
        }
    }
}

/// One attribute: its key in lower case, and its value.
pub(super) struct Attribute {
    key: String,
    value: Option<String>,
    offset: usize,
}

impl Attribute {
    /// Yes or no; without a value, yes.
    fn truth(&self) -> Result<bool, GraphError> {
        let Some(value) = &self.value else { return Ok(true) };
        match value.trim().to_ascii_lowercase().as_str() {
            "yes" | "true" | "1" | "y" | "t" => Ok(true),
            "no" | "false" | "0" | "n" | "f" => Ok(false),
            other => Err(GraphError::new(
                format!("`{}` must be `yes` or `no`, found `{other}`", self.key),
                self.offset,
            )),
        }
    }

    /// Marks a node as the attribute says. dagitty's one-letter forms are known in dagitty only.
    pub(super) fn mark(&self, marks: &mut Marks, dagitty: bool) -> Result<(), GraphError> {
        let short = dagitty && self.value.is_none();
        match self.key.as_str() {
            "latent" | "unobserved" => marks.latent = self.truth()?,
            "observed" => marks.latent = !self.truth()?,
            "exposure" => marks.exposure = self.truth()?,
            "outcome" => marks.outcome = self.truth()?,
            "l" | "u" if short => marks.latent = true,
            "e" if short => marks.exposure = true,
            "o" if short => marks.outcome = true,
            _ => {}
        }
        Ok(())
    }

    /// The direction that the attribute gives an edge, if it is about that.
    pub(super) fn direction(&self) -> Result<Option<Direction>, GraphError> {
        if self.key != "dir" {
            return Ok(None);
        }
        match self.value.as_deref().unwrap_or_default() {
            "forward" => Ok(Some(Direction::Forward)),
            "back" => Ok(Some(Direction::Back)),
            "both" => Ok(Some(Direction::Both)),
            other => Err(GraphError::new(
                format!("`dir` must be `forward`, `back` or `both`, found `{other}`"),
                self.offset,
            )
            .help("every edge of a causal graph needs a direction")),
        }
    }
}

/// Reads up to the closing bracket; the opening one has been read.
pub(super) fn read(lexer: &mut Lexer<'_>) -> Result<Vec<Attribute>, GraphError> {
    let mut attributes = Vec::new();
    loop {
        let (token, offset) = lexer.next()?;
        match token {
            Token::CloseBracket => return Ok(attributes),
            Token::Comma | Token::Semicolon => {}
            Token::Name(name) => {
                let mut value = None;
                if lexer.peek_is(&Token::Equals)? {
                    lexer.next()?;
                    value = Some(lexer.value("`=`")?);
                }
                attributes.push(Attribute { key: name.text.to_ascii_lowercase(), value, offset });
            }
            other => {
                return Err(GraphError::new(
                    format!("expected an attribute or `]`, found {other}"),
                    offset,
                ));
            }
        }
    }
}
