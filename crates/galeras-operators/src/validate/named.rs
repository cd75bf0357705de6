//! Named checks: the verification steps of the Galeras paper as ready-made conditions. [`CHECKS`]
//! lists them.
//!
//! A check is a name, its arguments, and its SQL, so that a reader of a reject sees the condition
//! itself.

use serde_json::{Map, Value, json};

use galeras_operator::columns::is_text;
use galeras_operator::{ArgError, Choice, Entry, TableSchema};
use galeras_sql::functions::moment;
use galeras_workflow::code::Code;
use galeras_workflow::did_you_mean;

/// A named check as a rule names it.
pub(super) type NamedCheck = Choice<CheckSpec>;

pub(super) struct CheckSpec {
    /// The name, which is also the default name of the rule.
    name: &'static str,
    /// Its description in the JSON Schema.
    doc: &'static str,
    arguments: &'static [(&'static str, ArgKind)],
    sql: fn(&CheckArgs<'_>) -> Result<String, ArgError>,
}

/// The type of an argument, with its default.
#[derive(Clone, Copy)]
enum ArgKind {
    /// A date, which must be given.
    Date,
    Column(&'static str),
    TextColumn(&'static str),
    Count(u64),
    Flag(bool),
}

use ArgKind::{Column, Count, Date, Flag, TextColumn};

/// The only argument of most checks.
const OF_CODE: &[(&str, ArgKind)] = &[("column", TextColumn("code"))];

const CHECKS: &[&CheckSpec] = &[
    &CheckSpec {
        name: "commit_in_window",
        doc: "The commit's date lies in the window: from `since` on, before `until`.",
        arguments: &[("since", Date), ("until", Date), ("column", Column("commit_time"))],
        sql: |args| {
            let (since, until, column) = (args.date("since")?, args.date("until")?, args.column());
            let at = |moment: &str| {
                format!("arrow_cast('{moment}', 'Timestamp(Microsecond, Some(\"UTC\"))')")
            };
            Ok(format!("{column} >= {} AND {column} < {}", at(&since), at(&until)))
        },
    },
    &CheckSpec {
        name: "method_changed",
        doc: "The commit really changed the method: its code differs from the previous version, or it is\nnew.",
        arguments: &[("ignore_whitespace", Flag(false))],
        sql: |args| {
            if !args.flag("ignore_whitespace") {
                return Ok("code_before IS NULL OR code_before <> code".into());
            }
            let dense = |column: &str| format!("regexp_replace({column}, '\\s+', '', 'g')");
            let (before, after) = (dense("code_before"), dense("code"));
            Ok(format!("code_before IS NULL OR {before} <> {after}"))
        },
    },
    &CheckSpec {
        name: "message_meaningful",
        doc: "The commit's message has content: without prefixes, references and links its first line has\nat least `min_words` words, and no tool wrote it.",
        arguments: &[("min_words", Count(3)), ("column", TextColumn("commit_message"))],
        sql: |args| Ok(format!("message_words({}) >= {}", args.column(), args.count("min_words"))),
    },
    &CheckSpec {
        name: "ast_features_recomputed",
        doc: "The features of the syntax tree, recomputed by other means, are those of the row.",
        arguments: OF_CODE,
        sql: |args| {
            args.recomputed(&["n_ast_errors", "ast_levels", "n_ast_nodes", "n_identifiers"])
        },
    },
    &CheckSpec {
        name: "complexity_recomputed",
        doc: "The cyclomatic complexity, recomputed from the syntax tree, is that of the row.",
        arguments: OF_CODE,
        sql: |args| args.recomputed(&["complexity"]),
    },
    &CheckSpec {
        name: "nloc_recomputed",
        doc: "The lines of code, counted again from the syntax tree, are those of the row.",
        arguments: OF_CODE,
        sql: |args| args.recomputed(&["nloc"]),
    },
    &CheckSpec {
        name: "token_counts_recomputed",
        doc: "The tokens, counted again from the syntax tree, are those of the row.",
        arguments: OF_CODE,
        sql: |args| args.recomputed(&["token_counts"]),
    },
    &CheckSpec {
        name: "n_words_recomputed",
        doc: "The words of the code without docstring, counted again, are those of the row.",
        arguments: OF_CODE,
        sql: |args| args.recomputed(&["n_words", "vocab_size"]),
    },
    &CheckSpec {
        name: "n_whitespaces_recomputed",
        doc: "The spaces of the code without docstring, counted again, are those of the row.",
        arguments: OF_CODE,
        sql: |args| args.recomputed(&["n_whitespaces"]),
    },
    &CheckSpec {
        name: "cut_after_signature",
        doc: "The cut lies behind the signature.",
        arguments: &[("column", TextColumn("random_cut"))],
        sql: |args| Ok(format!("strpos({}, signature) > 0", args.column())),
    },
    &CheckSpec {
        name: "cut_inside_body",
        doc: "The body has code before and after the cut, apart from comments.",
        arguments: &[("column", TextColumn("random_cut")), ("rest", TextColumn("cut_rest"))],
        sql: cut_inside_body,
    },
    &CheckSpec {
        name: "docstring_present",
        doc: "There is a docstring, and it is not blank.",
        arguments: &[("column", TextColumn("docstring"))],
        sql: |args| Ok(format!("regexp_count({}, '\\S') > 0", args.column())),
    },
    &CheckSpec {
        name: "docstring_words",
        doc: "The docstring has more than `more_than` words.",
        arguments: &[("more_than", Count(3)), ("column", TextColumn("docstring"))],
        sql: |args| {
            Ok(format!("regexp_count({}, '\\S+') > {}", args.column(), args.count("more_than")))
        },
    },
    &CheckSpec {
        name: "no_one_line_body",
        doc: "The body, docstring aside, is more than one line.",
        arguments: OF_CODE,
        sql: |args| Ok(format!("NOT python_recount({})['one_line_body']", args.column())),
    },
    &CheckSpec {
        name: "no_pass_body",
        doc: "The body, docstring aside, is more than `pass` or `...`.",
        arguments: OF_CODE,
        sql: |args| Ok(format!("NOT python_recount({})['pass_body']", args.column())),
    },
    &CheckSpec {
        name: "several_returns",
        doc: "The method itself has more than `more_than` return statements.",
        arguments: &[("more_than", Count(1)), ("column", TextColumn("code"))],
        sql: |args| {
            let (column, more_than) = (args.column(), args.count("more_than"));
            Ok(format!("python_recount({column})['n_returns'] > {more_than}"))
        },
    },
];

impl Entry for CheckSpec {
    const ALL: &'static [&'static Self] = CHECKS;
    const ABOUT: &'static str = "The named checks.";

    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }
}

