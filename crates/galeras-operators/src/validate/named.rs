//! Named checks: the verification steps of the Galeras paper as ready-made conditions.
//!
//! A named check is a name, its arguments, and its SQL, so that a reader of a reject sees the
//! condition itself.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use galeras_operator::columns::is_text;
use galeras_operator::{ArgError, TableSchema};
use galeras_sql::functions::moment;
use galeras_workflow::code::Code;
use galeras_workflow::did_you_mean;

/// The named checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum NamedCheck {
    /// The commit's date lies in the window: from `since` on, before `until`.
    CommitInWindow,
    /// The commit really changed the method: its code differs from the previous version, or it is
    /// new.
    MethodChanged,
    /// The commit's message has content: without prefixes, references and links its first line has
    /// at least `min_words` words, and no tool wrote it.
    MessageMeaningful,
    /// The features of the syntax tree, recomputed by other means, are those of the row.
    AstFeaturesRecomputed,
    /// The cyclomatic complexity, recomputed from the syntax tree, is that of the row.
    ComplexityRecomputed,
    /// The lines of code, counted again from the syntax tree, are those of the row.
    NlocRecomputed,
    /// The tokens, counted again from the syntax tree, are those of the row.
    TokenCountsRecomputed,
    /// The words of the code without docstring, counted again, are those of the row.
    NWordsRecomputed,
    /// The spaces of the code without docstring, counted again, are those of the row.
    NWhitespacesRecomputed,
    /// The cut lies behind the signature.
    CutAfterSignature,
    /// The body has code before and after the cut, apart from comments.
    CutInsideBody,
    /// There is a docstring, and it is not blank.
    DocstringPresent,
    /// The docstring has more than `more_than` words.
    DocstringWords,
    /// The body, docstring aside, is more than one line.
    NoOneLineBody,
    /// The body, docstring aside, is more than `pass` or `...`.
    NoPassBody,
    /// The method itself has more than `more_than` return statements.
    SeveralReturns,
}

impl NamedCheck {
    /// The check's name, which is also the default name of the rule.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CommitInWindow => "commit_in_window",
            Self::MethodChanged => "method_changed",
            Self::MessageMeaningful => "message_meaningful",
            Self::AstFeaturesRecomputed => "ast_features_recomputed",
            Self::ComplexityRecomputed => "complexity_recomputed",
            Self::NlocRecomputed => "nloc_recomputed",
            Self::TokenCountsRecomputed => "token_counts_recomputed",
            Self::NWordsRecomputed => "n_words_recomputed",
            Self::NWhitespacesRecomputed => "n_whitespaces_recomputed",
            Self::CutAfterSignature => "cut_after_signature",
            Self::CutInsideBody => "cut_inside_body",
            Self::DocstringPresent => "docstring_present",
            Self::DocstringWords => "docstring_words",
            Self::NoOneLineBody => "no_one_line_body",
            Self::NoPassBody => "no_pass_body",
            Self::SeveralReturns => "several_returns",
        }
    }
}

/// The type of a named check's argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Date,
    Column,
    TextColumn,
    Count,
    Flag,
}

