//! `few_shot`: other rows as examples for each row.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat_batches, filter_record_batch, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, JoinType, cast, lit};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_base::id::{ID, keyed_hash};
use galeras_base::prose::name_list;
use galeras_operator::columns::is_text;
use galeras_operator::table_digest::type_name;
use galeras_operator::worker_threads::{StopOnDrop, on_thread};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, StepError, TableSchema, TableStep, Tell,
    TypedOperator, args_schema, describe, take_input,
};
use galeras_similarity::TokenRows;
use galeras_sql::functions::{RowId, call};
use galeras_sql::projection::project;
use galeras_sql::session::column;
use galeras_workflow::code::Code;

/// The optional input with the rows that may be examples.
const EXAMPLES: &str = "examples";

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The number of examples for each row.
    #[schemars(range(min = 1, max = 100))]
    k: usize,
    /// The columns of an example.
    #[schemars(length(min = 1))]
    columns: Vec<String>,
    /// How the examples of a row are chosen.
    #[serde(default)]
    choose: Choice,
    /// For `choose: ordered`, the column whose smallest values come first.
    #[serde(default)]
    order_by: Option<String>,
    /// The seed of `random`, and of ties of `nearest`.
    seed: i64,
    /// The column with the texts that are compared.
    #[serde(default = "code")]
    column: String,
    /// Texts with at least this Jaccard similarity of their sets of words are duplicates, and never
    /// examples for each other.
    #[serde(default = "threshold")]
    #[schemars(range(min = 0.0, max = 1.0))]
    threshold: f64,
    /// Columns of which an example must differ from the row in at least one: with `[repo, path]`
    /// it is not of the same file.
    #[serde(default)]
    apart: Vec<String>,
    /// The name of the new column.
    #[serde(default = "shots")]
    name: String,
}

fn code() -> String {
    "code".to_string()
}

fn threshold() -> f64 {
    0.8
}

fn shots() -> String {
    "shots".to_string()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Choice {
    /// Any, drawn for each row.
    #[default]
    Random,
    /// Those with the largest Jaccard similarity of the sets of words.
    Nearest,
    /// The first by `order_by`; ties go by `id`.
    Ordered,
}

struct FewShotOperator;

/// The operator.
pub const FEW_SHOT: &dyn Operator = &FewShotOperator;

impl TypedOperator for FewShotOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "few_shot",
        version: 2,
        grain: Grain::of::<BoundFewShot, _>(),
        effect: Effect::Seeded,
        inputs: InputPorts::OneAnd(&[EXAMPLES]),
        doc: include_str!("few_shot.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let input = cx.input();
        let pool = cx.inputs.get(EXAMPLES).unwrap_or(&input);
        let mut errors = Vec::new();
        if !(1..=100).contains(&args.k) {
            errors.push(ArgError::new("k", Code::OutOfRange, "`k` must be from 1 to 100"));
        }
        if !(args.threshold > 0.0 && args.threshold <= 1.0) {
            let message = "`threshold` must be above 0 and at most 1";
            errors.push(ArgError::new("threshold", Code::OutOfRange, message));
        }
        if args.columns.is_empty() {
            let message = "an example needs columns";
            errors.push(ArgError::new("columns", Code::EmptyList, message));
        }
        let plain = |kind: &DataType| !kind.is_nested();
        for table in cx.inputs.values() {
            errors.extend(problem(table, "", ID, "a plain value", plain));
            errors.extend(problem(table, "column", &args.column, "text", is_text));
            for (at, name) in args.apart.iter().enumerate() {
                errors.extend(problem(
                    table,
                    &format!("apart[{at}]"),
                    name,
                    "a plain value",
                    plain,
                ));
            }
        }
        for (at, name) in args.columns.iter().enumerate() {
            let path = format!("columns[{at}]");
            if args.columns[..at].contains(name) {
                let message = format!("column `{name}` is named twice");
                errors.push(ArgError::new(path, Code::DuplicateColumn, message));
            } else {
                errors.extend(problem(pool, &path, name, "a value", |_| true));
            }
        }
        match (&args.order_by, args.choose) {
            (Some(name), Choice::Ordered) => {
                errors.extend(problem(pool, "order_by", name, "a plain value", plain));
            }
            (None, Choice::Ordered) => {
                let message = "`choose: ordered` needs `order_by`, the column by which";
                errors.push(ArgError::new("choose", Code::MissingArgument, message));
            }
            (Some(_), _) => {
                let message = "`order_by` goes with `choose: ordered`";
                errors.push(ArgError::new("order_by", Code::ConflictingArguments, message));
            }
            (None, _) => {}
        }
        if input.field(&args.name).is_some() {
            let message = format!("the input has a column `{}` already", args.name);
            let error = ArgError::new("name", Code::DuplicateColumn, message);
            errors.push(error.help("give the examples another name: `name: …`"));
        }
        ArgError::none(errors)?;
        let fields: Fields = args
            .columns
            .iter()
            .map(|name| {
                let field = pool.field(name);
                let kind = field.map_or(DataType::Null, |field| field.data_type().clone());
                Field::new(name, kind, true)
            })
            .collect();
        let list = DataType::new_list(DataType::Struct(fields), true);
        let about = "the examples: other rows, the first choice first";
        let table = input.with(&[describe(&args.name, list, false, about, None)]);
        Ok(Box::new(BoundFewShot { args, ports: vec![Port::new(MAIN, table)] }))
    }
}