impl CheckSpec {
    /// The condition, for arguments that are at `path`.
    ///
    /// # Errors
    /// If an argument is unknown, missing, or of another type.
    pub(super) fn condition(
        &self,
        with: &Map<String, Value>,
        path: &str,
        input: &TableSchema,
    ) -> Result<String, ArgError> {
        for (name, value) in with {
            self.check_argument(name, value, &format!("{path}.{name}"), input)?;
        }
        let default = |(name, kind): &(&str, ArgKind)| {
            let value = match kind {
                Date => return None,
                Column(column) | TextColumn(column) => json!(column),
                Count(count) => json!(count),
                Flag(flag) => json!(flag),
            };
            Some((name.to_string(), value))
        };
        let mut all: Map<String, Value> = self.arguments.iter().filter_map(default).collect();
        all.extend(with.clone());
        (self.sql)(&CheckArgs { with: &all, path })
    }

    fn check_argument(
        &self,
        name: &str,
        value: &Value,
        path: &str,
        input: &TableSchema,
    ) -> Result<(), ArgError> {
        let Some((_, kind)) = self.arguments.iter().find(|(known, _)| *known == name) else {
            let message = format!("the check `{}` has no argument `{name}`", self.name);
            let error = ArgError::new(path, Code::UnknownArgument, message);
            let names = self.arguments.iter().map(|(known, _)| *known);
            return Err(error.help(match did_you_mean(name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it takes {}", names.collect::<Vec<_>>().join(", ")),
            }));
        };
        let needed = match kind {
            Date if !value.is_string() => "a date",
            Column(_) | TextColumn(_) if !value.is_string() => "the name of a column",
            Count(_) if value.as_u64().is_none_or(|n| n > u64::from(u32::MAX)) => {
                "a whole number, 0 or more"
            }
            Flag(_) if !value.is_boolean() => "true or false",
            _ => "",
        };
        if !needed.is_empty() {
            let message = format!("`{name}` must be {needed}");
            return Err(ArgError::new(path, Code::WrongType, message));
        }
        let (TextColumn(_), Some(column)) = (kind, value.as_str()) else { return Ok(()) };
        match input.field(column) {
            None => Err(ArgError::unknown_column(path, column, input.names())),
            Some(field) if !is_text(field.data_type()) => {
                let given = galeras_operator::table_digest::type_name(field.data_type());
                let message = format!("column `{column}` has type {given}, not utf8");
                Err(ArgError::new(path, Code::WrongType, message))
            }
            Some(_) => Ok(()),
        }
    }
}

