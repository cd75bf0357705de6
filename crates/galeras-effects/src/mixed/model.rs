//! The model of one outcome: rows, columns, fit, and reasons for a refusal.

use std::collections::{HashMap, HashSet};
use std::iter::once;

use super::args::{Args, Family, grouping_name};
use crate::columns::{LabelCodes, NONE, NamedColumns};
use crate::shared_columns::{Answer, NoNumber};
use crate::words::infinite;
use galeras_base::prose::{count, thousands};
use galeras_causal::{ColumnRef, MixedFit, RandomTerm, Refusal, is_nested, mixed, mixed_binary};
use galeras_operator::far_numbers::{LEAST_RANGE, least_if_far, lost_digits, moved};
use galeras_operator::missing_values::MissingValues;

/// A fixed column of text with more values than this is a grouping column.
const MOST_LEVELS: usize = 200;

/// The combinations of several columns of codes as codes, in the order in which they appear.
fn combined(columns: &[&[u32]], rows: &[u32]) -> Vec<u32> {
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    rows.iter()
        .map(|row| {
            let key: Vec<u32> = columns.iter().map(|column| column[*row as usize]).collect();
            let next = known.len() as u32;
            *known.entry(key).or_insert(next)
        })
        .collect()
}

pub(super) struct FixedColumn {
    pub(super) name: String,
    /// For text, the value and the base that it is compared with.
    pub(super) level: Option<(String, String)>,
}

/// The effects of the groups of one grouping that may be correlated.
pub(super) struct RandomEffects {
    pub(super) grouping: String,
    /// The position among the arguments' groupings.
    pub(super) place: usize,
    pub(super) intercept: bool,
    pub(super) slopes: Vec<String>,
}

pub(super) struct FittedModel {
    pub(super) fixed: Vec<FixedColumn>,
    pub(super) effects: Vec<RandomEffects>,
    pub(super) fit: MixedFit,
    /// For each grouping, the groupings whose groups its groups lie in, itself left out.
    pub(super) within: Vec<Vec<usize>>,
    pub(super) common: Vec<CommonEffects>,
}

/// Fixed columns whose effect may differ between the groups of a grouping, by rows that could show
/// it, and is one for all in the model.
pub(super) struct CommonEffects {
    pub(super) grouping: Vec<String>,
    pub(super) columns: Vec<String>,
}

/// The model of an outcome, or why there is none.
pub(super) struct OutcomeModel {
    pub(super) outcome: String,
    pub(super) model: Answer<FittedModel>,
    /// Rows that are used, and rows without a value.
    pub(super) rows: usize,
    pub(super) missing: usize,
}

/// Fits the model of one outcome. `texts` are the fixed columns of text.
pub(super) fn fit(
    args: &Args,
    texts: &[String],
    frame: &NamedColumns,
    outcome: &str,
) -> OutcomeModel {
    let rows = complete_rows(args, texts, frame, outcome);
    let missing = frame.rows - rows.len();
    let model = if missing > 0 && args.missing == MissingValues::Refuse {
        Err(format!(
            "{} no value of the outcome, a fixed column or a group (missing: drop leaves such rows \
             out)",
            count(missing, "row has", "rows have")
        ))
    } else {
        fit_rows(args, texts, frame, outcome, &rows)
    };
    OutcomeModel {
        outcome: outcome.to_owned(),
        model: model.map_err(NoNumber::Refused),
        rows: rows.len(),
        missing,
    }
}

fn complete_rows(args: &Args, texts: &[String], frame: &NamedColumns, outcome: &str) -> Vec<u32> {
    let numbers: Vec<&Vec<f64>> = once(outcome)
        .chain(args.fixed.iter().map(String::as_str))
        .filter_map(|name| frame.numbers.get(name))
        .collect();
    let labels: Vec<&LabelCodes> = texts
        .iter()
        .chain(args.groupings().iter().flatten())
        .filter_map(|name| frame.labels.get(name))
        .collect();
    (0..frame.rows as u32)
        .filter(|row| {
            let row = *row as usize;
            numbers.iter().all(|column| !column[row].is_nan())
                && labels.iter().all(|column| column.rows[row] != NONE)
        })
        .collect()
}

