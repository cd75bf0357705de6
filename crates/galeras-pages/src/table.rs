//! Tables: numbers under each other, sorted and copied by the page's script.

use galeras_figures::{column_decimals, fixed, is_estimate, row_decimals};
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::markdown::markdown;
use crate::model::{TableBlock, TableColumn};
use crate::number::{count, number};
use crate::page::PageError;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

/// A cell that is cut is kept whole for copying up to this many times the size that is shown.
const KEPT_CELL: usize = 10;

/// A table with its caption. Rows and columns beyond the limits are left out, with a note.
pub(crate) fn table(parts: &mut Parts, block: &TableBlock) -> Result<Markup, PageError> {
    let rows = &block.rows[..block.rows.len().min(parts.limits.table_rows)];
    let shown_columns = block.columns.len().min(parts.limits.columns);
    let columns: Vec<ColumnFormat<'_>> = block.columns[..shown_columns]
        .iter()
        .enumerate()
        .map(|(at, column)| ColumnFormat::new(column, rows.iter().filter_map(|row| row.get(at))))
        .collect();
    let decimals = row_decimals(rows.len(), |name, row| {
        let at = block.columns.iter().position(|column| column.name == name)?;
        rows[row].get(at)?.as_f64()
    });
    let body = rows.iter().zip(decimals).enumerate().map(|(at, (row, decimals))| {
        let link = block.row_links.get(at).filter(|link| is_within(link));
        let cell = |(at, column): (usize, &ColumnFormat<'_>)| {
            let decimals = decimals.filter(|_| is_estimate(&column.column.name));
            column.cell(parts, row.get(at).unwrap_or(&Json::Null), decimals)
        };
        let cells: Value = columns.iter().enumerate().map(cell).collect();
        context! { cells => cells, link => link }
    });
    let body: Value = body.collect();
    render(
        "table.html",
        context! {
            id => parts.id("table"),
            title => &block.title,
            caption => markdown(&block.caption, 3),
            file_name => &block.file_name,
            heads => columns.iter().map(ColumnFormat::head).collect::<Value>(),
            rows => body,
            has_notes => columns.iter().any(|format| !format.column.description.is_empty()),
            is_wide => columns.len() > 9,
            // A server sorts pages of a large table, because sorting a part alone would mislead.
            by_server => block.columns.iter().any(|column| column.sort_link.is_some()),
            extent => extent(block, rows.len(), shown_columns),
            source => parts.source(&block.source),
        },
    )
}

/// A sentence about the part of the table; empty for the whole table.
fn extent(block: &TableBlock, rows: usize, columns: usize) -> String {
    let total = block.total.unwrap_or(0).max(block.rows.len() as u64);
    let mut said = Vec::new();
    if total > rows as u64 {
        let mut words = format!("{} of {} rows", count(rows as u64), count(total));
        if !block.choice.is_empty() {
            words.push_str(&format!(" ({})", block.choice));
        }
        said.push(words);
    }
    if columns < block.columns.len() {
        said.push(format!("{columns} of {} columns", block.columns.len()));
    }
    if said.is_empty() { String::new() } else { format!("Shown: {}.", said.join(", ")) }
}

/// Links of rows and headings lead to this page or its siblings, never to another server or a
/// script.
fn is_within(link: &str) -> bool {
    let path = link.split(['/', '?', '#']).next().unwrap_or_default();
    !link.is_empty()
        && !link.starts_with("//")
        && !path.contains(':')
        && !link.contains('\\')
        && !link.contains(|c: char| c.is_control() || c.is_whitespace())
}

struct ColumnFormat<'a> {
    column: &'a TableColumn,
    is_number: bool,
    /// The decimals of floating-point numbers, if they are of one order of magnitude; else each has
    /// its own.
    decimals: Option<usize>,
}

impl<'a> ColumnFormat<'a> {
    fn new<'v>(column: &'a TableColumn, values: impl Iterator<Item = &'v Json>) -> Self {
        let mut numbers: Vec<f64> = Vec::new();
        let mut others = 0_usize;
        for value in values {
            match value.as_f64() {
                Some(number) => numbers.push(number.abs()),
                None if value.is_null() => {}
                None => others += 1,
            }
        }
        let named = ["int", "uint", "float", "decimal"]
            .iter()
            .any(|start| column.data_type.starts_with(start));
        let is_number = others == 0 && (!numbers.is_empty() || named);
        Self { column, is_number, decimals: column_decimals(&numbers) }
    }

    fn head(&self) -> Value {
        context! {
            column => Serde(self.column),
            is_number => self.is_number,
            link => self.column.sort_link.as_deref().filter(|link| is_within(link)),
        }
    }

    /// A cell, a number of which has these decimals, or else those of the column.
    fn cell(&self, parts: &Parts, value: &Json, decimals: Option<usize>) -> Value {
        let text = match value {
            Json::Null => return context! { kind => "none", is_number => self.is_number },
            Json::Number(_) => return number_cell(value, decimals.or(self.decimals)),
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        let limit = parts.limits.cell_chars;
        let is_cut = text.chars().nth(limit).is_some();
        let is_kept = is_cut && text.len() <= limit * KEPT_CELL;
        let is_changed = text.contains(['\n', '\t']);
        context! {
            kind => if is_cut && !is_kept { "cut" } else { "text" },
            raw => (is_kept || (is_changed && !is_cut)).then_some(&text),
            text => parts.label(&text),
        }
    }
}

fn number_cell(value: &Json, decimals: Option<usize>) -> Value {
    let text = match (value.as_u64(), value.as_i64(), value.as_f64()) {
        (Some(_), _, _) => grouped(&value.to_string()),
        (None, Some(whole), _) => format!("−{}", grouped(&whole.unsigned_abs().to_string())),
        (None, None, Some(float)) => with_decimals(float, decimals),
        (None, None, None) => value.to_string(),
    };
    let raw = Some(value.to_string()).filter(|raw| *raw != text);
    context! { kind => "number", raw => raw, text => text }
}

fn with_decimals(value: f64, decimals: Option<usize>) -> String {
    let Some(decimals) = decimals.filter(|_| value.abs() < 1e9) else { return number(value) };
    let text = fixed(value, decimals);
    let (sign, size) = text.strip_prefix('-').map_or(("", text.as_str()), |size| ("−", size));
    let (whole, part) = size.split_at(size.find('.').unwrap_or(size.len()));
    format!("{sign}{}{part}", grouped(whole))
}

fn grouped(digits: &str) -> String {
    // Whole numbers of four digits are often years.
    match digits.parse::<u64>() {
        Ok(value) if digits.len() > 4 => count(value),
        _ => digits.to_string(),
    }
}
