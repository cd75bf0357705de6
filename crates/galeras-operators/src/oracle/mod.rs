//! `oracle`: test cases for methods, from the calls that examples and test files make.

mod runner;
mod tables;
mod tree;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use futures::StreamExt;
use futures::future::BoxFuture;
use globset::GlobSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::runner::{ModuleResult, Runner};
use self::tables::{Made, tables};
use self::tree::{CommitAccess, Tree, TreeKey, corpus_module, script_patterns};
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
const KEPT: u32 = 1;

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
            let error = ArgError::new(at, Code::MissingFile, message);
            error.help("paths are relative to the workflow file")
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
}

/// The methods of a module.
#[derive(Clone, Debug)]
struct Group {
    tree: TreeKey,
    path: String,
    rows: Vec<usize>,
    methods: Vec<Method>,
}

/// A result as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// The files of the folder that were read, by their digests: all of it depends on them alone.
    reads: BTreeMap<String, Digest>,
    result: ModuleResult,
}

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
            });
            group.rows.push(at);
            group.methods.push(Method { id, qualified_name, name, line });
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
            work.complete(&groups).await?;
            let Work { mut results, computed, reused, .. } = work;
            let made = groups.into_iter().enumerate().filter_map(|(at, group)| {
                let result = results.remove(&at)?;
                let Group { tree, path, rows, methods } = group;
                let ids = methods.into_iter().map(|method| method.id);
                Some(Made { tree, path, rows: rows.into_iter().zip(ids).collect(), result })
            });
            let made: Vec<Made> = made.collect();
            let ports = tables(cx, &self.ports, &rows, &made, &without)?;
            Ok(PaidResult { ports, computed, reused })
        })
    }
}

/// The modules of a step: those of earlier runs, and those whose oracles are made now.
struct Work<'a> {
    step: &'a BoundOracle,
    cx: &'a LowerContext,
    answers: &'a dyn Answers,
    setting: Value,
    patterns: GlobSet,
    /// The folder of the argument `root`, and the test files in it.
    root: Option<(PathBuf, Vec<String>)>,
    stop: StopOnDrop,
    /// By the place of the module's group.
    results: HashMap<usize, ModuleResult>,
    computed: u64,
    reused: u64,
}

impl<'a> Work<'a> {
    fn new(
        step: &'a BoundOracle,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
    ) -> Result<Self, StepError> {
        let patterns = script_patterns(&step.args.scripts);
        let patterns = patterns.map_err(|error| StepError::new(error.to_string()))?;
        let root = match (&step.args.root, step.root()) {
            (Some(name), Some(root)) => {
                let root = root.canonicalize().map_err(|error| unreadable(name, error))?;
                let scripts = Tree::Folder(root.clone()).matching(&patterns)?;
                Some((root, scripts))
            }
            _ => None,
        };
        Ok(Self {
            step,
            cx,
            answers,
            setting: step.setting()?,
            patterns,
            root,
            stop: StopOnDrop::default(),
            results: HashMap::new(),
            computed: 0,
            reused: 0,
        })
    }

    /// Identifies the oracles of a module. The contents of a folder's files are compared with those that
    /// were read.
    fn question(&self, group: &Group) -> Result<Digest, StepError> {
        let corpus = match group.tree {
            TreeKey::Corpus => Some(corpus_digest()?),
            TreeKey::Root | TreeKey::Commit { .. } => None,
        };
        let scripts = self.root.as_ref().map(|(_, scripts)| scripts);
        Ok(Digest::of_json(&json!({
            "setting": self.setting,
            "tree": group.tree.identity(),
            "corpus": corpus,
            "path": group.path,
            "methods": group.methods,
            "patterns": self.step.args.scripts,
            "scripts": scripts,
        })))
    }

    fn is_current(&self, kept: &Kept) -> bool {
        let root = self.root.as_ref().map(|(root, _)| root);
        kept.reads.iter().all(|(path, digest)| {
            root.and_then(|root| file_digest(&root.join(path))).as_ref() == Some(digest)
        })
    }

