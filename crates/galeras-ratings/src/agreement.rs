//! The agreement of raters on a question.

use galeras_metrics::agreement::{cohen_kappa, krippendorff_alpha, percent_agreement};

use super::folder::Ratings;
use super::rating::RatingAnswer;

/// The ratings of one question in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuestionAgreement {
    /// The question's name.
    pub question: String,
    /// The data points to which it applies.
    pub points: usize,
    /// The number of raters with an answer.
    pub raters: usize,
    /// The points with an answer.
    pub rated: usize,
    /// The points with as many answers as the workflow wants.
    pub rated_by_all: usize,
    /// The answers: yes, no, unsure.
    pub answers: [usize; 3],
    /// The share of yes among all answers.
    pub yes: Option<f64>,
    /// The share of yes of the rater with the smallest.
    pub least_yes: Option<f64>,
    /// The share of pairs of raters with the same answer.
    pub agreement: Option<f64>,
    /// Cohen's kappa, where two people have answered.
    pub kappa: Option<f64>,
    /// Its standard error.
    pub kappa_se: Option<f64>,
    /// Its 95 % interval.
    pub kappa_interval: Option<(f64, f64)>,
    /// Krippendorff's alpha.
    pub alpha: Option<f64>,
    /// The points on which raters differ.
    pub disagreements: usize,
    /// Disagreements without a decision.
    pub undecided: usize,
}

impl QuestionAgreement {
    /// The numbers of `question` over its data points. `unsure` is a separate answer.
    pub fn of<'a>(
        ratings: &Ratings,
        question: &str,
        points: impl IntoIterator<Item = &'a str>,
        wanted: usize,
    ) -> Self {
        let mut found = Self { question: question.to_string(), ..Self::default() };
        let mut by_rater: std::collections::BTreeMap<&str, [usize; 3]> = Default::default();
        let mut items: Vec<Vec<(&str, RatingAnswer)>> = Vec::new();
        for id in points {
            found.points += 1;
            let answers = ratings.answers(id, question);
            if answers.is_empty() {
                continue;
            }
            found.rated += 1;
            found.rated_by_all += usize::from(answers.len() >= wanted.max(1));
            for (rater, answer) in &answers {
                found.answers[answer.label()] += 1;
                by_rater.entry(rater).or_default()[answer.label()] += 1;
            }
            if answers.iter().any(|(_, answer)| *answer != answers[0].1) {
                found.disagreements += 1;
                found.undecided += usize::from(ratings.decision(id, question).is_none());
            }
            items.push(answers);
        }
        found.raters = by_rater.len();
        found.yes = share_of_yes(&found.answers);
        found.least_yes = by_rater.values().filter_map(share_of_yes).min_by(f64::total_cmp);
        let labels: Vec<Vec<usize>> = items
            .iter()
            .map(|item| item.iter().map(|(_, answer)| answer.label()).collect())
            .collect();
        found.agreement = percent_agreement(&labels);
        found.alpha = krippendorff_alpha(&labels);
        if by_rater.len() == 2 {
            let pairs: Vec<(usize, usize)> = labels
                .iter()
                .filter_map(|item| match item.as_slice() {
                    [one, other] => Some((*one, *other)),
                    _ => None,
                })
                .collect();
            if let Some(kappa) = cohen_kappa(&pairs) {
                found.kappa = kappa.kappa;
                found.kappa_se = kappa.standard_error;
                found.kappa_interval = kappa.interval();
            }
        }
        found
    }

    /// The statistic that a limit of agreement applies to: kappa of two people, alpha of more.
    pub fn beyond_chance(&self) -> Option<(&'static str, f64)> {
        match self.raters {
            2 => self.kappa.map(|kappa| ("Cohen's kappa", kappa)),
            _ => self.alpha.map(|alpha| ("Krippendorff's alpha", alpha)),
        }
    }
}

/// The share of yes among the answers, of which there must be some.
fn share_of_yes([yes, no, unsure]: &[usize; 3]) -> Option<f64> {
    let all = yes + no + unsure;
    (all > 0).then(|| *yes as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RaterAnswers, Rating};

    fn answers(of: &[(&str, RatingAnswer)]) -> RaterAnswers {
        of.iter()
            .map(|(id, answer)| {
                let rating = Rating { answer: Some(*answer), ..Rating::default() };
                (id.to_string(), [("q".to_string(), rating)].into())
            })
            .collect()
    }

    #[test]
    fn numbers_are_of_the_points_that_are_asked_about() {
        use RatingAnswer::{No, Unsure, Yes};
        let mut ratings = Ratings::default();
        ratings
            .raters
            .insert("ann".into(), answers(&[("a", Yes), ("b", No), ("c", Yes), ("x", No)]));
        ratings.raters.insert("ben".into(), answers(&[("a", Yes), ("b", Yes), ("d", Unsure)]));
        ratings.adjudicated = answers(&[("b", No)]);
        let points = ["a", "b", "c", "d", "e"];
        let found = QuestionAgreement::of(&ratings, "q", points, 2);
        assert_eq!((found.points, found.raters, found.rated, found.rated_by_all), (5, 2, 4, 2));
        assert_eq!(found.answers, [4, 1, 1]);
        assert_eq!((found.disagreements, found.undecided), (1, 0));
        assert_eq!((found.agreement, found.kappa), (Some(0.5), Some(0.0)));
        assert_eq!(found.least_yes, Some(2.0 / 3.0));
        assert_eq!(found.beyond_chance(), Some(("Cohen's kappa", 0.0)));
        ratings.raters.insert("cas".into(), answers(&[("a", No)]));
        let three = QuestionAgreement::of(&ratings, "q", points, 3);
        assert_eq!((three.kappa, three.rated_by_all, three.undecided), (None, 1, 1));
        assert_eq!(three.beyond_chance().unwrap().0, "Krippendorff's alpha");
        let none = QuestionAgreement::of(&ratings, "other", points, 2);
        assert_eq!((none.rated, none.yes, none.kappa, none.alpha), (0, None, None, None));
        assert_eq!(none.points, 5);
    }
}
