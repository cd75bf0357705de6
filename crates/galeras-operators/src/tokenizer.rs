//! `tokenizer`: learns a byte-level BPE from a column; the model is a table of one row.

use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use futures::StreamExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::typed_rows;
use galeras_base::small_file::{self, MAX_MODEL_BYTES};
use galeras_operator::columns::{is_text, require_column, text_field};
use galeras_operator::worker_threads::{on_thread, pool};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, Operator, Port, Ports, Reads, StepError, TableSchema, TableStep,
    TypedOperator, args_schema, describe, take_input,
};
use galeras_sql::functions::bpe::{self, Bpe, BpeError, MIN_VOCAB};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The column with the texts to learn from.
    column: String,
    /// The most tokens that the vocabulary may have, 256 of which are the bytes.
    #[serde(default = "vocab_size")]
    #[schemars(range(min = 256, max = 1_000_000))]
    vocab_size: usize,
    /// The kind of model.
    #[serde(default)]
    kind: Kind,
}

fn vocab_size() -> usize {
    1024
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Byte-pair encoding of the UTF-8 bytes, as GPT-2 uses it.
    #[default]
    ByteBpe,
}

struct TokenizerOperator;

/// The operator.
pub const TOKENIZER: &dyn Operator = &TokenizerOperator;

impl TypedOperator for TokenizerOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "tokenizer",
        version: 2,
        grain: Grain::of::<BoundTokenizer, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("tokenizer.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        require_column(cx, "column", &args.column, "text", is_text, &mut errors);
        if !(MIN_VOCAB..=1_000_000).contains(&args.vocab_size) {
            let message = format!(
                "`vocab_size` must be between {MIN_VOCAB} (one token per byte) and 1000000"
            );
            errors.push(ArgError::new("vocab_size", Code::OutOfRange, message));
        }
        ArgError::none(errors)?;
        let table = TableSchema::default()
            .with(&[
                text_field("kind", "the kind of model"),
                describe("vocab_size", DataType::Int64, false, "tokens", Some("tokens")),
                describe("texts", DataType::Int64, false, "texts it was learned from", None),
                text_field(MODEL, "the content of a tokenizer.json"),
            ])
            .keyed(&["kind"]);
        Ok(Box::new(BoundTokenizer { args, ports: vec![Port::new(MODEL, table)] }))
    }
}

#[derive(Debug)]
struct BoundTokenizer {
    args: Args,
    ports: Vec<Port>,
}

impl BoundStep for BoundTokenizer {
    fn args(&self) -> Value {
        json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        Reads::Columns(vec![self.args.column.clone()])
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// The port and the column with the content of the `tokenizer.json`.
pub(super) const MODEL: &str = "model";

const QUEUE: usize = 4;

impl TableStep for BoundTokenizer {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            let mut stream =
                input.select(vec![column(&self.args.column)])?.execute_stream().await?;
            let (send, mut batches) = mpsc::channel::<RecordBatch>(QUEUE);
            let (jobs, vocab_size) = (cx.env.jobs, self.args.vocab_size);
            let learning = on_thread(move || {
                let mut texts = 0i64;
                let pool = pool(jobs)?;
                let received = std::iter::from_fn(|| batches.blocking_recv());
                let texts_of = |batch: RecordBatch| {
                    let column = batch.column(0).as_string::<i32>();
                    let texts: Vec<String> = column.iter().flatten().map(str::to_string).collect();
                    texts
                };
                let all = received.flat_map(texts_of).inspect(|_| texts += 1);
                let bpe = pool.install(|| bpe::train(all, vocab_size)).map_err(bad_model)?;
                Ok::<_, StepError>((bpe, texts))
            });
            let feeding = async move {
                while let Some(batch) = stream.next().await {
                    // A closed channel means that the thread has failed; its error follows.
                    if send.send(batch?).await.is_err() {
                        break;
                    }
                }
                Ok(())
            };
            let ((bpe, texts), ()) = tokio::try_join!(learning, feeding)?;
            let row = json!({
                "kind": "byte_bpe",
                "vocab_size": bpe.vocab_size(),
                "texts": texts,
                MODEL: bpe.to_json().map_err(bad_model)?,
            });
            Ok(vec![(MODEL, typed_rows::table(&cx.session, &self.ports[0].table.stored(), [row])?)])
        })
    }
}

/// The model in the table of a step `tokenizer`.
pub(super) async fn model(table: DataFrame) -> Result<Bpe, StepError> {
    let rows = table.select(vec![column(MODEL)])?.collect().await?;
    let mut texts = rows.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter());
    match (texts.next(), texts.next()) {
        (Some(Some(json)), None) => Bpe::from_json(json).map_err(bad_model),
        _ => Err(StepError::new("the port `tokenizer` takes one row with a `model`")),
    }
}

/// The model in a `tokenizer.json`.
pub(super) fn read_model(path: &Path) -> Result<Bpe, StepError> {
    let shown = path.display();
    let content = small_file::read(path, MAX_MODEL_BYTES)
        .map_err(|error| StepError::new(format!("cannot read {shown}: {error}")).because(error))?;
    let no_tokenizer =
        |why: &dyn std::fmt::Display| StepError::new(format!("{shown} is not a tokenizer: {why}"));
    let json = String::from_utf8(content).map_err(|error| no_tokenizer(&error))?;
    Bpe::from_json(&json).map_err(|error| no_tokenizer(&error))
}

fn bad_model(error: BpeError) -> StepError {
    StepError::new(error.to_string())
}