    /// Makes the oracles of these modules, unless they are known.
    async fn complete(&mut self, groups: &[Group]) -> Result<(), StepError> {
        let mut fresh = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let question = self.question(group)?;
            let known = self.answers.known(&question);
            let known =
                known.iter().rev().filter_map(|text| serde_json::from_str::<Kept>(text).ok());
            match known.into_iter().find(|kept| self.is_current(kept)) {
                Some(kept) => {
                    self.results.insert(at, kept.result);
                    self.reused += 1;
                }
                None => fresh.push((at, question, group.clone())),
            }
        }
        self.computed = fresh.len() as u64;
        (self.cx.tell)(Tell::Total { work: self.computed, reused: self.reused });
        if fresh.is_empty() {
            return Ok(());
        }
        let maker = Arc::new(self.maker().await?);
        let concurrency = self.step.args.concurrency.map_or(self.cx.env.jobs, |n| n as usize);
        let answers = self.answers;
        let mut running = futures::stream::iter(fresh)
            .map(|(at, question, group)| {
                let maker = Arc::clone(&maker);
                async move {
                    let (made, group) = on_thread(move || Ok((maker.make(&group), group))).await?;
                    if let Ok(kept) = &made {
                        let text = serde_json::to_string(kept).unwrap_or_default();
                        answers.keep(&question, &text).await?;
                    }
                    Ok::<_, StepError>((at, group, made))
                }
            })
            .buffer_unordered(concurrency.max(1));
        let (mut done, mut warned) = (0, false);
        while let Some(ended) = running.next().await {
            let (at, group, made) = ended?;
            let result = match made {
                Ok(kept) => kept.result,
                Err(NoOracles { why: NoResult::Interrupted, .. }) => {
                    return Err(StepError::interrupted());
                }
                Err(NoOracles { why: NoResult::All(error), .. }) => return Err(error),
                Err(NoOracles { rule, why: NoResult::Machine(reason) }) => {
                    self.cx.retry.fetch_add(group.rows.len() as u64, Ordering::Relaxed);
                    if !std::mem::replace(&mut warned, true) {
                        let text = format!("{reason} (the next run tries again)");
                        (self.cx.tell)(Tell::Warning(text));
                    }
                    ModuleResult::rejected(&group, rule, &reason)
                }
            };
            self.results.insert(at, result);
            done += 1;
            (self.cx.tell)(Tell::Progress(done));
        }
        Ok(())
    }

    async fn maker(&self) -> Result<Maker, StepError> {
        let BoundOracle { args, base, .. } = self.step;
        // The first look at the machine starts programs.
        on_thread(|| Ok(machine())).await?;
        let (python, mut readable) = self.step.python()?;
        let mut rights = Specification::new(Vec::<String>::new());
        args.sandbox.show_folders(base, &mut rights);
        readable.append(&mut rights.readable);
        readable.extend(self.root.as_ref().map(|(root, _)| root.clone()));
        let runner = Runner {
            sandbox: args.sandbox.open(self.cx)?,
            python,
            readable,
            writable: rights.writable,
            timeout: self.step.timeout,
            memory: self.step.memory,
            cancel: self.cx.env.cancel.clone(),
            stop: self.stop.flag(),
        };
        let access = CommitAccess {
            base: self.cx.base.clone(),
            downloads: self.cx.downloads.clone(),
            consent: Arc::clone(&self.cx.env.consent),
            stop: self.stop.flag(),
        };
        let (patterns, root) = (self.patterns.clone(), self.root.clone());
        Ok(Maker { runner, access, patterns, root, settings: self.step.settings() })
    }
}

/// Why a module has no oracles.
struct NoOracles {
    rule: &'static str,
    why: NoResult,
}

impl From<NoResult> for NoOracles {
    fn from(why: NoResult) -> Self {
        Self { rule: "infra", why }
    }
}

/// Finds the files of modules, and runs the programs. Shared between threads.
struct Maker {
    runner: Runner,
    access: CommitAccess,
    patterns: GlobSet,
    root: Option<(PathBuf, Vec<String>)>,
    settings: Settings,
}

impl Maker {
    fn make(&self, group: &Group) -> Result<Kept, NoOracles> {
        let all = |error| NoOracles::from(NoResult::All(error));
        let (tree, scripts) = match (&group.tree, &self.root) {
            (TreeKey::Commit { url, commit }, _) => {
                let tree = self.access.tree(url, commit).map_err(|error| match error.kind {
                    GitErrorKind::Interrupted => NoOracles::from(NoResult::Interrupted),
                    _ => NoOracles { rule: "fetch", why: NoResult::Machine(error.message) },
                })?;
                let scripts = tree.matching(&self.patterns).map_err(all)?;
                (Some(tree), scripts)
            }
            (TreeKey::Root, Some((root, scripts))) => {
                (Some(Tree::Folder(root.clone())), scripts.clone())
            }
            (TreeKey::Root, None) => (None, Vec::new()),
            (TreeKey::Corpus, _) => (corpus_module(&group.path).map_err(all)?, Vec::new()),
        };
        let result = match tree {
            Some(tree) => self.runner.run(group, &tree, &scripts, &self.settings)?,
            None => {
                let reason = format!("there is no Python file `{}`", group.path);
                ModuleResult::rejected(group, "source", &reason)
            }
        };
        let root = self.root.as_ref().filter(|_| group.tree == TreeKey::Root);
        let reads = root.into_iter().flat_map(|(root, _)| {
            let digest = move |path: &String| Some((path.clone(), file_digest(&root.join(path))?));
            result.read.iter().filter_map(digest)
        });
        Ok(Kept { reads: reads.collect(), result })
    }
}

/// The digest of a file, if it can be read.
fn file_digest(path: &Path) -> Option<Digest> {
    small_file::open(path).and_then(Digest::of_reader).ok()
}