/// The problem with a column of a table: there is none, or it is of another type.
fn problem(
    table: &TableSchema,
    path: &str,
    name: &str,
    wanted: &str,
    fits: impl Fn(&DataType) -> bool,
) -> Option<ArgError> {
    match table.field(name) {
        None if table.open => None,
        None => Some(ArgError::unknown_column(path, name, table.names())),
        Some(field) if !fits(field.data_type()) => {
            let found = type_name(field.data_type());
            let message = format!("column `{name}` has type {found}, but {wanted} is needed");
            Some(ArgError::new(path, Code::WrongType, message))
        }
        Some(_) => None,
    }
}

#[derive(Debug)]
struct BoundFewShot {
    args: Args,
    ports: Vec<Port>,
}

impl BoundStep for BoundFewShot {
    fn args(&self) -> Value {
        serde_json::json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// Hidden columns: a row's id, its text, what must differ, and the examples.
const ROW: &str = "__row";
const TEXT: &str = "__text";
const APART: &str = "__apart";
const KEY: &str = "__key";
const SHOTS: &str = "__shots";

/// The number of columns of [`BoundFewShot::compared`].
const COMPARED: usize = 3;

/// Rows as they are compared.
struct ComparedRows {
    ids: Vec<String>,
    /// The distinct words of each text, ascending.
    words: Vec<Vec<u128>>,
    /// A text for the values that must differ.
    apart: Vec<String>,
}

impl ComparedRows {
    /// The rows of a batch whose first columns are those of [`BoundFewShot::compared`].
    fn read(batch: &RecordBatch) -> Result<Self, StepError> {
        let [ids, texts, apart] = [0, 1, 2].map(|at| batch.column(at).as_string::<i32>());
        if ids.null_count() > 0 {
            return Err(StepError::new("`id` is null in some rows"));
        }
        let mut rows = TokenRows::new(false);
        for text in texts {
            rows.push_text(text, &|| false).map_err(|error| StepError::new(error.to_string()))?;
        }
        let distinct = |words: Option<&[u128]>| {
            let mut words = words.unwrap_or_default().to_vec();
            words.sort_unstable();
            words.dedup();
            words
        };
        let owned = |texts: &StringArray| -> Vec<String> {
            texts.iter().map(|text| text.unwrap_or_default().to_string()).collect()
        };
        let words = rows.iter().map(distinct).collect();
        Ok(Self { ids: owned(ids), words, apart: owned(apart) })
    }
}

/// The Jaccard similarity of two sets, of which `shared` words are in both; 1 of two empty ones.
fn similarity(one: &[u128], other: &[u128], shared: usize) -> f64 {
    match one.len() + other.len() - shared {
        0 => 1.0,
        all => shared as f64 / all as f64,
    }
}

/// The number of words that are in both sets.
fn shared(one: &[u128], other: &[u128]) -> usize {
    let (mut a, mut b, mut shared) = (0, 0, 0);
    while let (Some(x), Some(y)) = (one.get(a), other.get(b)) {
        shared += usize::from(x == y);
        (a, b) = (a + usize::from(x <= y), b + usize::from(y <= x));
    }
    shared
}

/// An invertible mix of 64 bits (the finaliser of SplitMix64).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The positions in `pool` of the examples of each row, the first choice first.
///
/// A choice depends on the ids and texts of the row and of the pool, not on the order of rows; a row
/// that is added to the pool takes the place of one example at most.
fn choose(
    args: &Args,
    rows: &ComparedRows,
    pool: &ComparedRows,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Vec<u32>>, StepError> {
    let number = |purpose: &str, id: &str| keyed_hash(args.seed, purpose, id.as_bytes());
    let numbers: Vec<u64> = pool.ids.iter().map(|id| number("few_shot/example", id)).collect();
    let mut with_word: HashMap<u128, Vec<usize>> = HashMap::new();
    if args.choose == Choice::Nearest {
        for (at, words) in pool.words.iter().enumerate() {
            words.iter().for_each(|word| with_word.entry(*word).or_default().push(at));
        }
    }
    let mut in_both = vec![0; numbers.len()];
    let mut chosen = Vec::with_capacity(rows.ids.len());
    for (row, id) in rows.ids.iter().enumerate() {
        if stopped() {
            return Err(StepError::interrupted());
        }
        let (words, own) = (&rows.words[row], number("few_shot/row", id));
        in_both.fill(0);
        for at in words.iter().filter_map(|word| with_word.get(word)).flatten() {
            in_both[*at] += 1;
        }
        let fits = |at: usize| {
            let other = &pool.words[at];
            pool.ids[at] != *id
                && (args.apart.is_empty() || pool.apart[at] != rows.apart[row])
                && similarity(words, other, shared(words, other)) < args.threshold
        };
        let mut best: BinaryHeap<(u64, u64, u32)> = BinaryHeap::new();
        for (at, drawn) in numbers.iter().enumerate() {
            let first = match args.choose {
                Choice::Random => 0,
                Choice::Ordered => at as u64,
                // The bits of numbers that are not negative are in their order.
                Choice::Nearest => {
                    u64::MAX - similarity(words, &pool.words[at], in_both[at]).to_bits()
                }
            };
            let place = (first, mix(own ^ drawn), at as u32);
            let enters = best.len() < args.k || best.peek().is_some_and(|last| place < *last);
            if enters && fits(at) {
                best.push(place);
                if best.len() > args.k {
                    best.pop();
                }
            }
        }
        chosen.push(best.into_sorted_vec().into_iter().map(|(_, _, at)| at).collect());
    }
    Ok(chosen)
}

impl BoundFewShot {
    /// What is compared of a row.
    fn compared(&self) -> Vec<Expr> {
        let apart = match self.args.apart.as_slice() {
            [] => lit(""),
            // Null counts as a value.
            names => call::<RowId>(
                names.iter().flat_map(|name| [column(name).is_null(), column(name)]).collect(),
            ),
        };
        let text = |name: &str| cast(column(name), DataType::Utf8);
        vec![text(ID).alias(ROW), text(&self.args.column).alias(TEXT), apart.alias(APART)]
    }

    /// The rows of the pool with a value in each shown column, and the warning about the others.
    fn without_nulls(
        &self,
        pool: &RecordBatch,
    ) -> Result<(RecordBatch, Option<String>), StepError> {
        let shown = &pool.columns()[COMPARED..];
        let has_all = |row: usize| shown.iter().all(|column| column.is_valid(row));
        let complete: BooleanArray = (0..pool.num_rows()).map(|row| Some(has_all(row))).collect();
        let kept = filter_record_batch(pool, &complete)?;
        let (all, left_out) = (pool.num_rows(), pool.num_rows() - kept.num_rows());
        let names = self.args.columns.iter().zip(shown);
        let names: Vec<&String> =
            names.filter(|(_, column)| column.null_count() > 0).map(|(name, _)| name).collect();
        let nulls = name_list(&names);
        let warning =
            format!("left out: {left_out} of {all} possible examples, with null in {nulls}");
        Ok((kept, (left_out > 0).then_some(warning)))
    }

    /// A list of examples for each row.
    fn lists(&self, pool: &RecordBatch, chosen: &[Vec<u32>]) -> Result<ArrayRef, StepError> {
        let names = self.args.columns.iter().zip(pool.columns().iter().skip(COMPARED));
        let columns: Vec<(FieldRef, ArrayRef)> = names
            .map(|(name, column)| {
                let field = Field::new(name, column.data_type().clone(), true);
                (Arc::new(field), Arc::clone(column))
            })
            .collect();
        let examples = StructArray::from(columns);
        let positions: Vec<u32> = chosen.iter().flatten().copied().collect();
        if i32::try_from(positions.len()).is_err() {
            return Err(StepError::new("there would be more than 2³¹ examples"));
        }
        let item = Arc::new(Field::new("item", examples.data_type().clone(), true));
        let values = take(&examples, &UInt32Array::from(positions), None)?;
        let ends = OffsetBuffer::from_lengths(chosen.iter().map(Vec::len));
        Ok(Arc::new(ListArray::try_new(item, ends, values, None)?))
    }
}

/// All rows in one batch.
async fn collected(rows: DataFrame) -> Result<RecordBatch, StepError> {
    let schema = Arc::new(rows.schema().as_arrow().clone());
    let batches = rows.collect().await?;
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    Ok(concat_batches(&schema, &batches)?)
}

impl TableStep for BoundFewShot {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            let pool = inputs.remove(EXAMPLES).unwrap_or_else(|| input.clone());
            let mut order: Vec<_> =
                self.args.order_by.iter().map(|name| column(name).sort(true, false)).collect();
            order.push(column(ID).sort(true, true));
            let mut columns = self.compared();
            columns.extend(self.args.columns.iter().map(|name| column(name)));
            let pool = collected(pool.sort(order)?.select(columns)?).await?;
            let (pool, warning) = self.without_nulls(&pool)?;
            if let Some(warning) = warning {
                (cx.tell)(Tell::Warning(warning));
            }
            let rows = collected(input.clone().select(self.compared())?).await?;
            let (rows, compared) = (ComparedRows::read(&rows)?, ComparedRows::read(&pool)?);
            let stop = StopOnDrop::default();
            let (args, flag) = (self.args.clone(), stop.flag());
            let (ids, chosen) = on_thread(move || {
                let chosen = choose(&args, &rows, &compared, &|| flag.load(Ordering::Relaxed))?;
                Ok((rows.ids, chosen))
            })
            .await?;
            let few = chosen.iter().filter(|examples| examples.len() < self.args.k).count();
            if few > 0 {
                let message = format!(
                    "{few} of {} rows have fewer than {} examples, as no more rows fit",
                    chosen.len(),
                    self.args.k
                );
                (cx.tell)(Tell::Warning(message));
            }
            let lists = self.lists(&pool, &chosen)?;
            let small: [(&str, ArrayRef); 2] =
                [(ROW, Arc::new(StringArray::from(ids))), (SHOTS, lists)];
            let small = cx.session.read_batch(RecordBatch::try_from_iter(small)?)?;
            let input = input.with_column(KEY, cast(column(ID), DataType::Utf8))?;
            let joined = small.join(input, JoinType::Inner, &[ROW], &[KEY], None)?;
            let produced = vec![(self.args.name.as_str(), column(SHOTS))];
            Ok(vec![(MAIN, project(joined, &self.ports[0].table, produced)?)])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(k: usize, choose: Choice) -> Args {
        let columns = vec!["code".to_string()];
        let (column, name) = (code(), shots());
        Args {
            k,
            columns,
            choose,
            order_by: None,
            seed: 42,
            column,
            threshold: threshold(),
            apart: Vec::new(),
            name,
        }
    }

    /// Rows of an id, a text and a file.
    fn compared(rows: &[(&str, &str, &str)]) -> ComparedRows {
        let column = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let columns = [
            (ROW, column(rows.iter().map(|row| row.0).collect())),
            (TEXT, column(rows.iter().map(|row| row.1).collect())),
            (APART, column(rows.iter().map(|row| row.2).collect())),
        ];
        ComparedRows::read(&RecordBatch::try_from_iter(columns).unwrap()).unwrap()
    }

    fn chosen(args: &Args, rows: &ComparedRows, pool: &ComparedRows) -> Vec<Vec<String>> {
        let all = choose(args, rows, pool, &|| false).unwrap();
        let name = |at: &u32| pool.ids[*at as usize].clone();
        all.iter().map(|row| row.iter().map(name).collect()).collect()
    }

    #[test]
    fn the_nearest_are_neither_the_row_nor_its_duplicates_nor_of_its_file() {
        // Similar to `a`: `b` by 2 of 4 words, `c` by 1 of 5, `d` in all, `e` in none.
        let rows = compared(&[
            ("a", "x y z", "1"),
            ("b", "x, y, w", "1"),
            ("c", "x q r", "2"),
            ("d", "z y x x", "2"),
            ("e", "s t u", "3"),
        ]);
        let mut args = args(3, Choice::Nearest);
        assert_eq!(chosen(&args, &rows, &rows)[0], ["b", "c", "e"]);
        args.apart = vec!["path".into()];
        assert_eq!(chosen(&args, &rows, &rows)[0], ["c", "e"]);
        args.threshold = 0.4;
        args.apart = Vec::new();
        assert_eq!(chosen(&args, &rows, &rows)[0], ["c", "e"], "`b` is a duplicate");
    }

    #[test]
    fn draws_depend_on_ids_alone_are_even_and_lose_one_example_to_a_new_row() {
        let names: Vec<String> = (0..400).map(|at| format!("{at:03}")).collect();
        let texts: Vec<String> = (0..400).map(|at| format!("w{at}")).collect();
        let of = |from: usize, to: usize| -> Vec<(&str, &str, &str)> {
            (from..to).map(|at| (&*names[at], &*texts[at], "")).collect()
        };
        let rows = compared(&of(20, 400));
        let args = args(5, Choice::Random);
        let mut examples = of(0, 20);
        let before = chosen(&args, &rows, &compared(&examples));
        examples.reverse();
        assert_eq!(chosen(&args, &rows, &compared(&examples)), before);
        // 380 rows of 5 of 20 examples: each is expected 95 times, with a deviation of 8.4.
        for (name, _, _) in &examples {
            let times = before.iter().flatten().filter(|example| example == name).count();
            assert!((53..=137).contains(&times), "{name}: {times}");
        }
        examples.push(("new", "n", ""));
        let after = chosen(&args, &rows, &compared(&examples));
        for (before, after) in before.iter().zip(&after) {
            let lost = before.iter().filter(|example| !after.contains(example)).count();
            assert_eq!(lost, usize::from(after.contains(&"new".to_string())));
        }
    }
}
