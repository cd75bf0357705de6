//! `python_features(code)`: signature, docstring, syntax-tree and text features of a method.
//!
//! The algorithms are in the crate `galeras_python`; here is only their Arrow form.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Builder, ListBuilder, StringBuilder, StructArray,
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
        let code = code.as_string::<i32>();
        let mut out = Columns::new(code.len());
        for text in code {
            let result = match text {
                None => Err("the code is null".to_string()),
                Some(text) => with_parser(|parser| features(parser, text))
                    .and_then(|result| result)
                    .map_err(|error| error.to_string()),
            };
            out.push(result);
        }
        Ok(Arc::new(out.finish()?))
    }
}

struct Columns {
    texts: Vec<StringBuilder>,
    counts: Vec<Int64Builder>,
    lists: Vec<ListBuilder<StringBuilder>>,
    reason: StringBuilder,
}

impl Columns {
    fn new(rows: usize) -> Self {
        let number = |kind| FEATURES.iter().filter(|f| f.1 == kind).count();
        Self {
            texts: (0..number(FeatureKind::Text)).map(|_| StringBuilder::new()).collect(),
            counts: (0..number(FeatureKind::Count))
                .map(|_| Int64Builder::with_capacity(rows))
                .collect(),
            lists: (0..number(FeatureKind::Texts))
                .map(|_| ListBuilder::new(StringBuilder::new()))
                .collect(),
            reason: StringBuilder::new(),
        }
    }

    /// Adds a row. The values are in the order of [`FEATURES`], kind by kind.
    fn push(&mut self, result: Result<Features<'_>, String>) {
        match result {
            Ok(f) => {
                let texts = [f.signature, f.docstring.as_deref(), Some(&*f.code_no_docstring)];
                let counts = [
                    f.d_n_words,
                    Some(f.n_ast_errors),
                    Some(f.ast_levels),
                    Some(f.n_ast_nodes),
                    Some(f.n_identifiers),
                    Some(f.complexity),
                    Some(f.nloc),
                    Some(f.token_counts),
                    Some(f.n_words),
                    Some(f.vocab_size),
                    Some(f.n_whitespaces),
                    Some(f.n_returns),
                ];
                let lists = [&f.ast_errors, &f.parameters];
                self.texts.iter_mut().zip(texts).for_each(|(b, v)| b.append_option(v));
                self.counts.iter_mut().zip(counts).for_each(|(b, v)| b.append_option(v));
                for (builder, values) in self.lists.iter_mut().zip(lists) {
                    values.iter().for_each(|v| builder.values().append_value(v));
                    builder.append(true);
                }
                self.reason.append_null();
            }
            Err(reason) => {
                self.texts.iter_mut().for_each(StringBuilder::append_null);
                self.counts.iter_mut().for_each(Int64Builder::append_null);
                self.lists.iter_mut().for_each(ListBuilder::append_null);
                self.reason.append_value(reason);
            }
        }
    }

    fn finish(mut self) -> Result<StructArray> {
        let mut texts = self.texts.iter_mut();
        let mut counts = self.counts.iter_mut();
        let mut lists = self.lists.iter_mut();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(FEATURES.len() + 1);
        for (_, kind, _, _) in FEATURES {
            let array: Option<ArrayRef> = match kind {
                FeatureKind::Text => texts.next().map(|b| Arc::new(b.finish()) as ArrayRef),
                FeatureKind::Count => counts.next().map(|b| Arc::new(b.finish()) as ArrayRef),
                FeatureKind::Texts => lists.next().map(|b| Arc::new(b.finish()) as ArrayRef),
            };
            arrays.extend(array);
        }
        arrays.push(Arc::new(self.reason.finish()));
        Ok(StructArray::try_new(struct_fields(), arrays, None)?)
    }
}
