//! `dedup`: near-duplicates by Jaccard similarity; one row of each cluster is kept.
//!
//! Here are the arguments and the order of the parts: `tables` has the columns of the ports, `read`
//! reads tokens, `decide` chooses the rows to keep, `against` and `near` compare with another
//! table, and `galeras_similarity` has the joins.

mod against;
mod decide;
mod near;
mod read;
mod tables;

use std::path::PathBuf;

use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, JoinType};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::against::{AGAINST, Against, AgainstIds};
use self::decide::{Decided, decide};
use self::read::{limits, read, tokenizer};
use self::tables::RejectedRow;
use super::tokenizer::{MODEL, read_model};
use super::typed_rows;
use galeras_base::digest::Digest;
use galeras_base::id::ID;
use galeras_base::small_file::{self, MAX_MODEL_BYTES};
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::{
    Access, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Grain, INPUT, InputPorts,
    Inputs, LowerContext, Lowering, MAIN, Operator, Port, Ports, REJECTS, Reads, SUMMARY, SideFile,
    StepError, TableStep, args_schema, parse_args, take_input,
};
use galeras_similarity::{PairSearch, Thresholds, expected_recall};
use galeras_sql::projection::project;
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The column with the texts to compare.
    column: String,
    /// The least Jaccard similarity of the sets of tokens, above 0 and at most 1.
    #[serde(default = "threshold")]
    #[schemars(range(min = 0.0, max = 1.0))]
    threshold: f64,
    /// The least Jaccard similarity of the multisets of tokens; 0 for no such condition.
    #[serde(default = "multiset_threshold")]
    #[schemars(range(min = 0.0, max = 1.0))]
    multiset_threshold: f64,
    /// A row with fewer tokens is never a duplicate.
    #[serde(default = "min_tokens")]
    min_tokens: u32,
    /// The tokens by which texts are compared.
    #[serde(default)]
    tokens: Tokens,
    /// `keep` counts Python's keywords as words.
    #[serde(default)]
    keywords: Keywords,
    /// A `tokenizer.json` for `tokens: bpe`, instead of the port `tokenizer`.
    #[serde(default)]
    tokenizer_file: Option<String>,
    /// How similar rows are found.
    #[serde(default)]
    method: SearchMethod,
    /// The columns by which the first row of a cluster is found; ties go by `id`.
    #[serde(default)]
    order_by: Vec<String>,
    /// The row of a cluster that is kept.
    #[serde(default)]
    keep: Keep,
    /// The rows that form a cluster: all that are connected, or a kept row and the rows similar to
    /// it.
    #[serde(default)]
    cluster: Clustering,
    /// The column of `against` with the texts; `column` if absent.
    #[serde(default)]
    against_column: Option<String>,
    /// The column of `against` that names a row in `near_to`; `id` if absent.
    #[serde(default)]
    against_id: Option<String>,
    /// A column of `against` whose value goes to `near_to_source`, such as the table of a row.
    #[serde(default)]
    against_source: Option<String>,
    /// The rows of `against` that a row is compared with, by their `against_id`; `any` if absent.
    #[serde(default)]
    against_ids: Option<AgainstIds>,
    /// The least Jaccard similarity of the sets with a row of `against`; `threshold` if absent.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    against_threshold: Option<f64>,
    /// The least Jaccard similarity of the multisets with a row of `against`; `multiset_threshold`
    /// if absent.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    against_multiset_threshold: Option<f64>,
    /// The least share of a row's 8-grams that a row of `against` has, 0.7 if absent; 0 for no such
    /// condition.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    containment_8: Option<f64>,
    /// The same for 13-grams, 0 if absent.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    containment_13: Option<f64>,
}

fn threshold() -> f64 {
    0.8
}

fn multiset_threshold() -> f64 {
    0.7
}

