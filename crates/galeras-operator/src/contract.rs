//! The trait [`Operator`], its arguments and the context in which they are bound, and the registry.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::context::SessionContext;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::access::Consent;
use super::descriptor::Descriptor;
use super::error::ArgError;
use super::pins::{Pins, Registration};
use super::step::BoundStep;
use super::table::{Port, TableSchema};
use galeras_workflow::code::Code;

/// An operator: its description, and the way its arguments become a step.
///
/// Every operator is one value in the registry's list; help, JSON Schema, documentation page and
/// plan-time checks all derive from it.
pub trait Operator: Send + Sync {
    /// Its description.
    fn descriptor(&self) -> &'static Descriptor;
    /// Checks the arguments against the input schemas and returns a step with known outputs, or all
    /// mistakes. Nothing is computed; files named by arguments may be opened to learn their schema.
    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>>;
    /// The output ports, if they depend on neither arguments nor inputs: then later steps can be
    /// checked even if this step's arguments are wrong.
    fn fixed_ports(&self) -> Option<Vec<Port>> {
        None
    }
}

/// An [`Operator`] whose arguments are a type, and which binds them without waiting.
pub trait TypedOperator: Send + Sync {
    /// The arguments (`with:`).
    type Args: DeserializeOwned;
    /// Its description.
    const DESCRIPTOR: Descriptor;
    /// As [`Operator::bind`].
    ///
    /// # Errors
    /// All mistakes in the arguments.
    fn bind(args: Self::Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>>;
    /// As [`Operator::fixed_ports`].
    fn fixed_ports() -> Option<Vec<Port>> {
        None
    }
}

impl<T: TypedOperator> Operator for T {
    fn descriptor(&self) -> &'static Descriptor {
        &T::DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move { T::bind(parse_args(args)?, cx) })
    }

    fn fixed_ports(&self) -> Option<Vec<Port>> {
        T::fixed_ports()
    }
}

/// The context for binding an operator's arguments.
pub struct BindContext {
    /// A session with every function registered and no data.
    pub session: SessionContext,
    /// The schemas of the input tables by port name.
    pub inputs: BTreeMap<String, TableSchema>,
    /// The folder of the workflow file; relative paths start here.
    pub base: PathBuf,
    /// The folder for files that are fetched to learn their schema.
    pub downloads: PathBuf,
    /// The facts that `galeras.lock` pins.
    pub pins: Arc<Pins>,
    /// The step's registration, if the workflow's `prereg` names it.
    pub registration: Option<Arc<Registration>>,
    /// The user's consent; needed to fetch a file to learn its schema.
    pub consent: Arc<dyn Consent>,
}

impl BindContext {
    /// The schema of the input of an operator with [`InputPorts::One`](super::InputPorts::One).
    pub fn input(&self) -> TableSchema {
        self.inputs.get(INPUT).cloned().unwrap_or_default()
    }
}

/// The name of the only input port of most operators.
pub const INPUT: &str = "input";

/// The schema key for the language of an argument that is code: `sql` or `shell`. Params enter such
/// a text as literals and as quoted words. Set by `#[schemars(extend("x-language" = "sql"))]`.
pub const ARGUMENT_LANGUAGE: &str = "x-language";

/// The JSON Schema of `T`, with every reference replaced by its subschema.
pub fn args_schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Reads arguments that were checked against the schema; mistakes that the schema cannot express
/// are reported for the step as a whole.
pub fn parse_args<T: DeserializeOwned>(args: &Value) -> Result<T, Vec<ArgError>> {
    serde_json::from_value(args.clone())
        .map_err(|error| vec![ArgError::new("", Code::WrongType, error.to_string())])
}

/// The operators that workflows may name.
#[derive(Clone, Copy)]
pub struct Registry {
    operators: &'static [&'static dyn Operator],
}

impl Registry {
    /// Creates a registry of operators, which must have different names.
    pub const fn new(operators: &'static [&'static dyn Operator]) -> Self {
        Self { operators }
    }

    /// The operator of that name.
    pub fn get(&self, name: &str) -> Option<&'static dyn Operator> {
        self.iter().find(|op| op.descriptor().name == name)
    }

    /// All operators, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn Operator> {
        self.operators.iter().copied()
    }
}
