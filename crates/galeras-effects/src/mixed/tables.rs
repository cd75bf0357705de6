//! The ports of `mixed`: the rows of each, from the models.

use std::iter::once;

use datafusion::prelude::SessionContext;

use super::args::{Args, Family, INTERCEPT, RESIDUAL, grouping_name};
use super::model::{CommonEffects, FittedModel, FixedColumn, OutcomeModel};
use crate::shared_columns::{
    self as columns, Answer, IntervalEstimate, found, reason_of, status_of,
};
use crate::step::table;
use crate::words::{ci, left_out};
use galeras_base::prose::{
    by_interval, count, degrees_of_freedom, four_digits, name_list, p_equals, significant,
    thousands,
};
use galeras_causal::{Estimate, MixedFamily, MixedFit};
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, flag, number, optional_count, optional_text, table_schema,
    text,
};
use galeras_operator::{MAIN, Port, Ports, StepError};

const COMPONENTS: &str = "components";
const FIT: &str = "fit";

/// With fewer groups, their variance is hardly known.
const FEW_GROUPS: usize = 5;

const fn outcome<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("outcome", "the column that is modelled", value)
}

const fn status<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("status", "ok or refused", value)
}

struct FixedRow {
    outcome: String,
    term: String,
    level: String,
    base: Option<String>,
    coefficient: Answer<IntervalEstimate>,
    n: usize,
    note: String,
}

impl TableRow for FixedRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        outcome(|row| &row.outcome),
        text("term", "the fixed column, or (intercept)", |row| &row.term),
        text(
            "level",
            "for a column of text, the value that is compared with the base; empty else",
            |row| &row.level,
        ),
        optional_text("base", "the value it is compared with", |row| row.base.as_deref()),
        status(|row| status_of(&row.coefficient)),
        columns::reason(|row| reason_of(&row.coefficient)),
        number(
            "estimate",
            "the coefficient, in units of the outcome (log odds for `binomial`) per unit of the \
             column",
            |row| Some(found(&row.coefficient)?.estimate.value),
        ),
        number("standard_error", "its standard error", |row| {
            Some(found(&row.coefficient)?.estimate.standard_error)
        }),
        number("ci_low", "lower end of its confidence interval", |row| {
            Some(found(&row.coefficient)?.interval.0)
        }),
        number("ci_high", "upper end", |row| Some(found(&row.coefficient)?.interval.1)),
        number(
            "df",
            "Satterthwaite's degrees of freedom; null for the normal distribution",
            |row| {
                Some(found(&row.coefficient)?.estimate.degrees)
                    .filter(|degrees| degrees.is_finite())
            },
        ),
        number("t", "the estimate divided by its standard error", |row| {
            Some(found(&row.coefficient)?.estimate.statistic())
        }),
        number("p_value", "two-sided p-value of a coefficient of zero", |row| {
            Some(found(&row.coefficient)?.estimate.p_value())
        }),
        count_of("n", "rows that were used", "rows", |row| row.n),
        columns::note(|row| &row.note),
    ];
}

/// A variance, or a covariance of two effects of a group.
struct ComponentRow {
    outcome: String,
    group: String,
    effect: String,
    other: String,
    component: Answer<Component>,
    note: String,
}

#[derive(Default)]
struct Component {
    groups: Option<usize>,
    variance: Option<f64>,
    covariance: Option<f64>,
    correlation: Option<f64>,
    share: Option<f64>,
    icc: Option<f64>,
}

impl TableRow for ComponentRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        outcome(|row| &row.outcome),
        text("group", "the grouping column, columns with x between them, or (residual)", |row| {
            &row.group
        }),
        text(
            "effect",
            "(intercept), or the column whose slope differs; empty for the residual",
            |row| &row.effect,
        ),
        text(
            "other",
            "for a covariance, the effect that it is with; empty for a variance",
            |row| &row.other,
        ),
        status(|row| status_of(&row.component)),
        columns::reason(|row| reason_of(&row.component)),
        optional_count("groups", "how many groups there are", Some("groups"), |row| {
            found(&row.component)?.groups
        }),
        number("variance", "the variance, in squared units of the outcome", |row| {
            found(&row.component)?.variance
        }),
        number("sd", "its square root", |row| found(&row.component)?.variance.map(f64::sqrt)),
        number("covariance", "the covariance of the two effects", |row| {
            found(&row.component)?.covariance
        }),
        number("correlation", "their correlation", |row| found(&row.component)?.correlation),
        number(
            "share",
            "the variance as a share of the sum of all; null where there are slopes",
            |row| found(&row.component)?.share,
        ),
        number(
            "icc",
            "the correlation of two rows that share this group, those it lies in, and no other",
            |row| found(&row.component)?.icc,
        ),
        columns::note(|row| &row.note),
    ];
}

