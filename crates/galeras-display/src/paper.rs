//! Tables for papers: LaTeX with the rules of booktabs, and Markdown.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cell::{CellFormatter, failed, json_options};
use super::stream::check_columns;
use super::table::{decimals, floats};
use galeras_figures::{column_decimals, fixed, is_estimate};

/// How a table is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaperTable {
    /// The language of the file.
    pub markup: PaperMarkup,
    /// The columns, in this order; all if empty.
    pub columns: Vec<String>,
    /// The decimals of numbers with a fraction; those of their standard errors, or of their column, if
    /// absent.
    pub digits: Option<usize>,
    /// The caption.
    pub caption: Option<String>,
    /// The label in LaTeX.
    pub label: String,
    /// Columns whose best number is bold; with a pivot, the best of each row.
    pub bold: Vec<(String, Best)>,
    /// A column for each value of a column.
    pub pivot: Option<Pivot>,
}

/// The language of a table for a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperMarkup {
    /// A floating table with the rules of booktabs.
    Latex,
    /// A table of GitHub's Markdown.
    Markdown,
}

/// The best number of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// The values of one column become columns, which have the values of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pivot {
    /// The column whose values are the new columns.
    pub columns: String,
    /// The column whose values are in them.
    pub values: String,
}

impl PaperTable {
    fn best(&self, column: &str) -> Option<Best> {
        self.bold.iter().find(|(name, _)| name == column).map(|(_, best)| *best)
    }
}

/// Writes the rows of `batches` as a table of a paper.
///
/// # Errors
/// If the table cannot be written, or two of its rows are one cell of the pivot.
pub fn write_paper_table(
    out: &mut dyn Write,
    batches: &[RecordBatch],
    schema: &SchemaRef,
    paper: &PaperTable,
) -> io::Result<()> {
    batches.iter().try_for_each(|batch| check_columns(schema, batch))?;
    let names: Vec<String> = match paper.columns.as_slice() {
        [] => schema.fields().iter().map(|field| field.name().clone()).collect(),
        names => names.to_vec(),
    };
    let read = |names: &[String]| -> io::Result<Vec<PaperColumn>> {
        names.iter().map(|name| PaperColumn::of(batches, schema, name, paper.digits)).collect()
    };
    let mut columns = match &paper.pivot {
        None => read(&names)?,
        Some(pivot) => {
            let is_row = |name: &&String| **name != pivot.columns && **name != pivot.values;
            let rows: Vec<String> = names.iter().filter(is_row).cloned().collect();
            let sides = [pivot.columns.clone(), pivot.values.clone()];
            pivoted(read(&rows)?, &read(&sides)?, paper.best(&pivot.values))?
        }
    };
    if paper.pivot.is_none() {
        for column in &mut columns {
            if let Some(best) = paper.best(&column.name) {
                mark_best(column.cells.iter_mut(), best);
            }
        }
    }
    match paper.markup {
        PaperMarkup::Latex => latex(out, &columns, paper)?,
        PaperMarkup::Markdown => markdown(out, &columns, paper)?,
    }
    out.flush()
}

struct PaperColumn {
    name: String,
    is_number: bool,
    cells: Vec<PaperCell>,
}

#[derive(Clone, Default)]
struct PaperCell {
    text: String,
    is_best: bool,
}

