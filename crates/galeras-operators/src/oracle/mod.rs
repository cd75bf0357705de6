//! `oracle`: test cases for methods, from the calls that examples and test files make.

mod runner;
mod tables;
mod tree;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use futures::StreamExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::runner::{ModuleResult, Recorded, Runner};
use self::tables::{Made, tables};
use self::tree::{CommitAccess, Tree, TreeKey, script_patterns};
use crate::execute::{Language, NoResult, duration, folder_digest, input_rows, size};
use crate::methods::corpus_digest;
use crate::sandbox::{SandboxArg, machine};
use galeras_base::digest::Digest;
use galeras_base::id::ID;
use galeras_base::small_file;
use galeras_git::GitErrorKind;
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::worker_threads::{StopOnDrop, on_thread};
use galeras_operator::{
    Access, Answers, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Grain,
    InputPorts, Inputs, LowerContext, Lowering, Operator, PaidResult, PaidStep, PaymentTerms, Port,
    SideFile, StepError, Tell, TypedOperator, args_schema,
};
use galeras_sandbox::Specification;
use galeras_workflow::code::Code;

pub(crate) use self::runner::{CASE, COMPARE, Case};
pub(crate) use self::tables::{MODULE_ID, MODULES};

/// The version of a module's question and of its kept result: also of the programs in `python`.
const KEPT: u32 = 3;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The seed of changed arguments, and of the choice of mutants.
    seed: i64,
    /// The origins of cases.
    #[serde(default = "all_sources")]
    source: Vec<Source>,
    /// The folder that the paths of the methods start at, relative to the workflow file. Without it, methods
    /// are those of the bundled corpus, or of the commits in the columns `url` and `commit_id`.
    #[serde(default)]
    root: Option<String>,
    /// Glob patterns of test files below the same root, which are run for the calls that they make.
    #[serde(default)]
    scripts: Vec<String>,
    /// The interpreter, relative to the workflow file: a virtual environment has packages that tests need.
    #[serde(default)]
    python: Option<String>,
    /// The most cases of a method.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 1000))]
    per_method: u32,
    /// The most mutants of a method.
    #[serde(default = "thirty")]
    #[schemars(range(min = 0, max = 1000))]
    mutants: u32,
    /// How often each case runs, each time in a process with other surroundings.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 20))]
    repeats: u32,
    /// The processor time for the methods of a module, such as 30s or 10m. It may take six times as long on
    /// the clock.
    #[serde(default = "timeout")]
    timeout: String,
    /// The memory for the methods of a module, such as 512MiB or 1GiB.
    #[serde(default = "memory")]
    memory: String,
    /// The number of modules that run side by side. Default: the number of processors.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1024))]
    concurrency: Option<u32>,
    /// The confinement of the programs: `auto`, `none`, or `auto` with more rights. All but `auto` need
    /// consent of their own.
    #[serde(default)]
    sandbox: SandboxArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Source {
    /// The examples of the method, and those of its class and module that call it.
    Doctests,
    /// Calls that other examples and test files make.
    Calls,
    /// Recorded calls with another argument.
    Mutated,
}

fn all_sources() -> Vec<Source> {
    vec![Source::Doctests, Source::Calls, Source::Mutated]
}

fn thirty() -> u32 {
    30
}

fn three() -> u32 {
    3
}

fn timeout() -> String {
    "5m".into()
}

fn memory() -> String {
    "1GiB".into()
}

/// The arguments that the programs in the sandbox need.
#[derive(Clone, Debug, Serialize)]
struct Settings {
    source: Vec<Source>,
    seed: i64,
    per_method: u32,
    mutants: u32,
    repeats: u32,
}

struct OracleOperator;

/// The operator.
pub const ORACLE: &dyn Operator = &OracleOperator;

