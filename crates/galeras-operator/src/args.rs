//! Typed arguments: the JSON Schema of a spec struct, and reading it from checked values.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ArgError;
use galeras_workflow::code::Code;

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
