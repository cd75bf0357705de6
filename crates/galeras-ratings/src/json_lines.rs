//! Ratings as JSON Lines, one event a line. The last event about a data point and a question
//! counts. Git merges files that two people changed line by line (`merge=union`).

use super::error::RatingsError;
use super::rating::{RaterAnswers, Rating, RatingAnswer, RatingEvent};
use galeras_base::terminal_escape::escape;
use galeras_workflow::{did_you_mean, quote};

/// The most errors reported for one file.
const TOLD: usize = 10;

/// Quoted lines are cut to this length.
const QUOTED: usize = 60;

/// The ratings of a file, and warnings, without lost ratings.
pub(super) type ParsedFile = (RaterAnswers, Vec<String>);

/// Reads the lines of `file`. An unfinished last line that is not an event is skipped: the program
/// was killed while writing it, and its rating was never confirmed.
pub(super) fn parse_json_lines(
    file: &str,
    text: &str,
    questions: &[&str],
) -> Result<ParsedFile, Vec<RatingsError>> {
    let (mut answers, mut warnings, mut errors) = (RaterAnswers::new(), Vec::new(), Vec::new());
    let whole = text.ends_with('\n');
    let last = text.lines().count();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if line.trim().is_empty() {
            continue;
        }
        let event = match event(line) {
            Ok(event) => event,
            Err(_) if number == last && !whole => {
                let message = "is cut off, because a program was stopped while it wrote; ignored";
                warnings.push(format!("{}: the last line {message}", escape(file)));
                continue;
            }
            Err(error) => {
                errors.push(RatingsError { file: file.into(), line: Some(number), ..error });
                continue;
            }
        };
        match checked(file, number, event, questions) {
            Ok((id, question, rating)) => {
                answers.entry(id).or_default().insert(question, rating);
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        return Ok((answers, warnings));
    }
    let more = errors.len().saturating_sub(TOLD);
    errors.truncate(TOLD);
    if more > 0 {
        errors.push(RatingsError::of_file(file, format!("{more} more lines are wrong")));
    }
    Err(errors)
}

fn event(line: &str) -> Result<RatingEvent, RatingsError> {
    let problem = |message: String| RatingsError::of_file("", message);
    if ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|mark| line.starts_with(mark)) {
        let help = "keep the lines of both sides and remove the marks; `*.jsonl merge=union` in the \
                    folder's .gitattributes lets Git do it";
        return Err(problem("Git left a conflict here".to_string()).help(help));
    }
    serde_json::from_str(line).map_err(|error| {
        let cut = match line.char_indices().nth(QUOTED) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_string(),
        };
        problem(format!("{} is not a rating: {error}", quote(&cut)))
            .help(r#"a line is {"id": …, "question": …, "answer": "yes"}"#)
    })
}

fn checked(
    file: &str,
    line: usize,
    event: RatingEvent,
    questions: &[&str],
) -> Result<(String, String, Rating), RatingsError> {
    if event.id.is_empty() {
        return Err(RatingsError::at(file, line, "the id is empty"));
    }
    check_question(file, line, &event.question, questions)?;
    let answer = match &event.answer {
        None => None,
        Some(word) => parse_answer(file, line, word)?,
    };
    let rating = Rating { answer, note: event.note, time: event.time };
    Ok((event.id, event.question, rating))
}

/// A question must be one of the workflow's.
pub(super) fn check_question(
    file: &str,
    line: usize,
    question: &str,
    questions: &[&str],
) -> Result<(), RatingsError> {
    if questions.contains(&question) {
        return Ok(());
    }
    let error = RatingsError::at(file, line, format!("there is no question {}", quote(question)));
    Err(error.help(match did_you_mean(question, questions.iter().copied()) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => format!("the questions are {}", questions.join(", ")),
    }))
}

pub(super) fn parse_answer(
    file: &str,
    line: usize,
    word: &str,
) -> Result<Option<RatingAnswer>, RatingsError> {
    RatingAnswer::parse(word).map_err(|_| {
        let cut: String = word.chars().take(QUOTED).collect();
        RatingsError::at(file, line, format!("{} is not an answer", quote(&cut)))
            .help("write y, n or u (yes, no, unsure; true, false; 1, 0), or leave it blank")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ParsedFile, Vec<String>> {
        parse_json_lines("ann.jsonl", text, &["code", "message"])
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_last_line_of_a_point_and_question_counts() {
        let text = concat!(
            r#"{"id":"a","question":"code","answer":"yes","time":"1"}"#,
            "\n\n",
            r#"{"id":"a","question":"message","answer":"n","note":"none"}"#,
            "\r\n",
            r#"{"id":"a","question":"code","answer":"No","time":"2"}"#,
            "\n",
            r#"{"id":"b","question":"code","answer":"u"}"#,
            "\n",
            r#"{"id":"b","question":"code","answer":null}"#,
            "\n",
        );
        let (answers, warnings) = read(text).unwrap();
        let rating = |id: &str, question: &str| answers[id][question].clone();
        assert_eq!(rating("a", "code").answer, Some(RatingAnswer::No));
        assert_eq!(rating("a", "code").time, "2");
        assert_eq!(rating("a", "message").note, "none");
        assert!(rating("b", "code").is_empty());
        assert!(warnings.is_empty());
    }

    #[test]
    fn every_damaged_line_is_told_with_its_number() {
        let text = concat!(
            "{\"id\":\"a\",\"question\":\"code\",\"answer\":\"yes\"}\n",
            "{\"id\":\"a\",\"quest\n",
            "<<<<<<< HEAD\n",
            "{\"id\":\"a\",\"question\":\"cod\",\"answer\":\"yes\"}\n",
            "{\"id\":\"a\",\"question\":\"code\",\"answer\":\"maybe\"}\n",
            "{\"id\":\"\",\"question\":\"code\"}\n",
            "{\"id\":\"a\",\"question\":\"code\",\"answr\":\"yes\"}\n",
            "[1]\n",
        );
        let errors = read(text).unwrap_err();
        assert_eq!(errors.len(), 7, "{errors:#?}");
        for (error, part) in errors.iter().zip([
            "ann.jsonl, line 2: ",
            "line 3: Git left a conflict",
            "line 4: there is no question `cod`",
            "line 5: `maybe` is not an answer",
            "line 6: the id is empty",
            "line 7: ",
            "line 8: ",
        ]) {
            assert!(error.contains(part), "{error} has no {part}");
        }
        let many = "x\n".repeat(500);
        let errors = read(&many).unwrap_err();
        assert_eq!(errors.len(), TOLD + 1);
        assert!(errors[TOLD].contains("490 more lines"), "{errors:?}");
    }

    #[test]
    fn only_a_last_line_without_its_end_may_be_cut_off() {
        let good = "{\"id\":\"a\",\"question\":\"code\",\"answer\":\"yes\"}";
        for cut in 1..good.len() {
            let (answers, warnings) = read(&format!("{good}\n{}", &good[..cut])).unwrap();
            assert_eq!((answers.len(), warnings.len()), (1, 1), "{cut}");
        }
        assert!(read(&format!("{good}\n{good}")).unwrap().1.is_empty());
        read(&format!("{good}\n{{\"id\n")).unwrap_err();
    }
}