impl TypedOperator for OracleOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "oracle",
        version: 1,
        grain: Grain::of::<BoundOracle, _>(),
        effect: Effect::External,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = args.sandbox.check(&cx.base);
        for name in [ID, "path", "qualified_name"] {
            require_column(cx, "", name, "text", is_text, &mut errors);
        }
        for name in ["start_line", "end_line"] {
            require_column(cx, "", name, "an integer", DataType::is_integer, &mut errors);
        }
        let input = cx.input();
        let has = |name: &str| input.field(name).is_some();
        if args.root.is_none() && !has("repo") && !(has("url") && has("commit_id")) {
            let message = "nothing names the files around the methods";
            let error = ArgError::new("root", Code::MissingArgument, message);
            errors.push(error.help("give `root`, the folder that the column `path` starts at"));
        }
        let missing = |at: &str, what: &str, name: &str| {
            let message = format!("there is no {what} `{name}`");
            ArgError::missing_file(at, message, &cx.base, name)
        };
        if let Some(root) = args.root.as_ref().filter(|root| !cx.base.join(root).is_dir()) {
            errors.push(missing("root", "folder", root));
        }
        if let Some(python) = args.python.as_ref().filter(|path| !cx.base.join(path).is_file()) {
            errors.push(missing("python", "file", python));
        }
        if args.source.is_empty() {
            errors.push(ArgError::new("source", Code::EmptyList, "no cases come from nowhere"));
        }
        if let Err(error) = script_patterns(&args.scripts) {
            errors.push(ArgError::new("scripts", Code::BadPattern, error.to_string()));
        }
        let mut wrong = |path: &str, text: &str, wanted: &str| {
            let message = format!("`{text}` is not {wanted}");
            errors.push(ArgError::new(path, Code::WrongValue, message));
        };
        let timeout = duration(&args.timeout).filter(|timeout| !timeout.is_zero());
        if timeout.is_none() {
            wrong("timeout", &args.timeout, "a time such as 30s or 10m");
        }
        let memory = size(&args.memory).filter(|memory| *memory >= 16 << 20);
        if memory.is_none() {
            wrong("memory", &args.memory, "a size such as 1GiB, of at least 16MiB");
        }
        let ports = tables::ports(&input).map_err(|mistakes| errors.extend(mistakes));
        match (timeout, memory, ports) {
            (Some(timeout), Some(memory), Ok(ports)) if errors.is_empty() => {
                let is_known = args.python.is_none() && !args.sandbox.is_wrapped();
                let version = is_known.then(|| Language::Python.version());
                let base = cx.base.clone();
                let step = BoundOracle { args, timeout, memory, version, base, ports };
                Ok(Box::new(step) as Box<dyn BoundStep>)
            }
            _ => Err(errors),
        }
    }
}

#[derive(Debug)]
struct BoundOracle {
    args: Args,
    timeout: Duration,
    memory: u64,
    /// The version of Python, if Galeras chooses it: `None` within if it is not installed.
    version: Option<Option<String>>,
    base: PathBuf,
    ports: Vec<Port>,
}

/// A method as the programs in the sandbox know it.
#[derive(Clone, Debug, Serialize)]
struct Method {
    id: String,
    qualified_name: String,
    name: String,
    line: i64,
    /// Arguments of recorded calls, and where they were made.
    calls: Vec<(String, String)>,
    /// Why other calls were not recorded.
    reasons: Vec<String>,
}

/// The methods of a module.
#[derive(Clone, Debug)]
struct Group {
    tree: TreeKey,
    path: String,
    rows: Vec<usize>,
    methods: Vec<Method>,
    /// Why the examples of the module, or a test file, did not run to their end.
    problem: Option<String>,
    /// The module's name in imports.
    module: Option<String>,
}

impl Group {
    fn question(&self) -> Value {
        json!({
            "tree": self.tree.identity(),
            "path": self.path,
            "methods": self.methods,
            "problem": self.problem,
        })
    }

