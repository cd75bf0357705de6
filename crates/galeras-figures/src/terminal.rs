//! Histograms and forest plots of characters.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::data::Data;
use crate::error::FigureError;
use crate::kinds::{bins, joined, range, references};
use crate::rows::{Row, Table};
use crate::scale::{Range, count, number};
use crate::sheet::Sheet;
use crate::spec::{Kind, Spec};
use crate::text::visible;

/// The colours of groups: blue, yellow, green, magenta, cyan, red, white, grey.
const COLORS: [u8; 8] = [34, 33, 32, 35, 36, 31, 37, 90];
const MARKS: [char; 8] = ['●', '▲', '■', '◆', '▼', '◉', '□', '◇'];

/// Draws a histogram, forest plot or love plot with characters, at most `columns` (30 or more)
/// wide and `rows` (6 or more) high, in colours or not. The last line is the caption. Hidden
/// characters of the data are written out.
///
/// # Errors
/// As [`crate::draw`]; other kinds are refused.
pub fn terminal(
    spec: &Spec,
    data: &Data,
    columns: usize,
    rows: usize,
    colour: bool,
) -> Result<String, FigureError> {
    for (option, value, least, range) in
        [("columns", columns, 30, "30 or more"), ("rows", rows, 6, "6 or more")]
    {
        if value < least {
            return Err(FigureError::Spec(format!("`{option}` is {value}; it must be {range}")));
        }
    }
    let Some(draw_text) = spec.kind.draw_text else {
        return Err(FigureError::NoTerminal(spec.kind.with_article()));
    };
    let table = Table::read(spec, data)?;
    let sheet = Sheet::new(spec, data, &table);
    let mut screen = Screen { columns, colour, lines: Vec::new() };
    if let Some(title) = &spec.title {
        screen.lines.push(crop(&visible(title), columns));
    }
    draw_text(&sheet, &mut screen, rows);
    screen.lines.push(crop(&table.counted(spec.kind, ""), columns));
    Ok(screen.lines.join("\n") + "\n")
}

/// The lines so far, and how much room there is.
pub(crate) struct Screen {
    columns: usize,
    colour: bool,
    lines: Vec<String>,
}

impl Screen {
    fn painted(&self, text: &str, group: usize) -> String {
        match self.colour {
            true => format!("\u{1b}[{}m{text}\u{1b}[0m", COLORS[group % COLORS.len()]),
            false => text.to_string(),
        }
    }
}

/// A text that takes at most so many columns; what is cropped ends with `…`.
fn crop(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_string();
    }
    let (mut out, mut taken) = (String::new(), 1);
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

fn pad_left(text: &str, columns: usize) -> String {
    let text = crop(text, columns);
    format!("{}{text}", " ".repeat(columns - text.width()))
}

pub(crate) fn histogram(sheet: &Sheet<'_>, screen: &mut Screen, rows: usize) {
    let (panels, groups) = (sheet.table.panels(), sheet.table.groups());
    let blocks = panels * groups;
    // As many bins as there are lines for, unless the spec has a number.
    let room = rows.saturating_sub(2 + screen.lines.len()) / blocks;
    let found = bins(sheet);
    let fits = room.saturating_sub(usize::from(blocks > 1)).max(2);
    let found = match sheet.spec.bins.is_none() && found.edges.len() - 1 > fits {
        true => {
            let mut spec = sheet.spec.clone();
            spec.bins = Some(fits);
            bins(&Sheet::new(&spec, sheet.data, sheet.table))
        }
        false => found,
    };
    let most = found.counts.iter().flatten().flatten().copied().max().unwrap_or(0).max(1);
    let label = |i: usize| format!("{} – {}", number(found.edges[i]), number(found.edges[i + 1]));
    let widest = (0..found.edges.len() - 1).map(|i| label(i).width()).max().unwrap_or(0);
    let widest = widest.min(screen.columns / 2);
    let digits = count(most).len();
    let length = screen.columns.saturating_sub(widest + digits + 3).max(1);
    for (panel, of_panel) in found.counts.iter().enumerate() {
        for (group, counts) in of_panel.iter().enumerate() {
            if blocks > 1 {
                let names = joined([sheet.table.facets.get(panel), sheet.table.colors.get(group)]);
                screen.lines.push(crop(&visible(&names), screen.columns));
            }
            for (i, n) in counts.iter().enumerate() {
                let bar = screen.painted(&bar(*n as f64 / most as f64, length), group);
                let label = pad_left(&label(i), widest);
                screen.lines.push(format!("{label} │{bar} {}", count(*n)));
            }
        }
    }
}

