//! `query`: repositories, from a GitHub search or from a list.

mod heads;
mod listed;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use arrow::datatypes::{DataType, TimeUnit};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::heads::{Origin, ResolvedHeads, UnresolvedRepository, resolve};
use self::listed::{ListEntry, RepositoryList};
use super::repository_access::accesses_of;
use super::typed_rows;
use galeras_base::digest::Digest;
use galeras_base::scratch::{clear_place, create_private};
use galeras_github::{
    GITHUB, GithubClient, GithubError, GithubErrorKind, GithubRepository, Query, Search,
    SearchNotice, Sort, search,
};
use galeras_net::Secret;
use galeras_operator::columns::text_field;
use galeras_operator::rejects::reject_columns;
use galeras_operator::{
    Access, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Fact, Grain, InputPorts,
    Inputs, LowerContext, Lowering, MAIN, Operator, Port, Ports, REJECTS, ServerAddress, SideFile,
    Snapshot, StepError, TableSchema, TableStep, Tell, TypedOperator, args_schema, describe,
};
use galeras_workflow::code::Code;
use galeras_workflow::is_repository_file;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Args {
    /// A search string as on github.com/search, for repositories.
    github: Option<String>,
    /// A list of repositories, or the path of a CSV file of them. If it is given and not empty,
    /// GitHub is not searched.
    repos: Option<Repos>,
    /// The most repositories of a search.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// The ranking of the search; it decides which repositories `limit` keeps.
    #[schemars(with = "Option<SortName>")]
    sort: Option<Sort>,
    /// The branch of every repository whose tip is `head_sha`; the default branch if absent.
    branch: Option<String>,
    /// The environment variable with a GitHub token, which raises GitHub's limits. It need not
    /// be set.
    token_env: String,
    /// The address of GitHub's REST API: another one for GitHub Enterprise Server.
    base_url: String,
}

impl Default for Args {
    fn default() -> Self {
        let (token_env, base_url) = ("GITHUB_TOKEN".into(), GITHUB.into());
        Self {
            github: None,
            repos: None,
            limit: None,
            sort: None,
            branch: None,
            token_env,
            base_url,
        }
    }
}

/// The schema of [`Sort`].
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
enum SortName {
    Stars,
    Forks,
    HelpWantedIssues,
    Updated,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Repos {
    /// Repositories as `owner/name`, as URLs, as paths (`./repo`, `../repo`, `/repo`), or as
    /// `{ repo: name, url: address }`.
    List(Vec<ListEntry>),
    /// The path of a CSV file (`….csv`): one repository per line, or columns `repo` and `url`.
    /// Any other text is a list, separated by commas.
    Text(String),
}

impl Args {
    fn search(&self) -> Search {
        let query = self.github.clone().unwrap_or_default();
        Search { query, sort: self.sort, limit: self.limit }
    }
}

struct QueryOperator;

/// The operator.
pub const QUERY: &dyn Operator = &QueryOperator;

const NAME: &str = "query";

impl TypedOperator for QueryOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: NAME,
        version: 1,
        grain: Grain::of::<BoundQuery, _>(),
        effect: Effect::External,
        inputs: InputPorts::None,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn fixed_ports() -> Option<Vec<Port>> {
        Some(ports())
    }

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let one = |error| vec![error];
        if let Some(query) = &args.github {
            let checked = Query::parse(query).and_then(|_| args.search().check());
            checked
                .map_err(|error| one(ArgError::new("github", Code::BadQuery, error.to_string())))?;
        }
        let repos = args.repos.as_ref().filter(|repos| match repos {
            Repos::List(list) => !list.is_empty() || args.github.is_none(),
            Repos::Text(text) => !text.trim().is_empty(),
        });
        let from = match (&args.github, repos) {
            (_, Some(repos)) => {
                // With a list and a search, the search's arguments may be given.
                if args.github.is_none() && (args.limit.is_some() || args.sort.is_some()) {
                    let at = if args.limit.is_some() { "limit" } else { "sort" };
                    let message = format!("`{at}` belongs to `github`; a list is used as a whole");
                    return Err(one(ArgError::new(at, Code::ConflictingArguments, message)));
                }
                From::List(match repos {
                    Repos::List(entries) => {
                        RepositoryList::inline(entries, &args.base_url, &cx.base)?
                    }
                    Repos::Text(path) if is_repository_file(path) => {
                        RepositoryList::csv(path.trim(), &args.base_url, &cx.base).map_err(one)?
                    }
                    Repos::Text(list) => RepositoryList::inline(
                        &ListEntry::separated(list),
                        &args.base_url,
                        &cx.base,
                    )?,
                })
            }
            (Some(_), None) => From::Search,
            (None, None) => {
                let message = "`query` needs `github` or `repos`";
                let help = "repos: [psf/requests, ./a/local/clone]";
                return Err(one(ArgError::new("", Code::MissingArgument, message).help(help)));
            }
        };
        if let Err(error) = GithubClient::new(&args.base_url, None) {
            return Err(one(ArgError::new("base_url", Code::BadUrl, error.to_string())));
        }
        let mut step =
            BoundQuery { args, from, base: cx.base.clone(), pinned: None, ports: ports() };
        let pinned = cx.pins.snapshot(NAME, &step.question()).cloned();
        if let Some(snapshot) = &pinned {
            let (rows, rejects) = (step.ports[0].table.stored(), step.ports[1].table.stored());
            let read = typed_rows::batches(&rows, &snapshot.rows)
                .and(typed_rows::batches(&rejects, &snapshot.rejects));
            read.map_err(|error| {
                let message = format!("what galeras.lock pins for this step: {error}");
                let error = ArgError::new("", Code::BadLock, message);
                one(error.help("write a new lock file with `galeras lock`"))
            })?;
        }
        if let (None, From::List(listed)) = (&pinned, &step.from) {
            // Elsewhere, results are found by the commits in the lock file, without the folders.
            ArgError::none(listed.missing.clone())?;
        }
        step.pinned = pinned;
        Ok(Box::new(step))
    }
}

