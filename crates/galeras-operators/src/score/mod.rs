//! `score`: compares predictions with their references.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::dataframe::DataFrame;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::functions_nested::expr_fn::{array_element, make_array};
use datafusion::logical_expr::{Expr, lit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_metrics::codebleu;
use galeras_operator::columns::{is_text, require_column, text_field};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Entry, Grain, InputPorts, Lowering, MAIN,
    Operator, Port, Ports, RowStep, StepError, TableSchema, TypedOperator, args_schema, describe,
};
use galeras_sql::functions::call;
use galeras_sql::functions::scores::{
    BEGINS, BEGINS_DISTANCE, BleuSmooth, CORPUS_FIELDS, COUNTS, CorpusScores, Metric, ScoreColumn,
    ScoreContinuation, ScoreMode, ScorePair, ScoreSpec, Tokenize, count_of_counts,
};
use galeras_sql::projection::{keep_hidden, project};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The column with the right text.
    reference: String,
    /// The column with the text that is scored.
    #[serde(default = "prediction")]
    prediction: String,
    /// The column with the text that the model was shown and that the reference begins with: only
    /// what comes after it is scored, in reference and prediction alike. It adds the columns `begins`
    /// and `begins_distance`.
    #[serde(default)]
    given: Option<String>,
    /// Put before the names of the columns, to have scores of two kinds in one table.
    #[serde(default)]
    prefix: String,
    /// The scores, each once.
    #[serde(default = "all_metrics")]
    metrics: Vec<Metric>,
    /// The implementation to follow where they differ.
    #[serde(default)]
    mode: ScoreMode,
    /// The columns that divide the rows of the port `corpus` into groups.
    #[serde(default)]
    by: Vec<String>,
    /// How BLEU splits texts.
    #[serde(default)]
    bleu_tokenize: Tokenize,
    /// The smoothing of BLEU for orders without a match.
    #[serde(default)]
    bleu_smooth: BleuSmooth,
    /// The shares of CodeBLEU's components: n-grams, weighted n-grams, syntax, data flow.
    #[serde(default = "equal_weights")]
    codebleu_weights: Vec<f64>,
}

fn prediction() -> String {
    "prediction".into()
}

fn all_metrics() -> Vec<Metric> {
    Metric::all().collect()
}

fn equal_weights() -> Vec<f64> {
    codebleu::EQUAL_WEIGHTS.to_vec()
}

struct ScoreOperator;

/// The operator.
pub const SCORE: &dyn Operator = &ScoreOperator;

impl TypedOperator for ScoreOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "score",
        version: 3,
        grain: Grain::of::<BoundScore, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        require_column(cx, "reference", &args.reference, "utf8", is_text, &mut errors);
        require_column(cx, "prediction", &args.prediction, "utf8", is_text, &mut errors);
        if let Some(given) = &args.given {
            require_column(cx, "given", given, "utf8", is_text, &mut errors);
        }
        let input = cx.input();
        for (at, name) in args.by.iter().enumerate() {
            let path = format!("by[{at}]");
            require_column(cx, &path, name, "a group", |_| true, &mut errors);
            if CORPUS_FIELDS.contains(&name.as_str()) {
                let message = format!("the port `corpus` already has a column `{name}`");
                errors.push(ArgError::new(path.as_str(), Code::ConflictingArguments, message));
            }
            if args.by[..at].contains(name) {
                let message = format!("`{name}` is named twice");
                errors.push(ArgError::new(path, Code::ConflictingArguments, message));
            }
        }
        if args.metrics.is_empty() {
            errors.push(ArgError::new("metrics", Code::OutOfRange, "at least one score is needed"));
        }
        for (at, metric) in args.metrics.iter().enumerate() {
            if args.metrics[..at].contains(metric) {
                let message = format!("`{}` is named twice", metric.name());
                let path = format!("metrics[{at}]");
                errors.push(ArgError::new(path, Code::ConflictingArguments, message));
            }
        }
        let weights = weights(&args.codebleu_weights, &mut errors);
        ArgError::none(errors)?;
        let spec = ScoreSpec {
            metrics: args.metrics.clone(),
            mode: args.mode,
            bleu_tokenize: args.bleu_tokenize,
            bleu_smooth: args.bleu_smooth,
            codebleu_weights: weights,
        };
        let ports = vec![
            Port::new(MAIN, input.extended(&added(&spec, &args), &[], Some(PREFIX_HELP))?),
            Port::new(CORPUS, corpus(&input, &args.by)),
        ];
        Ok(Box::new(BoundScore { args, spec, ports }))
    }
}

/// The shares of CodeBLEU's components, scaled to a sum of 1.
fn weights(given: &[f64], errors: &mut Vec<ArgError>) -> [f64; 4] {
    let mut refuse = |message: &str| {
        errors.push(ArgError::new("codebleu_weights", Code::OutOfRange, message));
        codebleu::EQUAL_WEIGHTS
    };
    let Ok(weights) = <[f64; 4]>::try_from(given) else {
        return refuse("`codebleu_weights` needs four numbers, one per component");
    };
    if weights.iter().any(|weight| !weight.is_finite() || *weight < 0.0) {
        return refuse("weights must be 0 or more");
    }
    let total: f64 = weights.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return refuse("at least one weight must be more than 0");
    }
    // Unchanged if no scaling is needed: 0.1 + 0.2 + 0.3 + 0.4 is not exactly 1.
    if (total - 1.0).abs() < 1e-9 { weights } else { weights.map(|weight| weight / total) }
}