struct FitRow {
    model: OutcomeModel,
    method: &'static str,
    groups: Option<String>,
    note: String,
}

impl FitRow {
    fn fit(&self) -> Option<&MixedFit> {
        Some(&self.model.model.as_ref().ok()?.fit)
    }
}

impl TableRow for FitRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        outcome(|row| &row.model.outcome),
        status(|row| status_of(&row.model.model)),
        columns::reason(|row| reason_of(&row.model.model)),
        text("method", "REML, ML or Laplace", |row| row.method),
        count_of("n", "rows that were used", "rows", |row| row.model.rows),
        count_of("n_missing", "rows without a value", "rows", |row| row.model.missing),
        optional_text("groups", "how many groups each grouping has", |row| row.groups.as_deref()),
        optional_count("parameters", "coefficients, variances and covariances", None, |row| {
            Some(row.fit()?.parameters())
        }),
        number(
            "criterion",
            "the REML criterion, or for ML the deviance: -2 times the log-likelihood",
            |row| Some(row.fit()?.criterion),
        ),
        number("log_likelihood", "the (restricted) log-likelihood", |row| {
            Some(row.fit()?.log_likelihood())
        }),
        number("aic", "Akaike's criterion", |row| Some(row.fit()?.aic())),
        number("bic", "Schwarz's criterion", |row| Some(row.fit()?.bic())),
        flag("converged", "whether the search ended in a minimum", |row| {
            row.fit().is_some_and(|fit| fit.converged)
        }),
        flag("singular", "whether a variance is zero, or a correlation 1 or -1", |row| {
            row.fit().is_some_and(|fit| fit.singular)
        }),
        columns::note(|row| &row.note),
    ];
}

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
            let (groups, note) = match &model.model {
                Ok(fitted) => {
                    tables.warnings.extend(common_warnings(args, &model.outcome, fitted));
                    tables.fixed.extend(fixed_rows(args, &model, fitted));
                    tables.components.extend(component_rows(&model, fitted));
                    (Some(group_sizes(fitted)), fit_note(args, &model, fitted))
                }
                Err(none) => (None, tables.refuse(args, &model, none.reason())),
            };
            let method = method(args);
            tables.fits.push(FitRow { model, method, groups, note });
        }
        tables
    }

    /// Adds the rows of a refused model, as far as its columns are known. Returns their note.
    fn refuse(&mut self, args: &Args, model: &OutcomeModel, reason: &str) -> String {
        let outcome = &model.outcome;
        self.warnings.push(format!("no model of `{outcome}`: {reason}"));
        let note = format!("The model of {outcome} is refused, because {reason}.");
        let terms = once(INTERCEPT).chain(args.fixed.iter().map(String::as_str));
        self.fixed.extend(terms.map(|term| FixedRow {
            outcome: outcome.clone(),
            term: term.to_owned(),
            level: String::new(),
            base: None,
            coefficient: Err(reason.into()),
            n: model.rows,
            note: note.clone(),
        }));
        let groupings = args.groupings();
        let groups = groupings.iter().map(|one| (grouping_name(one), INTERCEPT));
        let residual = once((RESIDUAL.to_owned(), ""));
        self.components.extend(groups.chain(residual).map(|(group, effect)| ComponentRow {
            outcome: outcome.clone(),
            group,
            effect: effect.to_owned(),
            other: String::new(),
            component: Err(reason.into()),
            note: note.clone(),
        }));
        note
    }

    pub(super) fn into_ports(self, session: &SessionContext) -> Result<Ports, StepError> {
        Ok(vec![
            (MAIN, table(session, &self.fixed)?),
            (COMPONENTS, table(session, &self.components)?),
            (FIT, table(session, &self.fits)?),
        ])
    }
}

pub(super) fn ports() -> Vec<Port> {
    let components = table_schema::<ComponentRow>();
    vec![
        Port::new(MAIN, table_schema::<FixedRow>().keyed(&["outcome", "term", "level"])),
        Port::new(COMPONENTS, components.keyed(&["outcome", "group", "effect", "other"])),
        Port::new(FIT, table_schema::<FitRow>().keyed(&["outcome"])),
    ]
}

