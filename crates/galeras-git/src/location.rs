//! Where a repository is: in a folder or behind a URL.
//!
//! Addresses that a program could take for an option or a command are refused. URLs are shown without
//! credentials.

use std::path::{Path, PathBuf};

use gix::url::Scheme;
use url::Url;

use super::error::{GitError, GitErrorKind, Result};

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepositoryLocation {
    /// A bare repository or a work tree on this machine.
    Folder(PathBuf),
    /// The URL of a repository on a server, or the `user@host:path` of one. Its scheme is in lower
    /// case.
    Remote(String),
}

/// The server that an address of a repository leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitServer {
    /// `http`, `https`, `ssh` or `git`.
    pub scheme: &'static str,
    /// The name or address in lower case; an address of IPv6 is in brackets.
    pub host: String,
    /// If it is not the usual one of the scheme.
    pub port: Option<u16>,
}

impl GitServer {
    /// The server of the repository at `address`, a URL or `user@host:path`; `None` if it names none.
    /// [`RepositoryLocation::parse`] refuses addresses in which other parsers could see another host.
    pub fn of(address: &str) -> Option<Self> {
        let parsed = gix::url::parse(address).ok()?;
        let (scheme, usual) = match parsed.scheme {
            Scheme::Http => ("http", 80),
            Scheme::Https => ("https", 443),
            Scheme::Ssh => ("ssh", 22),
            Scheme::Git => ("git", 9418),
            _ => return None,
        };
        let (host, port) = match scheme {
            // The HTTP client of git parses such a URL again.
            "http" | "https" => {
                let url = Url::parse(&parsed.to_bstring().to_string()).ok()?;
                (url.host_str()?.to_string(), url.port())
            }
            _ => (parsed.host()?.to_string(), parsed.port),
        };
        let bare = host.contains(':') && !host.starts_with('[');
        let host = if bare { format!("[{host}]") } else { host };
        let port = port.filter(|port| *port != usual);
        // A name in code (`%2e`) is one to some programs and another one to others. The parser may
        // have decoded it, to `a/b` or worse; no repository is looked for there.
        is_host(&host).then(|| Self { scheme, host: host.to_ascii_lowercase(), port })
    }
}

impl RepositoryLocation {
    /// Reads `text`: a URL (http, https, git, ssh, file), `user@host:path`, or a folder
    /// relative to `base`.
    ///
    /// A text that starts with `-` is refused, as a program could take it for an option, and so is
    /// one with a control character. Of the others, one that names an existing repository in a
    /// folder is that folder, even if it looks like a URL; otherwise the rules of `git help urls`
    /// apply. URLs that a program could take for an option or a command are refused. The error is
    /// `NotFound` if the folder does not exist or is not a repository, `Other` for schemes and URLs
    /// that are not accepted.
    pub fn parse(text: &str, base: &Path) -> Result<Self> {
        if text.is_empty() {
            return Err(GitError::other("the address of the repository is empty"));
        }
        if text.starts_with('-') {
            return Err(refused(text, "it starts with `-`, as options do"));
        }
        if text.chars().any(char::is_control) {
            return Err(refused(text, "it has a control character in it"));
        }
        // An existing folder counts first, even if its name looks like a URL.
        let folder = base.join(text);
        if is_repository(&folder) {
            return Ok(Self::Folder(folder));
        }
        if let Some((scheme, rest)) = split_scheme(text) {
            let scheme = scheme.to_ascii_lowercase();
            return match scheme.as_str() {
                "http" | "https" | "git" | "ssh" => remote(text, &scheme, rest),
                "file" => file(text),
                _ => Err(refused(text, "only http, https, git, ssh and file URLs are supported")),
            };
        }
        match split_host(text) {
            Some((_, path)) if path.starts_with(':') => {
                Err(refused(text, "only http, https, git, ssh and file URLs are supported"))
            }
            Some((host, path)) => {
                let (user, host) = host.rsplit_once('@').unwrap_or(("", host));
                if !is_host(host) || path.is_empty() {
                    return Err(refused(text, "it is neither a folder nor a URL"));
                }
                let known = ["http", "https", "git", "ssh", "file"];
                if known.iter().any(|scheme| host.eq_ignore_ascii_case(scheme)) {
                    return Err(refused(text, "`//` is missing after the first `:`"));
                }
                if path.starts_with('-') {
                    return Err(refused(text, "its path starts with `-`, as options do"));
                }
                checked(text)?;
                located(text, text.to_string(), user, host)
            }
            None => Err(missing(&folder)),
        }
    }
}

