//! Programs and tests from the oracles of methods: the answer replaces the method in its module.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use serde::Serialize;
use serde_json::json;

use crate::oracle::{CASE, COMPARE, Case, MODULE_ID, MODULES};
use galeras_base::id::ID;
use galeras_operator::{ArgError, BindContext, Inputs, StepError};
use galeras_workflow::code::Code;

/// The port with the oracles.
pub(super) const ORACLE: &str = "oracle";
/// The port with the modules of the oracles: `modules` of the operator `oracle`.
pub(super) const ORACLE_MODULES: &str = MODULES;

const ANSWER: &str = include_str!("python/oracle_answer.py");
const TESTS: &str = include_str!("python/oracle_tests.py");

/// The mistakes in the input ports.
pub(super) fn check_ports(cx: &BindContext, oracle_id: &str) -> Vec<ArgError> {
    let mut errors = Vec::new();
    let needed: [(&str, &[&str]); 2] = [
        (ORACLE, &[ID, "qualified_name", "start_line", "end_line", MODULE_ID, "cases"]),
        (ORACLE_MODULES, &[MODULE_ID, "module", "path", "top", "content", "files"]),
    ];
    for (port, columns) in needed {
        let Some(table) = cx.inputs.get(port) else {
            let message = "an oracle is two tables: the methods, and the modules that they are in";
            let error = ArgError::at_port(port, Code::MissingArgument, message);
            errors.push(error.help(
                "write `from: { input: …, oracle: STEP, modules: STEP.modules }`, where STEP is of `oracle`",
            ));
            continue;
        };
        // If a step before has a mistake, its columns are unknown.
        let is_absent = |column: &&&str| !table.open && table.field(column).is_none();
        for column in columns.iter().filter(is_absent) {
            let message = format!("the table of the port `{port}` has no column `{column}`");
            let error = ArgError::at_port(port, Code::UnknownColumn, message);
            errors.push(error.help("it has to come from a step of `oracle`"));
        }
    }
    if cx.input().field(oracle_id).is_none() {
        let input = cx.input();
        errors.push(ArgError::unknown_column("oracle_id", oracle_id, input.names()));
    }
    errors
}

/// The quality of the oracle of a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Grade {
    pub(super) coverage: Option<f64>,
    pub(super) mutation_score: Option<f64>,
}

struct Oracle {
    module: String,
    classes: Vec<String>,
    name: String,
    /// The first and last line of the method, from `def` on, counted from 1.
    lines: (usize, usize),
    cases: Vec<Case>,
    grade: Grade,
}

struct Module {
    name: String,
    path: String,
    top: String,
    content: String,
    files: BTreeMap<String, String>,
}

/// The oracles by the ids of their methods, and the modules.
pub(super) struct Oracles {
    oracles: HashMap<String, Oracle>,
    modules: HashMap<String, Module>,
}

/// A program, its tests, and the module that the library must not show.
pub(super) struct OracleTask {
    pub(super) program: String,
    pub(super) tests: String,
    pub(super) module: String,
    pub(super) grade: Grade,
}

impl Oracles {
    /// Reads the ports; `None` if they are not there.
    pub(super) async fn read(inputs: &mut Inputs) -> Result<Option<Self>, StepError> {
        let (Some(oracles), Some(modules)) = (inputs.remove(ORACLE), inputs.remove(ORACLE_MODULES))
        else {
            return Ok(None);
        };
        let mut tables = Vec::new();
        for table in [oracles, modules] {
            let schema = std::sync::Arc::new(table.schema().as_arrow().clone());
            tables.push(concat_batches(&schema, &table.collect().await?)?);
        }
        let [oracles, modules] = tables.as_slice() else { return Ok(None) };
        Ok(Some(Self { oracles: read_oracles(oracles)?, modules: read_modules(modules)? }))
    }

    /// The task of a row: the oracle's cases, or these tests on the module with the answer.
    pub(super) fn task(
        &self,
        id: &str,
        answer: &str,
        tests: Option<String>,
    ) -> Result<OracleTask, String> {
        let oracle = self.oracles.get(id).ok_or("its method has no oracle")?;
        let module =
            self.modules.get(&oracle.module).ok_or("the module of its oracle is missing")?;
        let program = program(oracle, module, answer, tests.is_some())?;
        let tests = tests.unwrap_or_else(|| cases(&oracle.cases));
        Ok(OracleTask { program, tests, module: module.name.clone(), grade: oracle.grade })
    }
}

/// The module without the method, and the answer.
fn program(oracle: &Oracle, module: &Module, answer: &str, names: bool) -> Result<String, String> {
    let lines: Vec<&str> = module.content.split_inclusive('\n').collect();
    let (first, last) = oracle.lines;
    if first == 0 || first > last || last > lines.len() {
        return Err(format!("`{}` has no lines {first} to {last}", module.path));
    }
    let definition = lines[first - 1];
    let indent = &definition[..definition.len() - definition.trim_start().len()];
    let task = json!({
        "module": module.name,
        "path": module.path,
        "top": module.top,
        "files": module.files,
        "before": lines[..first - 1].concat(),
        "after": lines[last..].concat(),
        "indent": indent,
        "line": first,
        "classes": oracle.classes,
        "name": oracle.name,
        "answer": answer,
    });
    // JSON of texts and numbers is Python, too.
    let mut program = format!("{CASE}\n{ANSWER}\nORACLE_MODULE, ORACLE_FUNCTION = start({task})\n");
    if names {
        program.push_str("globals().update(vars(ORACLE_MODULE))\n");
    }
    Ok(program)
}