    /// Adds the calls of its methods that a run has recorded.
    fn add(&mut self, job: &RecordJob, recorded: &Recorded) {
        match &recorded.problem {
            Some(problem) if job.path == self.path => self.problem = Some(problem.clone()),
            Some(problem) if job.is_script && self.problem.is_none() => {
                self.problem = Some(format!("{}: {problem}", job.path));
            }
            _ => {}
        }
        let found = self.module.as_ref().and_then(|module| recorded.methods.get(module));
        let Some(found) = found else { return };
        for method in &mut self.methods {
            if let Some(calls) = found.get(&method.qualified_name) {
                method.calls.extend(calls.calls.iter().cloned());
                method.reasons.extend(calls.reason.clone());
            }
        }
    }
}

/// The examples of a module, or a test file, whose calls are recorded.
#[derive(Clone)]
struct RecordJob {
    key: TreeKey,
    tree: Arc<Tree>,
    path: String,
    is_script: bool,
    /// The modules whose methods are recorded.
    modules: Arc<Vec<String>>,
    /// The folders that the names of packages start at.
    tops: Arc<BTreeSet<String>>,
}

impl RecordJob {
    /// The commit is no part of it: a test file makes the same calls in all commits in which the files
    /// that it reads are the same.
    fn question(&self) -> Value {
        let Self { key, path, is_script, modules, tops, .. } = self;
        let [kind, _] = key.identity();
        json!({
            "tree": kind,
            "path": path,
            "is_script": is_script,
            "modules": **modules,
            "tops": **tops,
        })
    }
}

/// The runs that record the calls of a tree, and the names of the modules of interest by their paths.
struct Listing {
    tree: Arc<Tree>,
    jobs: Vec<RecordJob>,
    modules: HashMap<String, String>,
}

/// A result as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept<T> {
    /// The files of the tree that were read, by their digests: all of it depends on them alone.
    reads: BTreeMap<String, Digest>,
    result: T,
}

impl<T> Kept<T> {
    fn is_current(&self, tree: &Tree) -> bool {
        self.reads.iter().all(|(path, digest)| tree.digest(path).as_ref() == Some(digest))
    }
}

/// The results of questions, the newest last. Each has read other files.
type Known<T> = HashMap<Digest, Vec<Arc<Kept<T>>>>;