/// A bar of eighths of characters.
fn bar(share: f64, length: usize) -> String {
    let eighths = (share * length as f64 * 8.0).round() as usize;
    // The smallest bar is visible.
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    bar.extend([' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8).filter(|c| **c != ' '));
    bar
}

pub(crate) fn forest(sheet: &Sheet<'_>, screen: &mut Screen, rows: usize) {
    let table = sheet.table;
    let name = |r: &Row| {
        let names = joined([r.y_name.and_then(|y| table.ys.get(y)), table.facets.get(r.facet)]);
        visible(&names).into_owned()
    };
    let mut order: Vec<&Row> = table.rows.iter().collect();
    order.sort_by_key(|r| (r.facet, r.y_name, r.color));
    let widest = order.iter().map(|r| name(r).width()).max().unwrap_or(0);
    let widest = widest.min(screen.columns * 2 / 5);
    let numbers = order.iter().map(|r| r.words(r.x).width()).max().unwrap_or(0);
    let numbers = if screen.columns >= widest + numbers + 22 { numbers + 2 } else { 0 };
    let length = screen.columns - widest - numbers - 2;
    let (range, references) = (range(sheet), references(sheet));
    let axis = range.axis(0.0, (length - 1) as f64);
    let place = |v: f64| (axis.at(v).round() as usize).min(length - 1);
    if table.colors.len() > 1 {
        let key = |(i, name): (usize, &String)| format!("{} {}", MARKS[i % 8], visible(name));
        let keys: Vec<String> = table.colors.iter().enumerate().map(key).collect();
        screen.lines.push(crop(&keys.join("   "), screen.columns));
    }
    let room = rows.saturating_sub(screen.lines.len() + 3).max(1);
    let shown = if order.len() > room { room - usize::from(room > 1) } else { order.len() };
    let mut last = String::new();
    for row in &order[..shown] {
        let group = row.color.unwrap_or(0);
        let mut cells = vec![' '; length];
        for line in references.iter().copied().filter(|at| *at >= range.low && *at <= range.high) {
            cells[place(line)] = if line == 0.0 || references.len() == 1 { '│' } else { '┊' };
        }
        let mark = match (row.interval, sheet.spec.kind) {
            (None, kind) if kind == Kind::FOREST => '○',
            _ => MARKS[group % 8],
        };
        if let Some((low, high)) = row.interval {
            let (low, high) = (place(low), place(high));
            cells[low..=high].fill('─');
            (cells[low], cells[high]) = ('├', '┤');
        }
        cells[place(row.x)] = mark;
        let drawn = screen.painted(&String::from_iter(cells), group);
        let text = name(row);
        // A name is written once, before the lines of its groups.
        let shown = crop(if text == last { "" } else { &text }, widest);
        let spaces = " ".repeat(widest - shown.width());
        let words = if numbers > 0 { pad_left(&row.words(row.x), numbers) } else { String::new() };
        let line = format!("{shown}{spaces}  {drawn}{words}");
        screen.lines.push(line.trim_end().to_string());
        last = text;
    }
    if shown < order.len() {
        let more = format!("… and {} more", count(order.len() - shown));
        screen.lines.push(crop(&more, screen.columns));
    }
    ruler(screen, range, widest + 2, length, place);
}

/// The axis below: a line with ticks, and their numbers.
fn ruler(
    screen: &mut Screen,
    range: Range,
    left: usize,
    length: usize,
    place: impl Fn(f64) -> usize,
) {
    let mut line = vec!['─'; length];
    let mut numbers = vec![' '; length];
    let mut free = 0;
    for (value, text) in range.ticks((length / 12).max(2)) {
        let (at, wide) = (place(value), text.width());
        line[at] = '┴';
        let from = at.saturating_sub(wide / 2).min(length.saturating_sub(wide));
        if from >= free && from + wide <= length {
            text.chars().enumerate().for_each(|(i, c)| numbers[from + i] = c);
            free = from + wide + 1;
        }
    }
    for cells in [line, numbers] {
        let line = " ".repeat(left) + &String::from_iter(cells);
        screen.lines.push(line.trim_end().to_string());
    }
}
