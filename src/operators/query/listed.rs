//! A list of repositories: inline or a CSV file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::repository::UnresolvedRepository;
use crate::code::Code;
use crate::operator::ArgError;
use galeras_git::{GitError, GitErrorKind, RepositoryLocation, shown_url};
use galeras_github::GITHUB;
use galeras_net::secret_in;

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
    /// The entries of a list that is written with commas.
    pub(super) fn separated(list: &str) -> Vec<Self> {
        let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(|entry| Self::Short(entry.to_string())).collect()
    }

    fn address(&self) -> &str {
        match self {
            Self::Short(address) | Self::Named { url: address, .. } => address,
        }
    }
}

/// The repositories of a list, each once, in its order.
#[derive(Clone, Debug)]
pub(super) struct RepositoryList(Vec<ListedRepository>);

#[derive(Clone, Debug)]
struct ListedRepository {
    repo: String,
    address: String,
    /// It is a folder of this machine.
    folder: bool,
}

impl RepositoryList {
    /// The repositories of an inline list; everything that is wrong with it otherwise.
    pub(super) fn inline(
        entries: &[ListEntry],
        base_url: &str,
        base: &Path,
    ) -> Result<Self, Vec<ArgError>> {
        let mut repositories = Vec::with_capacity(entries.len());
        let mut errors = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            match repository(entry, base_url, base) {
                Ok(repository) => repositories.push(repository),
                Err(error) => errors.push(problem(format!("repos[{at}]"), entry, &error)),
            }
        }
        if entries.is_empty() {
            errors.push(ArgError::new("repos", Code::EmptyList, "the list has no repositories"));
        }
        if errors.is_empty() { Self::distinct(repositories) } else { Err(errors) }
    }

    /// The repositories of a CSV file. The first line names columns if one of them is `repo`
    /// or `url`; without names, the first column is what counts.
    pub(super) fn csv(path: &str, base_url: &str, base: &Path) -> Result<Self, ArgError> {
        let bad = |message: String| ArgError::new("repos", Code::UnreadableFile, message);
        let file = base.join(path);
        if !file.is_file() {
            let message = format!("the file `{path}` does not exist");
            let error = ArgError::new("repos", Code::MissingFile, message);
            return Err(error.help("a single repository is a list, too: `repos: [owner/name]`"));
        }
        let failed = |error: csv::Error| bad(format!("cannot read `{path}`: {error}"));
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_path(&file)
            .map_err(failed)?;
        let (mut name, mut address) = (None, 0);
        let mut repositories = Vec::new();
        for (line, record) in reader.records().enumerate() {
            let record = record.map_err(failed)?;
            if line == 0 {
                let place = |names: &[&str]| {
                    record
                        .iter()
                        .position(|cell| names.iter().any(|n| cell.eq_ignore_ascii_case(n)))
                };
                let repo = place(&["repo", "full_name", "repository", "name"]);
                let url = place(&["url", "clone_url", "path"]);
                if repo.is_some() || url.is_some() {
                    address = url.or(repo).unwrap_or(0);
                    name = url.and(repo);
                    continue;
                }
            }
            let Some(url) = record.get(address).filter(|cell| !cell.is_empty()) else { continue };
            let repo = name.and_then(|at| record.get(at)).filter(|cell| !cell.is_empty());
            let entry = match repo {
                Some(repo) => ListEntry::Named { repo: repo.into(), url: url.into() },
                None => ListEntry::Short(url.into()),
            };
            let repository = repository(&entry, base_url, base).map_err(|error| {
                let line = record.position().map_or(0, csv::Position::line);
                let problem = problem("repos", &entry, &error);
                let message = format!("`{path}`, line {line}: {}", problem.message);
                match problem.code {
                    Code::BadUrl => ArgError { message, ..problem },
                    _ => bad(message),
                }
            })?;
            repositories.push(repository);
        }
        if repositories.is_empty() {
            return Err(bad(format!("`{path}` lists no repositories")));
        }
        Self::distinct(repositories).map_err(|mut errors| {
            let first = errors.swap_remove(0);
            ArgError { path: "repos".into(), ..first }
        })
    }

    /// Leaves out what is listed twice. Two repositories of one name are told apart by their
    /// addresses.
    fn distinct(mut repositories: Vec<ListedRepository>) -> Result<Self, Vec<ArgError>> {
        let mut seen = HashSet::new();
        repositories.retain(|one| seen.insert((one.repo.clone(), one.address.clone())));
        let mut names: HashMap<&str, &str> = HashMap::new();
        for repository in &repositories {
            if let Some(other) = names.insert(&repository.repo, &repository.address) {
                let (one, two) = (shown_url(other), shown_url(&repository.address));
                let message = format!("{one} and {two} would both be called `{}`", repository.repo);
                let error = ArgError::new("repos", Code::DuplicateRepository, message);
                let help = format!("name one of them: {{ repo: another-name, url: {two} }}");
                return Err(vec![error.help(help)]);
            }
        }
        Ok(Self(repositories))
    }

    /// The repositories as the search for heads takes them.
    pub(super) fn unresolved(&self) -> Vec<UnresolvedRepository> {
        let unresolved = |listed: &ListedRepository| UnresolvedRepository {
            repo: listed.repo.clone(),
            address: listed.address.clone(),
            facts: Value::Object(serde_json::Map::new()),
            found: false,
            known_branch: None,
        };
        self.0.iter().map(unresolved).collect()
    }

    /// What is asked for: names and addresses, without credentials.
    pub(super) fn as_asked(&self) -> Value {
        let asked = |listed: &ListedRepository| serde_json::json!({"repo": listed.repo, "url": shown_url(&listed.address)});
        self.0.iter().map(asked).collect()
    }

    /// Where the repositories are. One that has gone since it was listed is left out.
    pub(super) fn locations(&self, base: &Path) -> Vec<RepositoryLocation> {
        let parse = |one: &ListedRepository| RepositoryLocation::parse(&one.address, base).ok();
        self.0.iter().filter_map(parse).collect()
    }

    /// The addresses that are folders.
    pub(super) fn folders(&self) -> Vec<&str> {
        self.0.iter().filter(|listed| listed.folder).map(|listed| listed.address.as_str()).collect()
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

/// Where a repository is and what it is called.
fn repository(
    entry: &ListEntry,
    base_url: &str,
    base: &Path,
) -> Result<ListedRepository, GitError> {
    let address = entry.address();
    if let Some(secret) = secret_in(address) {
        let message = format!("the address must not hold {secret}");
        return Err(GitError::new(GitErrorKind::Other, message));
    }
    let (address, folder, name) = if is_shorthand(address) {
        check_shorthand(address)?;
        (format!("{}/{address}.git", web_url(base_url)), false, address.to_string())
    } else {
        match RepositoryLocation::parse(address, base)? {
            RepositoryLocation::Folder(_) => {
                (address.to_string(), true, folder_name(address, base))
            }
            RepositoryLocation::Remote(url) => {
                let name = url_name(&shown_url(&url), base_url);
                (url, false, name)
            }
        }
    };
    let repo = match entry {
        ListEntry::Named { repo, .. } => repo.clone(),
        ListEntry::Short(_) => name,
    };
    Ok(ListedRepository { repo, address, folder })
}

/// Whether this is GitHub's `owner/name`. A path starts with a dot or a slash.
fn is_shorthand(text: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match text.split_once('/') {
        Some((owner, name)) => {
            plain(owner) && plain(name) && !owner.starts_with('.') && name != "." && name != ".."
        }
        None => false,
    }
}

/// Names that a program could take for an option are asked of nobody.
fn check_shorthand(text: &str) -> Result<(), GitError> {
    match text.split('/').find(|name| name.starts_with('-')) {
        None => Ok(()),
        Some(name) => {
            let message = format!("`{name}` starts with `-`, as options do and no name may");
            Err(GitError::new(GitErrorKind::Other, message))
        }
    }
}

/// The address under which a GitHub serves its repositories.
fn web_url(base_url: &str) -> String {
    let base_url = base_url.trim_end_matches('/');
    if base_url == GITHUB.trim_end_matches('/') {
        return "https://github.com".to_string();
    }
    base_url.strip_suffix("/api/v3").unwrap_or(base_url).to_string()
}

/// `owner/name` for what GitHub serves, and the host before it for others.
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

/// The last part of a path that says something, without `.git`.
fn folder_name(path: &str, base: &Path) -> String {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let full = base.join(path);
    let full = full.canonicalize().unwrap_or(full);
    let named = if full.ends_with(".git") { full.parent().unwrap_or(&full) } else { &full };
    let name = named.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.strip_suffix(".git").unwrap_or(&name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorthands_are_told_from_paths() {
        for text in ["psf/requests", "a-b/c.d_e", "0/1"] {
            assert!(is_shorthand(text), "{text}");
        }
        for text in ["./a", "../a", "/a/b", "a", "a/b/c", ".a/b", "a/..", "https://a/b", "a b/c"] {
            assert!(!is_shorthand(text), "{text}");
        }
    }

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
            csv(text).unwrap().0.into_iter().map(|listed| listed.repo).collect()
        };
        assert_eq!(names("a/b\n# remark\n\nc/d\n a/b\n"), ["a/b", "c/d"]);
        assert_eq!(names("stars,repo\n3,a/b\n4,c/d\n"), ["a/b", "c/d"]);
        assert_eq!(names("repo,url\nmine,https://github.com/a/b\n,c/d\n"), ["mine", "c/d"]);
        assert_eq!(names("https://github.com/a/b.git,x\n"), ["a/b"]);
        assert!(csv("repo\n").unwrap_err().message.contains("lists no repositories"));
        assert!(csv("a/b\nnowhere\n").unwrap_err().message.contains("line 2"));
        let same = csv("repo,url\nx,a/b\nx,c/d\n").unwrap_err();
        assert!(same.message.contains("would both be called `x`"), "{}", same.message);
    }
}
