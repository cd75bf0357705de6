//! Typed arguments: the JSON Schema of a spec struct, and its reading from checked values.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ArgError;
use galeras_workflow::code::Code;

/// The key under which the schema of an argument says what its text is: `sql` or `shell`. Params
/// enter such a text as literals and as quoted words. Given by
/// `#[schemars(extend("x-language" = "sql"))]`.
pub const ARGUMENT_LANGUAGE: &str = "x-language";

/// The JSON Schema of `T`, with every subschema in place of a reference.
pub fn args_schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Reads arguments that were checked against the schema; what the schema cannot say is
/// reported for the step as a whole.
pub fn parse_args<T: DeserializeOwned>(args: &Value) -> Result<T, Vec<ArgError>> {
    serde_json::from_value(args.clone())
        .map_err(|error| vec![ArgError::new("", Code::WrongType, error.to_string())])
}