impl PaperCell {
    /// The number as it is printed, so that equal ones are equally good.
    fn number(&self) -> Option<f64> {
        self.text.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

impl PaperColumn {
    fn of(
        batches: &[RecordBatch],
        schema: &SchemaRef,
        name: &str,
        digits: Option<usize>,
    ) -> io::Result<Self> {
        let at = schema.index_of(name).map_err(|error| failed(&error))?;
        let numbers = floats(batches, at);
        let sizes = numbers.iter().flatten().flatten().map(|number| number.abs());
        let own = column_decimals(&sizes.collect::<Vec<_>>());
        let by_error = decimals(batches, schema);
        let options = json_options();
        let mut cells = Vec::new();
        for batch in batches {
            let array = batch.column(at);
            let field = &batch.schema_ref().fields()[at];
            let mut source = CellFormatter::new(field, array.as_ref(), &options)?;
            for row in 0..batch.num_rows() {
                let place = cells.len();
                let number = numbers.as_ref().and_then(|numbers| numbers[place]);
                let by_error = by_error[place].filter(|_| is_estimate(name));
                let text = match (number, digits.or(by_error).or(own)) {
                    _ if array.is_null(row) => String::new(),
                    (Some(number), Some(decimals)) if number.is_finite() => fixed(number, decimals),
                    _ => source.text(row)?,
                };
                cells.push(PaperCell { text, is_best: false });
            }
        }
        let is_number = schema.field(at).data_type().is_numeric();
        Ok(Self { name: name.to_string(), is_number, cells })
    }
}

fn mark_best<'a>(cells: impl Iterator<Item = &'a mut PaperCell>, best: Best) {
    let cells: Vec<(f64, &mut PaperCell)> =
        cells.filter_map(|cell| Some((cell.number()?, cell))).collect();
    let numbers = cells.iter().map(|(number, _)| *number);
    let best = match best {
        Best::Max => numbers.reduce(f64::max),
        Best::Min => numbers.reduce(f64::min),
    };
    for (number, cell) in cells {
        cell.is_best = Some(number) == best;
    }
}

/// The rows of a pivot, and its columns in the order in which their values come.
fn pivoted(
    mut labels: Vec<PaperColumn>,
    sides: &[PaperColumn],
    best: Option<Best>,
) -> io::Result<Vec<PaperColumn>> {
    let [heads, values] = sides else { return Ok(labels) };
    let row_of = |at: usize| -> Vec<&str> {
        labels.iter().map(|label| label.cells[at].text.as_str()).collect()
    };
    let mut rows: Vec<Vec<&str>> = Vec::new();
    let mut firsts = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut places = Vec::new();
    for (at, head) in heads.cells.iter().enumerate() {
        let label = row_of(at);
        let row = rows.iter().position(|known| *known == label).unwrap_or_else(|| {
            rows.push(label);
            firsts.push(at);
            firsts.len() - 1
        });
        let column = names.iter().position(|name| *name == head.text).unwrap_or_else(|| {
            names.push(&head.text);
            names.len() - 1
        });
        if places.contains(&(row, column)) {
            let message = format!(
                "two rows are the cell of {} and {}; name more `columns`, which tell rows apart",
                rows[row].join(", "),
                head.text
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        places.push((row, column));
    }
    let mut table = vec![vec![PaperCell::default(); names.len()]; firsts.len()];
    for ((row, column), value) in places.into_iter().zip(&values.cells) {
        table[row][column] = value.clone();
    }
    if let Some(best) = best {
        table.iter_mut().for_each(|row| mark_best(row.iter_mut(), best));
    }
    let pivot: Vec<PaperColumn> = names
        .iter()
        .enumerate()
        .map(|(at, name)| PaperColumn {
            name: (*name).to_string(),
            is_number: values.is_number,
            cells: table.iter().map(|row| row[at].clone()).collect(),
        })
        .collect();
    for label in &mut labels {
        label.cells = firsts.iter().map(|at| label.cells[*at].clone()).collect();
    }
    labels.extend(pivot);
    Ok(labels)
}

/// A table as the page of a report copies it.
fn latex(out: &mut dyn Write, columns: &[PaperColumn], paper: &PaperTable) -> io::Result<()> {
    writeln!(out, "% \\usepackage{{booktabs}}, \\usepackage[T1]{{fontenc}}")?;
    writeln!(out, "\\begin{{table}}\n  \\centering")?;
    if let Some(caption) = &paper.caption {
        writeln!(out, "  \\caption{{{}}}", latex_text(caption))?;
    }
    writeln!(out, "  \\label{{{}}}", paper.label)?;
    let kinds: String = columns.iter().map(|c| if c.is_number { 'r' } else { 'l' }).collect();
    writeln!(out, "  \\begin{{tabular}}{{{kinds}}}\n    \\toprule")?;
    let cell = |column: &PaperColumn, row: usize| {
        let PaperCell { text, is_best } = &column.cells[row];
        let text = latex_text(&signed(column, text));
        if *is_best { format!("\\textbf{{{text}}}") } else { text }
    };
    let heads: Vec<String> = columns.iter().map(|column| latex_text(&column.name)).collect();
    writeln!(out, "    {} \\\\\n    \\midrule", heads.join(" & "))?;
    for row in 0..rows(columns) {
        let cells: Vec<String> = columns.iter().map(|column| cell(column, row)).collect();
        writeln!(out, "    {} \\\\", cells.join(" & "))?;
    }
    writeln!(out, "    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}")
}

fn markdown(out: &mut dyn Write, columns: &[PaperColumn], paper: &PaperTable) -> io::Result<()> {
    if let Some(caption) = &paper.caption {
        writeln!(out, "{}\n", markdown_text(caption))?;
    }
    let cell = |column: &PaperColumn, row: usize| {
        let PaperCell { text, is_best } = &column.cells[row];
        let text = markdown_text(&signed(column, text));
        if *is_best { format!("**{text}**") } else { text }
    };
    let heads: Vec<String> = columns.iter().map(|column| markdown_text(&column.name)).collect();
    let rules: Vec<&str> =
        columns.iter().map(|column| if column.is_number { "---:" } else { "---" }).collect();
    writeln!(out, "| {} |\n| {} |", heads.join(" | "), rules.join(" | "))?;
    for row in 0..rows(columns) {
        let cells: Vec<String> = columns.iter().map(|column| cell(column, row)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn rows(columns: &[PaperColumn]) -> usize {
    columns.first().map_or(0, |column| column.cells.len())
}

/// A number with a true minus.
fn signed(column: &PaperColumn, text: &str) -> String {
    if column.is_number { text.replace('-', "−") } else { text.to_string() }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn latex_text(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => {
                out.push('\\');
                out.push(c);
            }
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("\\textquotedbl{}"),
            '−' => out.push_str("$-$"),
            '±' => out.push_str("$\\pm$"),
            '∞' => out.push_str("$\\infty$"),
            '…' => out.push_str("\\ldots{}"),
            '–' => out.push_str("--"),
            c => out.push(c),
        }
    }
    out
}

fn markdown_text(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '<' | '>' | '|' | '[' | ']' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    fn table() -> RecordBatch {
        let texts = |all: Vec<&str>| Arc::new(StringArray::from(all)) as ArrayRef;
        RecordBatch::try_from_iter([
            ("model", texts(vec!["small_1", "small_1", "large", "large"])),
            ("arm", texts(vec!["control", "T1", "control", "T1"])),
            ("mean", Arc::new(Float64Array::from(vec![0.5, 0.4972, -0.25, 0.125])) as ArrayRef),
            ("n", Arc::new(Int64Array::from(vec![30, 30, 30, 29])) as ArrayRef),
        ])
        .unwrap()
    }

    fn written(paper: &PaperTable) -> String {
        let mut out = Vec::new();
        let batch = table();
        write_paper_table(&mut out, std::slice::from_ref(&batch), &batch.schema(), paper).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn paper(markup: PaperMarkup) -> PaperTable {
        PaperTable {
            markup,
            columns: Vec::new(),
            digits: None,
            caption: Some("Scores & sizes".to_string()),
            label: "tab:scores".to_string(),
            bold: vec![("mean".to_string(), Best::Max)],
            pivot: None,
        }
    }

    #[test]
    fn latex_has_booktabs_escapes_and_one_number_of_decimals() {
        let expected = "\
% \\usepackage{booktabs}, \\usepackage[T1]{fontenc}
\\begin{table}
  \\centering
  \\caption{Scores \\& sizes}
  \\label{tab:scores}
  \\begin{tabular}{llrr}
    \\toprule
    model & arm & mean & n \\\\
    \\midrule
    small\\_1 & control & \\textbf{0.5000} & 30 \\\\
    small\\_1 & T1 & 0.4972 & 30 \\\\
    large & control & $-$0.2500 & 30 \\\\
    large & T1 & 0.1250 & 29 \\\\
    \\bottomrule
  \\end{tabular}
\\end{table}
";
        assert_eq!(written(&paper(PaperMarkup::Latex)), expected);
    }

    #[test]
    fn a_pivot_has_a_column_for_each_value_and_the_best_of_each_row() {
        let pivot = Some(Pivot { columns: "arm".to_string(), values: "mean".to_string() });
        let columns = vec!["model".to_string()];
        let digits = Some(2);
        let paper =
            PaperTable { columns, digits, pivot, caption: None, ..paper(PaperMarkup::Markdown) };
        let expected = "\
| model | control | T1 |
| --- | ---: | ---: |
| small\\_1 | **0.50** | **0.50** |
| large | −0.25 | **0.12** |
";
        assert_eq!(written(&paper), expected);
        // Without the model, two rows would be one cell.
        let paper = PaperTable { columns: vec!["n".to_string()], ..paper };
        let batch = table();
        let error = write_paper_table(
            &mut Vec::new(),
            std::slice::from_ref(&batch),
            &batch.schema(),
            &paper,
        );
        assert!(error.unwrap_err().to_string().contains("two rows are the cell of 30 and control"));
    }
}