/// The rows of each module, and those without one, with the reason.
type Groups = (Vec<Group>, Vec<(usize, (&'static str, String))>);

impl BoundOracle {
    fn settings(&self) -> Settings {
        let Args { source, seed, per_method, mutants, repeats, .. } = &self.args;
        let (source, seed) = (source.clone(), *seed);
        Settings { source, seed, per_method: *per_method, mutants: *mutants, repeats: *repeats }
    }

    /// The part of a question that all modules share.
    fn setting(&self) -> Result<Value, StepError> {
        Ok(json!({
            "v": KEPT,
            "settings": self.settings(),
            "timeout": u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            "memory": self.memory,
            "sandbox": self.args.sandbox,
            "version": self.version,
            "python": self.python_file()?,
        }))
    }

    /// The interpreter that the workflow names.
    fn python_file(&self) -> Result<Option<SideFile>, StepError> {
        let Some(name) = &self.args.python else { return Ok(None) };
        let digest = small_file::open(&self.base.join(name)).and_then(Digest::of_reader);
        let digest = digest.map_err(|error| unreadable(name, error))?;
        Ok(Some(SideFile { name: name.clone(), digest }))
    }

    fn root(&self) -> Option<PathBuf> {
        self.args.root.as_ref().map(|root| self.base.join(root))
    }

    /// The words that start Python, and the folders that it needs.
    fn python(&self) -> Result<(Vec<String>, Vec<PathBuf>), StepError> {
        let Some(name) = &self.args.python else { return Ok((vec!["python3".into()], Vec::new())) };
        let named = self.base.join(name);
        let failed = |error| unreadable(name, error);
        let (Some(folder), Some(file)) = (named.parent(), named.file_name()) else {
            return Err(StepError::new(format!("`{name}` is not an interpreter")));
        };
        let folder = folder.canonicalize().map_err(failed)?;
        let program = folder.join(file);
        // A virtual environment, and the interpreter that it was made from.
        let real = program.canonicalize().map_err(failed)?;
        let above = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_path_buf);
        let readable = [above(&program), above(&real)].into_iter().flatten();
        let readable = readable.filter(|folder| folder.parent().is_some()).collect();
        Ok((vec![program.to_string_lossy().into_owned()], readable))
    }

    fn groups(&self, rows: &RecordBatch) -> Result<Groups, StepError> {
        let column = |name: &str, kind: DataType| -> Result<Option<ArrayRef>, StepError> {
            match rows.column_by_name(name) {
                Some(column) => Ok(Some(cast(column, &kind)?)),
                None => Ok(None),
            }
        };
        let needed = |name: &str, kind: DataType| -> Result<ArrayRef, StepError> {
            let missing = || StepError::new(format!("the input has no `{name}`"));
            column(name, kind)?.ok_or_else(missing)
        };
        let texts = |name: &str| needed(name, DataType::Utf8);
        let (ids, paths, names) = (texts(ID)?, texts("path")?, texts("qualified_name")?);
        let lines = needed("start_line", DataType::Int64)?;
        let optional = |name: &str| column(name, DataType::Utf8);
        let (repos, urls, commits) = (optional("repo")?, optional("url")?, optional("commit_id")?);
        let text = |column: &dyn Array, at: usize| {
            let column = column.as_string::<i32>();
            (!column.is_null(at)).then(|| column.value(at).to_owned())
        };
        let known = |column: &Option<ArrayRef>, at: usize| {
            column.as_ref().and_then(|column| text(column, at))
        };
        let mut groups: BTreeMap<(TreeKey, String), Group> = BTreeMap::new();
        let mut without = Vec::new();
        for at in 0..rows.num_rows() {
            let url = known(&urls, at).zip(known(&commits, at));
            let tree = match (&self.args.root, url, known(&repos, at)) {
                (Some(_), ..) => Some(TreeKey::Root),
                (None, Some((url, commit)), _) => Some(TreeKey::Commit { url, commit }),
                (None, None, Some(repo)) if repo == "python-stdlib" => Some(TreeKey::Corpus),
                _ => None,
            };
            let line = lines.as_primitive::<Int64Type>();
            let line = (!line.is_null(at)).then(|| line.value(at));
            let (Some(tree), Some(id), Some(path), Some(qualified_name), Some(line)) =
                (tree, text(&ids, at), text(&paths, at), text(&names, at), line)
            else {
                let reason = "nothing names its file: give `root`, the folder that `path` starts \
                              at, and rows without nulls";
                without.push((at, ("source", reason.to_owned())));
                continue;
            };
            let name = qualified_name.rsplit('.').next().unwrap_or_default().to_owned();
            let group = groups.entry((tree.clone(), path.clone())).or_insert_with(|| Group {
                tree,
                path,
                rows: Vec::new(),
                methods: Vec::new(),
                problem: None,
                module: None,
            });
            group.rows.push(at);
            let (calls, reasons) = (Vec::new(), Vec::new());
            group.methods.push(Method { id, qualified_name, name, line, calls, reasons });
        }
        Ok((groups.into_values().collect(), without))
    }
}

fn unreadable(name: &str, error: std::io::Error) -> StepError {
    StepError::new(format!("cannot read `{name}`: {error}")).because(error)
}

impl BoundStep for BoundOracle {
    fn args(&self) -> Value {
        json!({
            "settings": self.settings(),
            "root": self.args.root.is_some(),
            "scripts": self.args.scripts,
            "python": self.args.python.is_some(),
            "version": self.version,
            "timeout": u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            "memory": self.memory,
            "sandbox": self.args.sandbox,
        })
    }

    fn recipe_args(&self) -> Option<Value> {
        // The question of a module has everything else.
        Some(json!({"sandbox": self.args.sandbox}))
    }

    fn recipe_version(&self) -> Option<u32> {
        Some(KEPT)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        let mut files: Vec<SideFile> = self.python_file()?.into_iter().collect();
        if let (Some(name), Some(root)) = (&self.args.root, self.root()) {
            let digest = folder_digest(&root).map_err(|error| unreadable(name, error))?;
            files.push(SideFile { name: name.clone(), digest });
        }
        Ok(files)
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        let root = self.root().map(|path| ("root".to_owned(), path));
        let python =
            self.args.python.as_ref().map(|path| ("python".to_owned(), self.base.join(path)));
        root.into_iter().chain(python).collect()
    }

    fn missing(&self) -> Vec<ArgError> {
        if self.version != Some(None) {
            return Vec::new();
        }
        let message = "methods run in `python3`, which is not in the folders of the system";
        let error = ArgError::new("python", Code::MissingFile, message);
        vec![error.help("install it for all users, or name an interpreter with `python`")]
    }

    fn demands(&self) -> Vec<Demand> {
        let read = |(at, path): (String, PathBuf)| Demand::new(at, Access::Read { path });
        let mut demands: Vec<Demand> = self.local_files().into_iter().map(read).collect();
        let program = "the methods of the input, and the tests of their repositories";
        demands.extend(self.args.sandbox.demands(program, &self.base));
        demands
    }

    fn work_unit(&self) -> &'static str {
        "modules"
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Paid(self)
    }
}

impl PaidStep for BoundOracle {
    fn terms(&self) -> Option<PaymentTerms> {
        None
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<PaidResult, StepError>> {
        Box::pin(async move {
            let rows = input_rows(&mut inputs).await?;
            let (groups, without) = self.groups(&rows)?;
            let mut work = Work::new(self, cx, answers)?;
            let made = work.complete(groups).await?;
            let ports = tables(cx, &self.ports, &rows, &made, &without)?;
            Ok(PaidResult { ports, computed: work.computed, reused: work.reused })
        })
    }
}

/// The runs of a step: those of earlier ones, and those that are made now.
struct Work<'a> {
    step: &'a BoundOracle,
    cx: &'a LowerContext,
    answers: &'a dyn Answers,
    setting: Value,
    maker: Option<Arc<Maker>>,
    /// The folder of the argument `root`.
    root: Option<PathBuf>,
    stop: StopOnDrop,
    warned: bool,
    computed: u64,
    reused: u64,
}

impl<'a> Work<'a> {
    fn new(
        step: &'a BoundOracle,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
    ) -> Result<Self, StepError> {
        let root = match (&step.args.root, step.root()) {
            (Some(name), Some(root)) => {
                Some(root.canonicalize().map_err(|error| unreadable(name, error))?)
            }
            _ => None,
        };
        let (setting, stop) = (step.setting()?, StopOnDrop::default());
        Ok(Self {
            step,
            cx,
            answers,
            setting,
            maker: None,
            root,
            stop,
            warned: false,
            computed: 0,
            reused: 0,
        })
    }

    /// Makes the oracles: records calls, tree by tree, and grades what they give.
    async fn complete(&mut self, groups: Vec<Group>) -> Result<Vec<Made>, StepError> {
        let mut made = Vec::new();
        let mut trees: BTreeMap<TreeKey, Vec<Group>> = BTreeMap::new();
        for group in groups {
            trees.entry(group.tree.clone()).or_default().push(group);
        }
        let (mut ready, mut known) = (Vec::new(), Known::new());
        for (key, mut groups) in trees {
            let access = self.access();
            let paths: Vec<String> = groups.iter().map(|group| group.path.clone()).collect();
            let (root, patterns) = (self.root.clone(), self.step.args.scripts.clone());
            let listed =
                on_thread(move || Ok(listing(&key, root, &access, &patterns, &paths))).await?;
            let listed = match listed {
                Ok(listed) => listed,
                Err(failed) => {
                    let failed = self.failed(failed)?;
                    for group in groups {
                        let result = self.rejected(&group, &failed);
                        made.push(Made::new(group, result));
                    }
                    continue;
                }
            };
            for group in &mut groups {
                group.module = listed.modules.get(&group.path).cloned();
            }
            let mut asked = Vec::new();
            for job in listed.jobs {
                asked.push((self.question(&job.key, &json!({"record": job.question()}))?, job));
            }
            let tree = Some(&*listed.tree);
            for (job, kept) in self.answered(asked, tree, &mut known, Maker::record).await? {
                let failed = |Failed { reason, .. }| {
                    let result = Recorded { problem: Some(reason), ..Recorded::default() };
                    Arc::new(Kept { reads: BTreeMap::new(), result })
                };
                let kept = kept.unwrap_or_else(failed);
                groups.iter_mut().for_each(|group| group.add(&job, &kept.result));
            }
            ready.append(&mut groups);
        }
        let mut asked = Vec::new();
        for group in ready {
            asked.push((self.question(&group.tree, &json!({"grade": group.question()}))?, group));
        }
        // The modules of a commit do not change.
        let folder = self.root.clone().map(Tree::Folder);
        let (folder, mut known) = (folder.as_ref(), Known::new());
        for (group, result) in self.answered(asked, folder, &mut known, Maker::grade).await? {
            let result = match result {
                Ok(kept) => kept.result.clone(),
                Err(failed) => self.rejected(&group, &failed),
            };
            made.push(Made::new(group, result));
        }
        Ok(made)
    }

    /// The results of the methods of a module whose run failed.
    fn rejected(&self, group: &Group, failed: &Failed) -> ModuleResult {
        self.cx.retry.fetch_add(group.rows.len() as u64, Ordering::Relaxed);
        ModuleResult::rejected(group, failed.rule, &failed.reason)
    }

    /// The failure of a run, which the user is warned of, or an error that ends the step.
    fn failed(&mut self, failed: NoOracles) -> Result<Failed, StepError> {
        let NoOracles { rule, why } = failed;
        match why {
            NoResult::Interrupted => Err(StepError::interrupted()),
            NoResult::All(error) => Err(error),
            NoResult::Machine(reason) => {
                if !std::mem::replace(&mut self.warned, true) {
                    let text = format!("{reason} (the next run tries again)");
                    (self.cx.tell)(Tell::Warning(text));
                }
                Ok(Failed { rule, reason })
            }
        }
    }

    /// Identifies a run, except for the files that it reads.
    fn question(&self, tree: &TreeKey, job: &Value) -> Result<Digest, StepError> {
        let corpus = match tree {
            TreeKey::Corpus => Some(corpus_digest()?),
            TreeKey::Root | TreeKey::Commit { .. } => None,
        };
        Ok(Digest::of_json(&json!({
            "setting": self.setting,
            "corpus": corpus,
            "job": job,
        })))
    }

    /// The results of jobs, in their order; those that are not known are made. Results that have read
    /// other files than the tree now has do not count.
    async fn answered<J, T>(
        &mut self,
        jobs: Vec<(Digest, J)>,
        tree: Option<&Tree>,
        known: &mut Known<T>,
        make: fn(&Maker, &J) -> Result<Kept<T>, NoOracles>,
    ) -> Result<Vec<(J, Result<Arc<Kept<T>>, Failed>)>, StepError>
    where
        J: Clone + Send + 'static,
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        let mut results: Vec<Option<Result<Arc<Kept<T>>, Failed>>> = Vec::new();
        let mut fresh = Vec::new();
        for (at, (question, job)) in jobs.iter().enumerate() {
            let known = known.entry(*question).or_insert_with(|| {
                let earlier = self.answers.known(question);
                earlier.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
            });
            let is_current = |kept: &&Arc<Kept<T>>| tree.is_none_or(|tree| kept.is_current(tree));
            match known.iter().rev().find(is_current).cloned() {
                Some(kept) => results.push(Some(Ok(kept))),
                None => {
                    results.push(None);
                    fresh.push((at, *question, job.clone()));
                }
            }
        }
        let mut done = self.computed;
        self.reused += (jobs.len() - fresh.len()) as u64;
        self.computed += fresh.len() as u64;
        (self.cx.tell)(Tell::Total { work: self.computed, reused: self.reused });
        if !fresh.is_empty() {
            let maker = self.maker().await?;
            let concurrency = self.step.args.concurrency.map_or(self.cx.env.jobs, |n| n as usize);
            let answers = self.answers;
            let mut running = futures::stream::iter(fresh)
                .map(|(at, question, job)| {
                    let maker = Arc::clone(&maker);
                    async move {
                        let made = on_thread(move || Ok(make(&maker, &job))).await?;
                        if let Ok(kept) = &made {
                            let text = serde_json::to_string(kept).unwrap_or_default();
                            answers.keep(&question, &text).await?;
                        }
                        Ok::<_, StepError>((at, made))
                    }
                })
                .buffer_unordered(concurrency.max(1));
            while let Some(ended) = running.next().await {
                let (at, made) = ended?;
                let result = match made {
                    Ok(kept) => {
                        let kept = Arc::new(kept);
                        known.entry(jobs[at].0).or_default().push(Arc::clone(&kept));
                        Ok(kept)
                    }
                    Err(failed) => Err(self.failed(failed)?),
                };
                results[at] = Some(result);
                done += 1;
                (self.cx.tell)(Tell::Progress(done));
            }
        }
        let defect = || Failed { rule: "infra", reason: "a defect: it did not run".into() };
        let results = results.into_iter().map(|result| result.unwrap_or_else(|| Err(defect())));
        Ok(jobs.into_iter().map(|(_, job)| job).zip(results).collect())
    }

    fn access(&self) -> CommitAccess {
        CommitAccess {
            base: self.cx.base.clone(),
            downloads: self.cx.downloads.clone(),
            consent: Arc::clone(&self.cx.env.consent),
            stop: self.stop.flag(),
        }
    }

    /// Tries what the machine offers when the first program has to run.
    async fn maker(&mut self) -> Result<Arc<Maker>, StepError> {
        if let Some(maker) = &self.maker {
            return Ok(Arc::clone(maker));
        }
        let BoundOracle { args, base, .. } = self.step;
        // The first look at the machine starts programs.
        on_thread(|| Ok(machine())).await?;
        let (python, mut readable) = self.step.python()?;
        let sandbox = args.sandbox.open(self.cx)?;
        let mut rights = Specification::new(Vec::<String>::new());
        args.sandbox.show_folders(self.cx, base, &sandbox, &mut rights)?;
        readable.append(&mut rights.readable);
        readable.extend(self.root.clone());
        let runner = Runner {
            sandbox,
            python,
            readable,
            writable: rights.writable,
            timeout: self.step.timeout,
            memory: self.step.memory,
            cancel: self.cx.env.cancel.clone(),
            stop: self.stop.flag(),
        };
        let (access, root) = (self.access(), self.root.clone());
        let maker = Arc::new(Maker { runner, access, root, settings: self.step.settings() });
        self.maker = Some(Arc::clone(&maker));
        Ok(maker)
    }
}

