//! The ports of `mixed`, and how their rows come out of the models.

use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;

use super::args::{Args, INTERCEPT, RESIDUAL, grouping_name};
use super::model::{FittedModel, OutcomeModel};
use super::rows::{ComponentRow, FitRow, FixedRow};
use crate::words::{ci, left_out};
use galeras_base::prose::{
    count, degrees_of_freedom, four_digits, name_list, p_equals, significant, thousands,
};
use galeras_causal::Estimate;
use galeras_operator::small_table::{TableRow, record_batch, table_schema};
use galeras_operator::{MAIN, Port, Ports, StepError};

const COMPONENTS: &str = "components";
const FIT: &str = "fit";

/// With fewer groups, their variance is hardly known.
const FEW_GROUPS: usize = 5;

#[derive(Default)]
pub(super) struct ResultTables {
    fixed: Vec<FixedRow>,
    components: Vec<ComponentRow>,
    fits: Vec<FitRow>,
    pub(super) warnings: Vec<String>,
}

impl ResultTables {
    pub(super) fn new(args: &Args, models: Vec<OutcomeModel>) -> Self {
        let mut tables = Self::default();
        for model in models {
            match &model.model {
                Ok(fitted) => {
                    tables.fixed.extend(fixed_rows(args, &model, fitted));
                    tables.components.extend(component_rows(&model, fitted));
                    tables.fits.push(fit_row(args, &model, fitted));
                }
                Err(reason) => tables.refuse(args, &model, reason),
            }
        }
        tables
    }

    /// Adds the rows of a refused model, as far as its columns are known.
    fn refuse(&mut self, args: &Args, model: &OutcomeModel, reason: &str) {
        let outcome = &model.outcome;
        self.warnings.push(format!("no model of `{outcome}`: {reason}"));
        let reason = Some(reason.to_owned());
        let note = format!(
            "The model of {outcome} is refused, because {}.",
            reason.as_deref().unwrap_or_default()
        );
        let terms = std::iter::once(INTERCEPT).chain(args.fixed.iter().map(String::as_str));
        self.fixed.extend(terms.map(|term| FixedRow {
            outcome: outcome.clone(),
            term: term.to_owned(),
            reason: reason.clone(),
            n: model.rows,
            note: note.clone(),
            ..FixedRow::default()
        }));
        let groupings = args.groupings();
        let groups = groupings.iter().map(|one| (grouping_name(one), INTERCEPT.to_owned()));
        let residual = std::iter::once((RESIDUAL.to_owned(), String::new()));
        self.components.extend(groups.chain(residual).map(|(group, effect)| ComponentRow {
            outcome: outcome.clone(),
            group,
            effect,
            reason: reason.clone(),
            note: note.clone(),
            ..ComponentRow::default()
        }));
        self.fits.push(FitRow {
            outcome: outcome.clone(),
            reason,
            method: method(args),
            n: model.rows,
            n_missing: model.missing,
            converged: model.converged.unwrap_or(false),
            note,
            ..FitRow::default()
        });
    }

    pub(super) fn into_ports(self, session: &SessionContext) -> Result<Ports, StepError> {
        Ok(vec![
            (MAIN, table(session, &self.fixed)?),
            (COMPONENTS, table(session, &self.components)?),
            (FIT, table(session, &self.fits)?),
        ])
    }
}

fn table<Row: TableRow>(session: &SessionContext, rows: &[Row]) -> Result<DataFrame, StepError> {
    Ok(session.read_batch(record_batch(rows)?)?)
}

pub(super) fn ports() -> Vec<Port> {
    vec![
        Port::new(MAIN, table_schema::<FixedRow>().keyed(&["outcome", "term", "level"])),
        Port::new(
            COMPONENTS,
            table_schema::<ComponentRow>().keyed(&["outcome", "group", "effect", "other"]),
        ),
        Port::new(FIT, table_schema::<FitRow>().keyed(&["outcome"])),
    ]
}

fn method(args: &Args) -> &'static str {
    if args.reml { "REML" } else { "ML" }
}

/// The model, as the end of a sentence.
fn model_phrase(args: &Args, model: &OutcomeModel, fitted: &FittedModel) -> String {
    let groupings: Vec<String> = args.groupings().iter().map(|one| grouping_name(one)).collect();
    let singular = if fitted.fit.singular { ", a singular fit" } else { "" };
    let left_out = left_out(model.missing, "row without a value is", "rows without a value are");
    format!(
        "linear mixed model with random effects of {} by {}{singular}, n = {}.{left_out}",
        name_list(&groupings),
        method(args),
        thousands(model.rows)
    )
}

fn fixed_rows(args: &Args, model: &OutcomeModel, fitted: &FittedModel) -> Vec<FixedRow> {
    let phrase = model_phrase(args, model, fitted);
    let outcome = &model.outcome;
    let columns = std::iter::once(None).chain(fitted.fixed.iter().map(Some));
    let row = |(column, estimate): (Option<&super::model::FixedColumn>, &Estimate)| {
        let ends = estimate.interval(args.alpha);
        let (what, level, base) = match column {
            None => (format!("The intercept of {outcome} is"), None, None),
            Some(column) => match &column.level {
                Some((level, base)) => (
                    format!("Where `{}` is {level}, {outcome} differs from {base} by", column.name),
                    Some(level),
                    Some(base),
                ),
                None => {
                    (format!("Per unit of `{}`, {outcome} changes by", column.name), None, None)
                }
            },
        };
        let note = format!(
            "{what} {} ({}, p {}, t with {} degrees of freedom); {phrase}",
            four_digits(estimate.value),
            ci(args.alpha, ends),
            p_equals(estimate.p_value()),
            degrees_of_freedom(estimate.degrees)
        );
        FixedRow {
            outcome: outcome.clone(),
            term: column.map_or(INTERCEPT, |column| &column.name).to_owned(),
            level: level.cloned().unwrap_or_default(),
            base: base.cloned(),
            reason: None,
            estimate: Some(*estimate),
            interval: Some(ends),
            n: model.rows,
            note,
        }
    };
    columns.zip(&fitted.fit.coefficients).map(row).collect()
}