fn ports() -> Vec<Port> {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let known = |name, data_type, about, unit| describe(name, data_type, true, about, unit);
    let repositories = TableSchema::default().with(&[
        text_field("repo", "the repository: `owner/name`, or the name of a folder"),
        text_field("clone_url", "where it can be fetched or opened"),
        text_field("default_branch", "the branch whose tip is `head_sha`"),
        known("stars", DataType::Int64, "people who starred it", None),
        known("size_kb", DataType::Int64, "its size, as GitHub tells it", Some("KB")),
        known("pushed_at", time, "the last push to any branch", None),
        known("fork", DataType::Boolean, "whether it is a fork", None),
        known("language", DataType::Utf8, "the language of most of its code", None),
        known("license", DataType::Utf8, "the SPDX id of its licence", None),
        text_field("head_sha", "the commit at the tip of the branch"),
    ]);
    let named = [
        text_field("repo", "the repository as it was given or found"),
        text_field("clone_url", "where it was looked for"),
    ];
    let rejected = TableSchema::default().with(&named).with(&reject_columns());
    vec![
        Port::new(MAIN, repositories.keyed(&["repo"])),
        Port::new(REJECTS, rejected.keyed(&["repo", "clone_url"])),
    ]
}

#[derive(Debug)]
enum From {
    Search,
    List(RepositoryList),
}

#[derive(Debug)]
struct BoundQuery {
    args: Args,
    from: From,
    base: PathBuf,
    /// The snapshot in the lock file.
    pinned: Option<Snapshot>,
    ports: Vec<Port>,
}

impl BoundQuery {
    /// The question as the lock file records it: the arguments without the name of a secret.
    fn question(&self) -> Value {
        match &self.from {
            From::Search => json!({
                "github": self.args.github,
                "limit": self.args.limit,
                "sort": self.args.sort,
                "branch": self.args.branch,
                "base_url": self.args.base_url,
            }),
            From::List(listed) => json!({
                "repos": listed.as_asked(),
                "branch": self.args.branch,
            }),
        }
    }

    /// The file with the list of repositories.
    fn list_file(&self) -> Option<PathBuf> {
        match &self.args.repos {
            Some(Repos::Text(path)) if is_repository_file(path) => {
                Some(self.base.join(path.trim()))
            }
            _ => None,
        }
    }

