//! A list of repositories: inline or a CSV file.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::heads::{Origin, UnresolvedRepository};
use galeras_git::{GitError, GitErrorKind, RepositoryLocation, shown_url};
use galeras_github::GITHUB;
use galeras_net::secret_in;
use galeras_operator::ArgError;
use galeras_workflow::code::Code;
use galeras_workflow::{is_owner_and_name, repository_entries};

/// One entry of `repos`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ListEntry {
    /// `owner/name`, a URL or a path.
    Short(String),
    /// The same with the name that the repository has in tables.
    Named {
        /// The name.
        repo: String,
        /// `owner/name`, a URL or a path.
        url: String,
    },
}

impl ListEntry {
    /// The entries of a list separated by commas.
    pub(super) fn separated(list: &str) -> Vec<Self> {
        repository_entries(list).map(|entry| Self::Short(entry.to_string())).collect()
    }

    fn address(&self) -> &str {
        match self {
            Self::Short(address) | Self::Named { url: address, .. } => address,
        }
    }
}

/// The distinct repositories of a list, in its order.
#[derive(Clone, Debug)]
pub(super) struct RepositoryList {
    repositories: Vec<ListedRepository>,
    /// The mistakes that folders are missing. Their heads may be in the lock file.
    pub(super) missing: Vec<ArgError>,
}

#[derive(Clone, Debug)]
struct ListedRepository {
    repo: String,
    address: String,
    /// The folder on this machine, with links resolved.
    folder: Option<PathBuf>,
    /// Its name was given, not derived from the address.
    named: bool,
    /// The other columns of the list.
    facts: Map<String, Value>,
}

impl RepositoryList {
    /// The repositories of an inline list, or all errors in it.
    pub(super) fn inline(
        entries: &[ListEntry],
        base_url: &str,
        base: &Path,
    ) -> Result<Self, Vec<ArgError>> {
        let mut repositories = Vec::with_capacity(entries.len());
        let (mut errors, mut all_missing) = (Vec::new(), true);
        for (at, entry) in entries.iter().enumerate() {
            let place = format!("repos[{at}]");
            match repository(entry, base_url, base) {
                Ok((repository, missing)) => {
                    errors.extend(missing.map(|error| problem(place, entry, &error)));
                    repositories.push(repository);
                }
                Err(error) => {
                    errors.push(problem(place, entry, &error));
                    all_missing = false;
                }
            }
        }
        if entries.is_empty() {
            let error = ArgError::new("repos", Code::EmptyList, "the list has no repositories");
            return Err(vec![error]);
        }
        if !all_missing {
            return Err(errors);
        }
        Self::distinct(repositories, errors).map_err(|error| vec![error])
    }

    /// The repositories of a CSV file. The first line names columns if one of them is `repo`
    /// or `url`; without names, the first column is what counts.
    pub(super) fn csv(path: &str, base_url: &str, base: &Path) -> Result<Self, ArgError> {
        let bad = |message: String| ArgError::new("repos", Code::UnreadableFile, message);
        let file = base.join(path);
        if !file.is_file() {
            let message = format!("the file `{path}` does not exist");
            let error = ArgError::new("repos", Code::MissingFile, message);
            return Err(error.help("a single repository is also a list: `repos: [owner/name]`"));
        }
        let failed = |error: csv::Error| bad(format!("cannot read `{path}`: {error}"));
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_path(&file)
            .map_err(failed)?;
        let (mut name, mut address, mut license, mut stars) = (None, 0, None, None);
        let (mut repositories, mut missing) = (Vec::new(), Vec::new());
        for (line, record) in reader.records().enumerate() {
            let record = record.map_err(failed)?;
            if line == 0 {
                let place = |names: &[&str]| {
                    let named = |cell: &str| names.iter().any(|n| cell.eq_ignore_ascii_case(n));
                    record.iter().position(named)
                };
                let repo = place(&["repo", "full_name", "repository", "name"]);
                let url = place(&["url", "clone_url", "path"]);
                if repo.is_some() || url.is_some() {
                    address = url.or(repo).unwrap_or(0);
                    name = url.and(repo);
                    license = place(&["license"]);
                    stars = place(&["stars"]);
                    continue;
                }
            }
            let Some(url) = record.get(address).filter(|cell| !cell.is_empty()) else { continue };
            let repo = name.and_then(|at| record.get(at)).filter(|cell| !cell.is_empty());
            let entry = match repo {
                Some(repo) => ListEntry::Named { repo: repo.into(), url: url.into() },
                None => ListEntry::Short(url.into()),
            };
            let line = record.position().map_or(0, csv::Position::line);
            let problem = |error: GitError| {
                let problem = problem("repos", &entry, &error);
                let message = format!("`{path}`, line {line}: {}", problem.message);
                match problem.code {
                    Code::BadUrl => ArgError { message, ..problem },
                    _ => bad(message),
                }
            };
            let (mut repository, error) = repository(&entry, base_url, base).map_err(problem)?;
            missing.extend(error.map(problem));
            let said = |at: Option<usize>| {
                at.and_then(|at| record.get(at)).filter(|cell| !cell.is_empty())
            };
            if let Some(license) = said(license) {
                repository.facts.insert("license".into(), license.into());
            }
            if let Some(stars) = said(stars) {
                let number: i64 = stars.parse().map_err(|_| {
                    bad(format!("`{path}`, line {line}: `{stars}` is not a number of stars"))
                })?;
                repository.facts.insert("stars".into(), number.into());
            }
            repositories.push(repository);
        }
        if repositories.is_empty() {
            return Err(bad(format!("`{path}` lists no repositories")));
        }
        Self::distinct(repositories, missing)
    }

