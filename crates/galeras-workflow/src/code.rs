//! The diagnostic codes: one list of all kinds of mistakes in a workflow.
//!
//! The comment of a code is its explanation, for `galeras check --explain CODE` and
//! docs/diagnostics.md. So each has the same form: one line with the problem, the reason and the
//! fix, and the corrected YAML.

use std::fmt::Write as _;
use std::str::FromStr as _;

use strum::{EnumMessage as _, IntoEnumIterator as _};

/// A stable name of a kind of mistake, such as `unknown-column`. Scripts may rely on it: the
/// wording of a message may change, its code does not.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::EnumIter,
    strum::EnumMessage,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Code {
    /// A `${{ … }}` expression cannot be read.
    ///
    /// An expression is one name: `params.NAME`, or `matrix.NAME` in a step with a matrix; `.KEY`
    /// after it is a value within a mapping. There are no operators and no functions; whatever needs
    /// to be computed belongs in a step. An opening `${{` also needs its `}}`.
    ///
    /// ```yaml
    /// with: { threshold: "${{ params.threshold }}" }
    /// ```
    BadExpression,
    /// A file that a step reads cannot be used.
    ///
    /// The file exists, but its content is not what the argument needs: for example, a tokenizer
    /// file that is not a tokenizer. The message contains the reason. Write the file again with the
    /// tool that created it, or name another one.
    ///
    /// ```yaml
    /// with: { column: code, tokens: bpe, tokenizer_file: models/tokenizer.json }
    /// ```
    BadFile,
    /// The causal graph cannot be used.
    ///
    /// `graph` is written in DOT: nodes are columns, arrows point from cause to effect. It must be
    /// free of cycles and contain the treatment and every outcome, because the confounders are
    /// derived from it.
    ///
    /// ```yaml
    /// with:
    ///   treatment: arm
    ///   outcomes: [score]
    ///   graph: "digraph { size -> arm; size -> score; arm -> score }"
    /// ```
    BadGraph,
    /// The lock file cannot be used.
    ///
    /// `galeras.lock` pins the external facts that the workflow uses: versions, files, snapshots.
    /// It was damaged or edited by hand, so it cannot be used. Write it again with `galeras lock
    /// FILE`, or take it from version control.
    ///
    /// ```yaml
    /// # galeras lock workflow.yaml
    /// ```
    BadLock,
    /// A name has a form that names cannot have.
    ///
    /// Names of steps, params, outputs and matrix keys start with a letter or `_`; letters, digits,
    /// `_` and `-` may follow. They appear in references, on the command line and in SQL, where
    /// other characters would be ambiguous.
    ///
    /// ```yaml
    /// steps:
    ///   long_methods: { op: methods, with: { corpus: python-stdlib } }
    /// ```
    BadName,
    /// The path of a file cannot be used.
    ///
    /// Outputs are written below one folder, so their paths are relative, do not leave the folder
    /// through `..`, and end in a suffix that gives the format. Each output needs its own file: not
    /// a folder, not a file where another one needs a folder, not the file of another output, even
    /// through links, and not inside the folders of the store. Hidden files and folders (`.vscode`)
    /// and names that tools obey in any folder (`package.json`) are refused; `--out` may name any
    /// folder. `uses` names a `.yaml` file relative to the workflow.
    ///
    /// ```yaml
    /// outputs:
    ///   testbed: { from: testbed, path: random_cut/testbed.parquet }
    /// ```
    BadPath,
    /// A file pattern cannot be read.
    ///
    /// Patterns are globs: `*` matches within a folder, `**` across folders, `{a,b}` one of
    /// several. Brackets and braces must be closed.
    ///
    /// ```yaml
    /// with: { dir: src, include: ["**/*.py"], exclude: ["**/tests/**"] }
    /// ```
    BadPattern,
    /// A search of GitHub repositories cannot be read.
    ///
    /// `github` takes the words and qualifiers of GitHub's repository search. The message names
    /// the part that GitHub would refuse or that cannot be cut into pages.
    ///
    /// ```yaml
    /// with: { github: "language:python stars:>1000 created:2020-01-01..2021-01-01" }
    /// ```
    BadQuery,
    /// A reference in `from` cannot be read.
    ///
    /// Steps are connected by `from`: a step, one of its ports, all cells of a matrix, or one of
    /// them. It may contain params; the result is read like any other reference.
    ///
    /// ```yaml
    /// from: valid
    /// from: valid.rejects
    /// from: "scores[*]"
    /// from: "scores[model=small]"
    /// from: "testbeds.${{ params.testbed }}"
    /// ```
    BadReference,
    /// An entry of a list of repositories cannot be read.
    ///
    /// A repository is `owner/name`, an address, a local folder, or a name of your choice with one
    /// of these.
    ///
    /// ```yaml
    /// with:
    ///   repos:
    ///     - psf/requests
    ///     - { repo: mine, url: ../my-clone }
    /// ```
    BadRepository,
    /// A prompt template cannot be read or uses something that does not exist.
    ///
    /// Templates are Jinja: `{{ column }}` inserts the value of a column of the row. They are
    /// checked before anything runs, so a mistake costs no model call.
    ///
    /// ```yaml
    /// with:
    ///   treatments:
    ///     plain: "Complete this method:\n{{ code }}"
    /// ```
    BadTemplate,
    /// The turns of a treatment are not a conversation that a model can answer.
    ///
    /// A treatment has a name and at least one turn. A system message comes first, and the last
    /// turn is the user's, because the model answers it.
    ///
    /// ```yaml
    /// with:
    ///   treatments:
    ///     polite:
    ///       - { role: system, content: "You are a careful programmer." }
    ///       - "Complete this method:\n{{ code }}"
    /// ```
    BadTurns,
    /// An address cannot be used.
    ///
    /// An address starts with `http://` or `https://` and names a host. It has no user, password or
    /// token, because it is written to results, logs and `galeras.lock`: put keys into environment
    /// variables. The message contains the problem with this one.
    ///
    /// ```yaml
    /// with: { provider: openai, model: gpt-4o-mini, base_url: "https://api.openai.com/v1" }
    /// ```
    BadUrl,
    /// A table does not keep the contract of its step.
    ///
    /// `schema` promises columns and their types to readers of the workflow. The operator produces
    /// others, or none. Correct the contract, or the arguments that decide the columns. `utf8!`
    /// promises that no value is null.
    ///
    /// ```yaml
    /// schema: { id: utf8!, score: float64 }
    /// ```
    BrokenContract,
    /// Two arguments exclude each other.
    ///
    /// Both were given, and each makes the other meaningless or wrong. Rather than prefer one in
    /// silence, Galeras asks you to remove one.
    ///
    /// ```yaml
    /// with: { n: 500, seed: 42 }   # not `fraction` as well
    /// ```
    ConflictingArguments,
    /// Two keys exclude each other.
    ///
    /// A step has either `op` or `uses`, an assertion checks one thing, only numbers have `min` and
    /// `max`, and only a `.txt` or `.json` output has a `column`. Remove one of the keys.
    ///
    /// ```yaml
    /// steps:
    ///   methods: { op: methods, with: { corpus: python-stdlib } }
    /// ```
    ConflictingKeys,
    /// A prompt uses no column.
    ///
    /// Without a column, a treatment asks every row the same question. Names of columns are in two
    /// braces: `{code}` stays as it is written. This is a warning, since it may be meant.
    ///
    /// ```yaml
    /// with: { treatments: { control: "Complete this method: {{ code }}" } }
    /// ```
    ConstantPrompt,
    /// No rule reads a column.
    ///
    /// A rule that does not depend on the row accepts every row or none, which is probably a
    /// mistake. Name a column in at least one rule.
    ///
    /// ```yaml
    /// with: { rules: [{ name: parses, check: "parses(code)" }] }
    /// ```
    ConstantRules,
    /// Steps need each other's results.
    ///
    /// `from` leads from a step back to itself, directly or through others, or a workflow embeds
    /// itself through `uses`, so none of them could start. The message shows the circle; cut it at
    /// one place.
    ///
    /// ```yaml
    /// steps:
    ///   a: { op: methods, with: { corpus: python-stdlib } }
    ///   b: { op: ast, from: a }
    /// ```
    Cycle,
    /// A part of the program failed in a step.
    ///
    /// It met an input that it cannot handle: usually a damaged file, sometimes an expression.
    /// Nothing was stored. Write the file again, or the expression in another way, and please
    /// report it.
    ///
    /// ```yaml
    /// with: { path: data/methods.parquet }
    /// ```
    Defect,
    /// Two columns would have the same name.
    ///
    /// Columns are addressed by name, so a table has each name once. Rename one of them, or leave
    /// it out.
    ///
    /// ```yaml
    /// with: { query: "SELECT a.id, a.score AS before, b.score AS after FROM a JOIN b USING (id)" }
    /// ```
    DuplicateColumn,
    /// A key occurs twice in one mapping.
    ///
    /// YAML readers keep one of them, and not always the same one. Remove or rename one.
    ///
    /// ```yaml
    /// with: { seed: 42, n: 500 }
    /// ```
    DuplicateKey,
    /// Two repositories of a list would have the same name.
    ///
    /// The name of a repository distinguishes its rows from those of others. Give one of them
    /// another name.
    ///
    /// ```yaml
    /// with:
    ///   repos:
    ///     - psf/requests
    ///     - { repo: my-requests, url: ../requests }
    /// ```
    DuplicateRepository,
    /// Two rules have the same name.
    ///
    /// Rejected rows name the rule that they broke. Give each rule its own name.
    ///
    /// ```yaml
    /// with:
    ///   rules:
    ///     - { name: parses, check: "parses(code)" }
    ///     - { name: long_enough, check: "nloc > 3" }
    /// ```
    DuplicateRule,
    /// The file has no workflow in it.
    ///
    /// The file is empty or has only comments. `galeras init` writes a workflow to start from.
    ///
    /// ```yaml
    /// galeras: 1
    /// name: first
    /// steps:
    ///   methods: { op: methods, with: { corpus: python-stdlib } }
    /// ```
    EmptyFile,
    /// A list that needs entries has none.
    ///
    /// The step would have nothing to do. Add an entry, or remove the step.
    ///
    /// ```yaml
    /// with: { repos: [psf/requests] }
    /// ```
    EmptyList,
    /// A window of time ends before it starts.
    ///
    /// `since` is the first moment inside the window, `until` the first moment after it, so
    /// `until` must be later.
    ///
    /// ```yaml
    /// with: { since: 2022-01-01, until: 2023-01-01 }
    /// ```
    EmptyWindow,
    /// A required argument is absent.
    ///
    /// The operator cannot guess it: `galeras ops NAME` shows the arguments and their defaults.
    ///
    /// ```yaml
    /// sample: { op: sample, from: methods, with: { n: 500, seed: 42 } }
    /// ```
    MissingArgument,
    /// A file or folder that the workflow names cannot be read.
    ///
    /// Paths are relative to the folder of the workflow file, and those in `--set` to the current
    /// folder. Check the spelling, and that the file is there and readable.
    ///
    /// ```yaml
    /// with: { path: data/methods.parquet }
    /// ```
    MissingFile,
    /// A required key is absent.
    ///
    /// The message names the key and the place that needs it.
    ///
    /// ```yaml
    /// galeras: 1
    /// name: first
    /// steps:
    ///   methods: { op: methods, with: { corpus: python-stdlib } }
    /// ```
    MissingKey,
    /// The environment has no key for a paid service.
    ///
    /// Keys are never written into a workflow. Export the variable that the message names, or let
    /// `api_key_env` name another one.
    ///
    /// ```yaml
    /// with: { provider: openai, model: gpt-4o-mini, api_key_env: MY_API_KEY }
    /// ```
    MissingSecret,
    /// The workflow wants to do something on this machine that you have not allowed.
    ///
    /// A workflow is someone's code. Before it runs a program, sends the value of an environment
    /// variable or your data to a server, or reads and writes files outside its folder, Galeras asks
    /// you once; without a terminal, use `--allow`. The message describes the action, the help has
    /// the flag to add. Look at it before you allow it. As a warning of `check`, which sends nothing,
    /// it names a file that was not fetched, so that what depends on its columns is not checked.
    ///
    /// ```yaml
    /// with: { command: "python3 score.py", files: [score.py], output: { id: utf8! } }
    /// ```
    NotAllowed,
    /// The expression needs more than one row.
    ///
    /// A rule or an assertion sees one row at a time, so it can neither aggregate nor query.
    /// Compute the aggregate in a step with `op: sql` and join it.
    ///
    /// ```yaml
    /// assert: [{ expr: "nloc > 1" }]
    /// ```
    NotARowExpression,
    /// The query is not one `SELECT`.
    ///
    /// A step computes a table and changes nothing else, so it takes one `SELECT` (or `WITH …
    /// SELECT`) and no `CREATE`, `INSERT`, `COPY` or `SET`.
    ///
    /// ```yaml
    /// with: { query: "SELECT id, nloc FROM input WHERE nloc > 3" }
    /// ```
    NotASelect,
    /// The query could give another result tomorrow.
    ///
    /// Results are stored and shared under a digest of everything that they depend on. `random()`,
    /// `now()`, or a `LIMIT` without a full `ORDER BY` depend on something else. Use `op: sample`
    /// with a seed, pass a date as a param, or order by the key.
    ///
    /// ```yaml
    /// with: { query: "SELECT * FROM input ORDER BY id LIMIT 10" }
    /// ```
    NotDeterministic,
    /// The run is frozen, and the lock file does not pin an external fact that the step needs.
    ///
    /// `--frozen` promises that only facts in `galeras.lock` are used. Run `galeras lock FILE` and
    /// commit the lock file, or run without `--frozen`.
    ///
    /// ```yaml
    /// # galeras lock workflow.yaml
    /// ```
    NotLocked,
    /// A pattern can only match files of a language that the step cannot read.
    ///
    /// `methods` and `mine` read Python. A pattern such as `**/*.java` leaves no files for them, so
    /// the result would be an empty table without an error.
    ///
    /// ```yaml
    /// with: { dir: src, include: ["**/*.py"] }
    /// ```
    OtherLanguage,
    /// Another version of the program wrote the lock file.
    ///
    /// `galeras.lock` records the version of the program that locked the workflow, because
    /// operators of another version may give other results. A run warns about it, and a run with
    /// `--frozen` is refused. Use that version, or run `galeras lock FILE` and commit the lock
    /// file.
    ///
    /// ```yaml
    /// # galeras lock workflow.yaml
    /// ```
    OtherProgram,
    /// A number is outside its allowed range.
    ///
    /// The message contains the range: a share is between 0 and 1, a count is at least 1, an amount
    /// of money is not negative.
    ///
    /// ```yaml
    /// with: { column: code, threshold: 0.8 }
    /// ```
    OutOfRange,
    /// An output would replace a file that does not come from this workflow.
    ///
    /// A run replaces only files that the same workflow (of the same name, in a file of the same
    /// name) wrote before: no file of another workflow, no file that has changed since, no file of
    /// unknown origin. `galeras origin FILE` shows the origin of a file. A file whose content would
    /// stay the same is left alone. Move the file away, choose another path or folder, or replace
    /// it with `--overwrite`.
    ///
    /// ```yaml
    /// outputs:
    ///   testbed: { from: testbed, path: random_cut/testbed.parquet }
    /// ```
    OverwrittenFile,
    /// An output would overwrite a file that the workflow reads.
    ///
    /// A run would destroy its own input, and the next one would read the output of this one. Links
    /// count as their targets. The files that a workflow reads include the workflow file, the files
    /// that it embeds, its contracts and its lock file. Choose another path.
    ///
    /// ```yaml
    /// steps:
    ///   data: { op: read, with: { path: data.csv } }
    /// outputs:
    ///   data: { from: data, path: out/data.csv }
    /// ```
    OverwrittenInput,
    /// The plan of the workflow would be too large.
    ///
    /// Matrices multiply, and so do workflows that embed others: a few files can lead to millions
    /// of steps. A plan has at most 50,000 steps, embeds at most 10,000 workflows, and nests at
    /// most 64 of them. Embed a workflow once and read its outputs where they are needed, or put
    /// the values of a matrix into the rows of a table.
    ///
    /// ```yaml
    /// steps:
    ///   collect: { uses: collect.yaml }
    ///   counted: { op: describe, from: collect.methods }
    ///   scored: { op: score, from: collect.answers, with: { metrics: [bleu] } }
    /// ```
    PlanLimit,
    /// An SQL expression is not possible.
    ///
    /// The SQL is well-formed, but does not fit these columns: an unknown function, the wrong
    /// number of arguments, types that cannot be compared. The message is the SQL planner's.
    /// `galeras show FILE STEP` shows a table and its columns.
    ///
    /// ```yaml
    /// with: { rules: [{ name: short, check: "char_length(code) < 2000" }] }
    /// ```
    Sql,
    /// The SQL is nested more deeply than can be planned.
    ///
    /// Every operator of a chain (`a OR b OR c`), every join, and every part of a `UNION` makes the
    /// expression one level deeper, and a thread has room for some thousand levels. An expression or a
    /// query may have 2,000 operators and keywords; lists count by their longest item. Compare with a
    /// list, join with a table that holds the values, or compute a part in a step before.
    ///
    /// ```yaml
    /// with: { query: "SELECT * FROM input WHERE repo IN ('a/b', 'c/d', 'e/f')" }
    /// ```
    SqlLimit,
    /// An SQL expression cannot be parsed.
    ///
    /// Something is missing or misspelt near the place in the message. Texts need single quotes,
    /// unusual column names double quotes, and the whole YAML quotes.
    ///
    /// ```yaml
    /// with: { rules: [{ name: no_tests, check: "path NOT LIKE '%test%'" }] }
    /// ```
    SqlSyntax,
    /// `with` has a key that the operator does not know.
    ///
    /// Ignoring a misspelt argument would give a wrong result. `galeras ops NAME` lists the
    /// arguments of an operator.
    ///
    /// ```yaml
    /// unique: { op: dedup, from: valid, with: { column: code, threshold: 0.8 } }
    /// ```
    UnknownArgument,
    /// `from` selects a cell that the matrix does not have.
    ///
    /// A step with a matrix has one cell for each combination of its values. Name one by the values
    /// that it has, or take all with `[*]`.
    ///
    /// ```yaml
    /// from: "answers[model=small]"
    /// ```
    UnknownCell,
    /// A column does not exist.
    ///
    /// The table that the step reads has no column of this name. Columns are known before anything
    /// runs; `galeras show FILE STEP` shows those of a step that has run.
    ///
    /// ```yaml
    /// with: { column: code }
    /// ```
    UnknownColumn,
    /// The format of a file is not known.
    ///
    /// The suffix says how a file is read: `.parquet`, `.csv`, `.json` or `.jsonl`. A file with
    /// another suffix needs `format`.
    ///
    /// ```yaml
    /// with: { path: data/methods.txt, format: csv }
    /// ```
    UnknownFormat,
    /// SQL calls a function that does not exist.
    ///
    /// Queries and conditions may use the functions of docs/functions.md and those of DataFusion.
    /// The word is marked within the query, and the help suggests the function with the most
    /// similar name; other dialects may use another name (`length` counts characters, as Python's
    /// `len` does).
    ///
    /// ```yaml
    /// with: { query: "SELECT repo, count(*) AS methods FROM input GROUP BY repo" }
    /// ```
    UnknownFunction,
    /// A mapping has an unknown key.
    ///
    /// Ignoring a misspelt key would silently change the workflow. The message lists the keys that
    /// are allowed here.
    ///
    /// ```yaml
    /// valid: { op: validate, from: features, description: what a testbed may contain }
    /// ```
    UnknownKey,
    /// `op` names no operator.
    ///
    /// The name is misspelt, or it is the name of a step: operators come after `op`, steps after
    /// `from`. `galeras ops` lists all operators.
    ///
    /// ```yaml
    /// features: { op: ast, from: methods }
    /// ```
    UnknownOperator,
    /// An option of the command line has the wrong form.
    ///
    /// `--set` has the form `name=value`: the name of a param, and the value it gets.
    ///
    /// ```yaml
    /// # galeras run workflow.yaml --set seed=7
    /// ```
    UnknownOption,
    /// A param or matrix key does not exist.
    ///
    /// An expression, `--set` or the `with` of an embedded workflow names a param that the workflow
    /// does not declare under `params`, or a key that is not in the step's `matrix`.
    ///
    /// ```yaml
    /// params: { seed: { type: int, default: 42 } }
    /// steps:
    ///   some: { op: sample, from: methods, with: { n: 10, seed: "${{ params.seed }}" } }
    /// ```
    UnknownParam,
    /// `from` names a port that the step does not have.
    ///
    /// `galeras ops NAME` lists the ports of an operator. The main one needs no name: `from: valid`
    /// is the table of the rows that passed, `from: valid.rejects` the others.
    ///
    /// ```yaml
    /// from: valid.rejects
    /// ```
    UnknownPort,
    /// `from` names no step.
    ///
    /// The name is misspelt, or the step is in another workflow: one that is embedded with `uses`
    /// shows only its outputs.
    ///
    /// ```yaml
    /// features: { op: ast, from: methods }
    /// ```
    UnknownStep,
    /// The query reads a table that does not exist.
    ///
    /// The tables of a query are the inputs of the step, by the names that `from` gives them. A
    /// single input without a name is called `input`.
    ///
    /// ```yaml
    /// both:
    ///   op: sql
    ///   from: { a: left_step, b: right_step }
    ///   with: { query: "SELECT a.id FROM a JOIN b USING (id)" }
    /// ```
    UnknownTable,
    /// A type does not exist.
    ///
    /// Params have the types `int`, `float`, `bool`, `string` and `path`. Columns have types such
    /// as `utf8`, `int64`, `float64`, `bool` and `list<utf8>`; a `!` after the type excludes nulls.
    ///
    /// ```yaml
    /// schema: { id: utf8!, nloc: int64, score: float64 }
    /// ```
    UnknownType,
    /// A query groups rows that it has unnested from groups.
    ///
    /// DataFusion assumes that the columns of a group still determine all others after `unnest` has
    /// made several rows of it, and would leave columns out of `GROUP BY` and `DISTINCT`: the
    /// result would be wrong. Unnest in a separate step, or group by fewer columns.
    ///
    /// ```yaml
    /// long: { op: sql, from: counts, with: { query: "SELECT repo, unnest(years) AS year FROM input", key: [repo, year] } }
    /// each: { op: sql, from: long, with: { query: "SELECT repo, year, count(*) AS n FROM input GROUP BY repo, year" } }
    /// ```
    UnnestedGroups,
    /// An address cannot be reached.
    ///
    /// The host is unknown, offline, or refuses. Nothing was stored. Try again, or download the
    /// file and name it with `path`.
    ///
    /// ```yaml
    /// with: { path: downloads/methods.parquet }
    /// ```
    UnreachableUrl,
    /// A file exists, but cannot be read in its format.
    ///
    /// It is not in the format of its suffix or of `format`, has no columns, or is damaged. The
    /// message contains the position of the error.
    ///
    /// ```yaml
    /// with: { path: data/methods.csv }
    /// ```
    UnreadableFile,
    /// A param's value could be read as code where it is used.
    ///
    /// Values enter SQL as literals and commands as quoted words. In a few places quotes do not
    /// help: a comment, backticks, `${…}`, arithmetic, a here-document, SQL between `$$`. A text
    /// also cannot be a whole query or command. Only plain words and numbers are accepted there.
    ///
    /// ```yaml
    /// with: { query: "SELECT * FROM input WHERE repo = ${{ params.repo }}" }
    /// ```
    UnsafeSubstitution,
    /// An address has a scheme that cannot be read.
    ///
    /// `url` takes `http` and `https`. Use `path` for a local file.
    ///
    /// ```yaml
    /// with: { url: "https://example.org/methods.parquet" }
    /// ```
    UnsupportedUrl,
    /// The arguments of a named check do not fit it.
    ///
    /// `galeras ops validate` shows which arguments each named check takes.
    ///
    /// ```yaml
    /// with: { rules: [{ use: no_pass_body, with: { column: code } }] }
    /// ```
    WrongArgument,
    /// A downloaded file has other content than expected.
    ///
    /// Its SHA-256 differs from `sha256`: the file has changed since the workflow was written, or
    /// the digest was mistyped. If you trust the new content, write its digest.
    ///
    /// ```yaml
    /// with:
    ///   url: "https://example.org/methods.parquet"
    ///   sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    /// ```
    WrongContent,
    /// The step does not take the inputs in `from`.
    ///
    /// An operator takes a fixed number of tables, some of them by name, and the cells that a `[*]`
    /// unites need the same columns. `galeras ops NAME` shows the inputs of an operator.
    ///
    /// ```yaml
    /// from: { input: valid, tokenizer: bpe }
    /// ```
    WrongInputs,
    /// The table has another key than the step needs.
    ///
    /// The key identifies rows. The operator names rows by `id`, so `id` must be the key of its
    /// input.
    ///
    /// ```yaml
    /// with: { query: "SELECT id, code FROM input", key: [id] }
    /// ```
    WrongKey,
    /// A value has another type than its place needs.
    ///
    /// Texts that look like numbers need quotes, and a single value is not a list. For a column,
    /// the operator needs another type: cast it in a step with `op: sql`.
    ///
    /// ```yaml
    /// with: { n: 500, seed: 42, stratify: [repo] }
    /// ```
    WrongType,
    /// A value has the right type, but is not one of those allowed.
    ///
    /// The message lists the choices or the bounds. `galeras ops NAME` shows those of an operator's
    /// arguments.
    ///
    /// ```yaml
    /// assert: [{ expr: "nloc > 1", severity: warn }]
    /// ```
    WrongValue,
    /// The text is YAML, but larger, deeper or more repetitive than a workflow may be.
    ///
    /// A few lines of YAML can expand to gigabytes. No workflow needs that, so there are limits on
    /// size, depth and aliases. Data belongs in files that a step reads.
    ///
    /// ```yaml
    /// with: { path: data/list.csv }
    /// ```
    YamlLimit,
    /// The text is not YAML.
    ///
    /// Most often the indentation is uneven, a quote or bracket is not closed, or a text that
    /// starts with one of `*`, `&`, `@`, `%`, `{`, `[` or contains `: ` is not quoted.
    ///
    /// ```yaml
    /// description: "Complete a method: from a random cut"
    /// ```
    YamlSyntax,
}