fn fit_rows(
    args: &Args,
    texts: &[String],
    frame: &NamedColumns,
    outcome: &str,
    rows: &[u32],
) -> Result<FittedModel, String> {
    let gather = |name: &str| -> Result<Vec<f64>, String> {
        let values: Vec<f64> = rows.iter().map(|row| frame.numbers[name][*row as usize]).collect();
        let whole = frame.integers.contains(name);
        let lost = || lost_digits(name, whole, values.iter().copied(), LEAST_RANGE);
        match infinite(name, values.iter().copied()).or_else(lost) {
            Some(reason) => Err(reason),
            None => Ok(values),
        }
    };
    let values = gather(outcome)?;
    // Of the whole model, a constant in the outcome moves the intercept only.
    let origin = least_if_far(&values);
    let values = moved(values);
    let (mut fixed, mut columns) = (Vec::new(), Vec::new());
    for name in &args.fixed {
        if texts.contains(name) {
            for (level, base, column) in one_hot(name, &frame.labels[name], rows, args)? {
                fixed.push(FixedColumn { name: name.clone(), level: Some((level, base)) });
                columns.push(column);
            }
        } else {
            let column = gather(name)?;
            // Where it is zero decides what the intercept and its variance mean: it stays there.
            if least_if_far(&column).is_some() {
                return Err(format!(
                    "`{name}` lies a million times its range from zero, where the intercept is: \
                     subtract a constant from the column before"
                ));
            }
            columns.push(column);
            fixed.push(FixedColumn { name: name.clone(), level: None });
        }
    }
    let groupings = args.groupings();
    let codes: Vec<Vec<u32>> = groupings
        .iter()
        .map(|grouping| {
            let columns: Vec<&[u32]> =
                grouping.iter().map(|name| frame.labels[name].rows.as_slice()).collect();
            combined(&columns, rows)
        })
        .collect();
    let effects = random_effects(args, &groupings);
    let column_of = |name: &String| {
        let place = fixed.iter().position(|column| column.name == *name);
        place.map_or(&[][..], |place| columns[place].as_slice())
    };
    let terms: Vec<RandomTerm<'_>> = effects
        .iter()
        .map(|one| RandomTerm {
            groups: &codes[one.place],
            intercept: one.intercept,
            slopes: one.slopes.iter().map(column_of).collect(),
        })
        .collect();
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let fitted = match args.family {
        Family::Normal => mixed(&values, &slices, &terms, args.reml),
        Family::Binomial => mixed_binary(&values, &slices, &terms),
    };
    let mut fit = fitted.map_err(|refusal| words(&refusal, outcome, &fixed, &effects))?;
    if let (Some(origin), Some(intercept)) = (origin, fit.coefficients.first_mut()) {
        intercept.value += origin;
    }
    if !fit.converged {
        return Err(
            "the search for the variances did not converge: they may not be identified by \
                    these groups; try fewer random effects"
                .into(),
        );
    }
    let within = (0..codes.len())
        .map(|inner| {
            let outer = (0..codes.len()).filter(|outer| *outer != inner);
            outer.filter(|outer| is_nested(&codes[inner], &codes[*outer])).collect()
        })
        .collect();
    let common = common_effects(args, texts, frame, &groupings, &codes, rows);
    Ok(FittedModel { fixed, effects, fit, within, common })
}

/// The effects that have neither a slope nor an interaction with a grouping within whose groups the
/// column varies. Where a group has one row for each value of the column, the residuals contain the
/// differences between groups, and nothing is wrong.
fn common_effects(
    args: &Args,
    texts: &[String],
    frame: &NamedColumns,
    groupings: &[Vec<String>],
    codes: &[Vec<u32>],
    rows: &[u32],
) -> Vec<CommonEffects> {
    let could_show = |name: &String, groups: &[u32]| {
        let value = |row: u32| match frame.labels.get(name).filter(|_| texts.contains(name)) {
            Some(labels) => u64::from(labels.rows[row as usize]),
            None => (frame.numbers[name][row as usize] + 0.0).to_bits(),
        };
        let mut of_groups: HashMap<u32, (usize, HashSet<u64>)> = HashMap::new();
        for (group, row) in groups.iter().zip(rows) {
            let (size, values) = of_groups.entry(*group).or_default();
            *size += 1;
            values.insert(value(*row));
        }
        // A line has two coefficients, a text has a mean for each of its values.
        let most = if texts.contains(name) { usize::MAX } else { 2 };
        let varying = of_groups.into_values().filter(|(_, values)| values.len() > 1);
        varying.map(|(size, values)| size - values.len().min(most)).sum::<usize>() > 0
    };
    let found = groupings.iter().zip(codes).map(|(grouping, groups)| {
        let has_effects = |name: &String| {
            let interacts = |other: &Vec<String>| {
                other.contains(name) && grouping.iter().all(|one| other.contains(one))
            };
            args.slopes_of(grouping).contains(name) || groupings.iter().any(interacts)
        };
        let common = args.fixed.iter().filter(|name| !has_effects(name));
        let columns = common.filter(|name| could_show(name, groups)).cloned().collect();
        CommonEffects { grouping: grouping.clone(), columns }
    });
    found.filter(|common| !common.columns.is_empty()).collect()
}

