//! `cut`: a random prefix of a method, for completion tasks.

use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{cast, lit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use galeras_base::id::ID;
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::rejects::{reject_table, reject_values};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, Lowering, MAIN,
    Operator, Port, Ports, REJECTS, RowStep, StepError, TypedOperator, args_schema, describe,
};
use galeras_sql::functions::{CUT_REASON, RandomCut, call};
use galeras_sql::projection::{keep_hidden, project, text};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The column with the method's text.
    #[serde(default = "code")]
    column: String,
    /// The seed of the positions.
    seed: i64,
    /// The smallest share of the characters before the cut, out of `share_of`.
    #[serde(default = "min")]
    #[schemars(range(min = 0.0, max = 1.0))]
    min: f64,
    /// The largest share of the characters before the cut, out of `share_of`.
    #[serde(default = "max")]
    #[schemars(range(min = 0.0, max = 1.0))]
    max: f64,
    /// The boundaries at which a cut may be.
    #[serde(default)]
    at: At,
    /// The part that the cut must come after.
    #[serde(default)]
    after: After,
    /// The text that the share refers to.
    #[serde(default)]
    share_of: ShareOf,
}

fn code() -> String {
    "code".into()
}

fn min() -> f64 {
    0.4
}

fn max() -> f64 {
    0.65
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum At {
    /// Before a space.
    #[default]
    Space,
    /// Before a token.
    Token,
    /// Before a line.
    Line,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum After {
    /// The colon of the signature.
    #[default]
    Signature,
    /// The docstring; the signature, where there is none.
    Docstring,
    /// Nothing: the signature may be cut too.
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ShareOf {
    /// The whole text.
    #[default]
    Text,
    /// The text after the position that `after` names.
    Rest,
}

struct CutOperator;

/// The operator.
pub const CUT: &dyn Operator = &CutOperator;

impl TypedOperator for CutOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "cut",
        version: 4,
        grain: Grain::of::<BoundCut, _>(),
        effect: Effect::Seeded,
        inputs: InputPorts::One,
        doc: include_str!("cut.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        require_column(cx, "column", &args.column, "utf8", is_text, &mut errors);
        require_column(cx, "", ID, "an id", |_| true, &mut errors);
        for (path, value) in [("min", args.min), ("max", args.max)] {
            if !(0.0..=1.0).contains(&value) {
                let message = "a share must be between 0 and 1";
                errors.push(ArgError::new(path, Code::OutOfRange, message));
            }
        }
        if args.min > args.max {
            let message = format!("`min` ({}) is larger than `max` ({})", args.min, args.max);
            errors.push(ArgError::new("min", Code::OutOfRange, message));
        }
        ArgError::none(errors)?;
        let input = cx.input();
        let added = [
            describe("random_cut", DataType::Utf8, true, "the text before the cut", None),
            describe("cut_rest", DataType::Utf8, true, "the text after the cut", None),
            describe("cut_at", DataType::Int64, true, "length before the cut", Some("characters")),
        ];
        let cut = input.extended(&added, &[], None)?;
        let ports = vec![Port::new(MAIN, cut), Port::new(REJECTS, reject_table(&input))];
        Ok(Box::new(BoundCut { args, ports }))
    }
}

#[derive(Debug)]
struct BoundCut {
    args: Args,
    ports: Vec<Port>,
}

const STRUCT: &str = "__cut";

impl BoundStep for BoundCut {
    fn args(&self) -> Value {
        json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

impl RowStep for BoundCut {
    fn is_light(&self) -> bool {
        true
    }

    fn reads(&self) -> Vec<String> {
        vec![ID.to_string(), self.args.column.clone()]
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        // The words of the arguments are those of the function.
        let word = |value: Value| lit(value.as_str().unwrap_or_default());
        let cut = call::<RandomCut>(vec![
            column(&self.args.column),
            cast(column(ID), DataType::Utf8),
            lit(self.args.seed),
            lit(self.args.min),
            lit(self.args.max),
            word(json!(self.args.at)),
            word(json!(self.args.after)),
            word(json!(self.args.share_of)),
        ]);
        keep_hidden(rows, vec![cut.alias(STRUCT)])
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let field = |name: &'static str| get_field(column(STRUCT), name);
        let kept = rows.clone().filter(field(CUT_REASON).is_null())?;
        let rejected = rows.filter(field(CUT_REASON).is_not_null())?;
        let produced =
            ["random_cut", "cut_rest", "cut_at"].map(|name| (name, field(name))).to_vec();
        let reject = reject_values(text("cut"), field(CUT_REASON));
        Ok(vec![
            (MAIN, project(kept, &self.ports[0].table, produced)?),
            (REJECTS, project(rejected, &self.ports[1].table, reject)?),
        ])
    }
}