    async fn search(
        &self,
        cx: &LowerContext,
        memory: &Path,
    ) -> Result<Vec<UnresolvedRepository>, StepError> {
        let token = self.token().map(|token| Secret::new(&self.args.token_env, &token)).transpose();
        let token = token.map_err(|error| StepError::new(error.to_string()))?;
        let client = GithubClient::new(&self.args.base_url, token)
            .map_err(|error| StepError::new(error.to_string()))?;
        let tell = |notice: SearchNotice| (cx.tell)(in_words(notice));
        create_private(&cx.downloads)?;
        let wanted = self.args.search();
        let answer = search(&client, &wanted, memory, &tell, &cx.env.cancel).await;
        let mut repositories = answer.map_err(|error| self.failed(error))?;
        // If a name was reused, it belongs to the newer repository.
        let mut newest: HashMap<String, u64> = HashMap::new();
        for repository in &repositories {
            let id = newest.entry(repository.full_name.clone()).or_default();
            *id = repository.id.max(*id);
        }
        repositories.retain(|repository| newest[&repository.full_name] == repository.id);
        let server = ServerAddress::of(&self.args.base_url);
        let origin = match server.is_some_and(|server| server.is_loopback()) {
            true => Origin::FoundHere,
            false => Origin::FoundElsewhere,
        };
        Ok(repositories.into_iter().map(|repository| unresolved(repository, origin)).collect())
    }

    /// The token in the environment variable, if set.
    fn token(&self) -> Option<String> {
        std::env::var(&self.args.token_env).ok().filter(|token| !token.trim().is_empty())
    }

    fn failed(&self, error: GithubError) -> StepError {
        let kind = error.kind();
        let failed = StepError::new(error.to_string()).because(error);
        match kind {
            GithubErrorKind::Transient | GithubErrorKind::RateLimited => {
                failed.help("run again later; finished slices are not asked for again")
            }
            GithubErrorKind::Denied => {
                failed.help(format!("set the environment variable {}", self.args.token_env))
            }
            _ => failed,
        }
    }
}

fn in_words(notice: SearchNotice) -> Tell {
    match notice {
        SearchNotice::Waiting { seconds, reason } => {
            Tell::Waiting(format!("waiting {seconds} s: {reason}"))
        }
        SearchNotice::Progress { found, total } => {
            Tell::Activity(format!("{found} of {total} repositories"))
        }
        SearchNotice::Incomplete { query, expected, found } => Tell::Warning(format!(
            "GitHub counts {expected} repositories for `{query}` but lists {found}"
        )),
    }
}

impl BoundStep for BoundQuery {
    fn args(&self) -> Value {
        let mut args = self.question();
        if let (Some(map), Some(pinned)) = (args.as_object_mut(), &self.pinned) {
            map.insert("pinned".into(), json!(pinned.digest));
        }
        args
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Folders are local, so a new commit in one is noticed unless the lock file pins a commit.
    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        let From::List(listed) = &self.from else { return Ok(Vec::new()) };
        if self.pinned.is_some() {
            return Ok(Vec::new());
        }
        let folders = listed.folders();
        let digests = heads::local(&folders, &self.base, self.args.branch.as_deref());
        Ok(folders
            .into_iter()
            .zip(digests)
            .map(|(name, head)| SideFile {
                name: name.to_string(),
                digest: Digest::of(head.as_bytes()),
            })
            .collect())
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        self.list_file().map(|path| ("repos".to_string(), path)).into_iter().collect()
    }

    fn fact(&self) -> Option<Fact> {
        Some(Fact::Snapshot { of: self.question() })
    }

    fn demands(&self) -> Vec<Demand> {
        let file = self.list_file().map(|path| Demand::new("repos", Access::Read { path }));
        let asked: Vec<Demand> = match &self.from {
            _ if self.pinned.is_some() => Vec::new(),
            From::Search => {
                let to = ServerAddress::of(&self.args.base_url);
                let name = self.token().map(|_| self.args.token_env.clone());
                let demand = to.map(|to| match name {
                    Some(name) => Demand::listing("token_env", Access::Variable { name, to }),
                    None => Demand::listing("base_url", Access::Host { to }),
                });
                demand.into_iter().collect()
            }
            From::List(listed) => {
                let locations = listed.locations(&self.base);
                let accesses = locations.iter().flat_map(accesses_of);
                accesses.map(|access| Demand::listing("repos", access)).collect()
            }
        };
        file.into_iter().chain(asked).collect()
    }