    /// Removes repeated repositories, and gives folders of the same name longer names. Addresses
    /// distinguish other repositories of the same name.
    fn distinct(
        mut repositories: Vec<ListedRepository>,
        missing: Vec<ArgError>,
    ) -> Result<Self, ArgError> {
        let mut seen = HashSet::new();
        repositories.retain(|one| seen.insert((one.repo.clone(), one.address.clone())));
        let mut folders = HashSet::new();
        repositories.retain(|one| match &one.folder {
            Some(folder) if !one.named => folders.insert(folder.clone()),
            _ => true,
        });
        tell_apart(&mut repositories);
        let mut names: HashMap<&str, &str> = HashMap::new();
        for repository in &repositories {
            if let Some(other) = names.insert(&repository.repo, &repository.address) {
                let (one, two) = (shown_url(other), shown_url(&repository.address));
                let message = format!("{one} and {two} would both be called `{}`", repository.repo);
                let error = ArgError::new("repos", Code::DuplicateRepository, message);
                let help = format!(
                    "name one of them: {{ repo: another-name, url: {two} }} in a list, or columns \
                     `repo` and `url` in a .csv file"
                );
                return Err(error.help(help));
            }
        }
        Ok(Self { repositories, missing })
    }

    pub(super) fn unresolved(&self) -> Vec<UnresolvedRepository> {
        let unresolved = |listed: &ListedRepository| UnresolvedRepository {
            repo: listed.repo.clone(),
            address: listed.address.clone(),
            facts: Value::Object(listed.facts.clone()),
            origin: Origin::Listed,
            known_branch: None,
        };
        self.repositories.iter().map(unresolved).collect()
    }

    /// The question: names and addresses, without credentials, and the list's other columns.
    pub(super) fn as_asked(&self) -> Value {
        let asked = |listed: &ListedRepository| {
            let mut asked = listed.facts.clone();
            asked.insert("repo".into(), listed.repo.clone().into());
            asked.insert("url".into(), shown_url(&listed.address).into());
            Value::Object(asked)
        };
        self.repositories.iter().map(asked).collect()
    }

    /// The locations of the repositories. Those removed since they were listed are left out.
    pub(super) fn locations(&self, base: &Path) -> Vec<RepositoryLocation> {
        let parse = |one: &ListedRepository| RepositoryLocation::parse(&one.address, base).ok();
        self.repositories.iter().filter_map(parse).collect()
    }

    pub(super) fn folders(&self) -> Vec<&str> {
        let folders = self.repositories.iter().filter(|listed| listed.folder.is_some());
        folders.map(|listed| listed.address.as_str()).collect()
    }
}

fn problem(path: impl Into<String>, entry: &ListEntry, error: &GitError) -> ArgError {
    let address = entry.address();
    let shown: String = shown_url(address).chars().filter(|c| !c.is_control()).collect();
    let message = format!("`{shown}`: {error}");
    if secret_in(address).is_some() {
        let error = ArgError::new(path, Code::BadUrl, message);
        return error.help("use an ssh address, or clone the repository and name its folder");
    }
    let error = ArgError::new(path, Code::BadRepository, message);
    if address.contains("://") {
        error
    } else {
        error.help("write `owner/name` for GitHub, a URL, or a path that starts with `./` or `/`")
    }
}

