//! The output tables of `execute`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use serde::Serialize;

use super::oracle::Grade;
use super::runner::{RunOutcome, RunResult};
use crate::typed_rows;
use galeras_base::prose::thousands;
use galeras_operator::columns::text_field;
use galeras_operator::rejects::{reject_columns, reject_table};
use galeras_operator::{
    INPUT, Inputs, LowerContext, MAIN, Port, Ports, REJECTS, StepError, TableSchema, Tell,
    describe, take_input,
};

/// The port with the single runs, and what they used.
pub(super) const RUNS: &str = "runs";
/// The column that numbers the runs of a program.
const RUN: &str = "run";

fn count(name: &str, about: &str, unit: &str) -> FieldRef {
    describe(name, DataType::Int64, false, about, Some(unit))
}

/// The columns of [`Executed`].
fn executed_fields(has_oracle: bool) -> Vec<FieldRef> {
    let outcome = "passed, failed, error, timeout, out_of_memory or crashed";
    let flag = |name, about| describe(name, DataType::Boolean, false, about, None);
    let code = "the exit code of the program; null if a signal or a limit ended it";
    let mut fields = vec![
        text_field("outcome", outcome),
        flag("passed", "all tests hold, in every run"),
        count("tests_passed", "tests that hold", "tests"),
        count("tests_total", "all tests", "tests"),
        describe("message", DataType::Utf8, true, "why it did not pass", None),
        describe("exit_code", DataType::Int64, true, code, None),
        text_field("stdout", "the standard output of the program"),
        text_field("stderr", "the standard error of the program"),
        flag("flaky", "its runs have different outcomes"),
    ];
    if has_oracle {
        let score = |name, about| describe(name, DataType::Float64, true, about, None);
        fields.push(score("coverage", "branches of the method that the oracle's cases take"));
        fields.push(score("mutation_score", "changed methods that the oracle's cases find"));
    }
    fields
}

/// The columns of [`SingleRun`].
fn run_fields() -> Vec<FieldRef> {
    let seconds = "processor time, with the start of the interpreter";
    let memory = "the most memory in use";
    let layers = DataType::new_list(DataType::Utf8, true);
    vec![
        count(RUN, "which of the runs of the program, from 0", "runs"),
        text_field("outcome", "how the run ended"),
        describe("seconds", DataType::Float64, true, seconds, Some("s")),
        describe("peak_memory", DataType::Int64, true, memory, Some("bytes")),
        describe("sandbox_layers", layers, false, "the layers that confined it", None),
    ]
}

pub(super) fn ports(input: &TableSchema, has_oracle: bool) -> Vec<Port> {
    let key: Vec<FieldRef> =
        input.key.iter().filter_map(|name| input.field(name).cloned()).collect();
    let mut runs = TableSchema::default().with(&key).with(&run_fields());
    runs.key.clone_from(&input.key);
    if !runs.key.iter().any(|name| name == RUN) {
        runs.key.push(RUN.into());
    }
    vec![
        Port::new(MAIN, input.with(&executed_fields(has_oracle))),
        Port::new(REJECTS, reject_table(input)),
        Port::new(RUNS, runs),
    ]
}

/// All rows of the input.
pub(crate) async fn input_rows(inputs: &mut Inputs) -> Result<RecordBatch, StepError> {
    let input = take_input(inputs, INPUT)?;
    let schema = Arc::new(input.schema().as_arrow().clone());
    let batches = input.collect().await?;
    Ok(concat_batches(&schema, &batches)?)
}

/// The end of a row: the results of its runs, or the rule and the reason for which it has none.
pub(super) type RowEnd<'a> = Result<Vec<&'a RunResult>, (&'static str, String)>;

#[derive(Serialize)]
struct Executed<'a> {
    outcome: &'static str,
    passed: bool,
    tests_passed: u32,
    tests_total: u32,
    message: Option<&'a str>,
    exit_code: Option<i32>,
    stdout: &'a str,
    stderr: &'a str,
    flaky: bool,
    /// Only with an oracle.
    #[serde(flatten)]
    grade: Option<Grade>,
}

impl<'a> Executed<'a> {
    /// The first run that did not pass decides.
    fn new(runs: &[&'a RunResult]) -> Option<Self> {
        let failed = runs.iter().find(|run| run.outcome != RunOutcome::Passed);
        let run = failed.or(runs.first())?;
        Some(Self {
            outcome: run.outcome.name(),
            passed: failed.is_none(),
            tests_passed: run.tests_passed,
            tests_total: run.tests_total,
            message: run.message.as_deref(),
            exit_code: run.exit_code,
            stdout: &run.stdout,
            stderr: &run.stderr,
            flaky: runs.iter().any(|other| other.outcome != run.outcome),
            grade: None,
        })
    }
}

#[derive(Serialize)]
struct SingleRun<'a> {
    run: usize,
    outcome: &'static str,
    seconds: Option<f64>,
    peak_memory: Option<u64>,
    sandbox_layers: &'a [String],
}

