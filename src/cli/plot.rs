//! `show --plot`: estimates with their intervals, or the distribution of a column, drawn with
//! characters.

use datafusion::dataframe::DataFrame;
use galeras_figures::{Kind, Spec, terminal};

use super::context::{Exit, Failure, fail, failed, print, width};
use galeras_operator::TableSchema;
use galeras_sql::session::{FigureColumn, column, figure_data, sorted_by_key};

const LINES: usize = 24;
const NARROWEST: usize = 30;

/// Draws the rows: a forest plot of a table with estimates and intervals, else a histogram of the
/// first column of numbers among `columns`, by the first of texts.
pub(super) async fn show_plot(
    rows: DataFrame,
    table: &TableSchema,
    columns: &[String],
) -> Result<Exit, Failure> {
    let (spec, drawn) = picture(table, columns).map_err(|message| fail(message, Exit::Invalid))?;
    let names: Vec<_> = drawn.iter().map(|drawn| column(&drawn.name)).collect();
    let ordered = sorted_by_key(rows, &table.key).and_then(|rows| rows.select(names));
    let data = figure_data(ordered.map_err(failed)?, &drawn).await.map_err(failed)?;
    let width = usize::from(width()).max(NARROWEST);
    let text = terminal(&spec, &data, width, LINES, false);
    print(&text.map_err(|error| fail(error.to_string(), Exit::Invalid))?)
}

/// The kind of plot and the columns for a table.
fn picture(table: &TableSchema, columns: &[String]) -> Result<(Spec, Vec<FigureColumn>), String> {
    let field = |name: &str| table.field(name);
    let is_number = |name: &str| field(name).is_some_and(|f| f.data_type().is_numeric());
    let mut drawn = Vec::new();
    let mut take = |name: &str, number: bool| {
        if let Some(field) = field(name) {
            drawn.push(FigureColumn::of(field, number));
        }
        Some(name.to_string())
    };
    let interval = ["estimate", "ci_low", "ci_high"];
    if columns.is_empty() && interval.iter().all(|name| is_number(name)) {
        let texts = ["outcome", "column", "score", "variable", "treatment"];
        let mut about = texts.into_iter().filter(|name| field(name).is_some());
        let Some(y) = about.next().or_else(|| table.key.first().map(String::as_str)) else {
            return Err("the table has no column that names its estimates".to_string());
        };
        let group = about.next().filter(|group| *group == "treatment" && *group != y);
        let mut spec = Spec::new(Kind::FOREST);
        spec.y = take(y, false);
        spec.x = take("estimate", true);
        spec.low = take("ci_low", true);
        spec.high = take("ci_high", true);
        spec.color = group.and_then(|group| take(group, false));
        return Ok((spec, drawn));
    }
    let numbers: Vec<&str> = match columns {
        [] => table.names().filter(|name| is_number(name)).collect(),
        names => names.iter().map(String::as_str).filter(|name| is_number(name)).collect(),
    };
    let (Some(x), true) = (numbers.first(), columns.is_empty() || numbers.len() == 1) else {
        let known: Vec<&str> = table.names().filter(|name| is_number(name)).collect();
        let help = match known.as_slice() {
            [] => "the table has none".to_string(),
            known => format!("the table has {}", known.join(", ")),
        };
        return Err(format!("--plot draws one column of numbers, `--columns NAME`; {help}"));
    };
    if columns.is_empty() && numbers.len() > 1 {
        let known = numbers.join(", ");
        return Err(format!("--plot draws one column: `--columns NAME`, one of {known}"));
    }
    let mut spec = Spec::new(Kind::HISTOGRAM);
    spec.x = take(x, true);
    let group = columns.iter().find(|name| name.as_str() != *x && !is_number(name));
    spec.color = group.and_then(|group| take(group, false));
    Ok((spec, drawn))
}