/// The repository of an entry. If its folder is missing, also the error.
fn repository(
    entry: &ListEntry,
    base_url: &str,
    base: &Path,
) -> Result<(ListedRepository, Option<GitError>), GitError> {
    let address = entry.address();
    if let Some(secret) = secret_in(address) {
        let message = format!("the address must not hold {secret}");
        return Err(GitError::new(GitErrorKind::Other, message));
    }
    let mut missing = None;
    let (address, folder, name) = if is_owner_and_name(address) {
        check_shorthand(address)?;
        (format!("{}/{address}.git", web_url(base_url)), None, address.to_string())
    } else {
        let location = match RepositoryLocation::parse(address, base) {
            Err(error) if error.kind == GitErrorKind::NotFound => {
                missing = Some(error);
                None
            }
            parsed => Some(parsed?),
        };
        match location {
            Some(RepositoryLocation::Remote(url)) => {
                let name = url_name(&shown_url(&url), base_url);
                (url, None, name)
            }
            Some(RepositoryLocation::Folder(_)) | None => {
                let folder = named_folder(address, base);
                let name = folder_name(&folder, 1).unwrap_or_default();
                (address.to_string(), Some(folder), name)
            }
        }
    };
    let (repo, named) = match entry {
        ListEntry::Named { repo, .. } => (repo.clone(), true),
        ListEntry::Short(_) => (name, false),
    };
    let listed = ListedRepository { repo, address, folder, named, facts: Map::new() };
    Ok((listed, missing))
}

/// Names that a program could take for an option are refused before any request.
fn check_shorthand(text: &str) -> Result<(), GitError> {
    match text.split('/').find(|name| name.starts_with('-')) {
        None => Ok(()),
        Some(name) => {
            let message = format!("`{name}` starts with `-`, as options do and no name may");
            Err(GitError::new(GitErrorKind::Other, message))
        }
    }
}

/// The address under which a GitHub instance serves its repositories.
fn web_url(base_url: &str) -> String {
    let base_url = base_url.trim_end_matches('/');
    if base_url == GITHUB.trim_end_matches('/') {
        return "https://github.com".to_string();
    }
    base_url.strip_suffix("/api/v3").unwrap_or(base_url).to_string()
}

/// `owner/name` for addresses on GitHub, with the host before it for others.
fn url_name(url: &str, base_url: &str) -> String {
    let path = url.strip_suffix(".git").unwrap_or(url).trim_end_matches('/');
    let rest = match path.split_once("://") {
        Some((_, rest)) => rest.to_string(),
        // user@host:path
        None => path.rsplit('@').next().unwrap_or(path).replacen(':', "/", 1),
    };
    let web = web_url(base_url);
    let host = web.split_once("://").map_or(web.as_str(), |(_, host)| host);
    match rest.strip_prefix(host).and_then(|path| path.strip_prefix('/')) {
        Some(path) => path.to_string(),
        None => rest,
    }
}

/// The folder of a repository, with links resolved: its work tree, if it has one.
fn named_folder(path: &str, base: &Path) -> PathBuf {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let full = base.join(path);
    let full = full.canonicalize().unwrap_or(full);
    match full.parent() {
        Some(parent) if full.ends_with(".git") => parent.to_path_buf(),
        _ => full,
    }
}

/// The last `parts` parts of a folder's path, without `.git` at the end; `None` if it has fewer.
fn folder_name(folder: &Path, parts: usize) -> Option<String> {
    let all: Vec<_> = folder
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    let name = all[all.len().checked_sub(parts)?..].join("/");
    Some(name.strip_suffix(".git").unwrap_or(&name).to_string())
}

