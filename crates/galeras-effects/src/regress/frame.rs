//! The input as columns of numbers, in the order of its key; columns of text as indicators.
//!
//! A missing value is NaN (so a NaN of the file counts as missing), a missing arm, unit or cluster
//! is [`NONE`]. `comparison` decides which rows are used.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, lit};

use super::args::Args;
pub(super) use crate::columns::{LabelCodes, NONE};
use crate::columns::{integers, label, read_columns};
use galeras_base::id::ID;
use galeras_base::prose::{count, name_list};
use galeras_operator::StepError;
use galeras_operator::columns::is_text;
use galeras_sql::functions::{KeyedHash, RowId, call};
use galeras_sql::group_columns::as_text;
use galeras_sql::session::column;

/// The values of a column in some rows.
pub(super) fn gather<T: Copy>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| column[*row as usize]).collect()
}

/// The columns that an analysis reads.
#[derive(Default)]
pub(super) struct AnalysisFrame {
    pub(super) arms: LabelCodes,
    pub(super) units: Option<LabelCodes>,
    pub(super) clusters: Option<LabelCodes>,
    /// The origin of each row, if it is read.
    pub(super) origins: Option<LabelCodes>,
    groups: Option<LabelCodes>,
    /// Columns of numbers, by name; of a column of text the codes of its levels.
    pub(super) numbers: BTreeMap<String, Vec<f64>>,
    /// The levels of each column of text, by code.
    pub(super) levels: BTreeMap<String, Vec<String>>,
    /// Those of them that are integers of 64 bits in the input, not all of which are doubles.
    pub(super) integers: BTreeSet<String>,
    /// A random number of each row.
    pub(super) draws: Vec<u64>,
    pub(super) unit_draws: Option<Vec<u64>>,
    /// On texts that count as missing.
    pub(super) warnings: Vec<String>,
}

impl AnalysisFrame {
    pub(super) fn len(&self) -> usize {
        self.draws.len()
    }

    /// A frame for the rows of each of these groups.
    pub(super) fn split(&self, groups: &[String]) -> Vec<Self> {
        let Some(of_rows) = &self.groups else { return Vec::new() };
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); of_rows.names.len()];
        for (row, code) in (0u32..).zip(&of_rows.rows) {
            if let Some(group) = rows.get_mut(*code as usize) {
                group.push(row);
            }
        }
        let rows_of =
            |id: &String| of_rows.code(id).map_or(&[][..], |code| rows[code as usize].as_slice());
        groups.iter().map(|id| self.of_rows(rows_of(id))).collect()
    }

    fn of_rows(&self, rows: &[u32]) -> Self {
        let numbers = self.numbers.iter();
        Self {
            arms: self.arms.of_rows(rows),
            units: self.units.as_ref().map(|codes| codes.of_rows(rows)),
            clusters: self.clusters.as_ref().map(|codes| codes.of_rows(rows)),
            origins: self.origins.as_ref().map(|codes| codes.of_rows(rows)),
            groups: None,
            numbers: numbers.map(|(name, column)| (name.clone(), gather(column, rows))).collect(),
            levels: self.levels.clone(),
            integers: self.integers.clone(),
            draws: gather(&self.draws, rows),
            unit_draws: self.unit_draws.as_ref().map(|draws| gather(draws, rows)),
            warnings: Vec::new(),
        }
    }
}

/// The column with the repository of a row, as `query` and `methods` call it: units whose ids repeat
/// lie in several.
pub(super) const REPOSITORY: &str = "repo";
/// The column with the data point of a prompt, as `prompt` calls it: without units, its rows show
/// what the treatment changes.
pub(super) const DATA_POINT: &str = "snippet_id";

/// Reads `numbers`, the treatment, unit, cluster, `origin` and `group` of `input`, in the order of
/// `key`.
pub(super) async fn read(
    input: DataFrame,
    key: &[String],
    args: &Args,
    numbers: &[String],
    origin: Option<&str>,
    group: Expr,
) -> Result<AnalysisFrame, StepError> {
    let types = input.schema().clone();
    let hash = |purpose: &str, id: Expr| call::<KeyedHash>(vec![lit(args.seed), lit(purpose), id]);
    let id = match key {
        [only] if only == ID => label(&types, ID)?,
        _ => call::<RowId>(key.iter().map(|name| column(name)).collect()),
    };
    let mut hashes = vec![hash("regress", id)];
    let mut labels = vec![label(&types, &args.treatment)?];
    if let Some(unit) = &args.unit {
        hashes.push(hash("regress/unit", label(&types, unit)?));
        labels.push(label(&types, unit)?);
    }
    if let Some(cluster) = &args.cluster {
        labels.push(label(&types, cluster)?);
    }
    if let Some(origin) = origin {
        labels.push(label(&types, origin)?);
    }
    if !args.by.is_empty() {
        labels.push(as_text(group));
    }
    let has_levels = |name: &&String| {
        let field = types.field_with_unqualified_name(name);
        field.is_ok_and(|field| is_text(field.data_type()))
            || args.absorb.contains(name)
            || args.second_cluster.as_ref() == Some(*name)
    };
    let (texts, plain): (Vec<String>, Vec<String>) =
        numbers.iter().cloned().partition(|name| has_levels(&name));
    for name in &texts {
        labels.push(label(&types, name)?);
    }
    let read = read_columns(input, key, hashes, labels, &plain).await?;
    if read.rows > NONE as usize / 2 {
        return Err(StepError::new("`regress` takes at most 2³¹ rows"));
    }
    let (mut hashes, mut labels) = (read.hashes.into_iter(), read.labels.into_iter());
    let mut warnings = Vec::new();
    let mut given = |name: &str, codes: LabelCodes| {
        let mut named: Vec<&str> = args.base.get(name).map(String::as_str).into_iter().collect();
        let mut to_keep = "write another text if it is a value";
        if name == args.treatment {
            named.push(&args.control);
            named.extend(args.treatments.iter().flatten().map(String::as_str));
            to_keep = "name it in `treatments` if it is an arm";
        }
        codes.without_missing_texts(name, &named, to_keep, &mut warnings)
    };
    let mut frame = AnalysisFrame {
        draws: hashes.next().unwrap_or_default(),
        unit_draws: hashes.next(),
        arms: given(&args.treatment, labels.next().unwrap_or_default()),
        units: args.unit.as_ref().and_then(|unit| Some(given(unit, labels.next()?))),
        clusters: args.cluster.as_ref().and_then(|name| Some(given(name, labels.next()?))),
        origins: origin.and_then(|_| labels.next()),
        groups: args.by.first().and_then(|_| labels.next()),
        numbers: read.numbers,
        levels: BTreeMap::new(),
        integers: integers(&types, numbers),
        warnings: Vec::new(),
    };
    for (name, codes) in texts.into_iter().zip(labels) {
        let codes = given(&name, codes);
        frame.numbers.insert(name.clone(), codes.numbers());
        frame.levels.insert(name, codes.names.to_vec());
    }
    frame.warnings = warnings;
    Ok(frame)
}

/// A column of text with more levels is not expanded.
const MOST_LEVELS: usize = 100;

pub(super) struct Indicators {
    /// The level without an indicator.
    pub(super) base: String,
    /// The other levels in these rows, by alphabet, each with its column of zeros and ones; missing
    /// where the level is.
    pub(super) levels: Vec<(String, Vec<f64>)>,
}

/// The indicators of a column of text in these rows. The base is the one given by `base`, or else the
/// most frequent level of the used rows, of several such the first by alphabet.
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
