//! `ast`: syntax-tree and text features of methods.

use datafusion::dataframe::DataFrame;
use datafusion::functions::core::expr_fn::get_field;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_operator::columns::{is_text, require_column};
use galeras_operator::rejects::{reject_table, reject_values};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, Lowering, MAIN,
    Operator, Port, Ports, REJECTS, RowStep, StepError, TypedOperator, args_schema,
};
use galeras_sql::functions::{PythonFeatures, call, features_type};
use galeras_sql::projection::{keep_hidden, project, text};
use galeras_sql::session::column;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Args {
    /// The column with the method's text.
    column: String,
    /// The language of the text.
    language: Language,
    /// The features to add, in this order; all of them if absent.
    features: Option<Vec<Feature>>,
}

impl Default for Args {
    fn default() -> Self {
        Self { column: "code".into(), language: Language::Python, features: None }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    Python,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Feature {
    Signature,
    Docstring,
    DNWords,
    CodeNoDocstring,
    AstErrors,
    NAstErrors,
    AstLevels,
    NAstNodes,
    NIdentifiers,
    Complexity,
    Nloc,
    TokenCounts,
    NWords,
    VocabSize,
    NWhitespaces,
    NReturns,
    Parameters,
}

struct AstOperator;

/// The operator.
pub const AST: &dyn Operator = &AstOperator;

impl TypedOperator for AstOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "ast",
        version: 2,
        grain: Grain::of::<BoundAst, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("ast.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        require_column(cx, "column", &args.column, "utf8", is_text, &mut errors);
        ArgError::none(errors)?;
        let input = cx.input();
        let all = features_type();
        let chosen: Vec<_> = match &args.features {
            None => all,
            // The features of the list are in the order of the variants.
            Some(list) => list.iter().filter_map(|f| all.get(*f as usize).cloned()).collect(),
        };
        let measured = input.extended(&chosen, &[], None)?;
        let ports = vec![Port::new(MAIN, measured), Port::new(REJECTS, reject_table(&input))];
        let features = chosen.iter().map(|f| f.name().clone()).collect();
        Ok(Box::new(BoundAst { args, features, ports }))
    }
}

#[derive(Debug)]
struct BoundAst {
    args: Args,
    features: Vec<String>,
    ports: Vec<Port>,
}

impl BoundStep for BoundAst {
    fn args(&self) -> Value {
        serde_json::json!({
            "column": self.args.column,
            "language": self.args.language,
            "features": self.features,
        })
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

const STRUCT: &str = "__ast";

impl RowStep for BoundAst {
    fn reads(&self) -> Vec<String> {
        vec![self.args.column.clone()]
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let features = call::<PythonFeatures>(vec![column(&self.args.column)]);
        keep_hidden(rows, vec![features.alias(STRUCT)])
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let reason = || get_field(column(STRUCT), "reason");
        let features = self
            .features
            .iter()
            .map(|name| (name.as_str(), get_field(column(STRUCT), name.as_str())))
            .collect();
        let kept = rows.clone().filter(reason().is_null())?;
        let rejected = rows.filter(reason().is_not_null())?;
        Ok(vec![
            (MAIN, project(kept, &self.ports[0].table, features)?),
            (
                REJECTS,
                project(rejected, &self.ports[1].table, reject_values(text("parse"), reason()))?,
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galeras_sql::functions::FEATURES;

    #[test]
    fn feature_arguments_are_the_columns() {
        let names: Vec<String> = FEATURES.iter().map(|f| f.0.to_string()).collect();
        for (at, name) in names.iter().enumerate() {
            let feature: Feature =
                serde_json::from_value(Value::String(name.clone())).expect("a variant");
            assert_eq!(feature as usize, at, "{name}");
        }
    }
}