#[derive(Serialize)]
struct Rejected<'a> {
    rule: &'a str,
    reason: &'a str,
}

/// The output ports of rows with these ends, and the grades of their oracles.
pub(super) fn tables(
    cx: &LowerContext,
    ports: &[Port],
    rows: &RecordBatch,
    ends: &[RowEnd<'_>],
    grades: Option<&[Option<Grade>]>,
) -> Result<Ports, StepError> {
    let [main, rejects, runs] = ports else {
        return Err(StepError::new("a defect: `execute` has three ports"));
    };
    let (mut executed, mut rejected, mut single) = (Vec::new(), Vec::new(), Vec::new());
    for (row, end) in ends.iter().enumerate() {
        match end {
            Ok(results) => {
                let grade = grades.and_then(|grades| grades.get(row).copied().flatten());
                let values = Executed::new(results);
                executed.extend(values.map(|values| (row, Executed { grade, ..values })));
                single.extend(results.iter().enumerate().map(|(run, result)| {
                    let values = SingleRun {
                        run,
                        outcome: result.outcome.name(),
                        seconds: result.seconds,
                        peak_memory: result.peak_memory,
                        sandbox_layers: &result.sandbox_layers,
                    };
                    (row, values)
                }));
            }
            Err((rule, reason)) => rejected.push((row, Rejected { rule, reason })),
        }
    }
    if let Some((_, first)) = rejected.first() {
        let (missing, all) = (thousands(rejected.len()), thousands(ends.len()));
        let reason = first.reason.lines().next().unwrap_or_default();
        (cx.tell)(Tell::Warning(format!(
            "no result for {missing} of {all} rows: {reason}; the port `rejects` lists them"
        )));
    }
    Ok(vec![
        (MAIN, table(cx, &main.table, rows, &executed_fields(grades.is_some()), executed)?),
        (REJECTS, table(cx, &rejects.table, rows, &reject_columns(), rejected)?),
        (RUNS, table(cx, &runs.table, rows, &run_fields(), single)?),
    ])
}

/// A table with values of its `own` for rows of the input, and the input's other columns.
pub(crate) fn table<Row: Serialize>(
    cx: &LowerContext,
    table: &TableSchema,
    rows: &RecordBatch,
    own: &[FieldRef],
    values: Vec<(usize, Row)>,
) -> Result<DataFrame, StepError> {
    let (schema, own) = (table.stored(), TableSchema::default().with(own).stored());
    let (places, values): (Vec<usize>, Vec<Row>) = values.into_iter().unzip();
    let mut batches = Vec::new();
    let own = typed_rows::batches(&own, values)?;
    let mut chunks = places.chunks(typed_rows::BATCH);
    for own in own {
        let chunk = chunks.next().unwrap_or_default();
        let places = UInt64Array::from_iter_values(chunk.iter().map(|row| *row as u64));
        let columns = schema.fields().iter().map(|field| match own.column_by_name(field.name()) {
            Some(column) => Ok(Arc::clone(column)),
            None => {
                let missing = || StepError::new(format!("the input has no `{}`", field.name()));
                let column = rows.column_by_name(field.name()).ok_or_else(missing)?;
                Ok(take(column, &places, None)?)
            }
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, StepError>>()?;
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
    }
    Ok(cx.session.read_table(Arc::new(MemTable::try_new(schema, vec![batches])?))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outcome: RunOutcome) -> RunResult {
        RunResult {
            outcome,
            tests_passed: 0,
            tests_total: 1,
            message: None,
            seconds: None,
            peak_memory: None,
            exit_code: None,
            stdout: String::new(),
            stderr: String::new(),
            sandbox_layers: Vec::new(),
        }
    }

    #[test]
    fn runs_that_disagree_are_flaky_and_did_not_pass() {
        use RunOutcome::{Failed, Passed, Timeout};
        for (outcomes, outcome, passed, flaky) in [
            (&[Passed][..], "passed", true, false),
            (&[Passed, Passed], "passed", true, false),
            (&[Passed, Timeout, Failed], "timeout", false, true),
            (&[Failed, Failed], "failed", false, false),
        ] {
            let runs: Vec<RunResult> = outcomes.iter().map(|outcome| run(*outcome)).collect();
            let executed = Executed::new(&runs.iter().collect::<Vec<_>>()).unwrap();
            let found = (executed.outcome, executed.passed, executed.flaky);
            assert_eq!(found, (outcome, passed, flaky), "{outcomes:?}");
        }
        assert!(Executed::new(&[]).is_none());
    }
}
