//! Code and other texts in a box with a label, alone or side by side.

use std::ops::Range;

use minijinja::context;

use crate::model::{CodeLanguage, Labelled};
use crate::page::PageError;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::{Changes, Excerpt, Markup, escape, has_hidden};
use crate::{difference, highlight};

/// A text under its name, highlighted, with a button to copy it.
pub(crate) fn code(
    parts: &mut Parts,
    text: &Labelled,
    language: CodeLanguage,
) -> Result<Markup, PageError> {
    let (excerpt, whole) = parts.excerpt(&text.value);
    text_box(parts, text, &excerpt, whole, language, &Changes::default())
}

/// Two texts side by side. The words of the first that the second lacks are in `<del>`, those of
/// the second that the first lacks in `<ins>`.
pub(crate) fn comparison(
    parts: &mut Parts,
    old: &Labelled,
    new: &Labelled,
    language: CodeLanguage,
) -> Result<Markup, PageError> {
    let (old_excerpt, old_whole) = parts.excerpt(&old.value);
    let (new_excerpt, new_whole) = parts.excerpt(&new.value);
    let (gone, come) = difference::words(&old_excerpt.text, &new_excerpt.text);
    let gone = Changes { element: "del", ranges: gone };
    let come = Changes { element: "ins", ranges: come };
    let verdict = match (gone.ranges.len(), come.ranges.len()) {
        _ if old.value == new.value => "The two are equal.".to_string(),
        (0, 0) => "The shown parts are equal; the texts differ in the rest.".to_string(),
        (gone, come) => format!(
            "{} only in {}, {} only in {}.",
            passages(gone),
            old.name.to_lowercase(),
            passages(come),
            new.name.to_lowercase()
        ),
    };
    let left = text_box(parts, old, &old_excerpt, old_whole, language, &gone)?;
    let right = text_box(parts, new, &new_excerpt, new_whole, language, &come)?;
    Ok(Markup(format!(
        "<div class=\"comparison\">{}{}</div><p class=\"legend\">{}</p>",
        left.0,
        right.0,
        escape(&verdict)
    )))
}

fn passages(count: usize) -> String {
    match count {
        0 => "nothing".to_string(),
        1 => "one passage".to_string(),
        count => format!("{count} passages"),
    }
}

fn text_box(
    parts: &mut Parts,
    text: &Labelled,
    excerpt: &Excerpt,
    whole: Option<String>,
    language: CodeLanguage,
    changes: &Changes,
) -> Result<Markup, PageError> {
    let styles: Vec<(Range<usize>, &str)> = match language {
        CodeLanguage::Python => highlight::python(&excerpt.text),
        CodeLanguage::Plain => Vec::new(),
    };
    let is_same = excerpt.is_whole() && !has_hidden(&text.value);
    let note = match (excerpt.is_whole(), whole.is_some()) {
        (true, _) => "",
        (false, true) => "Shown in part; the button copies the whole text.",
        (false, false) => {
            "Shown in part; the text is too long for this page. The step's table has it whole."
        }
    };
    render(
        "code.html",
        context! {
            id => parts.id("text"),
            name => &text.name,
            plain => language == CodeLanguage::Plain,
            size => excerpt.characters,
            empty => text.value.is_empty(),
            can_copy => !text.value.is_empty() && (is_same || whole.is_some()),
            whole => whole,
            body => excerpt.to_markup(&styles, changes),
            note => note,
        },
    )
}