/// Folders of the same name get as many parent folders as needed to distinguish them: `a/repo` and
/// `b/repo`. So their names depend neither on the order of the list nor on a folder common to all.
/// Given names, and names from addresses, stay.
fn tell_apart(repositories: &mut [ListedRepository]) {
    let mut parts = vec![1; repositories.len()];
    loop {
        let mut uses: HashMap<String, usize> = HashMap::new();
        for repository in repositories.iter() {
            *uses.entry(repository.repo.clone()).or_default() += 1;
        }
        let mut longer = false;
        for (repository, parts) in repositories.iter_mut().zip(&mut parts) {
            let Some(folder) = repository.folder.as_ref().filter(|_| !repository.named) else {
                continue;
            };
            if uses[&repository.repo] > 1
                && let Some(name) = folder_name(folder, *parts + 1)
            {
                (repository.repo, *parts, longer) = (name, *parts + 1, true);
            }
        }
        if !longer {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_github_and_others_give_names() {
        let name = |url| url_name(url, GITHUB);
        assert_eq!(name("https://github.com/psf/requests.git"), "psf/requests");
        assert_eq!(name("git@github.com:psf/requests.git"), "psf/requests");
        assert_eq!(name("https://gitlab.com/a/b/c"), "gitlab.com/a/b/c");
        assert_eq!(web_url("https://api.github.com/"), "https://github.com");
        assert_eq!(web_url("https://ghe.example.org/api/v3"), "https://ghe.example.org");
        assert_eq!(
            url_name("https://ghe.example.org/a/b", "https://ghe.example.org/api/v3"),
            "a/b"
        );
    }

    fn csv(text: &str) -> Result<RepositoryList, ArgError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("r.csv"), text).unwrap();
        RepositoryList::csv("r.csv", GITHUB, dir.path())
    }

    #[test]
    fn a_csv_has_names_or_not() {
        let names = |text: &str| -> Vec<String> {
            csv(text).unwrap().repositories.into_iter().map(|listed| listed.repo).collect()
        };
        assert_eq!(names("a/b\n# remark\n\nc/d\n a/b\n"), ["a/b", "c/d"]);
        assert_eq!(names("stars,repo\n3,a/b\n4,c/d\n"), ["a/b", "c/d"]);
        let facts = csv("stars,repo,license\n3,a/b,MIT\n,c/d,\n").unwrap().as_asked();
        let url = |name: &str| format!("https://github.com/{name}.git");
        let first =
            serde_json::json!({"repo": "a/b", "url": url("a/b"), "license": "MIT", "stars": 3});
        let second = serde_json::json!({"repo": "c/d", "url": url("c/d")});
        assert_eq!(facts, serde_json::json!([first, second]));
        assert!(csv("stars,repo\nmany,a/b\n").unwrap_err().message.contains("line 2: `many`"));
        assert_eq!(names("repo,url\nmine,https://github.com/a/b\n,c/d\n"), ["mine", "c/d"]);
        assert_eq!(names("https://github.com/a/b.git,x\n"), ["a/b"]);
        assert!(csv("repo\n").unwrap_err().message.contains("lists no repositories"));
        assert!(csv("a/b\nnowhere\n").unwrap().missing[0].message.contains("line 2"));
        let same = csv("repo,url\nx,a/b\nx,c/d\n").unwrap_err();
        assert!(same.message.contains("would both be called `x`"), "{}", same.message);
    }

    #[test]
    fn folders_of_one_name_are_told_apart_by_those_above() {
        let dir = tempfile::tempdir().unwrap();
        let folders = ["x/a/repo", "y/a/repo", "b/repo.git", "c/other/.git"];
        for folder in folders {
            std::fs::create_dir_all(dir.path().join(folder).join("objects")).unwrap();
            std::fs::write(dir.path().join(folder).join("HEAD"), "").unwrap();
        }
        let names = |list: &str| -> Vec<String> {
            let entries = ListEntry::separated(list);
            let list = RepositoryList::inline(&entries, GITHUB, dir.path()).unwrap();
            list.repositories.into_iter().map(|listed| listed.repo).collect()
        };
        assert_eq!(names("./x/a/repo"), ["repo"]);
        assert_eq!(names("./x/a/repo,./b/repo.git"), ["a/repo", "b/repo"]);
        assert_eq!(names("./b/repo.git,./x/a/repo"), ["b/repo", "a/repo"]);
        let three = ["b/repo", "y/a/repo", "x/a/repo"];
        assert_eq!(names("./b/repo.git,./y/a/repo,./x/a/repo"), three);
        // The same folder under two paths is one repository.
        assert_eq!(names("./x/a/repo,./x/../x/a/repo,./c/other,./c/other/.git"), ["repo", "other"]);
        // Names from addresses stay.
        assert_eq!(names("b/repo,./b/repo.git,./y/a/repo").first().unwrap(), "b/repo");
    }
}
