//! The rows of the ports `points` and `agreement`.

use std::collections::{BTreeMap, BTreeSet};

use super::verdict::Verdicts;
use galeras_metrics::agreement::{CohenKappa, cohen_kappa, percent_agreement};
use galeras_metrics::classifier::{ConfusionCounts, CorrectedShare};
use galeras_operator::small_table::{TableColumn, TableRow, count_of, number, optional_text, text};

/// A model with the question that it is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Judge {
    pub(super) model: String,
    pub(super) treatment: String,
}

/// The verdicts of a judge on a data point, by the treatment that showed it: two where two
/// candidates were shown in both orders.
pub(super) type PointVerdicts = BTreeMap<String, Vec<usize>>;

/// The verdicts of every judge, by data point.
pub(super) type AllVerdicts = BTreeMap<Judge, BTreeMap<String, PointVerdicts>>;

/// A data point as one judge sees it.
pub(super) struct PointRow {
    id: String,
    judge: Judge,
    answers: usize,
    verdict: Option<String>,
    score: Option<f64>,
    yes: Option<f64>,
}

impl PointRow {
    fn new(judge: &Judge, id: &str, shown: &PointVerdicts, verdicts: &Verdicts) -> Self {
        let all: Vec<usize> = shown.values().flatten().copied().collect();
        let share = |n: f64| (!all.is_empty()).then(|| n / all.len() as f64);
        let scores: Option<f64> = all.iter().map(|verdict| verdicts.score(*verdict)).sum();
        let positive = all.iter().filter(|verdict| verdicts.is_positive(**verdict)).count();
        Self {
            id: id.to_string(),
            judge: judge.clone(),
            answers: all.len(),
            verdict: most_frequent(&all).map(|verdict| verdicts.word(verdict)),
            score: scores.and_then(share),
            yes: share(positive as f64),
        }
    }

    /// Yes or no, by most of the answers.
    fn decision(&self) -> Option<bool> {
        self.yes.filter(|yes| *yes != 0.5).map(|yes| yes > 0.5)
    }
}

/// The verdict of most answers; `None` if two are equally frequent.
fn most_frequent(verdicts: &[usize]) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    verdicts.iter().for_each(|verdict| *counts.entry(*verdict).or_default() += 1);
    let most = counts.values().max().copied()?;
    let mut first = counts.into_iter().filter(|(_, count)| *count == most);
    match (first.next(), first.next()) {
        (Some((verdict, _)), None) => Some(verdict),
        _ => None,
    }
}

impl TableRow for PointRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("id", "the data point", |row| &row.id),
        text("model", "the model that judges", |row| &row.judge.model),
        text("treatment", "the question that it is asked", |row| &row.judge.treatment),
        optional_text("verdict", "the verdict of most answers; null if two are as frequent", |r| {
            r.verdict.as_deref()
        }),
        number("score", "mean of the verdicts on a scale", |row| row.score),
        number("yes", "share of the verdicts that count as yes", |row| row.yes),
        count_of("answers", "answers with a verdict", "answers", |row| row.answers),
    ];
}

/// A judge in numbers.
pub(super) struct AgreementRow {
    judge: Judge,
    points: usize,
    answers: usize,
    decided: usize,
    yes: Option<f64>,
    same_samples: Option<f64>,
    same_orders: Option<f64>,
    labelled: usize,
    counts: ConfusionCounts,
    kappa: Option<CohenKappa>,
    corrected: Option<CorrectedShare>,
}

/// The tables of the verdicts, with the people's `labels` of data points.
pub(super) fn rows(
    all: &AllVerdicts,
    verdicts: &Verdicts,
    labels: &BTreeMap<String, bool>,
) -> (Vec<PointRow>, Vec<AgreementRow>) {
    let (mut points, mut agreements) = (Vec::new(), Vec::new());
    for (judge, by_point) in all {
        let rows = by_point.iter().map(|(id, shown)| PointRow::new(judge, id, shown, verdicts));
        let rows: Vec<PointRow> = rows.collect();
        agreements.push(agreement(judge, by_point, &rows, labels));
        points.extend(rows);
    }
    points.sort_by(|a, b| (&a.id, &a.judge).cmp(&(&b.id, &b.judge)));
    (points, agreements)
}

fn agreement(
    judge: &Judge,
    by_point: &BTreeMap<String, PointVerdicts>,
    rows: &[PointRow],
    labels: &BTreeMap<String, bool>,
) -> AgreementRow {
    let decisions = rows.iter().filter_map(|row| Some((row.id.as_str(), row.decision()?)));
    let decisions: Vec<(&str, bool)> = decisions.collect();
    let (decided, positive) =
        (decisions.len(), decisions.iter().filter(|(_, decision)| *decision).count());
    let mut counts = ConfusionCounts::default();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (id, decision) in &decisions {
        if let Some(label) = labels.get(*id) {
            counts.add(*decision, *label);
            pairs.push((usize::from(*decision), usize::from(*label)));
        }
    }
    let samples: Vec<Vec<usize>> =
        by_point.values().flat_map(|shown| shown.values().cloned()).collect();
    let both_orders = by_point.values().filter(|shown| shown.len() > 1);
    let same_orders: Vec<bool> = both_orders
        .map(|shown| {
            let of_orders: BTreeSet<Option<usize>> =
                shown.values().map(|verdicts| most_frequent(verdicts)).collect();
            of_orders.len() == 1 && !of_orders.contains(&None)
        })
        .collect();
    let share = |n: usize, all: usize| if all == 0 { None } else { Some(n as f64 / all as f64) };
    AgreementRow {
        judge: judge.clone(),
        points: rows.len(),
        answers: rows.iter().map(|row| row.answers).sum(),
        decided,
        yes: share(positive, decided),
        same_samples: percent_agreement(&samples),
        same_orders: share(same_orders.iter().filter(|same| **same).count(), same_orders.len()),
        labelled: pairs.len(),
        counts,
        kappa: cohen_kappa(&pairs),
        corrected: counts.corrected_share(positive, decided),
    }
}