impl NamedCheck {
    fn arguments(self) -> &'static [(&'static str, Wanted)] {
        use Wanted::{Column, Count, Date, Flag, TextColumn};
        match self {
            Self::CommitInWindow => &[("since", Date), ("until", Date), ("column", Column)],
            Self::MethodChanged => &[("ignore_whitespace", Flag)],
            Self::MessageMeaningful => &[("min_words", Count), ("column", TextColumn)],
            Self::DocstringWords | Self::SeveralReturns => {
                &[("more_than", Count), ("column", TextColumn)]
            }
            Self::CutInsideBody => &[("column", TextColumn), ("rest", TextColumn)],
            Self::AstFeaturesRecomputed
            | Self::ComplexityRecomputed
            | Self::NlocRecomputed
            | Self::TokenCountsRecomputed
            | Self::NWordsRecomputed
            | Self::NWhitespacesRecomputed
            | Self::CutAfterSignature
            | Self::DocstringPresent
            | Self::NoOneLineBody
            | Self::NoPassBody => &[("column", TextColumn)],
        }
    }

    /// Checks that the arguments have known names and valid types; their place is `path`.
    pub(super) fn arguments_fit(
        self,
        with: &Map<String, Value>,
        path: &str,
        input: &TableSchema,
    ) -> Result<(), ArgError> {
        let known = self.arguments();
        for (name, value) in with {
            let at = format!("{path}.{name}");
            let Some((_, wanted)) = known.iter().find(|(known, _)| known == name) else {
                let message = format!("the check `{}` has no argument `{name}`", self.name());
                let error = ArgError::new(at, Code::UnknownArgument, message);
                let names = known.iter().map(|(known, _)| *known);
                return Err(error.help(match did_you_mean(name, names.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it takes {}", names.collect::<Vec<_>>().join(", ")),
                }));
            };
            let needed = match wanted {
                Wanted::Date if !value.is_string() => "a date",
                Wanted::Column | Wanted::TextColumn if !value.is_string() => "the name of a column",
                Wanted::Count if value.as_u64().is_none_or(|n| n > u64::from(u32::MAX)) => {
                    "a whole number, 0 or more"
                }
                Wanted::Flag if !value.is_boolean() => "true or false",
                _ => "",
            };
            if !needed.is_empty() {
                let message = format!("`{name}` must be {needed}");
                return Err(ArgError::new(at, Code::WrongType, message));
            }
            if let (Wanted::TextColumn, Some(column)) = (wanted, value.as_str()) {
                match input.field(column) {
                    None => return Err(ArgError::unknown_column(at, column, input.names())),
                    Some(field) if !is_text(field.data_type()) => {
                        let given = galeras_operator::table_digest::type_name(field.data_type());
                        let message = format!("column `{column}` has type {given}, not utf8");
                        return Err(ArgError::new(at, Code::WrongType, message));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(super) enum Named {
    CommitInWindow(CommitInWindow),
    MethodChanged(MethodChanged),
    MessageMeaningful(MessageMeaningful),
    /// These columns are equal to the columns of `python_recount` with these names.
    Recomputed(&'static [&'static str], OfCode),
    CutAfterSignature(CutAfterSignature),
    CutInsideBody(CutInsideBody),
    DocstringPresent(DocstringPresent),
    DocstringWords(DocstringWords),
    /// This field of `python_recount` is false.
    Not(&'static str, OfCode),
    SeveralReturns(SeveralReturns),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OfCode {
    column: String,
}

impl Default for OfCode {
    fn default() -> Self {
        Self { column: "code".into() }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CutAfterSignature {
    column: String,
}

impl Default for CutAfterSignature {
    fn default() -> Self {
        Self { column: "random_cut".into() }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CutInsideBody {
    /// The column before the cut; `rest` has the text after it.
    column: String,
    rest: String,
}

impl Default for CutInsideBody {
    fn default() -> Self {
        Self { column: "random_cut".into(), rest: "cut_rest".into() }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DocstringPresent {
    column: String,
}

impl Default for DocstringPresent {
    fn default() -> Self {
        Self { column: "docstring".into() }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DocstringWords {
    /// The docstring has more words than this.
    more_than: u32,
    column: String,
}

impl Default for DocstringWords {
    fn default() -> Self {
        Self { more_than: 3, column: "docstring".into() }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SeveralReturns {
    /// There are more return statements than this.
    more_than: u32,
    column: String,
}

impl Default for SeveralReturns {
    fn default() -> Self {
        Self { more_than: 1, column: "code".into() }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommitInWindow {
    /// The first moment: a date, or a date with time and zone.
    since: String,
    /// The first moment after it.
    until: String,
    #[serde(default = "commit_time")]
    column: String,
}

fn commit_time() -> String {
    "commit_time".into()
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MethodChanged {
    /// A change of white space alone does not count.
    ignore_whitespace: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MessageMeaningful {
    /// The least number of words.
    min_words: u32,
    column: String,
}

impl Default for MessageMeaningful {
    fn default() -> Self {
        Self { min_words: 3, column: "commit_message".into() }
    }
}

impl Named {
    /// The check with these arguments, or the errors in them.
    pub(super) fn new(check: NamedCheck, with: Map<String, Value>) -> Result<Self, String> {
        fn read<T: DeserializeOwned>(with: Map<String, Value>) -> Result<T, String> {
            serde_json::from_value(Value::Object(with)).map_err(|error| error.to_string())
        }
        Ok(match check {
            NamedCheck::CommitInWindow => Self::CommitInWindow(read(with)?),
            NamedCheck::MethodChanged => Self::MethodChanged(read(with)?),
            NamedCheck::MessageMeaningful => Self::MessageMeaningful(read(with)?),
            NamedCheck::AstFeaturesRecomputed => {
                let features = &["n_ast_errors", "ast_levels", "n_ast_nodes", "n_identifiers"];
                Self::Recomputed(features, read(with)?)
            }
            NamedCheck::ComplexityRecomputed => Self::Recomputed(&["complexity"], read(with)?),
            NamedCheck::NlocRecomputed => Self::Recomputed(&["nloc"], read(with)?),
            NamedCheck::TokenCountsRecomputed => Self::Recomputed(&["token_counts"], read(with)?),
            NamedCheck::NWordsRecomputed => {
                Self::Recomputed(&["n_words", "vocab_size"], read(with)?)
            }
            NamedCheck::NWhitespacesRecomputed => Self::Recomputed(&["n_whitespaces"], read(with)?),
            NamedCheck::CutAfterSignature => Self::CutAfterSignature(read(with)?),
            NamedCheck::CutInsideBody => Self::CutInsideBody(read(with)?),
            NamedCheck::DocstringPresent => Self::DocstringPresent(read(with)?),
            NamedCheck::DocstringWords => Self::DocstringWords(read(with)?),
            NamedCheck::NoOneLineBody => Self::Not("one_line_body", read(with)?),
            NamedCheck::NoPassBody => Self::Not("pass_body", read(with)?),
            NamedCheck::SeveralReturns => Self::SeveralReturns(read(with)?),
        })
    }

    /// The condition; errors in arguments are reported at `path`.
    pub(super) fn sql(&self, path: &str) -> Result<String, ArgError> {
        match self {
            Self::CommitInWindow(CommitInWindow { since, until, column }) => {
                let moment = |name: &str, text: &str| match moment(text) {
                    Some((_, canonical)) => Ok(canonical),
                    None => {
                        let message = format!("`{text}` is not a date");
                        let error =
                            ArgError::new(format!("{path}.{name}"), Code::WrongType, message);
                        Err(error.help("write 2022-01-31, or 2022-01-31T12:00:00Z"))
                    }
                };
                let (since, until) = (moment("since", since)?, moment("until", until)?);
                let column = identifier(column);
                let at = |moment: &str| {
                    format!("arrow_cast('{moment}', 'Timestamp(Microsecond, Some(\"UTC\"))')")
                };
                Ok(format!("{column} >= {} AND {column} < {}", at(&since), at(&until)))
            }
            Self::MethodChanged(MethodChanged { ignore_whitespace: false }) => {
                Ok("code_before IS NULL OR code_before <> code".into())
            }
            Self::MethodChanged(MethodChanged { ignore_whitespace: true }) => {
                let dense = |column: &str| format!("regexp_replace({column}, '\\s+', '', 'g')");
                let (before, after) = (dense("code_before"), dense("code"));
                Ok(format!("code_before IS NULL OR {before} <> {after}"))
            }
            Self::MessageMeaningful(MessageMeaningful { min_words, column }) => {
                Ok(format!("message_words({}) >= {min_words}", identifier(column)))
            }
            Self::Recomputed(features, OfCode { column }) => {
                let column = identifier(column);
                let equal = |name: &&str| format!("python_recount({column})['{name}'] = {name}");
                Ok(features.iter().map(equal).collect::<Vec<_>>().join(" AND "))
            }
            Self::CutAfterSignature(CutAfterSignature { column }) => {
                Ok(format!("strpos({}, signature) > 0", identifier(column)))
            }
            Self::CutInsideBody(CutInsideBody { column, rest }) => {
                // A `#` in a string removes the rest of its line, but keeps the quote.
                let code = |text: &str| {
                    format!("regexp_count(regexp_replace({text}, '#[^\\n]*', '', 'g'), '\\S') > 0")
                };
                let (column, rest) = (identifier(column), identifier(rest));
                let body = format!(
                    "substr({column}, strpos({column}, signature) + char_length(signature))"
                );
                // A cut in a comment leaves the rest of the comment after it. The line before the
                // cut then has a `#` that follows only complete strings.
                let in_comment = format!(
                    r#"regexp_like({column},
                       '(^|\n)([^\n"''#]|"([^"\\\n]|\\.)*"|''([^''\\\n]|\\.)*'')*#[^\n]*$')"#
                );
                let rest = format!("concat(CASE WHEN {in_comment} THEN '#' ELSE '' END, {rest})");
                let (front, behind) = (code(&body), code(&rest));
                Ok(format!("strpos({column}, signature) > 0 AND {front} AND {behind}"))
            }
            Self::DocstringPresent(DocstringPresent { column }) => {
                Ok(format!("regexp_count({}, '\\S') > 0", identifier(column)))
            }
            Self::DocstringWords(DocstringWords { more_than, column }) => {
                Ok(format!("regexp_count({}, '\\S+') > {more_than}", identifier(column)))
            }
            Self::Not(field, OfCode { column }) => {
                Ok(format!("NOT python_recount({})['{field}']", identifier(column)))
            }
            Self::SeveralReturns(SeveralReturns { more_than, column }) => {
                Ok(format!("python_recount({})['n_returns'] > {more_than}", identifier(column)))
            }
        }
    }
}

fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
