//! The output tables of `oracle`.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef};
use serde::Serialize;

use super::Group;
use super::runner::{Case, MethodResult, ModuleResult, Mutant};
use super::tree::TreeKey;
use crate::execute::table;
use crate::typed_rows;
use galeras_base::id::{ID, row_id};
use galeras_operator::columns::text_field;
use galeras_operator::rejects::{reject_columns, reject_table};
use galeras_operator::{
    ArgError, LowerContext, MAIN, Port, Ports, REJECTS, StepError, TableSchema, describe,
};

/// The port with the modules that the methods are in.
pub(crate) const MODULES: &str = "modules";
/// The port with the mutants of the methods.
const MUTANTS: &str = "mutants";
/// The key of [`MODULES`].
pub(crate) const MODULE_ID: &str = "module_id";
/// The column that numbers the mutants of a method.
const MUTANT: &str = "mutant";

fn count(name: &str, about: &str, unit: &str) -> FieldRef {
    describe(name, DataType::Int64, false, about, Some(unit))
}

/// The columns of [`Oracle`].
fn oracle_fields() -> Vec<FieldRef> {
    let score = "mutants killed / mutants; null if there are none";
    let coverage = "branches that the cases take / branches of the method; 1 if it has none";
    vec![
        text_field("module", "the module's name in imports"),
        text_field(MODULE_ID, "the row of the port `modules`"),
        text_field("cases", "the test cases as a JSON list: source, call, arguments, result"),
        count("cases_total", "test cases", "cases"),
        count("doctests", "cases from the method's own examples", "cases"),
        count("calls", "cases from other examples, and from test files", "cases"),
        count("mutated", "cases with changed arguments", "cases"),
        describe("coverage", DataType::Float64, false, coverage, None),
        count("mutants_total", "changed versions of the method", "mutants"),
        count("mutants_killed", "those that fail a case, except by time", "mutants"),
        describe("mutation_score", DataType::Float64, true, score, None),
    ]
}

/// The columns of [`Module`].
fn module_fields() -> Vec<FieldRef> {
    vec![
        text_field(MODULE_ID, "the row's identity"),
        text_field("module", "the module's name in imports"),
        text_field("path", "the file's path in its tree"),
        text_field("top", "the folder that the module's name starts at"),
        text_field("content", "the text of the module"),
        text_field("files", "a JSON object of the other files that it needs: path, text"),
    ]
}

/// The columns of [`MutantRow`].
fn mutant_fields() -> Vec<FieldRef> {
    let operator =
        "comparison, arithmetic, logic, constant, condition, return or statement: what is changed";
    vec![
        count(MUTANT, "which of the mutants of the method, from 0", "mutants"),
        text_field("code", "the whole method with the change, from `def` on"),
        text_field("operator", operator),
        describe("line", DataType::Int64, false, "the changed line of the file", None),
        describe("killed", DataType::Boolean, false, "it fails a case", None),
    ]
}

pub(super) fn ports(input: &TableSchema) -> Result<Vec<Port>, Vec<ArgError>> {
    let oracles = input.extended(&oracle_fields(), &[], None)?;
    let key: Vec<FieldRef> = input
        .schema
        .fields()
        .iter()
        .filter(|field| field.name() == ID || input.key.contains(field.name()))
        .cloned()
        .collect();
    let mut mutants = TableSchema::default().with(&key).with(&mutant_fields());
    mutants.key = key.iter().map(|field| field.name().clone()).chain([MUTANT.into()]).collect();
    Ok(vec![
        Port::new(MAIN, oracles),
        Port::new(REJECTS, reject_table(input)),
        Port::new(MODULES, TableSchema::default().with(&module_fields()).keyed(&[MODULE_ID])),
        Port::new(MUTANTS, mutants),
    ])
}

#[derive(Serialize)]
struct Oracle<'a> {
    module: &'a str,
    module_id: &'a str,
    cases: String,
    cases_total: usize,
    doctests: usize,
    calls: usize,
    mutated: usize,
    coverage: f64,
    mutants_total: usize,
    mutants_killed: usize,
    mutation_score: Option<f64>,
}

