//! Columns of a table in memory, in the order of its key: labels as codes, numbers as doubles.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::isnan;
use futures::StreamExt;

use galeras_base::prose::count;
use galeras_operator::StepError;
use galeras_sql::projection::in_key_order;
use galeras_sql::session::column;

/// The code of a missing label.
pub(crate) const NONE: u32 = u32::MAX;

/// Texts that stand for a missing value: those that pandas reads as one.
const MISSING_TEXTS: [&str; 18] = [
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
];

/// True for a text that stands for a missing value, also for an empty one.
pub(crate) fn is_missing_text(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || MISSING_TEXTS.contains(&text)
}

/// Labels as codes, in the order in which they appear.
#[derive(Debug, Default)]
pub(crate) struct LabelCodes {
    /// By code.
    pub(crate) names: Vec<String>,
    known: HashMap<String, u32>,
    /// The code of each row.
    pub(crate) rows: Vec<u32>,
}

impl LabelCodes {
    pub(crate) fn push(&mut self, name: Option<&str>) {
        // The rows of a group often follow each other, which saves the look-up.
        let last = self.rows.last().copied().unwrap_or(NONE);
        let is_last = |name: &str| self.names.get(last as usize).is_some_and(|one| one == name);
        if name.is_some_and(is_last) {
            self.rows.push(last);
            return;
        }
        let code = name.map(|name| match self.known.get(name) {
            Some(code) => *code,
            None => {
                let code = self.names.len() as u32;
                self.names.push(name.to_owned());
                self.known.insert(name.to_owned(), code);
                code
            }
        });
        self.rows.push(code.unwrap_or(NONE));
    }

    /// The codes of these rows only.
    pub(crate) fn of_rows(&self, rows: &[u32]) -> Self {
        let mut codes = Self::default();
        for row in rows {
            let name = self.names.get(self.rows[*row as usize] as usize);
            codes.push(name.map(String::as_str));
        }
        codes
    }

    /// The codes, where texts that stand for a missing value are missing unless `named` has them. Each
    /// column with such texts makes a warning, which ends with the way to keep them.
    pub(crate) fn without_missing_texts(
        self,
        column: &str,
        named: &[&str],
        to_keep: &str,
        warnings: &mut Vec<String>,
    ) -> Self {
        let missing = |name: &&str| is_missing_text(name) && !named.contains(name);
        if !self.names.iter().map(String::as_str).any(|name| missing(&name)) {
            return self;
        }
        let mut codes = Self::default();
        let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
        for code in &self.rows {
            let name = self.names.get(*code as usize).map(String::as_str);
            if let Some(text) = name.filter(missing) {
                *rows.entry(text).or_default() += 1;
            }
            codes.push(name.filter(|name| !missing(name)));
        }
        let counts: Vec<String> = rows
            .iter()
            .map(|(text, n)| format!("{text:?} in {}", count(*n, "row", "rows")))
            .collect();
        let counts = counts.join(", ");
        let message = format!("`{column}` is {counts}: this counts as missing; {to_keep}");
        warnings.push(message);
        codes
    }

    pub(crate) fn code(&self, name: &str) -> Option<u32> {
        self.known.get(name).copied()
    }

    /// The codes as numbers; a missing one is NaN.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let number = |code: &u32| if *code == NONE { f64::NAN } else { f64::from(*code) };
        self.rows.iter().map(number).collect()
    }
}

/// A column as labels. NaN is missing, as pandas writes it; the two zeros are one label.
pub(crate) fn label(schema: &DFSchema, name: &str) -> Result<Expr, StepError> {
    let text = cast(column(name), DataType::Utf8);
    Ok(match schema.field_with_unqualified_name(name) {
        Ok(field) if field.data_type().is_floating() => {
            when(isnan(column(name)), lit(ScalarValue::Utf8(None)))
                .when(text.clone().eq(lit("-0.0")), lit("0.0"))
                .otherwise(text)?
        }
        _ => text,
    })
}

/// Those of the columns that are integers of 64 bits, not all of which are doubles.
pub(crate) fn integers(schema: &DFSchema, names: &[String]) -> BTreeSet<String> {
    let is_integer = |name: &&String| {
        let field = schema.field_with_unqualified_name(name);
        field.is_ok_and(|field| matches!(field.data_type(), DataType::Int64 | DataType::UInt64))
    };
    names.iter().filter(is_integer).cloned().collect()
}

/// The columns of a table.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub rows: usize,
    pub hashes: Vec<Vec<u64>>,
    pub labels: Vec<LabelCodes>,
    /// By name; a missing number is NaN.
    pub numbers: BTreeMap<String, Vec<f64>>,
}

/// Reads expressions that are hashes or texts, and columns of numbers, in the order of `key`.
pub(crate) async fn read_columns(
    input: DataFrame,
    key: &[String],
    hashes: Vec<Expr>,
    labels: Vec<Expr>,
    numbers: &[String],
) -> Result<Columns, StepError> {
    let (n_hashes, n_labels) = (hashes.len(), labels.len());
    let numeric = numbers.iter().map(|name| cast(column(name), DataType::Float64));
    let all = hashes.into_iter().chain(labels).chain(numeric);
    let all = all.enumerate().map(|(at, value)| value.alias(format!("c{at}"))).collect();
    let mut stream = in_key_order(input, key, all)?.execute_stream().await?;
    let mut read = Columns { hashes: vec![Vec::new(); n_hashes], ..Columns::default() };
    read.labels.resize_with(n_labels, LabelCodes::default);
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); numbers.len()];
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        read.rows += batch.num_rows();
        let (hashes, rest) = batch.columns().split_at(n_hashes);
        let (labels, numbers) = rest.split_at(n_labels);
        for (target, array) in read.hashes.iter_mut().zip(hashes) {
            target.extend(array.as_primitive::<UInt64Type>().iter().map(Option::unwrap_or_default));
        }
        for (target, array) in read.labels.iter_mut().zip(labels) {
            array.as_string::<i32>().iter().for_each(|text| target.push(text));
        }
        for (target, array) in values.iter_mut().zip(numbers) {
            let array = array.as_primitive::<Float64Type>();
            target.extend(array.iter().map(|value| value.unwrap_or(f64::NAN)));
        }
    }
    read.numbers = numbers.iter().cloned().zip(values).collect();
    Ok(read)
}

/// The columns of a table, labels by name.
#[derive(Debug)]
pub(crate) struct NamedColumns {
    pub(crate) rows: usize,
    /// A missing number is NaN.
    pub(crate) numbers: BTreeMap<String, Vec<f64>>,
    /// Those of them that are integers of 64 bits in the input, not all of which are doubles.
    pub(crate) integers: BTreeSet<String>,
    pub(crate) labels: BTreeMap<String, LabelCodes>,
}

/// Reads `numbers`, and labels by name from expressions of texts, in the order of `key`.
pub(crate) async fn read_named_columns(
    input: DataFrame,
    key: &[String],
    labels: Vec<(String, Expr)>,
    numbers: &[String],
) -> Result<NamedColumns, StepError> {
    let integers = integers(input.schema(), numbers);
    let (names, texts): (Vec<String>, Vec<Expr>) = labels.into_iter().unzip();
    let read = read_columns(input, key, Vec::new(), texts, numbers).await?;
    let labels = names.into_iter().zip(read.labels).collect();
    Ok(NamedColumns { rows: read.rows, numbers: read.numbers, integers, labels })
}