impl TableRow for AgreementRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("model", "the model that judges", |row| &row.judge.model),
        text("treatment", "the question that it is asked", |row| &row.judge.treatment),
        number("kappa", "Cohen's kappa of the judge and the people", |r| r.kappa?.kappa),
        number("kappa_low", "lower end of the 95 % interval of kappa", |r| {
            Some(r.kappa?.interval()?.0)
        }),
        number("kappa_high", "upper end of the 95 % interval of kappa", |r| {
            Some(r.kappa?.interval()?.1)
        }),
        number("agreement", "share of labelled points on which they agree", |r| {
            Some(r.kappa?.observed)
        }),
        number("sensitivity", "share of the people's yes that the judge calls yes", |r| {
            r.counts.sensitivity()
        }),
        number("specificity", "share of the people's no that the judge calls no", |r| {
            r.counts.specificity()
        }),
        number("yes", "share of the points that the judge calls yes", |r| r.yes),
        number("corrected", "that share, corrected for sensitivity and specificity", |r| {
            Some(r.corrected?.share)
        }),
        number("ci_low", "lower end of the 95 % interval of the corrected share", |r| {
            Some(r.corrected?.interval?.0)
        }),
        number("ci_high", "upper end of the 95 % interval of the corrected share", |r| {
            Some(r.corrected?.interval?.1)
        }),
        number("same_samples", "share of pairs of answers to a prompt with one verdict", |r| {
            r.same_samples
        }),
        number("same_orders", "share of points with one verdict in both orders", |r| r.same_orders),
        count_of("points", "data points with a verdict", "points", |r| r.points),
        count_of("decided", "those of them that most answers call yes, or no", "points", |r| {
            r.decided
        }),
        count_of("labelled", "those of them that people have labelled", "points", |r| r.labelled),
        count_of("true_yes", "yes of the judge and of the people", "points", |r| {
            r.counts.true_positives
        }),
        count_of("false_yes", "yes of the judge, no of the people", "points", |r| {
            r.counts.false_positives
        }),
        count_of("false_no", "no of the judge, yes of the people", "points", |r| {
            r.counts.false_negatives
        }),
        count_of("true_no", "no of the judge and of the people", "points", |r| {
            r.counts.true_negatives
        }),
        count_of("answers", "answers with a verdict", "answers", |r| r.answers),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_decided_by_most_answers_in_both_orders() {
        let words = ["A", "B", "tie"].map(str::to_string).to_vec();
        let verdicts = Verdicts::Choices { words, positive: vec![0] };
        let judge = Judge { model: "m".into(), treatment: "ab".into() };
        let shown = |ab: &[usize], ba: &[usize]| -> PointVerdicts {
            [("ab", ab), ("ba", ba)]
                .into_iter()
                .filter(|(_, verdicts)| !verdicts.is_empty())
                .map(|(name, verdicts)| (name.to_string(), verdicts.to_vec()))
                .collect()
        };
        let by_point: BTreeMap<String, PointVerdicts> = [
            ("a", shown(&[0, 0], &[0])),
            ("b", shown(&[0, 0], &[1, 1])),
            ("c", shown(&[2, 1, 2], &[])),
            ("d", shown(&[1], &[1])),
        ]
        .map(|(id, shown)| (id.to_string(), shown))
        .into();
        let labels = [("a", true), ("b", true), ("c", true), ("d", false)]
            .map(|(id, label)| (id.to_string(), label))
            .into();
        let (points, agreements) = rows(&[(judge, by_point)].into(), &verdicts, &labels);
        let found: Vec<_> =
            points.iter().map(|p| (p.verdict.as_deref(), p.yes, p.answers)).collect();
        assert_eq!(
            found,
            [
                (Some("A"), Some(1.0), 3),
                (None, Some(0.5), 4),
                (Some("tie"), Some(0.0), 3),
                (Some("B"), Some(0.0), 2)
            ]
        );
        let row = &agreements[0];
        assert_eq!((row.points, row.decided, row.labelled, row.answers), (4, 3, 3, 12));
        let (samples, orders) = (row.same_samples.unwrap(), row.same_orders.unwrap());
        // Of six pairs of samples, the two of `c` with `B` differ; `b` depends on the order.
        assert!((samples - 4.0 / 6.0).abs() < 1e-12 && (orders - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((row.counts.sensitivity(), row.counts.specificity()), (Some(0.5), Some(1.0)));
        assert_eq!(row.yes, Some(1.0 / 3.0));
    }
}
