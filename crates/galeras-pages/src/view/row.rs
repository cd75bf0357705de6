//! One row with all its columns: code highlighted, what differs marked, the way to the commit.

use minijinja::{Value, context};

use super::{ViewFrame, framed, safe};
use crate::code::{code, comparison};
use crate::error::PageError;
use crate::model::{CodeLanguage, Labelled};
use crate::page::PageLink;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

/// The texts of a row.
#[derive(Debug, Clone, Default)]
pub struct RowParts {
    /// The row's name.
    pub title: String,
    /// Links to where it comes from. Only to `http` and `https`, or within the server.
    pub links: Vec<PageLink>,
    /// Short values by column.
    pub facts: Vec<Labelled>,
    /// Long texts.
    pub texts: Vec<RowText>,
    /// The tables that have the row, and the rows it was made from.
    pub trace: Vec<PageLink>,
}

/// A text, or two side by side.
#[derive(Debug, Clone, Default)]
pub struct RowText {
    /// The text.
    pub text: Labelled,
    /// The text to compare it with.
    pub other: Option<Labelled>,
    /// How it is highlighted.
    pub language: CodeLanguage,
}

/// A link whose address is a page of this server, or a web page.
fn link(of: &PageLink) -> Option<Value> {
    let address = of.address.as_str();
    let outside = address.starts_with("https://") || address.starts_with("http://");
    let inside = address.starts_with('/') && !address.starts_with("//");
    (outside || inside)
        .then(|| context! { address => address, text => &of.text, outside => outside })
}

/// The row as a part of a page.
pub(super) fn row_parts(parts: &mut Parts, row: &RowParts) -> Result<Markup, PageError> {
    let mut texts = Vec::with_capacity(row.texts.len());
    for text in &row.texts {
        texts.push(safe(match &text.other {
            Some(other) => comparison(parts, &text.text, other, text.language)?,
            None => code(parts, &text.text, text.language)?,
        }));
    }
    let facts: Vec<Value> = row
        .facts
        .iter()
        .map(|fact| context! { name => &fact.name, value => safe(parts.label(&fact.value)) })
        .collect();
    let links: Vec<Value> = row.links.iter().filter_map(link).collect();
    let trace: Vec<Value> = row.trace.iter().filter_map(link).collect();
    render(
        "view_row.html",
        context! { links => links, facts => facts, texts => texts, trace => trace },
    )
}

/// The page of a row.
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn row_page(frame: &ViewFrame, row: &RowParts) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let main = row_parts(&mut parts, row)?;
    framed(frame, &row.title, Markup::default(), main, "", &parts)
}
