//! `render_prompts(templates, names, columns…)`: the conversations that treatments make of a row.
//!
//! Here are the form of treatments and their Arrow form; templates are in `template`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int64Array, ListArray, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use serde::{Deserialize, Serialize};

use super::function_doc::{FunctionDoc, RowFunction};
use super::list;
use super::template::{RenderError, Row, Templates};
use galeras_python::words;

/// A message of a conversation; of a treatment, with a template for its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// The role: `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// The role of the message that comes before all others.
pub const SYSTEM: &str = "system";

/// A named conversation of templates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatment {
    /// Its name.
    pub name: String,
    /// Its messages in order.
    pub messages: Vec<Message>,
}

impl Treatment {
    /// The name under which the template of a message is compiled.
    pub fn template(&self, at: usize) -> String {
        format!("{}[{at}]", self.name)
    }
}

/// Compiles the templates of the treatments.
///
/// # Errors
/// All templates that cannot be compiled.
pub fn compile(treatments: &[Treatment]) -> Result<Templates, Vec<super::template::TemplateError>> {
    let named: Vec<(String, &str)> = treatments
        .iter()
        .flat_map(|treatment| {
            treatment
                .messages
                .iter()
                .enumerate()
                .map(|(at, message)| (treatment.template(at), message.content.as_str()))
        })
        .collect();
    Templates::new(named.iter().map(|(name, text)| (name.as_str(), *text)))
}

/// The type of a conversation: its messages in order.
pub fn messages_type() -> DataType {
    DataType::new_list(DataType::Struct(message_fields()), true)
}

fn message_fields() -> Fields {
    Fields::from(vec![
        Field::new("role", DataType::Utf8, true),
        Field::new("content", DataType::Utf8, true),
    ])
}

/// The fields of a rendered row: the prompts in the order of the treatments, or the treatment that
/// failed and the reason.
pub fn rendered_type() -> Fields {
    let prompts = DataType::new_list(DataType::Struct(rendered_fields()), true);
    Fields::from(vec![
        Field::new("prompts", prompts, true),
        Field::new("treatment", DataType::Utf8, true),
        Field::new("reason", DataType::Utf8, true),
    ])
}

/// The fields of a prompt.
fn rendered_fields() -> Fields {
    Fields::from(vec![
        Field::new("treatment", DataType::Utf8, true),
        Field::new("messages", messages_type(), true),
        Field::new("prompt", DataType::Utf8, true),
        Field::new("prompt_size", DataType::Int64, true),
        Field::new("p_vocab_size", DataType::Int64, true),
        Field::new("p_n_whitespaces", DataType::Int64, true),
    ])
}

/// A struct of [`rendered_type`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RenderPrompts;

impl RowFunction for RenderPrompts {
    const DOC: FunctionDoc = FunctionDoc {
        name: "render_prompts",
        version: 2,
        arguments: &[("treatments", "text"), ("names", "text"), ("column", "any")],
        variadic: true,
        returns: "struct",
        summary: "the conversations of a row under each treatment, from the templates; treatments and the names of the columns are literals in JSON",
        nulls: "a null, also within a list or a struct, is undefined in a template; a template that writes it gives no prompts and a `reason`",
        example: "render_prompts('[{\"name\":\"T1\",\"messages\":[{\"role\":\"system\",\"content\":\"You write Python.\"},{\"role\":\"user\",\"content\":\"Complete {{ code }}\"}]}]', '[\"code\"]', 'x = 1')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Struct(rendered_type())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let [treatments, names, columns @ ..] = args.args.as_slice() else {
            return exec_err!("render_prompts takes treatments, names of columns, and the columns");
        };
        let treatments: Vec<Treatment> = literal(treatments)?;
        let names: Vec<String> = literal(names)?;
        let templates = compile(&treatments).map_err(|errors| {
            exec_datafusion_err!("{}", errors.first().map_or("", |error| error.message.as_str()))
        })?;
        let columns = columns
            .iter()
            .map(|column| column.to_array(args.number_rows))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let columns: Vec<(String, &dyn Array)> =
            names.into_iter().zip(columns.iter().map(|column| column.as_ref())).collect();
        let mut prompts = Vec::new();
        let mut lengths = Vec::with_capacity(args.number_rows);
        let (mut failing, mut reasons) = (StringBuilder::new(), StringBuilder::new());
        for at in 0..args.number_rows {
            let row = Row::of(&columns, at)?;
            match rendered(&treatments, &templates, &row) {
                Ok(contents) => {
                    lengths.push(treatments.len());
                    prompts.extend(treatments.iter().zip(contents));
                    failing.append_null();
                    reasons.append_null();
                }
                Err((treatment, RenderError::Template(reason))) => {
                    return exec_err!("the template of `{treatment}`: {reason}");
                }
                Err((treatment, RenderError::Row(reason))) => {
                    lengths.push(0);
                    failing.append_value(treatment);
                    reasons.append_value(reason);
                }
            }
        }
        let prompts = list(lengths, rendered_fields(), prompt_columns(&prompts)?)?;
        let columns: Vec<ArrayRef> =
            vec![prompts, Arc::new(failing.finish()), Arc::new(reasons.finish())];
        Ok(Arc::new(StructArray::try_new(rendered_type(), columns, None)?))
    }
}