fn method(args: &Args) -> &'static str {
    match args.family {
        Family::Binomial => "Laplace",
        Family::Normal if args.reml => "REML",
        Family::Normal => "ML",
    }
}

/// The model, as the end of a sentence.
fn model_phrase(args: &Args, model: &OutcomeModel, fitted: &FittedModel) -> String {
    let groupings: Vec<String> = args.groupings().iter().map(|one| grouping_name(one)).collect();
    let singular = if fitted.fit.singular { ", a singular fit" } else { "" };
    let left_out = left_out(model.missing, "row without a value is", "rows without a value are");
    format!(
        "{} with random effects of {} by {}{singular}, n = {}.{left_out}",
        match args.family {
            Family::Normal => "linear mixed model",
            Family::Binomial => "mixed logistic model",
        },
        name_list(&groupings),
        method(args),
        thousands(model.rows)
    )
}

fn fixed_rows(args: &Args, model: &OutcomeModel, fitted: &FittedModel) -> Vec<FixedRow> {
    let phrase = model_phrase(args, model, fitted);
    let outcome = &model.outcome;
    let is_binomial = args.family == Family::Binomial;
    let subject = if is_binomial { format!("the log odds of {outcome}") } else { outcome.clone() };
    let columns = once(None).chain(fitted.fixed.iter().map(Some));
    let row = |(column, estimate): (Option<&FixedColumn>, &Estimate)| {
        let ends = estimate.interval(args.alpha);
        let level = column.and_then(|column| column.level.as_ref());
        let what = match (column, level) {
            (None, _) => format!("The intercept of {subject} is"),
            (Some(column), Some((level, base))) if is_binomial => {
                format!("Where `{}` is {level}, {subject} differ from {base} by", column.name)
            }
            (Some(column), Some((level, base))) => {
                format!("Where `{}` is {level}, {outcome} differs from {base} by", column.name)
            }
            (Some(column), None) if is_binomial => {
                format!("Per unit of `{}`, {subject} change by", column.name)
            }
            (Some(column), None) => format!("Per unit of `{}`, {outcome} changes by", column.name),
        };
        let test = match (is_binomial, column) {
            (true, Some(_)) => format!("z; odds ratio {}", four_digits(estimate.value.exp())),
            (true, None) => "z".to_owned(),
            (false, _) => {
                let degrees = degrees_of_freedom(estimate.degrees);
                format!("t with {degrees} degrees of freedom")
            }
        };
        let common = column.map_or_else(String::new, |column| common_note(fitted, &column.name));
        let note = format!(
            "{what} {} ({}, p {}, {test}); {phrase}{common}",
            by_interval(estimate.value, ends),
            ci(args.alpha, ends),
            p_equals(estimate.p_value())
        );
        FixedRow {
            outcome: outcome.clone(),
            term: column.map_or(INTERCEPT, |column| &column.name).to_owned(),
            level: level.map_or_else(String::new, |(level, _)| level.clone()),
            base: level.map(|(_, base)| base.clone()),
            coefficient: Ok(IntervalEstimate::new(*estimate, args.alpha)),
            n: model.rows,
            note,
        }
    };
    columns.zip(&fitted.fit.coefficients).map(row).collect()
}

/// The warnings on effects that may differ between groups.
fn common_warnings(args: &Args, outcome: &str, fitted: &FittedModel) -> Vec<String> {
    let warning = |common: &CommonEffects| {
        let (grouping, name) = (grouping_name(&common.grouping), &common.columns[0]);
        let slopes = format!("`slopes: {{ {grouping}: [{name}] }}` for a column of numbers");
        let both = format!("`interactions: [[{}, {name}]]`", common.grouping.join(", "));
        let way = match common.grouping.as_slice() {
            // A logistic model has no slopes.
            [_] if args.family == Family::Normal => format!("{slopes}, or {both}"),
            _ => both,
        };
        format!(
            "the model of `{outcome}` has one effect of {} for all groups of `{grouping}`, within \
             which it varies: if the effect differs between them, its interval is too short (add \
             {way})",
            name_list(&common.columns)
        )
    };
    fitted.common.iter().map(warning).collect()
}

