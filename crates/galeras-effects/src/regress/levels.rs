//! Columns of text as covariates: an indicator for each level but the base.
//!
//! A frame holds such a column as the codes of its levels. The base is the one given by `base`, or
//! else the most frequent level of the used rows, of several such the first by alphabet.

use super::args::Args;
use super::frame::{AnalysisFrame, gather};
use galeras_base::prose::{count, name_list};

/// A column of text with more levels is not expanded.
const MOST_LEVELS: usize = 100;

pub(super) struct Indicators {
    /// The level without an indicator.
    pub(super) base: String,
    /// The other levels in these rows, by alphabet, each with its column of zeros and ones; missing
    /// where the level is.
    pub(super) levels: Vec<(String, Vec<f64>)>,
}

/// The indicators of a column in these rows.
///
/// # Errors
/// One level only, too many, or no row with the base that was asked for, in words.
pub(super) fn indicators(
    args: &Args,
    frame: &AnalysisFrame,
    name: &str,
    rows: &[u32],
) -> Result<Indicators, String> {
    let labels = frame.levels.get(name).map(Vec::as_slice).unwrap_or_default();
    let codes = gather(&frame.numbers[name], rows);
    let mut sizes = vec![0usize; labels.len()];
    codes.iter().filter(|code| !code.is_nan()).for_each(|code| sizes[*code as usize] += 1);
    let mut present: Vec<usize> = (0..labels.len()).filter(|code| sizes[*code] > 0).collect();
    if present.len() > MOST_LEVELS {
        return Err(format!(
            "`{name}` has {}, more than {MOST_LEVELS} (absorb: [{name}] takes any number)",
            count(present.len(), "level", "levels")
        ));
    }
    if present.len() < 2 {
        return Err(format!("`{name}` has one level only"));
    }
    present.sort_by(|a, b| labels[*a].cmp(&labels[*b]));
    let base = match args.base.get(name) {
        Some(base) => *present.iter().find(|code| labels[**code] == *base).ok_or_else(|| {
            let known: Vec<&str> = present.iter().map(|code| labels[*code].as_str()).collect();
            format!("no row has the base `{base}` as `{name}`: it is {}", name_list(&known))
        })?,
        // The first of the largest, as `present` is by alphabet.
        None => present.iter().copied().rev().max_by_key(|code| sizes[*code]).unwrap_or_default(),
    };
    let column = |level: usize| {
        let value = |code: &f64| match code.is_nan() {
            true => f64::NAN,
            false => f64::from(u8::from(*code as usize == level)),
        };
        codes.iter().map(value).collect()
    };
    let others = present.iter().filter(|code| **code != base);
    Ok(Indicators {
        base: labels[base].clone(),
        levels: others.map(|code| (labels[*code].clone(), column(*code))).collect(),
    })
}

/// Covariates as numbers.
#[derive(Default)]
pub(super) struct CovariateColumns {
    /// `language=Java` for an indicator.
    pub(super) names: Vec<String>,
    pub(super) values: Vec<Vec<f64>>,
    /// `language (base Python)` for a text.
    pub(super) described: Vec<String>,
}

/// The columns with these names in these rows, those of text as indicators.
pub(super) fn covariate_columns(
    args: &Args,
    frame: &AnalysisFrame,
    names: &[String],
    rows: &[u32],
) -> Result<CovariateColumns, String> {
    let mut columns = CovariateColumns::default();
    for name in names {
        if !frame.levels.contains_key(name) {
            columns.names.push(name.clone());
            columns.values.push(gather(&frame.numbers[name], rows));
            columns.described.push(name.clone());
            continue;
        }
        let found = indicators(args, frame, name, rows)?;
        columns.described.push(format!("{name} (base {})", found.base));
        for (level, values) in found.levels {
            columns.names.push(format!("{name}={level}"));
            columns.values.push(values);
        }
    }
    Ok(columns)
}

/// The level of each row as a code. Rows without one share another code, which matters only to an
/// estimate that is refused.
pub(super) fn level_codes(frame: &AnalysisFrame, name: &str, rows: &[u32]) -> Vec<u32> {
    let missing = frame.levels.get(name).map_or(0, Vec::len) as u32;
    let code = |code: f64| if code.is_nan() { missing } else { code as u32 };
    gather(&frame.numbers[name], rows).into_iter().map(code).collect()
}
