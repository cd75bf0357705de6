//! Figures: pictures within the page, in which nothing runs, loads, or styles the page.
//!
//! An SVG is shown as an image, not as part of the document: browsers run no script of an image
//! and load nothing for it, and its ids and styles stay its own.

use minijinja::{Value, context};

use crate::error::PageError;
use crate::markdown::markdown;
use crate::model::FigureBlock;
use crate::number;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

pub(crate) fn figure(parts: &mut Parts, block: &FigureBlock) -> Result<Markup, PageError> {
    let name = [&block.title, &block.file_name, &block.alt]
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("A figure", String::as_str);
    let limit = parts.limits.figure_bytes;
    let has_room = block.svg.len() <= limit;
    if !has_room {
        parts.notes.push(format!(
            "Figure “{name}” has {}, more than the {} that a figure may have here. `galeras run` \
             writes it to a file if it is an output.",
            number::bytes(block.svg.len() as u64),
            number::bytes(limit as u64)
        ));
    }
    let dark = block.svg_dark.as_deref().filter(|svg| svg.len() <= limit);
    render(
        "figure.html",
        context! {
            light => has_room.then(|| Value::from(data_address(&block.svg))),
            dark => dark.map(|svg| Value::from(data_address(svg))),
            size => svg_size(&block.svg).map(|(width, height)| {
                context! { width => width, height => height }
            }),
            alt => &block.alt,
            name => name,
            file_name => if block.file_name.is_empty() { "figure" } else { &block.file_name },
            caption => Value::from(markdown(&block.caption, 3)),
            source => if block.source.is_empty() { None } else { Some(Value::from(parts.step_name(&block.source))) },
        },
    )
}

/// An SVG as an address, for an attribute in double quotes (RFC 2397).
fn data_address(svg: &str) -> Markup {
    let mut out = String::with_capacity(svg.len() + svg.len() / 8 + 32);
    out.push_str("data:image/svg+xml,");
    for byte in svg.bytes() {
        match byte {
            // In attributes of SVG both quotes mean the same; in its texts `"` is rare, and
            // escaped the long way.
            b'%' | b'#' | b'&' | b'<' | b'>' | b'"' | b'\'' | b'`' | b'\\' => {
                out.push_str(&format!("%{byte:02X}"));
            }
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Markup::from_html(out)
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
