//! The rows of the ports `agreement` and `answers`, and the columns of `sheet` to fill in.

use arrow::datatypes::FieldRef;

use super::questions::Question;
use galeras_operator::columns::text_field;
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, flag, number, optional_text, text,
};
use galeras_ratings::{QuestionAgreement, RaterAnswers, Ratings};

/// The columns for the answers of each rater: `QUESTION_1`, `QUESTION_2`, ….
pub(super) fn answer_columns(questions: &[Question], raters: usize) -> Vec<FieldRef> {
    let columns = questions.iter().flat_map(|question| {
        (1..=raters).map(move |rater| {
            let about = format!("{} (rater {rater}: y, n or u)", question.text);
            text_field(&format!("{}_{rater}", question.name), &about)
        })
    });
    columns.collect()
}

pub(super) struct AgreementRow {
    pub(super) text: String,
    pub(super) numbers: QuestionAgreement,
    pub(super) not_in_sheet: usize,
}

impl TableRow for AgreementRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("question", "the question's name", |row| &row.numbers.question),
        text("text", "the question", |row| &row.text),
        count_of("points", "rows that it is asked of", "points", |r| r.numbers.points),
        count_of("raters", "people with an answer", "people", |r| r.numbers.raters),
        count_of("rated", "points with an answer", "points", |r| r.numbers.rated),
        count_of("rated_by_all", "points with the answers of `raters` people", "points", |r| {
            r.numbers.rated_by_all
        }),
        count_of("n_yes", "answers yes", "answers", |r| r.numbers.answers[0]),
        count_of("n_no", "answers no", "answers", |r| r.numbers.answers[1]),
        count_of("n_unsure", "answers unsure", "answers", |r| r.numbers.answers[2]),
        number("yes", "share of yes among all answers", |r| r.numbers.yes),
        number("least_yes", "share of yes of the rater with the smallest", |r| r.numbers.least_yes),
        number("agreement", "share of pairs of raters with the same answer", |r| {
            r.numbers.agreement
        }),
        number("kappa", "Cohen's kappa of two raters", |r| r.numbers.kappa),
        number("kappa_se", "standard error of kappa", |r| r.numbers.kappa_se),
        number("kappa_low", "lower end of the 95 % interval of kappa", |r| {
            Some(r.numbers.kappa_interval?.0)
        }),
        number("kappa_high", "upper end of the 95 % interval of kappa", |r| {
            Some(r.numbers.kappa_interval?.1)
        }),
        number("alpha", "Krippendorff's alpha, nominal", |r| r.numbers.alpha),
        count_of("disagreements", "points on which raters differ", "points", |r| {
            r.numbers.disagreements
        }),
        count_of("undecided", "those of them without a decision", "points", |r| {
            r.numbers.undecided
        }),
        count_of("not_in_sheet", "rated points that are not to be rated", "points", |r| {
            r.not_in_sheet
        }),
    ];
}

pub(super) struct AnswerRow {
    id: String,
    question: String,
    rater: String,
    decision: bool,
    answer: Option<&'static str>,
    note: String,
    time: String,
}

impl AnswerRow {
    /// Every answer that counts, and every note, in the order of the key.
    pub(super) fn all(ratings: &Ratings) -> Vec<Self> {
        let mut rows = Vec::new();
        let mut add = |rater: &str, decision: bool, answers: &RaterAnswers| {
            for (id, by_question) in answers {
                for (question, rating) in by_question.iter().filter(|(_, r)| !r.is_empty()) {
                    rows.push(Self {
                        id: id.clone(),
                        question: question.clone(),
                        rater: rater.to_string(),
                        decision,
                        answer: rating.answer.map(|answer| answer.word()),
                        note: rating.note.clone(),
                        time: rating.time.clone(),
                    });
                }
            }
        };
        ratings.raters.iter().for_each(|(rater, answers)| add(rater, false, answers));
        add(galeras_ratings::ADJUDICATED, true, &ratings.adjudicated);
        rows.sort_by(|a, b| (&a.id, &a.question, &a.rater).cmp(&(&b.id, &b.question, &b.rater)));
        rows
    }
}

impl TableRow for AnswerRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("id", "the data point", |row| &row.id),
        text("question", "the question's name", |row| &row.question),
        text("rater", "who answers", |row| &row.rater),
        flag("decision", "whether it decides what raters differ on", |r| r.decision),
        optional_text("answer", "yes, no or unsure; null if there is a note only", |r| r.answer),
        text("note", "the rater's note", |row| &row.note),
        text("time", "when, as the file says", |row| &row.time),
    ];
}