/// A rule and a reason for which a run has no result. The next one tries again.
#[derive(Clone, Debug)]
struct Failed {
    rule: &'static str,
    reason: String,
}

/// Why a run has no result.
struct NoOracles {
    rule: &'static str,
    why: NoResult,
}

impl From<NoResult> for NoOracles {
    fn from(why: NoResult) -> Self {
        Self { rule: "infra", why }
    }
}

fn open_tree(
    key: &TreeKey,
    root: Option<&PathBuf>,
    access: &CommitAccess,
) -> Result<Tree, NoOracles> {
    match (key, root) {
        (TreeKey::Commit { url, commit }, _) => {
            access.tree(url, commit).map_err(|error| match error.kind {
                GitErrorKind::Interrupted => NoOracles::from(NoResult::Interrupted),
                _ => NoOracles { rule: "fetch", why: NoResult::Machine(error.message) },
            })
        }
        (TreeKey::Root, Some(root)) => Ok(Tree::Folder(root.clone())),
        (TreeKey::Root, None) => {
            Err(NoResult::All(StepError::new("a defect: there is no root")).into())
        }
        (TreeKey::Corpus, _) => Ok(Tree::corpus().map_err(NoResult::All)?),
    }
}

/// The modules with examples among those at these paths, and the test files.
fn listing(
    key: &TreeKey,
    root: Option<PathBuf>,
    access: &CommitAccess,
    patterns: &[String],
    paths: &[String],
) -> Result<Listing, NoOracles> {
    let all = |error| NoOracles::from(NoResult::All(error));
    let tree = Arc::new(open_tree(key, root.as_ref(), access)?);
    let files = tree.paths().map_err(all)?;
    let (modules, tops) = tree.module_names(&files);
    let (modules, tops) = (Arc::new(modules), Arc::new(tops));
    let name = |path: &String| Some((path.clone(), tree.module(path)?.name));
    let names = paths.iter().filter_map(name).collect();
    let patterns = script_patterns(patterns)
        .map_err(|error| all(StepError::new(error.to_string()).because(error)))?;
    let job = |path: &String, is_script| RecordJob {
        key: key.clone(),
        tree: Arc::clone(&tree),
        path: path.clone(),
        is_script,
        modules: Arc::clone(&modules),
        tops: Arc::clone(&tops),
    };
    let mut jobs = Vec::new();
    for path in files.iter().filter(|path| paths.contains(path) || patterns.is_match(path)) {
        let content = tree.read(path).unwrap_or_default();
        let has = |word: &[u8]| content.windows(word.len()).any(|window| window == word);
        let is_module = path.ends_with(".py");
        if is_module && has(b">>> ") {
            jobs.push(job(path, false));
        }
        // A module of the corpus is only run among those of the interpreter.
        let is_test = !is_module || has(b"def test") || !has(b">>> ");
        if patterns.is_match(path) && is_test && *key != TreeKey::Corpus {
            jobs.push(job(path, true));
        }
    }
    Ok(Listing { tree, jobs, modules: names })
}

/// Opens trees, and runs the programs. Shared between threads.
struct Maker {
    runner: Runner,
    access: CommitAccess,
    root: Option<PathBuf>,
    settings: Settings,
}

impl Maker {
    fn record(&self, job: &RecordJob) -> Result<Kept<Recorded>, NoOracles> {
        let result = self.runner.record(job)?;
        Ok(Kept { reads: reads(&job.tree, &result.read), result })
    }

    fn grade(&self, group: &Group) -> Result<Kept<ModuleResult>, NoOracles> {
        let tree = open_tree(&group.tree, self.root.as_ref(), &self.access)?;
        let Some(module) = tree.module(&group.path) else {
            let reason = format!("there is no Python file `{}`", group.path);
            return Err(NoOracles { rule: "source", why: NoResult::Machine(reason) });
        };
        let result = self.runner.grade(group, module, &tree, &self.settings)?;
        Ok(Kept { reads: reads(&tree, &result.read), result })
    }
}

/// The digests of files that a run has read, if it has not written them.
fn reads(tree: &Tree, read: &[String]) -> BTreeMap<String, Digest> {
    read.iter().filter_map(|path| Some((path.clone(), tree.digest(path)?))).collect()
}