impl<'a> Oracle<'a> {
    fn new(
        (module, module_id): (&'a str, &'a str),
        cases: &[Case],
        coverage: f64,
        mutants: &[Mutant],
    ) -> Result<Self, StepError> {
        let of = |source: &str| cases.iter().filter(|case| case.source == source).count();
        let killed = mutants.iter().filter(|mutant| mutant.killed).count();
        let score = killed as f64 / mutants.len() as f64;
        let cases_text = serde_json::to_string(cases);
        Ok(Self {
            module,
            module_id,
            cases: cases_text.map_err(|error| StepError::new(error.to_string()))?,
            cases_total: cases.len(),
            doctests: of("doctests"),
            calls: of("calls"),
            mutated: of("mutated"),
            coverage,
            mutants_total: mutants.len(),
            mutants_killed: killed,
            mutation_score: (!mutants.is_empty()).then_some(score),
        })
    }
}

#[derive(Serialize)]
struct Module<'a> {
    module_id: &'a str,
    module: &'a str,
    path: &'a str,
    top: &'a str,
    content: &'a str,
    files: String,
}

#[derive(Serialize)]
struct MutantRow<'a> {
    mutant: usize,
    code: &'a str,
    operator: &'a str,
    line: u32,
    killed: bool,
}

#[derive(Serialize)]
struct Rejected<'a> {
    rule: &'a str,
    reason: &'a str,
}

/// A module with its result, and the rows of its methods.
pub(super) struct Made {
    pub(super) tree: TreeKey,
    pub(super) path: String,
    /// The place of a row, and the id of its method.
    pub(super) rows: Vec<(usize, String)>,
    pub(super) result: ModuleResult,
}

impl Made {
    pub(super) fn new(group: Group, result: ModuleResult) -> Self {
        let Group { tree, path, rows, methods, .. } = group;
        let ids = methods.into_iter().map(|method| method.id);
        Self { tree, path, rows: rows.into_iter().zip(ids).collect(), result }
    }

    fn id(&self) -> String {
        let [kind, name] = self.tree.identity();
        row_id([kind, name, self.path.as_str()].map(str::as_bytes))
    }
}

/// The output ports of the modules, and of rows that no module was found for.
pub(super) fn tables(
    cx: &LowerContext,
    ports: &[Port],
    rows: &RecordBatch,
    made: &[Made],
    without: &[(usize, (&'static str, String))],
) -> Result<Ports, StepError> {
    let [main, rejects, modules, mutants] = ports else {
        return Err(StepError::new("a defect: `oracle` has four ports"));
    };
    let ids: Vec<String> = made.iter().map(Made::id).collect();
    let mut oracles: BTreeMap<usize, Oracle<'_>> = BTreeMap::new();
    let mut rejected: BTreeMap<usize, Rejected<'_>> =
        without.iter().map(|(row, (rule, reason))| (*row, Rejected { rule, reason })).collect();
    let (mut module_rows, mut mutant_rows) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for (module, id) in made.iter().zip(&ids) {
        let mut has_oracle = false;
        for (row, method) in &module.rows {
            match module.result.methods.get(method) {
                Some(MethodResult::Oracle { cases, coverage, mutants }) => {
                    has_oracle = true;
                    let names = (module.result.name.as_str(), id.as_str());
                    oracles.insert(*row, Oracle::new(names, cases, *coverage, mutants)?);
                    mutant_rows.extend(mutants.iter().enumerate().map(|(mutant, value)| {
                        let Mutant { code, operator, line, killed } = value;
                        (*row, MutantRow { mutant, code, operator, line: *line, killed: *killed })
                    }));
                }
                Some(MethodResult::Rejected { rule, reason }) => {
                    rejected.insert(*row, Rejected { rule, reason });
                }
                None => {
                    let reason = "a defect: the method has no result";
                    rejected.insert(*row, Rejected { rule: "infra", reason });
                }
            }
        }
        // Copies of a repository have the same commits.
        if has_oracle && seen.insert(id) {
            module_rows.push(Module {
                module_id: id,
                module: &module.result.name,
                path: &module.path,
                top: &module.result.top,
                content: &module.result.content,
                files: serde_json::to_string(&module.result.files)
                    .map_err(|error| StepError::new(error.to_string()))?,
            });
        }
    }
    let oracles: Vec<(usize, Oracle<'_>)> = oracles.into_iter().collect();
    let rejected: Vec<(usize, Rejected<'_>)> = rejected.into_iter().collect();
    Ok(vec![
        (MAIN, table(cx, &main.table, rows, &oracle_fields(), oracles)?),
        (REJECTS, table(cx, &rejects.table, rows, &reject_columns(), rejected)?),
        (MODULES, typed_rows::table(&cx.session, &modules.table.stored(), module_rows)?),
        (MUTANTS, table(cx, &mutants.table, rows, &mutant_fields(), mutant_rows)?),
    ])
}
