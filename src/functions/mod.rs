//! DataFusion functions and the pure algorithms they wrap.
//!
//! Lives here: one file per scalar function, the exact aggregates, the algorithms over Python
//! source. A function's parameters are literal arguments, never state of the function value,
//! so that a cluster can resolve functions by name. Does not live here: any operator.

pub mod aggregate;
pub mod bpe;
pub mod scores;
pub mod template;

mod cut;
mod keyed_hash;
mod message_words;
mod moment;
mod python_calls;
mod python_features;
mod python_methods;
mod python_recount;
mod python_taxonomy;
mod raise_if;
mod render_prompts;
mod row_digest;
mod row_id;

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF, ScalarUDFImpl};

pub use cut::{CUT_REASON, RandomCut, cut_type};
pub use keyed_hash::KeyedHash;
pub use message_words::{MessageWords, message_words};
pub use moment::moment;
pub use python_calls::PythonCalls;
pub use python_features::{FEATURES, PythonFeatures, features_type};
pub use python_methods::{METHOD_FIELDS, PythonMethods, methods_type};
pub use python_recount::PythonRecount;
pub use python_taxonomy::PythonTaxonomy;
pub use raise_if::RaiseIf;
pub use render_prompts::{
    Message, RenderPrompts, SYSTEM, Treatment, compile, conversation, messages_type, rendered_type,
};
pub use row_digest::RowDigest;
pub use row_id::RowId;

/// Every scalar function of Galeras.
pub fn scalars() -> Vec<Arc<ScalarUDF>> {
    let mut all = vec![
        Arc::new(ScalarUDF::from(RowDigest::default())),
        Arc::new(ScalarUDF::from(RowId::default())),
        Arc::new(ScalarUDF::from(KeyedHash::default())),
        Arc::new(ScalarUDF::from(MessageWords::default())),
        Arc::new(ScalarUDF::from(PythonCalls::default())),
        Arc::new(ScalarUDF::from(PythonFeatures::default())),
        Arc::new(ScalarUDF::from(PythonMethods::default())),
        Arc::new(ScalarUDF::from(PythonRecount::default())),
        Arc::new(ScalarUDF::from(PythonTaxonomy::default())),
        Arc::new(ScalarUDF::from(RandomCut::default())),
        Arc::new(ScalarUDF::from(RaiseIf::default())),
        Arc::new(ScalarUDF::from(RenderPrompts::default())),
    ];
    all.extend(scores::all());
    all
}

/// Every aggregate function of Galeras; those with DataFusion's names replace its own.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    aggregate::all()
}

/// The function applied to arguments.
pub fn call<F: ScalarUDFImpl + Default + 'static>(args: Vec<Expr>) -> Expr {
    ScalarUDF::from(F::default()).call(args)
}