fn min_tokens() -> u32 {
    20
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tokens {
    /// Identifiers, keywords and other words.
    #[default]
    Word,
    /// The tokens of a tokenizer.
    Bpe,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Keywords {
    /// They are words like others.
    #[default]
    Keep,
    /// They are left out.
    Drop,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SearchMethod {
    /// All similar pairs.
    #[default]
    Exact,
    /// Those that locality-sensitive hashing finds.
    Minhash,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Keep {
    /// The first.
    #[default]
    First,
    /// The last.
    Last,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Clustering {
    /// Rows that are similar, directly or through others, as published.
    #[default]
    Connected,
    /// A kept row and the rows similar to it: a row is kept unless it is similar to a kept one.
    Direct,
}

struct DedupOperator;

/// The operator.
pub const DEDUP: &dyn Operator = &DedupOperator;

/// The port with the members of clusters.
const CLUSTERS: &str = "clusters";
/// The input port for a tokenizer.
const TOKENIZER: &str = "tokenizer";

const DESCRIPTOR: Descriptor = Descriptor {
    name: "dedup",
    version: 1,
    grain: Grain::of::<BoundDedup, _>(),
    effect: Effect::Pure,
    inputs: InputPorts::OneAnd(&[TOKENIZER, AGAINST]),
    doc: include_str!("doc.md"),
    args_schema: args_schema::<Args>,
};

impl Operator for DedupOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            // A param may choose `word` although there is a tokenizer; without a choice the user
            // forgot `bpe`.
            let chosen = args.get("tokens").is_some();
            let args: Args = parse_args(args)?;
            let mut errors = Vec::new();
            require_column(cx, "column", &args.column, "text", is_text, &mut errors);
            let input = cx.input();
            if input.key == [ID] {
                require_column(cx, "", ID, "text", is_text, &mut errors);
            } else if !input.open {
                let message = format!("`dedup` needs a table whose key is `{ID}`");
                let error = ArgError::new("", Code::WrongKey, message);
                errors.push(error.help(format!("the key is {}", input.key.join(", "))));
            }
            for (at, name) in args.order_by.iter().enumerate() {
                let path = format!("order_by[{at}]");
                require_column(cx, &path, name, "a plain value", |t| !t.is_nested(), &mut errors);
            }
            check_share("threshold", args.threshold, true, &mut errors);
            if args.threshold == 0.0
                && let Some(error) = errors.last_mut()
            {
                error.help = Some("with 0 every row would be a duplicate of every other".into());
            }
            check_share("multiset_threshold", args.multiset_threshold, false, &mut errors);
            let against = Against::bind(&args, cx, &mut errors);
            let file = check_tokenizer(&args, chosen, cx, &mut errors);
            ArgError::none(errors)?;
            let rejects = tables::rejects(&input, against.as_ref());
            let ports = vec![
                Port::new(MAIN, input),
                Port::new(REJECTS, rejects),
                Port::new(CLUSTERS, tables::clusters()),
                Port::new(SUMMARY, tables::summary(against.as_ref())),
            ];
            Ok(Box::new(BoundDedup { args, against, file, ports }) as Box<dyn BoundStep>)
        })
    }
}

/// A threshold is a share; that of sets is above 0.
fn check_share(name: &str, share: f64, of_sets: bool, errors: &mut Vec<ArgError>) {
    if !(0.0..=1.0).contains(&share) || (of_sets && share == 0.0) {
        let range = if of_sets { "above 0 and at most 1" } else { "between 0 and 1" };
        errors.push(ArgError::new(name, Code::OutOfRange, format!("`{name}` must be {range}")));
    }
}

/// Checks that exactly the needed tokenizer is given; the path of its file.
fn check_tokenizer(
    args: &Args,
    chosen: bool,
    cx: &BindContext,
    errors: &mut Vec<ArgError>,
) -> Option<PathBuf> {
    let port = cx.inputs.get(TOKENIZER);
    if let Some(table) = port
        && !(table.open && table.field(MODEL).is_none())
        && table.field(MODEL).is_none_or(|field| !is_text(field.data_type()))
    {
        let message = format!("the input `{TOKENIZER}` has no text column `{MODEL}`");
        let error = ArgError::new("", Code::WrongInputs, message);
        errors.push(error.help("give it the result of a `tokenizer` step"));
    }
    let given = usize::from(port.is_some()) + usize::from(args.tokenizer_file.is_some());
    match (args.tokens, given) {
        (Tokens::Bpe, 0) => {
            let message = "`tokens: bpe` needs a tokenizer";
            let help = "add `tokenizer: <step>` under `from`, or `tokenizer_file`";
            errors.push(ArgError::new("tokens", Code::MissingArgument, message).help(help));
        }
        (Tokens::Bpe, 2) => {
            let message = "give either the port `tokenizer` or `tokenizer_file`, not both";
            errors.push(ArgError::new("tokenizer_file", Code::ConflictingArguments, message));
        }
        (Tokens::Word, 1..) if !chosen || args.tokenizer_file.is_some() => {
            let message = "`tokens: word` needs no tokenizer";
            let help = "write `tokens: bpe` to compare by the tokenizer's tokens";
            errors.push(ArgError::new("tokens", Code::ConflictingArguments, message).help(help));
        }
        _ => {}
    }
    if args.tokens == Tokens::Bpe && args.keywords == Keywords::Drop {
        let message = "`keywords: drop` goes with `tokens: word`";
        errors.push(ArgError::new("keywords", Code::ConflictingArguments, message));
    }
    let name = args.tokenizer_file.as_ref()?;
    let path = cx.base.join(name);
    if !path.is_file() {
        let message = format!("there is no file `{name}`");
        errors.push(ArgError::missing_file("tokenizer_file", message, &cx.base, name));
    } else if (args.tokens, given) == (Tokens::Bpe, 1)
        && let Err(error) = read_model(&path)
    {
        errors.push(ArgError::new("tokenizer_file", Code::BadFile, error.to_string()));
    }
    Some(path)
}

#[derive(Debug)]
struct BoundDedup {
    args: Args,
    against: Option<Against>,
    file: Option<PathBuf>,
    ports: Vec<Port>,
}

impl BoundStep for BoundDedup {
    fn args(&self) -> Value {
        let mut args = serde_json::json!(self.args);
        // The file's content counts, not its path.
        if self.args.tokenizer_file.is_some() {
            args["tokenizer_file"] = Value::Bool(true);
        }
        // Only part of the key if used, so that the keys of other results stay the same.
        if self.args.cluster == Clustering::Connected
            && let Some(args) = args.as_object_mut()
        {
            args.remove("cluster");
        }
        Against::resolve(self.against.as_ref(), &mut args);
        args
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, input: &str) -> Reads {
        match (input, &self.against) {
            (TOKENIZER, _) if self.args.tokens == Tokens::Word => Reads::Columns(Vec::new()),
            (TOKENIZER, _) => Reads::Columns(vec![MODEL.to_string()]),
            (AGAINST, Some(against)) => Reads::Columns(against.reads()),
            _ => Reads::All,
        }
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        let (Some(path), Some(name)) = (&self.file, &self.args.tokenizer_file) else {
            return Ok(Vec::new());
        };
        let content = small_file::read(path, MAX_MODEL_BYTES).map_err(|e| {
            StepError::new(format!("cannot read {}: {e}", path.display())).because(e)
        })?;
        Ok(vec![SideFile { name: name.clone(), digest: Digest::of(&content) }])
    }

    fn demands(&self) -> Vec<Demand> {
        let read = |path: &PathBuf| Access::Read { path: path.clone() };
        self.file.iter().map(|path| Demand::new("tokenizer_file", read(path))).collect()
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        self.file.iter().map(|path| ("tokenizer_file".to_string(), path.clone())).collect()
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl BoundDedup {
    fn thresholds(&self) -> Thresholds {
        Thresholds {
            set: self.args.threshold,
            multiset: self.args.multiset_threshold,
            min_tokens: self.args.min_tokens,
        }
    }

    /// The search, and the recall that is expected of it.
    fn method(&self) -> (PairSearch, f64) {
        match self.args.method {
            SearchMethod::Exact => (PairSearch::Exact, 1.0),
            SearchMethod::Minhash => (PairSearch::MinHash, expected_recall(self.args.threshold)),
        }
    }
}

fn similarity_error(error: galeras_similarity::SimilarityError) -> StepError {
    let vocabulary = matches!(error, galeras_similarity::SimilarityError::Vocabulary { .. });
    let error = StepError::new(error.to_string()).because(error);
    if vocabulary {
        return error.help("allow more with `galeras run --memory`, or use `tokens: bpe`");
    }
    error
}

impl TableStep for BoundDedup {
    fn bounded(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            let model = inputs.remove(TOKENIZER).filter(|_| self.args.tokens == Tokens::Bpe);
            let bpe = tokenizer(self, model).await?;
            let limits = limits(cx)?;
            // The small table is on the left: rows of the input are looked up in it and keep their
            // order.
            let id = hidden(ID);
            let (here, there) = ([id.as_str()], [ID]);
            let mut rest = input.clone();
            let (mut near, mut counts) = (Vec::new(), None);
            if let Some(against) = &self.against {
                let other = take_input(&mut inputs, AGAINST)?;
                let tables = (input.clone(), other);
                let found = near::find(self, cx, against, tables, bpe.as_ref(), &limits).await?;
                let ids = self.rejected(cx, &found.0)?;
                rest = ids.join(rest, JoinType::RightAnti, &here, &there, None)?;
                (near, counts) = (found.0, Some(found.1));
            }
            let corpus = read(self, cx, rest.clone(), bpe, limits).await?;
            let Decided { mut rejected, clusters, summary } =
                decide(self, cx, rest, corpus, counts).await?;
            rejected.extend(near);
            let small = self.rejected(cx, &rejected)?;
            let kept =
                small.clone().join(input.clone(), JoinType::RightAnti, &here, &there, None)?;
            let others = small.join(input, JoinType::Inner, &here, &there, None)?;
            let added = tables::rejected_schema(self.against.as_ref());
            let added = added.fields().iter().map(|field| field.name().as_str());
            let added = added.filter(|name| *name != ID);
            let values = added.map(|name| (name, column(&hidden(name)))).collect();
            Ok(vec![
                (MAIN, kept),
                (REJECTS, project(others, &self.ports[1].table, values)?),
                (CLUSTERS, clusters),
                (SUMMARY, summary),
            ])
        })
    }
}

impl BoundDedup {
    /// A small table of rejected rows, with hidden names, since the input may use others.
    fn rejected(&self, cx: &LowerContext, rows: &[RejectedRow]) -> Result<DataFrame, StepError> {
        let schema = tables::rejected_schema(self.against.as_ref());
        let names = schema.fields().iter().map(|field| field.name());
        let columns: Vec<Expr> = names.map(|name| column(name).alias(hidden(name))).collect();
        Ok(typed_rows::table(&cx.session, &schema, rows)?.select(columns)?)
    }
}

fn hidden(name: &str) -> String {
    format!("__{name}")
}