impl Code {
    /// All codes, in alphabetical order.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// The code of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::from_str(name).ok()
    }

    /// The code as it is printed: `unknown-column`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The problem, in one line.
    pub fn title(self) -> &'static str {
        self.text().split_once("\n\n").map_or("", |(title, _)| title)
    }

    /// The reason, the fix, and an example, as Markdown.
    pub fn explanation(self) -> &'static str {
        self.text().split_once("\n\n").map_or("", |(_, rest)| rest.trim_end())
    }

    fn text(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}

/// The page docs/diagnostics.md.
pub fn page() -> String {
    let mut page = String::from(
        "# Diagnostics\n\nThe diagnostics of `galeras check`, by code. \
         `galeras check --explain CODE` prints the same text.\n",
    );
    for code in Code::all() {
        let _ = write!(page, "\n## `{code}`\n\n{}\n\n{}\n", code.title(), code.explanation());
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    fn sources(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("src/code.rs")
            {
                text.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn names_are_unique_and_sorted() {
        let names: Vec<&str> = Code::all().map(Code::name).collect();
        let distinct: HashSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len());
        // `not-a-…` sorts before `not-d…`, with or without dashes.
        assert!(names.iter().all(|n| Code::named(n).map(Code::name) == Some(n)));
        assert_eq!(Code::named("Unknown-Column"), None);
        let mut variants: Vec<String> = Code::all().map(|c| format!("{c:?}")).collect();
        let given = variants.clone();
        variants.sort_by_key(|v| v.to_lowercase());
        assert_eq!(given, variants);
    }

    #[test]
    fn every_code_is_used() {
        // Cargo runs tests in the folder of the package.
        let mut text = String::new();
        sources(Path::new("../../src"), &mut text);
        sources(Path::new("../../crates"), &mut text);
        let used: HashSet<&str> = text
            .split("Code::")
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default())
            .collect();
        let unused: Vec<Code> =
            Code::all().filter(|code| !used.contains(format!("{code:?}").as_str())).collect();
        assert!(unused.is_empty(), "{unused:?}");
    }

    #[test]
    fn every_code_is_explained_with_an_example() {
        for code in Code::all() {
            assert!(code.title().ends_with('.'), "{code}: {:?}", code.title());
            assert!(!code.title().contains('\n'), "{code}: the title is one line");
            let (words, example) = code
                .explanation()
                .split_once("\n\n```yaml\n")
                .unwrap_or_else(|| panic!("{}", code.name()));
            assert!(words.len() > 40, "{code}: {words}");
            assert!(example.ends_with("\n```"), "{code}: {example}");
        }
    }

    #[test]
    fn the_page_is_up_to_date() {
        if std::env::var_os("GALERAS_UPDATE").is_some() {
            fs::write("../../docs/diagnostics.md", page()).unwrap();
        }
        let stale = "docs/diagnostics.md is stale: GALERAS_UPDATE=1 cargo test -p galeras-workflow --lib writes it";
        assert!(fs::read_to_string("../../docs/diagnostics.md").unwrap() == page(), "{stale}");
    }
}
