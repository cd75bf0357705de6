//! `taxonomy`: the token categories of the Galeras paper.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::dataframe::DataFrame;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::lit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_operator::columns::{is_text, require_column};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, Lowering, MAIN,
    Operator, Port, Ports, RowStep, StepError, TypedOperator, args_schema, describe,
};
use galeras_python::CATEGORIES;
use galeras_sql::functions::{PythonTaxonomy, TokenTaxonomy, call};
use galeras_sql::projection::{keep_hidden, project};
use galeras_sql::session::column;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The column with the Python text, or with its tokens (`tokens: bpe`).
    column: String,
    /// The tokens that are counted: those of Python, or of a tokenizer.
    #[serde(default)]
    tokens: Tokens,
    /// Put before the names of the columns, to have the counts of two texts in one table.
    #[serde(default)]
    prefix: String,
    /// The lists of tokens: corrected, or as published.
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Python's tokens, each in one category.
    #[default]
    Correct,
    /// The published lists, member for member: Java's names count, `elif` or `def` do not, and
    /// some tokens count twice.
    Compat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tokens {
    /// Python's tokens in a text.
    #[default]
    Python,
    /// The tokens of a tokenizer in a list, as the function `bpe_tokens` of `sql` returns it.
    Bpe,
}

fn is_list_of_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(item) if is_text(item.data_type()))
}

struct TaxonomyOperator;

/// The operator.
pub const TAXONOMY: &dyn Operator = &TaxonomyOperator;

impl TypedOperator for TaxonomyOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "taxonomy",
        version: 1,
        grain: Grain::of::<BoundTaxonomy, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("taxonomy.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        match args.tokens {
            Tokens::Python => {
                require_column(cx, "column", &args.column, "utf8", is_text, &mut errors);
            }
            Tokens::Bpe => {
                let wanted = "a list of texts (that of `bpe_tokens` in `sql`)";
                require_column(cx, "column", &args.column, wanted, is_list_of_text, &mut errors);
            }
        }
        ArgError::none(errors)?;
        let counts = CATEGORIES.iter().map(|name| {
            let about = format!("tokens of the category {name}");
            let name = format!("{}{name}", args.prefix);
            describe(&name, DataType::Int64, true, &about, Some("tokens"))
        });
        let help = "give the new ones other names: `prefix: second_`";
        let table = cx.input().extended(&counts.collect::<Vec<FieldRef>>(), &[], Some(help))?;
        Ok(Box::new(BoundTaxonomy { args, ports: vec![Port::new(MAIN, table)] }))
    }
}

#[derive(Debug)]
struct BoundTaxonomy {
    args: Args,
    ports: Vec<Port>,
}

impl BoundStep for BoundTaxonomy {
    fn args(&self) -> Value {
        let mut args = serde_json::json!(self.args);
        // Only part of the key if used, so that the keys of other results stay the same.
        if self.args.tokens == Tokens::Python
            && let Some(args) = args.as_object_mut()
        {
            args.remove("tokens");
        }
        args
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

const STRUCT: &str = "__taxonomy";

impl RowStep for BoundTaxonomy {
    fn reads(&self) -> Vec<String> {
        vec![self.args.column.clone()]
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let published = lit(self.args.mode == Mode::Compat);
        let arguments = vec![column(&self.args.column), published];
        let counts = match self.args.tokens {
            Tokens::Python => call::<PythonTaxonomy>(arguments),
            Tokens::Bpe => call::<TokenTaxonomy>(arguments),
        };
        keep_hidden(rows, vec![counts.alias(STRUCT)])
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let names: Vec<String> =
            CATEGORIES.iter().map(|name| format!("{}{name}", self.args.prefix)).collect();
        let counts = names.iter().zip(CATEGORIES);
        let counts = counts.map(|(name, field)| (name.as_str(), get_field(column(STRUCT), field)));
        Ok(vec![(MAIN, project(rows, &self.ports[0].table, counts.collect())?)])
    }
}
