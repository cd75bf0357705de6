//! Figures: pictures within the page, in which nothing runs, loads, or styles the page.
//!
//! An SVG is shown as an image, not as part of the document: browsers run no script of an image
//! and load nothing for it, and its ids and styles stay its own.

use galeras_figures::Theme;
use minijinja::context;
use minijinja::value::Serde;

use crate::markdown::markdown;
use crate::model::FigureBlock;
use crate::number;
use crate::page::PageError;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

pub(crate) fn figure(parts: &mut Parts, block: &FigureBlock) -> Result<Markup, PageError> {
    let name = [&block.title, &block.file_name, &block.alt]
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("A figure", String::as_str);
    let light = room(parts, data_address(&block.svg));
    if light.is_none() {
        parts.notes.push(format!(
            "Figure “{name}” ({}) is left out: a figure may have {} here, and all together {}. As an \
             output of the workflow it is a file.",
            number::bytes(block.svg.len() as u64),
            number::bytes(parts.limits.figure_bytes as u64),
            number::bytes(parts.limits.all_figures_bytes as u64)
        ));
    }
    render(
        "figure.html",
        context! {
            light => light,
            is_dark => block.svg.contains(Theme::Dark.ground()),
            size => svg_size(&block.svg).map(Serde),
            alt => &block.alt,
            name => name,
            file_name => &block.file_name,
            caption => markdown(&block.caption, 3),
            source => parts.source(&block.source),
        },
    )
}

/// The address, if the page has room for it.
fn room(parts: &mut Parts, address: Markup) -> Option<Markup> {
    let size = address.0.len();
    let together = parts.figures_bytes + size;
    if size > parts.limits.figure_bytes || together > parts.limits.all_figures_bytes {
        return None;
    }
    parts.figures_bytes = together;
    Some(address)
}

/// An SVG as an address, for an attribute in double quotes (RFC 2397).
fn data_address(svg: &str) -> Markup {
    let mut out = String::with_capacity(svg.len() + svg.len() / 8 + 32);
    out.push_str("data:image/svg+xml,");
    for byte in svg.bytes() {
        match byte {
            0x20..=0x7e if !b"%#&<>\"'`\\".contains(&byte) => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Markup(out)
}

/// Width and height in CSS pixels, from the attributes of the root element or its `viewBox`.
fn svg_size(svg: &str) -> Option<(u32, u32)> {
    let start = svg.find("<svg")?;
    let root = &svg[start..start + svg[start..].find('>')?];
    let side = |name: &str| length(attribute(root, name)?);
    let from_box = || {
        let numbers: Vec<f64> = attribute(root, "viewBox")?
            .split([' ', ','])
            .filter(|part| !part.is_empty())
            .map_while(|part| part.parse().ok())
            .collect();
        match numbers[..] {
            [_, _, width, height] => Some((width, height)),
            _ => None,
        }
    };
    let (width, height) = match (side("width"), side("height")) {
        (Some(width), Some(height)) => (width, height),
        _ => from_box()?,
    };
    let fits = |side: f64| (1.0..=10_000.0).contains(&side);
    (fits(width) && fits(height)).then(|| (width.round() as u32, height.round() as u32))
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let at = element.find(&format!(" {name}="))? + name.len() + 2;
    let quote = element[at..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
    element[at + 1..].split(quote).next()
}

/// A CSS length in pixels.
fn length(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "px" => 1.0,
        "cm" => 96.0 / 2.54,
        "mm" => 96.0 / 25.4,
        "in" => 96.0,
        "pt" => 96.0 / 72.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}