/// The contents of the messages of every treatment; or the first one that cannot be written.
fn rendered<'a>(
    treatments: &'a [Treatment],
    templates: &Templates,
    row: &Row,
) -> Result<Vec<Vec<String>>, (&'a str, RenderError)> {
    let of = |treatment: &'a Treatment| {
        (0..treatment.messages.len())
            .map(|at| templates.render(&treatment.template(at), row))
            .collect::<Result<Vec<String>, RenderError>>()
            .map_err(|reason| (treatment.name.as_str(), reason))
    };
    treatments.iter().map(of).collect()
}

fn literal<T: for<'a> Deserialize<'a>>(argument: &ColumnarValue) -> Result<T> {
    match argument {
        ColumnarValue::Scalar(ScalarValue::Utf8(Some(json))) => {
            serde_json::from_str(json).map_err(|error| exec_datafusion_err!("{error}"))
        }
        _ => exec_err!("the first two arguments of render_prompts must be literals"),
    }
}

/// The columns of [`rendered_fields`]: treatments with the contents of their messages.
fn prompt_columns(prompts: &[(&Treatment, Vec<String>)]) -> Result<Vec<ArrayRef>> {
    let messages =
        || prompts.iter().flat_map(|(treatment, contents)| treatment.messages.iter().zip(contents));
    let roles: StringArray = messages().map(|(message, _)| Some(&message.role)).collect();
    let contents: StringArray = messages().map(|(_, content)| Some(content)).collect();
    let lengths = prompts.iter().map(|(treatment, _)| treatment.messages.len());
    let messages = list(lengths, message_fields(), vec![Arc::new(roles), Arc::new(contents)])?;
    // The published sizes are those of the user's message.
    let said = prompts.iter().map(|(treatment, contents)| {
        let said = treatment.messages.iter().zip(contents);
        let said = said.filter(|(message, _)| message.role != SYSTEM);
        said.map(|(_, content)| content.as_str()).collect::<Vec<_>>().join("\n")
    });
    let said = StringArray::from_iter_values(said);
    let sizes: Vec<[i64; 3]> = said.iter().flatten().map(sizes).collect();
    let names = prompts.iter().map(|(treatment, _)| &treatment.name);
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from_iter_values(names)), messages, Arc::new(said)];
    for at in 0..3 {
        columns.push(Arc::new(Int64Array::from_iter_values(sizes.iter().map(|size| size[at]))));
    }
    Ok(columns)
}

/// Words, distinct words, and spaces (U+0020) of a prompt, counted like those of methods.
fn sizes(prompt: &str) -> [i64; 3] {
    let mut words: Vec<&str> = words(prompt).collect();
    let count = words.len();
    words.sort_unstable();
    words.dedup();
    let spaces = prompt.bytes().filter(|byte| *byte == b' ').count();
    [count, words.len(), spaces].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// The conversation of a row of a column of [`messages_type`].
///
/// # Errors
/// If a role or a content is null.
pub fn conversation(messages: &ListArray, at: usize) -> Result<Vec<Message>, String> {
    use arrow::array::AsArray;
    let turns = messages.value(at);
    let turns = turns.as_struct_opt().ok_or("the messages are not structs")?;
    let column = |name: &str| -> Result<&StringArray, String> {
        let column = turns.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
        column.ok_or_else(|| format!("the messages have no text column `{name}`"))
    };
    let (roles, contents) = (column("role")?, column("content")?);
    let said = |at: usize| {
        if roles.is_null(at) || contents.is_null(at) {
            return Err("a message is null".to_string());
        }
        Ok(Message { role: roles.value(at).into(), content: contents.value(at).into() })
    };
    (0..turns.len()).map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_like_those_of_methods() {
        assert_eq!(sizes("a b  a\n\tc"), [4, 3, 3]);
        assert_eq!(sizes(""), [0, 0, 0]);
    }
}
