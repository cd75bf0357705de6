//! `python_features(code)`: signature, docstring, syntax-tree and text features of a method.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Int64Array, ListBuilder, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

use super::function_doc::{FunctionDoc, RowFunction};
use galeras_operator::describe;
use galeras_python::{Features, features, with_parser};

/// The features in the order of the output: name, whether it is null for methods without one,
/// description, unit.
pub const FEATURES: &[(&str, FeatureKind, &str, Option<&str>)] = &[
    ("signature", FeatureKind::Text, "from `def` up to the colon of the signature", None),
    ("docstring", FeatureKind::Text, "the docstring's content; null without one", None),
    ("d_n_words", FeatureKind::Count, "words of the docstring; null without one", Some("words")),
    ("code_no_docstring", FeatureKind::Text, "the code without its docstring", None),
    ("ast_errors", FeatureKind::Texts, "the texts of the ERROR nodes", None),
    ("n_ast_errors", FeatureKind::Count, "ERROR nodes of the syntax tree", Some("nodes")),
    ("ast_levels", FeatureKind::Count, "height of the syntax tree", Some("levels")),
    ("n_ast_nodes", FeatureKind::Count, "nodes of the syntax tree without its root", Some("nodes")),
    ("n_identifiers", FeatureKind::Count, "distinct identifiers", Some("identifiers")),
    ("complexity", FeatureKind::Count, "cyclomatic complexity, as lizard counts it", None),
    ("nloc", FeatureKind::Count, "lines of code without comments and docstring", Some("lines")),
    ("token_counts", FeatureKind::Count, "tokens, as lizard counts them", Some("tokens")),
    ("n_words", FeatureKind::Count, "words of the code without docstring", Some("words")),
    (
        "vocab_size",
        FeatureKind::Count,
        "distinct words of the code without docstring",
        Some("words"),
    ),
    (
        "n_whitespaces",
        FeatureKind::Count,
        "spaces of the code without docstring",
        Some("characters"),
    ),
    ("n_returns", FeatureKind::Count, "return statements of the method itself", Some("statements")),
    ("parameters", FeatureKind::Texts, "the parameters' names in order", None),
];

/// The name of the field with the reason why a row has no features.
pub(super) const REASON: &str = "reason";

/// The type of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureKind {
    /// Text.
    Text,
    /// A count.
    Count,
    /// A list of texts.
    Texts,
}

impl FeatureKind {
    fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Count => DataType::Int64,
            Self::Texts => DataType::new_list(DataType::Utf8, true),
        }
    }
}

/// The columns of the features, with their descriptions.
pub fn features_type() -> Vec<FieldRef> {
    FEATURES
        .iter()
        .map(|(name, kind, description, unit)| {
            describe(name, kind.data_type(), true, description, *unit)
        })
        .collect()
}

fn struct_fields() -> Fields {
    let reason = Field::new(REASON, DataType::Utf8, true);
    FEATURES
        .iter()
        .map(|(name, kind, _, _)| Field::new(*name, kind.data_type(), true))
        .chain([reason])
        .collect()
}

/// A struct of the [`FEATURES`] and `reason`, which is null unless the text has no features.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonFeatures;

impl RowFunction for PythonFeatures {
    const DOC: FunctionDoc = FunctionDoc {
        name: "python_features",
        version: 2,
        arguments: &[("code", "text")],
        returns: "struct",
        summary: "signature, docstring, syntax-tree and text features of a method, as the operator `ast` adds them",
        nulls: "all fields but `reason` are null for a null and for code that cannot be parsed",
        example: "python_features('def area(width, height):\n    size = width * height\n    return size\n')",
        ..FunctionDoc::ROW
    };

    fn return_type() -> DataType {
        DataType::Struct(struct_fields())
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let code = args.args[0].to_array(args.number_rows)?;
        let rows: Vec<Result<Features<'_>, String>> =
            code.as_string::<i32>().iter().map(features_of).collect();
        let columns: Vec<ArrayRef> = vec![
            texts(&rows, |f| f.signature),
            texts(&rows, |f| f.docstring.as_deref()),
            counts(&rows, |f| f.d_n_words),
            texts(&rows, |f| Some(&f.code_no_docstring)),
            lists(&rows, |f| &f.ast_errors),
            counts(&rows, |f| Some(f.n_ast_errors)),
            counts(&rows, |f| Some(f.ast_levels)),
            counts(&rows, |f| Some(f.n_ast_nodes)),
            counts(&rows, |f| Some(f.n_identifiers)),
            counts(&rows, |f| Some(f.complexity)),
            counts(&rows, |f| Some(f.nloc)),
            counts(&rows, |f| Some(f.token_counts)),
            counts(&rows, |f| Some(f.n_words)),
            counts(&rows, |f| Some(f.vocab_size)),
            counts(&rows, |f| Some(f.n_whitespaces)),
            counts(&rows, |f| Some(f.n_returns)),
            lists(&rows, |f| &f.parameters),
            Arc::new(rows.iter().map(|row| row.as_ref().err()).collect::<StringArray>()),
        ];
        Ok(Arc::new(StructArray::try_new(struct_fields(), columns, None)?))
    }
}

/// The features of a text, or why it has none.
fn features_of(text: Option<&str>) -> Result<Features<'_>, String> {
    let text = text.ok_or("the code is null")?;
    let features = with_parser(|parser| features(parser, text)).and_then(|result| result);
    features.map_err(|error| error.to_string())
}

type Rows<'t> = [Result<Features<'t>, String>];

fn texts<'t>(rows: &Rows<'t>, of: for<'f> fn(&'f Features<'t>) -> Option<&'f str>) -> ArrayRef {
    Arc::new(rows.iter().map(|row| of(row.as_ref().ok()?)).collect::<StringArray>())
}

fn counts<'t>(rows: &Rows<'t>, of: fn(&Features<'t>) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(|row| of(row.as_ref().ok()?)).collect::<Int64Array>())
}

fn lists<'t>(rows: &Rows<'t>, of: for<'f> fn(&'f Features<'t>) -> &'f Vec<&'t str>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        let items = row.as_ref().ok().map(|features| of(features).iter().map(Some));
        lists.append_option(items);
    }
    Arc::new(lists.finish())
}