/// The random terms: one for each grouping, or, without correlations, one for each slope too.
fn random_effects(args: &Args, groupings: &[Vec<String>]) -> Vec<RandomEffects> {
    let mut effects = Vec::new();
    for (place, grouping) in groupings.iter().enumerate() {
        let name = grouping_name(grouping);
        let slopes = args.slopes_of(grouping);
        let first = RandomEffects {
            grouping: name.clone(),
            place,
            intercept: true,
            slopes: if args.correlated { slopes.to_vec() } else { Vec::new() },
        };
        effects.push(first);
        if !args.correlated {
            effects.extend(slopes.iter().map(|slope| RandomEffects {
                grouping: name.clone(),
                place,
                intercept: false,
                slopes: vec![slope.clone()],
            }));
        }
    }
    effects
}

/// The columns of zeros and ones of a column of text, each with its value and the base.
fn one_hot(
    name: &str,
    labels: &LabelCodes,
    rows: &[u32],
    args: &Args,
) -> Result<Vec<(String, String, Vec<f64>)>, String> {
    let mut occurs = vec![false; labels.names.len()];
    rows.iter().for_each(|row| occurs[labels.rows[*row as usize] as usize] = true);
    let mut levels: Vec<(&String, u32)> =
        labels.names.iter().zip(0..).filter(|(_, code)| occurs[*code as usize]).collect();
    levels.sort();
    if levels.len() > MOST_LEVELS {
        return Err(format!(
            "`{name}` has {} values, and a fixed effect of text has at most {MOST_LEVELS}: name it \
             in `random`",
            thousands(levels.len())
        ));
    }
    let base = match args.base.get(name) {
        Some(given) => {
            levels.iter().find(|(level, _)| *level == given).copied().ok_or_else(|| {
                let known: Vec<String> =
                    levels.iter().take(5).map(|(level, _)| format!("`{level}`")).collect();
                let more = if levels.len() > 5 { ", …" } else { "" };
                format!("`{name}` is never `{given}`, its base, but {}{more}", known.join(", "))
            })?
        }
        None => match levels.first() {
            Some(first) => *first,
            None => return Err("there are no rows".into()),
        },
    };
    if levels.len() == 1 {
        return Err(format!("`{name}` has one value only"));
    }
    let column = |code: u32| {
        let is = |row: &u32| f64::from(u8::from(labels.rows[*row as usize] == code));
        rows.iter().map(is).collect()
    };
    Ok(levels
        .iter()
        .filter(|(_, code)| *code != base.1)
        .map(|(level, code)| ((*level).clone(), base.0.clone(), column(*code)))
        .collect())
}

fn words(
    refusal: &Refusal,
    outcome: &str,
    fixed: &[FixedColumn],
    effects: &[RandomEffects],
) -> String {
    let names: Vec<String> = fixed
        .iter()
        .map(|column| match &column.level {
            Some((level, _)) => format!("{} = {level}", column.name),
            None => column.name.clone(),
        })
        .collect();
    refusal.describe(|column| match column {
        ColumnRef::Outcome => Some(outcome),
        ColumnRef::Covariate(position) => names.get(position).map(String::as_str),
        ColumnRef::Grouping(position) => effects.get(position).map(|one| one.grouping.as_str()),
        ColumnRef::Slope(term, position) => {
            effects.get(term)?.slopes.get(position).map(String::as_str)
        }
        _ => None,
    })
}
