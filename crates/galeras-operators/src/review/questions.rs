//! The questions of a review, and the rows that they apply to.

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::Args;
use galeras_operator::{ArgError, BindContext};
use galeras_sql::session::parse_row_expr;
use galeras_workflow::code::Code;
use galeras_workflow::{did_you_mean, quote};

/// A question and its condition.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) text: String,
    /// A condition over the columns of the rows to rate and of the input; null counts as false.
    pub(super) applies: Option<Expr>,
}

pub(super) fn questions(
    args: &Args,
    cx: &BindContext,
    errors: &mut Vec<ArgError>,
) -> Vec<Question> {
    let mut questions = Vec::new();
    for (name, text) in &args.questions {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            let message = format!("{} cannot be the name of a question", quote(name));
            let error = ArgError::new("questions", Code::WrongArgument, message);
            errors.push(error.help("use letters, digits and `_`: it becomes part of a column"));
        }
        let text = text.as_str().unwrap_or_default().to_string();
        questions.push(Question { name: name.clone(), text, applies: None });
    }
    for (name, condition) in &args.applies {
        let path = format!("applies.{name}");
        let Some(question) = questions.iter_mut().find(|question| question.name == *name) else {
            let known = args.questions.keys().map(String::as_str);
            let message = format!("there is no question {}", quote(name));
            let error = ArgError::new(path, Code::WrongArgument, message);
            errors.push(match did_you_mean(name, known.clone()) {
                Some(near) => error.help(format!("did you mean {}?", quote(near))),
                None => {
                    let names: Vec<&str> = known.collect();
                    error.help(format!("the questions are {}", names.join(", ")))
                }
            });
            continue;
        };
        // The condition selects the questions for rows to rate, and the answers that count for the
        // input.
        for table in cx.inputs.values().filter(|table| !table.open) {
            match parse_row_expr(&cx.session, &table.schema, &condition.0, &path) {
                Ok(parsed) if parsed.data_type == DataType::Boolean => {
                    question.applies = Some(parsed.expr);
                }
                Ok(_) => {
                    let message = "the condition is neither true nor false";
                    errors.push(ArgError::new(&path, Code::WrongType, message));
                    break;
                }
                Err(error) => {
                    errors.push(error);
                    break;
                }
            }
        }
    }
    questions
}
