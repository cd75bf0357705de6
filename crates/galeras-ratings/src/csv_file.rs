//! Ratings as CSV, filled in by hand: one answer per line (`id, question, answer`), or a sheet with
//! a line per data point and a column per question and rater.

use csv::{ReaderBuilder, StringRecord};

use super::error::RatingsError;
use super::json_lines::{check_question, parse_answer};
use super::rating::{RaterAnswers, Rating};
use galeras_workflow::quote;

/// The most errors reported for one file.
const TOLD: usize = 10;

/// Answers by the rater's number in the file: 0 if there is only one.
pub(super) type CsvAnswers = Vec<(usize, RaterAnswers)>;

struct RatedColumn {
    place: usize,
    question: String,
    rater: usize,
}

pub(super) fn parse_csv(
    file: &str,
    text: &str,
    questions: &[&str],
) -> Result<CsvAnswers, Vec<RatingsError>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ReaderBuilder::new().delimiter(delimiter(text)).from_reader(text.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => return Err(vec![RatingsError::of_file(file, csv_message(&error))]),
    };
    let place = |name: &str| header.iter().position(|column| column.trim() == name);
    let Some(id) = place("id") else {
        let error = RatingsError::at(file, 1, "there is no column `id`");
        return Err(vec![error.help("the first line has the names of the columns")]);
    };
    let records = reader.records();
    match (place("question"), place("answer")) {
        (Some(question), Some(answer)) => {
            let columns =
                LongColumns { id, question, answer, note: place("note"), time: place("time") };
            let answers = long(file, records, &columns, questions)?;
            Ok(vec![(0, answers)])
        }
        _ => wide(file, &header, records, id, questions),
    }
}

/// A comma, unless the first line has only semicolons or tabs: spreadsheets write those where the
/// comma is the decimal sign.
fn delimiter(text: &str) -> u8 {
    let first = text.lines().next().unwrap_or_default();
    match first {
        _ if first.contains(',') => b',',
        _ if first.contains(';') => b';',
        _ if first.contains('\t') => b'\t',
        _ => b',',
    }
}

fn csv_message(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("this line has {len} cells, the first one {expected_len}")
        }
        _ => error.to_string(),
    }
}

type Records<'a, 'b> = csv::StringRecordsIter<'a, &'b [u8]>;

struct LongColumns {
    id: usize,
    question: usize,
    answer: usize,
    note: Option<usize>,
    time: Option<usize>,
}

/// The errors of a file, up to the limit.
struct Problems(Vec<RatingsError>);

impl Problems {
    fn add(&mut self, error: RatingsError) {
        if self.0.len() < TOLD {
            self.0.push(error);
        }
    }

    /// A record, and the line on which it begins; a damaged one is a problem.
    fn record(
        &mut self,
        file: &str,
        record: csv::Result<StringRecord>,
    ) -> Option<(usize, StringRecord)> {
        let line = |position: &csv::Position| usize::try_from(position.line()).unwrap_or(0);
        match record {
            Ok(record) => Some((record.position().map_or(0, line), record)),
            Err(error) => {
                let line = error.position().map(line);
                self.add(RatingsError { line, ..RatingsError::of_file(file, csv_message(&error)) });
                None
            }
        }
    }