/// The arguments of a rule, whose types were checked, and the defaults of others.
struct CheckArgs<'a> {
    with: &'a Map<String, Value>,
    path: &'a str,
}

impl CheckArgs<'_> {
    fn count(&self, name: &str) -> u64 {
        self.with.get(name).and_then(Value::as_u64).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.with.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The argument `column` as an identifier in SQL.
    fn column(&self) -> String {
        self.named_column("column")
    }

    fn named_column(&self, name: &str) -> String {
        identifier(self.with.get(name).and_then(Value::as_str).unwrap_or(name))
    }

    /// A date in the form that the condition shows.
    fn date(&self, name: &str) -> Result<String, ArgError> {
        let Some(text) = self.with.get(name).and_then(Value::as_str) else {
            let message = format!("missing field `{name}`");
            return Err(ArgError::new(self.path, Code::WrongArgument, message));
        };
        moment(text).map(|(_, canonical)| canonical).ok_or_else(|| {
            let path = format!("{}.{name}", self.path);
            ArgError::new(path, Code::WrongType, format!("`{text}` is not a date"))
                .help("write 2022-01-31, or 2022-01-31T12:00:00Z")
        })
    }

    /// These columns equal the fields of `python_recount` with these names.
    fn recomputed(&self, features: &[&str]) -> Result<String, ArgError> {
        let column = self.column();
        let equal = |name: &&str| format!("python_recount({column})['{name}'] = {name}");
        Ok(features.iter().map(equal).collect::<Vec<_>>().join(" AND "))
    }
}

fn cut_inside_body(args: &CheckArgs<'_>) -> Result<String, ArgError> {
    // A `#` in a string removes the rest of its line, but keeps the quote.
    let code = |text: &str| {
        format!("regexp_count(regexp_replace({text}, '#[^\\n]*', '', 'g'), '\\S') > 0")
    };
    let (column, rest) = (args.column(), args.named_column("rest"));
    let body = format!("substr({column}, strpos({column}, signature) + char_length(signature))");
    // A cut in a comment leaves the rest of the comment after it. The line before the cut then has a
    // `#` that follows only complete strings.
    let in_comment = format!(
        r#"regexp_like({column},
                       '(^|\n)([^\n"''#]|"([^"\\\n]|\\.)*"|''([^''\\\n]|\\.)*'')*#[^\n]*$')"#
    );
    let rest = format!("concat(CASE WHEN {in_comment} THEN '#' ELSE '' END, {rest})");
    let (front, behind) = (code(&body), code(&rest));
    Ok(format!("strpos({column}, signature) > 0 AND {front} AND {behind}"))
}

fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