/// A test for each case.
fn cases(cases: &[Case]) -> String {
    let rows: Vec<[&str; 3]> =
        cases.iter().map(|case| [&*case.arguments, &*case.expected, &*case.shown]).collect();
    let asserts: String =
        (0..cases.len()).map(|n| format!("assert agrees({n}), difference({n})\n")).collect();
    format!("{COMPARE}\n{TESTS}\nCASES = {}\n{asserts}", json!(rows))
}

/// A column of texts, in which a null is empty.
struct Texts(ArrayRef);

impl Texts {
    fn of(rows: &RecordBatch, name: &str) -> Result<Self, StepError> {
        let missing = || StepError::new(format!("the oracles have no `{name}`"));
        let column = rows.column_by_name(name).ok_or_else(missing)?;
        Ok(Self(cast(column, &DataType::Utf8)?))
    }

    fn at(&self, row: usize) -> String {
        let texts = self.0.as_string::<i32>();
        if texts.is_null(row) { String::new() } else { texts.value(row).to_owned() }
    }
}

fn damaged(error: serde_json::Error) -> StepError {
    StepError::new(format!("a table of oracles is damaged: {error}")).because(error)
}

fn read_oracles(rows: &RecordBatch) -> Result<HashMap<String, Oracle>, StepError> {
    let [ids, modules, names, cases] =
        [ID, MODULE_ID, "qualified_name", "cases"].map(|name| Texts::of(rows, name));
    let (ids, modules, names, cases) = (ids?, modules?, names?, cases?);
    let number = |name: &str, row: usize| -> Option<usize> {
        let column = cast(rows.column_by_name(name)?, &DataType::Int64).ok()?;
        usize::try_from(column.as_primitive::<Int64Type>().value(row)).ok()
    };
    let score = |name: &str, row: usize| -> Option<f64> {
        let column = cast(rows.column_by_name(name)?, &DataType::Float64).ok()?;
        column.is_valid(row).then(|| column.as_primitive::<Float64Type>().value(row))
    };
    let mut oracles = HashMap::new();
    for row in 0..rows.num_rows() {
        let qualified = names.at(row);
        let mut classes: Vec<String> = qualified.split('.').map(str::to_owned).collect();
        let name = classes.pop().unwrap_or_default();
        let lines = (number("start_line", row), number("end_line", row));
        let oracle = Oracle {
            module: modules.at(row),
            classes,
            name,
            lines: (lines.0.unwrap_or_default(), lines.1.unwrap_or_default()),
            cases: serde_json::from_str(&cases.at(row)).map_err(damaged)?,
            grade: Grade {
                coverage: score("coverage", row),
                mutation_score: score("mutation_score", row),
            },
        };
        oracles.insert(ids.at(row), oracle);
    }
    Ok(oracles)
}

fn read_modules(rows: &RecordBatch) -> Result<HashMap<String, Module>, StepError> {
    let columns = [MODULE_ID, "module", "path", "top", "content", "files"];
    let columns: Vec<Texts> =
        columns.into_iter().map(|name| Texts::of(rows, name)).collect::<Result<_, _>>()?;
    let mut modules = HashMap::new();
    for row in 0..rows.num_rows() {
        let values: Vec<String> = columns.iter().map(|column| column.at(row)).collect();
        let Ok([id, name, path, top, content, files]) = <[String; 6]>::try_from(values) else {
            continue;
        };
        let files = serde_json::from_str(&files).map_err(damaged)?;
        modules.insert(id, Module { name, path, top, content, files });
    }
    Ok(modules)
}

/// The copies of a module in the libraries of Python below these folders, in source and compiled.
pub(super) fn library_copies(module: &str, prefixes: &[PathBuf]) -> Vec<PathBuf> {
    let system = ["/usr", "/usr/local"].map(PathBuf::from);
    let inner = module.replace('.', "/");
    let files = [format!("{inner}.py"), format!("{inner}/__init__.py")];
    let mut copies = Vec::new();
    for prefix in system.iter().chain(prefixes) {
        for library in ["lib", "lib64"].into_iter().flat_map(|lib| entries(&prefix.join(lib))) {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with("python3") {
                continue;
            }
            let places = ["", "site-packages", "dist-packages"].map(|place| library.join(place));
            let files = places.iter().flat_map(|place| files.iter().map(|file| place.join(file)));
            for file in files.filter(|file| file.is_file()) {
                let folder = file.parent().unwrap_or(&library).join("__pycache__");
                let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let compiled = entries(&folder).into_iter().filter(|compiled| {
                    let name = compiled.file_name().unwrap_or_default().to_string_lossy();
                    name.split('.').next() == Some(stem.as_str())
                });
                copies.extend(compiled);
                copies.push(file);
            }
        }
    }
    copies
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_is_not_in_the_program() {
        let grade = Grade { coverage: None, mutation_score: None };
        let oracle = |lines| Oracle {
            module: "m".into(),
            classes: vec!["C".into()],
            name: "f".into(),
            lines,
            cases: Vec::new(),
            grade,
        };
        let module = Module {
            name: "a.b".into(),
            path: "a/b.py".into(),
            top: String::new(),
            content: "class C:\n    def f(self):\n        return 'secret'\n    x = 1\n".into(),
            files: BTreeMap::new(),
        };
        let made = program(&oracle((2, 3)), &module, "def f(self): pass", false).unwrap();
        assert!(!made.contains("secret") && made.contains("x = 1"), "{made}");
        assert!(made.contains(r#""indent":"    ""#), "{made}");
        assert!(program(&oracle((2, 5)), &module, "", false).is_err());
    }
}