/// `url` as it may be shown: without user, password and query. The user of an ssh address is
/// not a secret and stays.
pub fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_string() };
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = match authority.rsplit_once('@') {
        Some((user, host)) if scheme.eq_ignore_ascii_case("ssh") => {
            let user = user.split(':').next().unwrap_or(user);
            return format!("{scheme}://{user}@{host}{path}");
        }
        Some((_, host)) => host,
        None => authority,
    };
    format!("{scheme}://{host}{path}")
}

/// A bare repository, or a work tree with `.git`.
fn is_repository(folder: &Path) -> bool {
    let bare = |at: &Path| at.join("HEAD").is_file() && at.join("objects").is_dir();
    // `.git` is a file in linked work trees and submodules.
    bare(folder) || bare(&folder.join(".git")) || folder.join(".git").is_file()
}

/// The scheme, and the text after `://`.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (!scheme.is_empty() && scheme.chars().all(plain)).then_some((scheme, rest))
}

/// The parts of `host:path`: the colon comes before any slash, as git has it. An address of IPv6
/// is in brackets.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let from = match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close && !text[..open].contains(['/', ':']) => close,
        _ => 0,
    };
    let colon = from + text[from..].find(':')?;
    if text[from..colon].contains('/') || (cfg!(windows) && colon == 1) {
        return None;
    }
    Some((&text[..colon], &text[colon + 1..]))
}

fn remote(text: &str, scheme: &str, rest: &str) -> Result<RepositoryLocation> {
    checked(text)?;
    let authority = rest.split('/').next().unwrap_or(rest);
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (host, None),
    };
    if !is_host(host) {
        return Err(refused(text, "it names no valid host"));
    }
    if port.is_some_and(|port| {
        !port.bytes().all(|b| b.is_ascii_digit()) || port.parse::<u16>().is_err()
    }) {
        return Err(refused(text, "its port is not a number below 65536"));
    }
    located(text, format!("{scheme}://{rest}"), user, host)
}

/// The repository at `address`, if all programs take the same part of it for its host.
fn located(text: &str, address: String, user: &str, host: &str) -> Result<RepositoryLocation> {
    if user.starts_with('-') {
        return Err(refused(text, "its user starts with `-`"));
    }
    // To some programs the host ends here.
    if user.contains(['#', '?', '\\', '/']) {
        return Err(refused(
            text,
            "its user has `#`, `?` or `\\` in it; write them as %23, %3F, %5C",
        ));
    }
    let host = url::Host::parse(host).ok();
    let server = GitServer::of(&address);
    let same = server.and_then(|server| url::Host::parse(&server.host).ok()) == host;
    if host.is_none() || !same {
        return Err(refused(text, "it names no valid host"));
    }
    Ok(RepositoryLocation::Remote(address))
}

fn file(text: &str) -> Result<RepositoryLocation> {
    let url = Url::parse(text).map_err(|error| refused(text, &error.to_string()))?;
    let folder = url.to_file_path().map_err(|()| refused(text, "it names no folder"))?;
    if is_repository(&folder) {
        Ok(RepositoryLocation::Folder(folder))
    } else {
        Err(missing(&folder))
    }
}

/// A name or an address, which no program takes for an option.
fn is_host(host: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => !host.is_empty() && host.chars().all(address),
        None => !host.is_empty() && !host.starts_with('-') && host.chars().all(plain),
    }
}

/// Line breaks and the like could smuggle further lines into a protocol.
fn checked(text: &str) -> Result<()> {
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(refused(text, "it has a space or a control character in it"));
    }
    Ok(())
}

fn refused(text: &str, why: &str) -> GitError {
    let shown: String = shown_url(text).chars().filter(|c| !c.is_control()).collect();
    GitError::other(format!("`{shown}` cannot be used as a repository: {why}"))
}

fn missing(folder: &Path) -> GitError {
    let what = match (folder.is_dir(), folder.exists()) {
        (true, _) => "is not a git repository",
        (false, true) => "is a file, not a git repository",
        (false, false) => "does not exist",
    };
    GitError::new(GitErrorKind::NotFound, format!("the folder `{}` {what}", folder.display()))
}