    fn or<T>(self, value: T) -> Result<T, Vec<RatingsError>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

fn long(
    file: &str,
    records: Records<'_, '_>,
    columns: &LongColumns,
    questions: &[&str],
) -> Result<RaterAnswers, Vec<RatingsError>> {
    let (mut answers, mut problems) = (RaterAnswers::new(), Problems(Vec::new()));
    for record in records {
        let Some((line, record)) = problems.record(file, record) else { continue };
        let cell = |place: usize| record.get(place).unwrap_or_default().trim();
        let (id, question) = (cell(columns.id), cell(columns.question));
        if id.is_empty() && question.is_empty() && cell(columns.answer).is_empty() {
            continue;
        }
        if id.is_empty() {
            problems.add(RatingsError::at(file, line, "the id is empty"));
            continue;
        }
        let read = check_question(file, line, question, questions)
            .and_then(|()| parse_answer(file, line, cell(columns.answer)));
        match read {
            Ok(answer) => {
                let text = |place: Option<usize>| place.map_or("", cell).to_string();
                let rating = Rating { answer, note: text(columns.note), time: text(columns.time) };
                answers.entry(id.into()).or_default().insert(question.into(), rating);
            }
            Err(error) => problems.add(error),
        }
    }
    problems.or(answers)
}

fn wide(
    file: &str,
    header: &StringRecord,
    records: Records<'_, '_>,
    id: usize,
    questions: &[&str],
) -> Result<CsvAnswers, Vec<RatingsError>> {
    let columns = rated_columns(header, questions);
    let raters = columns.iter().map(|column| column.rater).max().unwrap_or(0);
    let mut problems = Problems(Vec::new());
    // A missing column may be a misspelled name, which must not be skipped.
    for question in questions {
        for rater in 1..=raters.max(1) {
            if !columns.iter().any(|c| c.question == *question && c.rater == rater) {
                let message =
                    format!("there is no column {}", quote(&format!("{question}_{rater}")));
                let help = format!(
                    "the sheet has `{question}_1`, `{question}_2`, … for the answers of each rater; \
                     other files have the columns id, question, answer"
                );
                problems.add(RatingsError::at(file, 1, message).help(help));
            }
        }
    }
    let mut all: CsvAnswers =
        (0..raters.max(1)).map(|rater| (rater + 1, RaterAnswers::new())).collect();
    let mut seen: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for record in records {
        let Some((line, record)) = problems.record(file, record) else { continue };
        let point = record.get(id).unwrap_or_default().trim();
        if point.is_empty() {
            if record.iter().any(|cell| !cell.trim().is_empty()) {
                problems.add(RatingsError::at(file, line, "the id is empty"));
            }
            continue;
        }
        if let Some(first) = seen.insert(point.to_string(), line) {
            let message = format!("{} was rated in line {first} already", quote(point));
            problems.add(RatingsError::at(file, line, message).help("keep one of the lines"));
        }
        for column in &columns {
            let cell = record.get(column.place).unwrap_or_default();
            match parse_answer(file, line, cell) {
                Ok(None) => {}
                Ok(answer) => {
                    let rating = Rating { answer, ..Rating::default() };
                    let of = &mut all[column.rater - 1].1;
                    of.entry(point.into()).or_default().insert(column.question.clone(), rating);
                }
                Err(error) => {
                    let message =
                        format!("column `{}_{}`: {}", column.question, column.rater, error.message);
                    problems.add(RatingsError { message, ..error });
                }
            }
        }
    }
    if raters <= 1 {
        all.iter_mut().for_each(|(rater, _)| *rater = 0);
    }
    problems.or(all)
}

/// The columns `QUESTION_1`, `QUESTION_2`, …. A column with the bare name of a question has no
/// answers: tables have columns called `code` and `docstring`.
fn rated_columns(header: &StringRecord, questions: &[&str]) -> Vec<RatedColumn> {
    let rated = |(place, name): (usize, &str)| {
        let (question, number) = name.trim().rsplit_once('_')?;
        let rater: usize = number.parse().ok().filter(|rater| (1..=MOST_RATERS).contains(rater))?;
        let question = questions.contains(&question).then(|| question.to_string())?;
        Some(RatedColumn { place, question, rater })
    };
    header.iter().enumerate().filter_map(rated).collect()
}

/// The most raters in one sheet.
const MOST_RATERS: usize = 99;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RatingAnswer;

    const QUESTIONS: [&str; 2] = ["code", "message"];

    fn errors(text: &str) -> Vec<String> {
        let errors = parse_csv("a.csv", text, &QUESTIONS).unwrap_err();
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_sheet_has_a_column_for_each_question_and_rater() {
        let text = "id,code,code_1,code_2,message_1,message_2\r\n\
                    a,\"def f():\r\n  x, y\",y,n,Yes,\r\nb,x,1,0,,u\r\n";
        for text in [text.to_string(), format!("\u{feff}{text}"), text.replace(',', ";")] {
            // (a comma inside of a cell is replaced too)
            let found = parse_csv("a.csv", &text, &QUESTIONS).unwrap();
            assert_eq!(found.iter().map(|(rater, _)| *rater).collect::<Vec<_>>(), [1, 2]);
            let answer = |rater: usize, id: &str, question: &str| {
                found[rater].1.get(id)?.get(question)?.answer
            };
            assert_eq!(answer(0, "a", "code"), Some(RatingAnswer::Yes));
            assert_eq!(answer(1, "a", "code"), Some(RatingAnswer::No));
            assert_eq!(answer(1, "a", "message"), None);
            assert_eq!(answer(1, "b", "message"), Some(RatingAnswer::Unsure));
        }
        let alone = parse_csv("a.csv", "id,code_1,message_1\na,y,n\n", &QUESTIONS).unwrap();
        assert_eq!((alone.len(), alone[0].0), (1, 0));
    }

    #[test]
    fn a_list_has_a_line_for_each_answer_and_the_last_counts() {
        let text = "id,question,answer,note\na,code,y,\na,code,n,it ends early\n,,,\n";
        let found = parse_csv("a.csv", text, &QUESTIONS).unwrap();
        let rating = &found[0].1["a"]["code"];
        assert_eq!(
            (rating.answer, rating.note.as_str()),
            (Some(RatingAnswer::No), "it ends early")
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert!(errors("x,y\n1,2\n")[0].contains("no column `id`"));
        assert!(errors("")[0].contains("no column `id`"));
        let missing = errors("id,code_1,code_2,message_1\na,y,y,y\n");
        assert_eq!(missing, ["a.csv, line 1: there is no column `message_2`"]);
        let bad = errors("id,code_1,message_1\na,maybe,y\na,y,y\n,y,y\nb,y\n");
        assert_eq!(bad[0], "a.csv, line 2: column `code_1`: `maybe` is not an answer");
        assert_eq!(bad[1], "a.csv, line 3: `a` was rated in line 2 already");
        assert_eq!(bad[2], "a.csv, line 4: the id is empty");
        assert_eq!(bad[3], "a.csv, line 5: this line has 2 cells, the first one 3");
        assert!(errors("id,question,answer\na,codes,y\n")[0].contains("no question `codes`"));
    }
}