const PREFIX_HELP: &str = "give the new ones other names: `prefix: second_`";

/// The port with the scores of the whole corpus.
const CORPUS: &str = "corpus";

fn added(spec: &ScoreSpec, args: &Args) -> Vec<FieldRef> {
    let columns = spec.metrics.iter().flat_map(|metric| metric.columns);
    let named = |name: &str| format!("{}{name}", args.prefix);
    let field = |column: &ScoreColumn| {
        describe(&named(column.name), column.data_type(), true, column.about, column.unit)
    };
    let mut fields: Vec<FieldRef> = columns.map(field).collect();
    if args.given.is_some() {
        let about = "the beginning of the prediction: verbatim, changed, continuation or other";
        fields.push(describe(&named(BEGINS), DataType::Utf8, true, about, None));
        let about = "its edit distance from the given text, as a share of the given tokens";
        fields.push(describe(&named(BEGINS_DISTANCE), DataType::Float64, true, about, None));
    }
    fields
}

fn corpus(input: &TableSchema, by: &[String]) -> TableSchema {
    let groups: Vec<FieldRef> = by.iter().filter_map(|name| input.field(name).cloned()).collect();
    let mut key: Vec<&str> = by.iter().map(String::as_str).collect();
    key.push("metric");
    TableSchema::default()
        .with(&groups)
        .with(&[
            text_field("metric", "the score"),
            describe("value", DataType::Float64, true, "of all rows as one text", None),
            describe("rows", DataType::Int64, false, "rows that have the score", Some("rows")),
        ])
        .keyed(&key)
}

#[derive(Debug)]
struct BoundScore {
    args: Args,
    spec: ScoreSpec,
    ports: Vec<Port>,
}

const STRUCT: &str = "__scores";

impl BoundScore {
    fn literal(&self) -> Expr {
        lit(serde_json::to_string(&self.spec).unwrap_or_default())
    }

    fn corpus(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let of_row = || get_field(column(STRUCT), COUNTS);
        let groups: Vec<Expr> = self.args.by.iter().map(|name| column(name)).collect();
        let names: Vec<String> = (0..count_of_counts()).map(|at| format!("__sum{at}")).collect();
        let mut sums: Vec<Expr> = names
            .iter()
            .enumerate()
            .map(|(at, name)| sum(array_element(of_row(), lit(at as i64 + 1))).alias(name))
            .collect();
        sums.push(count(of_row()).alias(ROWS));
        let sums = rows.filter(of_row().is_not_null())?.aggregate(groups.clone(), sums)?;
        let all = make_array(names.iter().map(|name| column(name)).collect());
        let scores = call::<CorpusScores>(vec![self.literal(), column(ROWS), all]);
        let mut columns = groups;
        columns.push(scores.alias(STRUCT));
        let scores = sums.select(columns)?.unnest_columns(&[STRUCT])?;
        let scores = scores.filter(column(STRUCT).is_not_null())?;
        let fields = CORPUS_FIELDS.map(|name| (name, get_field(column(STRUCT), name)));
        project(scores, &self.ports[1].table, fields.to_vec())
    }
}

const ROWS: &str = "__rows";

impl BoundStep for BoundScore {
    fn args(&self) -> Value {
        let mut args = serde_json::json!({
            "reference": self.args.reference,
            "prediction": self.args.prediction,
            "spec": self.spec,
            "by": self.args.by,
        });
        // Only added if used, so that the keys of other results stay the same.
        if let Some(given) = &self.args.given {
            args["given"] = given.as_str().into();
        }
        if !self.args.prefix.is_empty() {
            args["prefix"] = self.args.prefix.as_str().into();
        }
        args
    }

    fn recipe_args(&self) -> Option<Value> {
        let mut args = BoundStep::args(self);
        args.as_object_mut().and_then(|args| args.remove("by"));
        Some(args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

impl RowStep for BoundScore {
    fn reads(&self) -> Vec<String> {
        let mut read = vec![self.args.reference.clone()];
        for column in std::iter::once(&self.args.prediction).chain(&self.args.given) {
            if !read.contains(column) {
                read.push(column.clone());
            }
        }
        read
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let texts = [column(&self.args.reference), column(&self.args.prediction)];
        let scores = match &self.args.given {
            None => call::<ScorePair>([vec![self.literal()], texts.into()].concat()),
            Some(given) => call::<ScoreContinuation>(
                [vec![self.literal(), column(given)], texts.into()].concat(),
            ),
        };
        keep_hidden(rows, vec![scores.alias(STRUCT)])
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let names = self.spec.metrics.iter().flat_map(|metric| metric.columns);
        let given = self.args.given.iter().flat_map(|_| [BEGINS, BEGINS_DISTANCE]);
        let names: Vec<(String, &str)> = names
            .map(|column| column.name)
            .chain(given)
            .map(|name| (format!("{}{name}", self.args.prefix), name))
            .collect();
        let produced = names
            .iter()
            .map(|(column_name, name)| (column_name.as_str(), get_field(column(STRUCT), *name)));
        let produced = produced.collect();
        Ok(vec![
            (MAIN, project(rows.clone(), &self.ports[0].table, produced)?),
            (CORPUS, self.corpus(rows)?),
        ])
    }
}
