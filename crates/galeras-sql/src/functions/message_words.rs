//! `message_words(message)`: the number of meaningful words of a commit message.

use std::sync::Arc;

use super::function_doc::{FunctionDoc, RowFunction};
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

/// Beginnings of first lines that tools write, in lower case.
const WRITTEN_BY_TOOLS: [&str; 9] = [
    "merge branch",
    "merge pull request",
    "merge remote-tracking branch",
    "merge tag",
    "[pre-commit.ci]",
    "bump version",
    "build(deps",
    "chore(deps",
    "auto-generated",
];

/// The number of words in the first line of a commit message, and 0 if a tool wrote it.
///
/// A word has at least two letters. Not counted: a `type(scope):` in front (Conventional
/// Commits), references (`#12`, `GH-12`, `ABC-123`), links, addresses, numbers and versions.
pub fn message_words(message: &str) -> i64 {
    let Some(line) = message.lines().map(str::trim).find(|line| !line.is_empty()) else { return 0 };
    let lower = line.to_lowercase();
    if WRITTEN_BY_TOOLS.iter().any(|start| lower.starts_with(start)) || is_bump(&lower) {
        return 0;
    }
    let words = without_type(line).split_whitespace().filter(|word| is_word(word));
    i64::try_from(words.count()).unwrap_or(i64::MAX)
}

/// `Bump requests from 2.0 to 2.1` and the like.
fn is_bump(lower: &str) -> bool {
    let mut words = lower.split_whitespace();
    matches!(words.next(), Some("bump" | "bumps"))
        && words.any(|word| word == "from" || word == "to")
}

/// The line without `type:`, `type(scope):` or `type(scope)!:` in front.
fn without_type(line: &str) -> &str {
    let Some((kind, rest)) = line.split_once(':') else { return line };
    let kind = kind.strip_suffix('!').unwrap_or(kind);
    let name = match kind.split_once('(') {
        Some((name, scope)) if scope.ends_with(')') => name,
        Some(_) => return line,
        None => kind,
    };
    let plain =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if plain { rest } else { line }
}

fn is_word(token: &str) -> bool {
    if token.contains("://") || token.contains('@') {
        return false;
    }
    let token = token.trim_matches(|c: char| !c.is_alphanumeric());
    let letters = token.chars().filter(|c| c.is_alphabetic()).count();
    // GH-12, ABC-123
    let reference = token.split_once('-').is_some_and(|(key, number)| {
        key.chars().all(|c| c.is_ascii_uppercase())
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    });
    // v1.2, 2.0rc1
    let version = token.trim_start_matches(['v', 'V']).starts_with(|c: char| c.is_ascii_digit());
    letters >= 2 && !reference && !version
}

/// The function over columns.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct MessageWords;

impl RowFunction for MessageWords {
    const DOC: FunctionDoc = FunctionDoc {
        name: "message_words",
        arguments: &[("message", "text")],
        returns: "integer",
        summary: "the number of words in the first line of a commit message, 0 if a tool wrote it",
        nulls: "null for a null",
        example: "message_words('fix(parser): crash on empty input (#12)')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Int64
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let messages = args.args[0].to_array(args.number_rows)?;
        let counts: Int64Array =
            messages.as_string::<i32>().iter().map(|message| message.map(message_words)).collect();
        Ok(Arc::new(counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_something_are_counted() {
        for (message, words) in [
            ("Fix crash in the parser", 5),
            ("\n\n  Fix crash\n\nwith a long explanation", 2),
            ("fix(parser)!: crash on empty input (#12)", 4),
            ("docs: typo", 1),
            ("GH-12 ABC-123 #7 https://a.b/c me@x.org", 0),
            ("Release v1.2.3 2.0rc1", 1),
            ("Änderung der Prüfung", 3),
            ("修正 解析 错误", 3),
            ("wip", 1),
            ("a b c", 0),
            ("", 0),
            ("Note: see (that) thing", 3),
            ("in foo(bar: baz)", 3),
        ] {
            assert_eq!(message_words(message), words, "{message}");
        }
    }

    #[test]
    fn what_tools_write_says_nothing() {
        for message in [
            "Merge pull request #12 from a/b with a title",
            "Merge branch 'main' into feature of mine",
            "Bump requests from 2.0 to 2.1 in the docs",
            "[pre-commit.ci] auto fixes from pre-commit.com hooks",
            "build(deps): update all the things there are",
        ] {
            assert_eq!(message_words(message), 0, "{message}");
        }
        assert_eq!(message_words("Bump the stack in small steps"), 6);
    }
}