    fn work_unit(&self) -> &'static str {
        "repositories"
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundQuery {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        _: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let (rows, rejects) = (self.ports[0].table.stored(), self.ports[1].table.stored());
            let (rows, rejected) = match &self.pinned {
                Some(pinned) => (
                    typed_rows::table(&cx.session, &rows, &pinned.rows)?,
                    typed_rows::table(&cx.session, &rejects, &pinned.rejects)?,
                ),
                None => {
                    let resolved = self.ask(cx).await?;
                    (
                        typed_rows::table(&cx.session, &rows, &resolved.rows)?,
                        typed_rows::table(&cx.session, &rejects, &resolved.headless)?,
                    )
                }
            };
            Ok(vec![(MAIN, rows), (REJECTS, rejected)])
        })
    }
}

impl BoundQuery {
    async fn ask(&self, cx: &LowerContext) -> Result<ResolvedHeads, StepError> {
        let branch = self.args.branch.as_deref();
        if let From::List(listed) = &self.from {
            return resolve(listed.unresolved(), &self.base, branch, None, cx).await;
        }
        // The folder with the results of an unfinished search.
        let digest = Digest::of_json(&self.question()).to_string();
        let memory = cx.downloads.join("github").join(digest);
        let answered = memory.join(ANSWERED);
        if cx.forced && (answered.exists() || is_old(&memory)) {
            std::fs::remove_dir_all(&memory)?;
        }
        let repositories = self.search(cx, &memory).await?;
        let heads = memory.join("heads.jsonl");
        clear_place(&heads)?;
        let resolved = resolve(repositories, &self.base, branch, Some(&heads), cx).await?;
        if resolved.retry == 0 {
            // The answer is complete and about to be stored as the step's result.
            let _ = std::fs::remove_dir_all(&memory);
        } else {
            std::fs::write(&answered, b"")?;
        }
        Ok(resolved)
    }
}

/// Marks the memory of a search whose answer lacks only some heads: the next run uses it to ask for
/// those, unless it wants a new answer.
const ANSWERED: &str = "answered";

/// A new attempt resumes an interrupted one only on the same day.
fn is_old(memory: &Path) -> bool {
    let begun = std::fs::metadata(memory).and_then(|metadata| metadata.modified());
    begun.is_ok_and(|begun| begun.elapsed().is_ok_and(|age| age.as_secs() > 86_400))
}

/// A search result in the form that is resolved next.
fn unresolved(repository: GithubRepository, origin: Origin) -> UnresolvedRepository {
    UnresolvedRepository {
        repo: repository.full_name,
        address: repository.clone_url,
        facts: json!({
            "stars": repository.stars,
            "size_kb": repository.size_kb,
            "pushed_at": repository.pushed_at,
            "fork": repository.fork,
            "language": repository.language,
            "license": repository.license,
        }),
        origin,
        known_branch: Some(repository.default_branch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_typed_columns_and_unknown_ones_are_refused() {
        let row = json!({
            "repo": "a/b", "clone_url": "u", "default_branch": "main", "head_sha": "1",
            "stars": 3, "pushed_at": "2022-01-01T00:00:00Z", "fork": false,
        });
        let schema = ports()[0].table.stored();
        let batch = &typed_rows::batches(&schema, [row.clone(), row]).unwrap()[0];
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch.column_by_name("license").unwrap().null_count(), 2);
        assert_eq!(batch.column_by_name("pushed_at").unwrap().null_count(), 0);
        assert!(typed_rows::batches(&schema, [json!({"repo": "a/b", "sha": "1"})]).is_err());
        assert_eq!(typed_rows::batches::<Value>(&schema, []).unwrap()[0].num_rows(), 0);
    }
}
