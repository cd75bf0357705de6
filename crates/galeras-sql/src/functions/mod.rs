//! DataFusion functions over the algorithms of `galeras_python`, `galeras_metrics` and others, and
//! their descriptions.
//!
//! One file per row function, the exact aggregates, and the list of functions (`docs/functions.md`)
//! with the version of each. A function's parameters are literal arguments, never state of the
//! function value, so that a cluster can resolve functions by name.

pub mod aggregate;
pub mod bpe;
pub mod scores;
pub mod template;

mod bpe_tokens;
mod cut;
mod function_doc;
mod keyed_hash;
mod language_of;
mod message_words;
mod moment;
#[cfg(test)]
mod pins;
mod python_calls;
mod python_features;
mod python_methods;
mod python_pattern;
mod python_recount;
mod python_taxonomy;
mod raise_if;
mod render_prompts;
mod row_digest;
mod row_id;
mod template_depth;
mod token_taxonomy;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};

use self::function_doc::documented;

pub use bpe_tokens::{BpeCount, BpeTokens};
pub use cut::{CUT_REASON, RandomCut, cut_type};
pub use function_doc::{EXAMPLE_ROWS, FunctionDoc, FunctionGroup, RowFunction};
pub use keyed_hash::KeyedHash;
pub use language_of::LanguageOf;
pub use message_words::{MessageWords, message_words};
pub use moment::moment;
pub use python_calls::{PythonCallTargets, PythonCalls};
pub use python_features::{FEATURES, PythonFeatures, features_type};
pub use python_methods::{METHOD_FIELDS, PythonMethods, methods_type};
pub use python_pattern::{PythonCount, PythonHas};
pub use python_recount::PythonRecount;
pub use python_taxonomy::PythonTaxonomy;
pub use raise_if::RaiseIf;
pub use render_prompts::{
    Message, RenderPrompts, SYSTEM, Treatment, compile, conversation, messages_type, rendered_type,
};
pub use row_digest::RowDigest;
pub use row_id::RowId;
pub use token_taxonomy::TokenTaxonomy;

/// The scalar functions with their descriptions: the one list of them.
fn documented_scalars() -> Vec<(FunctionDoc, Arc<ScalarUDF>)> {
    let mut all = vec![
        documented::<RowDigest>(),
        documented::<RowId>(),
        documented::<KeyedHash>(),
        documented::<MessageWords>(),
        documented::<LanguageOf>(),
        documented::<PythonCalls>(),
        documented::<PythonCallTargets>(),
        documented::<PythonFeatures>(),
        documented::<PythonMethods>(),
        documented::<PythonHas>(),
        documented::<PythonCount>(),
        documented::<PythonRecount>(),
        documented::<PythonTaxonomy>(),
        documented::<TokenTaxonomy>(),
        documented::<BpeTokens>(),
        documented::<BpeCount>(),
        documented::<RandomCut>(),
        documented::<RaiseIf>(),
        documented::<RenderPrompts>(),
    ];
    all.extend(scores::all());
    all
}

/// Every scalar function of Galeras.
pub fn scalars() -> Vec<Arc<ScalarUDF>> {
    documented_scalars().into_iter().map(|(_, function)| function).collect()
}

/// Every aggregate function of Galeras; those with DataFusion's names replace its own.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    aggregate::all().into_iter().map(|(_, function)| function).collect()
}

/// The descriptions of the functions: row functions, scores, aggregates.
pub fn function_docs() -> Vec<FunctionDoc> {
    let scalars = documented_scalars().into_iter().map(|(doc, _)| doc);
    scalars.chain(aggregate::all().into_iter().map(|(doc, _)| doc)).collect()
}

/// The page of the manual that lists all functions, in Markdown.
pub fn functions_page() -> String {
    function_doc::functions_page(&function_docs())
}

/// The version of every function by its name and by its aliases: what a key must contain of
/// the functions of a query.
pub fn versions() -> BTreeMap<String, u32> {
    let names = |doc: FunctionDoc| {
        let names = std::iter::once(doc.name).chain(doc.aliases.iter().copied());
        names.map(move |name| (name.to_string(), doc.version))
    };
    function_docs().into_iter().flat_map(names).collect()
}

/// The function applied to arguments.
pub fn call<F: RowFunction>(args: Vec<Expr>) -> Expr {
    function_doc::scalar::<F>().call(args)
}

/// Lists of so many structs each.
fn list(
    lengths: impl IntoIterator<Item = usize>,
    fields: Fields,
    columns: Vec<ArrayRef>,
) -> Result<ArrayRef> {
    let item = Arc::new(Field::new("item", DataType::Struct(fields.clone()), true));
    let items = Arc::new(StructArray::try_new(fields, columns, None)?);
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), items, None)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::logical_expr::{Signature, TypeSignature};

    use super::*;

    /// Returns true if a call with the described number of arguments fits the registered signature.
    fn takes(doc: &FunctionDoc, signature: &Signature) -> bool {
        match &signature.type_signature {
            TypeSignature::VariadicAny => doc.variadic,
            // `min` and `max` define their arguments in code.
            TypeSignature::UserDefined => !doc.variadic && doc.arguments.len() == 1,
            others => {
                let arity = format!("{:?}", others.arity());
                !doc.variadic && arity == format!("Fixed({})", doc.arguments.len())
            }
        }
    }

    #[test]
    fn every_function_is_described_as_it_is_registered() {
        for (doc, function) in documented_scalars() {
            assert_eq!((doc.name, doc.aliases.len()), (function.name(), function.aliases().len()));
            assert!(takes(&doc, function.signature()), "{}", doc.signature());
            assert_ne!(doc.group, FunctionGroup::Aggregate, "{}", doc.name);
        }
        for (doc, function) in aggregate::all() {
            assert_eq!(doc.name, function.name());
            assert_eq!(doc.aliases, function.aliases(), "{}", doc.name);
            assert!(takes(&doc, function.signature()), "{}", doc.signature());
            assert_eq!(doc.group, FunctionGroup::Aggregate, "{}", doc.name);
        }
    }

    #[test]
    fn no_name_stands_for_two_functions() {
        let docs = function_docs();
        let names = docs.iter().map(|doc| 1 + doc.aliases.len()).sum::<usize>();
        assert_eq!(versions().len(), names);
        let distinct: BTreeSet<&str> = docs.iter().map(|doc| doc.name).collect();
        assert_eq!(distinct.len(), docs.len());
    }

    #[test]
    fn descriptions_fit_a_row_of_a_table() {
        for doc in function_docs() {
            for text in [doc.summary, doc.nulls, &doc.signature()] {
                let fits = !text.is_empty() && !text.contains(['|', '\n']) && !text.ends_with('.');
                assert!(fits, "{}: {text}", doc.name);
            }
            assert!(doc.version > 0 && doc.example_query().contains(doc.name), "{}", doc.name);
        }
    }
}