fn component_rows(model: &OutcomeModel, fitted: &FittedModel) -> Vec<ComponentRow> {
    let fit = &fitted.fit;
    let outcome = &model.outcome;
    // Shares are those of intercepts; with slopes the total changes from row to row.
    let has_slopes = fitted.effects.iter().any(|one| !one.slopes.is_empty());
    let total: f64 =
        fit.random.iter().map(|one| one.covariance[0]).sum::<f64>() + fit.residual_variance;
    let of_grouping = |place: usize| {
        let at = fitted.effects.iter().position(|one| one.place == place);
        at.map_or(0.0, |at| fit.random[at].covariance[0])
    };
    let share = |variance: f64| (!has_slopes).then_some(variance / total);
    let percent = |share: Option<f64>| match share {
        Some(share) => format!(", {} % of the total", significant(100.0 * share, 3)),
        None => String::new(),
    };
    let mut rows = Vec::new();
    for (effects, random) in fitted.effects.iter().zip(&fit.random) {
        let width = random.width();
        let intercept = effects.intercept.then(|| INTERCEPT.to_owned());
        let names: Vec<String> = intercept.into_iter().chain(effects.slopes.clone()).collect();
        let group = &effects.grouping;
        for one in 0..width {
            let variance = random.covariance[one * width + one];
            let is_intercept = names[one] == INTERCEPT;
            let share = if is_intercept { share(variance) } else { None };
            let within = fitted.within[effects.place].iter().map(|outer| of_grouping(*outer));
            let shared = variance + within.sum::<f64>();
            let icc = share.map(|_| shared / total);
            let what = if is_intercept {
                format!("{outcome} varies between the {} of `{group}`", groups(random.levels))
            } else {
                format!(
                    "the slope of {outcome} on `{}` varies between the {} of `{group}`",
                    names[one],
                    groups(random.levels)
                )
            };
            let few = if random.levels < FEW_GROUPS {
                " So few groups say little about their variance."
            } else {
                ""
            };
            let zero = if variance == 0.0 {
                " The groups differ by no more than their rows do: the fit is singular."
            } else {
                ""
            };
            rows.push(ComponentRow {
                outcome: outcome.clone(),
                group: group.clone(),
                effect: names[one].clone(),
                groups: Some(random.levels),
                variance: Some(variance),
                share,
                icc,
                note: sentence(&format!(
                    "{what} with a standard deviation of {}{}.{zero}{few}",
                    four_digits(variance.sqrt()),
                    percent(share)
                )),
                ..ComponentRow::default()
            });
            for other in 0..one {
                let covariance = random.covariance[one * width + other];
                let correlation = random.correlation(one, other);
                let in_words = match correlation {
                    Some(correlation) => {
                        format!("have a correlation of {}", four_digits(correlation))
                    }
                    None => "have no correlation, for one of them has no variance".into(),
                };
                rows.push(ComponentRow {
                    outcome: outcome.clone(),
                    group: group.clone(),
                    effect: names[one].clone(),
                    other: names[other].clone(),
                    groups: Some(random.levels),
                    covariance: Some(covariance),
                    correlation,
                    note: format!(
                        "Between the {} of `{group}`, {} and {} {in_words}.",
                        groups(random.levels),
                        names[one],
                        names[other]
                    ),
                    ..ComponentRow::default()
                });
            }
        }
    }
    let residual = share(fit.residual_variance);
    rows.push(ComponentRow {
        outcome: outcome.clone(),
        group: RESIDUAL.into(),
        variance: Some(fit.residual_variance),
        share: residual,
        note: sentence(&format!(
            "{outcome} varies within all groups with a standard deviation of {}{}.",
            four_digits(fit.residual_variance.sqrt()),
            percent(residual)
        )),
        ..ComponentRow::default()
    });
    rows
}

/// A sentence that may begin with the name of a column, which keeps its case.
fn sentence(text: &str) -> String {
    match text.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => text.to_owned(),
    }
}

fn groups(n: usize) -> String {
    count(n, "group", "groups")
}

fn fit_row(args: &Args, model: &OutcomeModel, fitted: &FittedModel) -> FitRow {
    let fit = &fitted.fit;
    let mut sizes: Vec<String> = Vec::new();
    for (effects, random) in fitted.effects.iter().zip(&fit.random) {
        let size = format!("{}: {}", effects.grouping, random.levels);
        if sizes.last() != Some(&size) {
            sizes.push(size);
        }
    }
    let advice = if fit.singular {
        " A variance is zero or a correlation 1 or -1: these groups do not tell so many random \
         effects apart."
    } else {
        ""
    };
    FitRow {
        outcome: model.outcome.clone(),
        reason: None,
        method: method(args),
        n: model.rows,
        n_missing: model.missing,
        groups: Some(sizes.join(", ")),
        parameters: Some(fit.parameters()),
        criterion: Some(fit.criterion),
        log_likelihood: Some(fit.log_likelihood()),
        aic: Some(fit.aic()),
        bic: Some(fit.bic()),
        converged: fit.converged,
        singular: fit.singular,
        note: format!(
            "{}: {} The log-likelihood is {}.{advice}",
            model.outcome,
            model_phrase(args, model, fitted),
            significant(fit.log_likelihood(), 6)
        ),
    }
}