/// The same at the end of the note of an effect.
fn common_note(fitted: &FittedModel, name: &str) -> String {
    let has = |common: &&CommonEffects| common.columns.iter().any(|column| column == name);
    let of_column = fitted.common.iter().filter(has);
    let groupings: Vec<String> = of_column.map(|one| grouping_name(&one.grouping)).collect();
    if groupings.is_empty() {
        return String::new();
    }
    let groups = name_list(&groupings);
    format!(
        " The effect is taken as equal in all groups of {groups}; else the interval is too short."
    )
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
    let varies = match fit.family {
        MixedFamily::Normal => format!("{outcome} varies"),
        MixedFamily::Binary => format!("the log odds of {outcome} vary"),
    };
    let percent = |share: Option<f64>| match share {
        Some(share) => format!(", {} % of the total", significant(100.0 * share, 3)),
        None => String::new(),
    };
    let row = |group: &str, effect: &str, other: &str, component: Component, note| ComponentRow {
        outcome: outcome.clone(),
        group: group.to_owned(),
        effect: effect.to_owned(),
        other: other.to_owned(),
        component: Ok(component),
        note,
    };
    let mut rows = Vec::new();
    for (effects, random) in fitted.effects.iter().zip(&fit.random) {
        let width = random.width();
        let intercept = effects.intercept.then_some(INTERCEPT);
        let names: Vec<&str> =
            intercept.into_iter().chain(effects.slopes.iter().map(String::as_str)).collect();
        let group = &effects.grouping;
        let groups = count(random.levels, "group", "groups");
        let of_groups = Component { groups: Some(random.levels), ..Component::default() };
        for one in 0..width {
            let variance = random.covariance[one * width + one];
            let is_intercept = names[one] == INTERCEPT;
            let share = if is_intercept { share(variance) } else { None };
            let within = fitted.within[effects.place].iter().map(|outer| of_grouping(*outer));
            let shared = variance + within.sum::<f64>();
            let what = if is_intercept {
                format!("{varies} between the {groups} of `{group}`")
            } else {
                format!(
                    "the slope of {outcome} on `{}` varies between the {groups} of `{group}`",
                    names[one]
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
            let note = sentence(&format!(
                "{what} with a standard deviation of {}{}.{zero}{few}",
                four_digits(variance.sqrt()),
                percent(share)
            ));
            let icc = share.map(|_| shared / total);
            let component = Component { variance: Some(variance), share, icc, ..of_groups };
            rows.push(row(group, names[one], "", component, note));
            for other in 0..one {
                let correlation = random.correlation(one, other);
                let in_words = match correlation {
                    Some(correlation) => {
                        format!("have a correlation of {}", four_digits(correlation))
                    }
                    None => "have no correlation, for one of them has no variance".into(),
                };
                let note = format!(
                    "Between the {groups} of `{group}`, {} and {} {in_words}.",
                    names[one], names[other]
                );
                let covariance = Some(random.covariance[one * width + other]);
                let component = Component { covariance, correlation, ..of_groups };
                rows.push(row(group, names[one], names[other], component, note));
            }
        }
    }
    let variance = fit.residual_variance;
    let share = share(variance);
    let note = sentence(&format!(
        "{varies} within all groups with a standard deviation of {}{}.",
        four_digits(variance.sqrt()),
        percent(share)
    ));
    let residual = Component { variance: Some(variance), share, ..Component::default() };
    rows.push(row(RESIDUAL, "", "", residual, note));
    rows
}

/// A sentence that may begin with the name of a column, which keeps its case.
fn sentence(text: &str) -> String {
    match text.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => text.to_owned(),
    }
}

fn group_sizes(fitted: &FittedModel) -> String {
    let sizes = fitted.effects.iter().zip(&fitted.fit.random);
    let mut sizes: Vec<String> =
        sizes.map(|(effects, random)| format!("{}: {}", effects.grouping, random.levels)).collect();
    sizes.dedup();
    sizes.join(", ")
}

fn fit_note(args: &Args, model: &OutcomeModel, fitted: &FittedModel) -> String {
    let advice = if fitted.fit.singular {
        " A variance is zero or a correlation 1 or -1: these groups do not tell so many random \
         effects apart."
    } else {
        ""
    };
    format!(
        "{}: {} The log-likelihood is {}.{advice}",
        model.outcome,
        model_phrase(args, model, fitted),
        significant(fitted.fit.log_likelihood(), 6)
    )
}
