//! The standard error of git: progress, HTTP headers, and messages for people.
//!
//! It may be anything, of any length: part of it comes from the server and from ssh. Messages
//! become one line without control characters and without credentials.

use std::time::{Duration, SystemTime};

use galeras_net::http_date;

use crate::error::{GitError, GitErrorKind};
use crate::location::shown_url;

/// Bytes of messages that are kept; the rest is dropped.
const KEPT: usize = 4096;

/// The longest line that is read, in bytes.
const LINE: usize = 8192;

/// Lines of git that explain nothing: a server without filters is harmless, and advice follows each
/// failure of ssh.
const USELESS: [&str; 3] = [
    "filtering not recognized by server",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
];

/// The warning of git about a commit whose parents the server does not have.
const SHALLOW: &str = "shallow roots are not allowed to be updated";

/// The last answer of an HTTP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    retry_after: Option<Duration>,
}

/// The messages of one command.
#[derive(Default)]
pub(super) struct Messages {
    /// The beginning of a line without its end.
    line: Vec<u8>,
    kept: Vec<String>,
    bytes: usize,
    pub(super) answer: HttpAnswer,
    /// Objects received so far, as git counts them.
    pub(super) objects: u64,
    /// The server's latest report of its work.
    pub(super) doing: Option<String>,
    /// The reason to end the command at once.
    pub(super) stop: Option<GitError>,
}

impl Messages {
    /// Reads a part of the output.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' | b'\r' => self.end_line(),
                _ if self.line.len() < LINE => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// Reads the last line, which may have no end.
    pub(super) fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
        } else if is_trace(line) {
            if let Some((_, header)) = line.split_once("<= Recv header:") {
                self.header(header.trim());
            }
        } else if let Some(doing) = progress(line) {
            if let Some(counted) = doing.strip_prefix("Receiving objects:") {
                self.objects = received(counted).unwrap_or(self.objects);
            }
            self.doing = Some(shown(doing).chars().take(200).collect());
        } else if line.contains(SHALLOW) {
            let message = "it is a shallow clone itself, so a part of its history is missing";
            self.stop = Some(GitError::other(message));
        } else if !USELESS.iter().any(|useless| line.contains(useless)) {
            let line: String = shown(&without_secrets(line)).chars().take(KEPT).collect();
            if self.bytes + line.len() <= KEPT {
                self.bytes += line.len();
                self.kept.push(line);
            }
        }
    }

    fn header(&mut self, header: &str) {
        if let Some(status) = header.strip_prefix("HTTP/") {
            let status = status.split_whitespace().nth(1).and_then(|status| status.parse().ok());
            self.answer = HttpAnswer { status: status.unwrap_or_default(), ..Default::default() };
            return;
        }
        let Some((name, value)) = header.split_once(':') else { return };
        let value = value.trim();
        let is_page = self.answer.status == 200 && !value.starts_with("application/x-git-");
        match name.to_ascii_lowercase().as_str() {
            "location" => self.answer.location = Some(value.to_string()),
            "retry-after" => self.answer.retry_after = wait_of(value),
            // Git would read a folder of files over HTTP, which cannot send parts of a repository.
            "content-type" if is_page => {
                let message = format!("no git server answers there, but a page of type {value}");
                self.stop = Some(GitError::other(shown(&message)));
            }
            _ => {}
        }
    }

    /// Messages that do not explain a failure: not those that the server sends with its objects.
    pub(super) fn warning(&self) -> Option<String> {
        let own = self.kept.iter().filter(|line| !line.starts_with("remote:"));
        let own: Vec<&str> = own.map(String::as_str).collect();
        (!own.is_empty()).then(|| format!("git reports: {}", own.join(" | ")))
    }

    /// The error of a command that failed.
    pub(super) fn error(&self) -> GitError {
        if let Some(error) = self.of_status() {
            return error;
        }
        let said = self.kept.join(" | ");
        if said.is_empty() {
            return GitError::transient("git ended early");
        }
        GitError::new(kind(&said), format!("git reports: {said}"))
    }

    /// The error of an HTTP status.
    fn of_status(&self) -> Option<GitError> {
        let HttpAnswer { status, retry_after: wait, .. } = self.answer;
        let (kind, message) = match status {
            0..=399 => return None,
            401 => (
                GitErrorKind::Denied,
                "the server asks for a login (status 401): configure a credential helper of git, \
                 or check that the repository exists",
            ),
            // GitHub uses it for too many requests.
            403 if wait.is_none() => (GitErrorKind::Denied, "the server denies access"),
            404 | 410 => (GitErrorKind::NotFound, "there is no such repository"),
            403 | 408 | 429 => (GitErrorKind::Transient, "the server asks us to wait"),
            500 | 502..=599 => (GitErrorKind::Transient, "the server failed"),
            _ => (GitErrorKind::Other, "the server returned an error"),
        };
        let message = match status {
            401 => message.to_string(),
            _ => format!("{message} (status {status})"),
        };
        Some(GitError { retry_after: wait, ..GitError::new(kind, message) })
    }
}

/// The wait of a `Retry-After` header (RFC 9110, section 10.2.3): seconds, or a date.
fn wait_of(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Duration::from_secs(http_date(text)?.saturating_sub(now.as_secs())))
}

/// Returns true for a line of `GIT_TRACE_CURL`: `12:34:56.789012 http.c:845  …`.
fn is_trace(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.get(2) == Some(&b':') && bytes.get(5) == Some(&b':') && line.contains(" http.c:")
}

/// The text of a progress line, without `remote:`.
fn progress(line: &str) -> Option<&str> {
    let text = line.strip_prefix("remote:").map_or(line, str::trim);
    let (title, rest) = text.split_once(' ')?;
    let counts = rest.contains(": ") || title == "Total";
    let known = ["Enumerating", "Counting", "Compressing", "Receiving", "Resolving", "Indexing"];
    ((counts && known.contains(&title)) || text.starts_with("Total ")).then_some(text)
}

/// The number of received objects in `  12% (34/280), 1.00 MiB`.
fn received(text: &str) -> Option<u64> {
    text.split_once('(')?.1.split_once('/')?.0.parse().ok()
}

/// Replaces characters that a terminal would act on.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push(' '),
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Returns true for control characters and marks of direction.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Removes users, passwords and queries from all URLs in a text. `insteadOf` may have put them in.
pub(super) fn without_secrets(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "'\"`<>".contains(c);
    let parts = text.split_inclusive(ends);
    let shown = |part: &str| {
        let url = part.trim_end_matches(ends);
        format!("{}{}", shown_url(url), &part[url.len()..])
    };
    parts.map(shown).collect()
}

/// Words of git and ssh, and the kind of error that they mean. The order counts: a pack that
/// ends early also fails to be indexed.
const KINDS: [(&[&str], GitErrorKind); 9] = [
    (&["out of memory"], GitErrorKind::Limit),
    (
        &["host key verification failed", "certificate", "mismatched algorithms"],
        GitErrorKind::Other,
    ),
    (&["unadvertised object"], GitErrorKind::NotServed),
    (
        &[
            "permission denied",
            "publickey",
            "authentication failed",
            "could not read username",
            "could not read password",
        ],
        GitErrorKind::Denied,
    ),
    (
        &[
            "not our ref",
            "not found",
            "not exported",
            "no such",
            "does not exist",
            "does not appear to be a git repository",
        ],
        GitErrorKind::NotFound,
    ),
    (
        &["corrupt", "bad object", "inflate", "mismatch", "collision", "unresolved delta"],
        GitErrorKind::Damaged,
    ),
    (&["denied", "not allowed", "unauthorized", "forbidden"], GitErrorKind::Denied),
    (
        &[
            "early eof",
            "bad pack header",
            "hung up",
            "disconnect",
            "resolve host",
            "unable to look up",
            "connect",
            "timed out",
            "timeout",
            "too slow",
            "transfer closed",
            "empty reply",
            "try again",
            "too many",
            "overload",
            "internal",
            "curl",
            "recv failure",
            "unable to access",
        ],
        GitErrorKind::Transient,
    ),
    // An ssh session that ended without a word.
    (&["could not read from remote repository"], GitErrorKind::NotFound),
];

/// The kind of error that a message of git or ssh describes. It is English, because git runs in
/// the locale `C`.
fn kind(message: &str) -> GitErrorKind {
    let lower = message.to_ascii_lowercase();
    let without_filters = lower.contains("filter '") && lower.contains("not supported");
    let known = KINDS.iter().find(|(words, kind)| {
        words.iter().any(|word| lower.contains(word))
            || (without_filters && *kind == GitErrorKind::NotServed)
    });
    known.map_or(GitErrorKind::Other, |(_, kind)| *kind)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn read(text: &str) -> Messages {
        let mut messages = Messages::default();
        messages.read(text.as_bytes());
        messages.end_line();
        messages
    }

    #[test]
    fn messages_are_one_line_of_bounded_length_without_control_characters() {
        let mut messages = Messages::default();
        messages.read(b"\x1b]0;owned\x07\r\n\n a\tb \xff\xe2\x80\xae\n");
        let warning = messages.warning().unwrap();
        assert_eq!(warning, "git reports: \\u{1b}]0;owned\\u{7} | a b \u{fffd}\\u{202e}");
        let much = read(&"x".repeat(1 << 20)).warning().unwrap();
        assert!(much.len() <= KEPT + 20, "{}", much.len());
        let much = read(&"line\n".repeat(1 << 16)).warning().unwrap();
        assert!(much.len() <= 2 * KEPT, "{}", much.len());
    }

    #[test]
    fn urls_lose_their_credentials() {
        for (text, expected) in [
            ("access 'https://u:s3cr3t@h/x?t=s3cr3t': no", "access 'https://h/x': no"),
            ("https://s3cr3t@h", "https://h"),
            ("to ssh://git:s3cr3t@h/x, https://a:s3cr3t@b/", "to ssh://git@h/x, https://b/"),
            ("git@h:x and a://b", "git@h:x and a://b"),
        ] {
            assert_eq!(without_secrets(text), expected);
        }
    }

    #[test]
    fn messages_have_a_kind() {
        use GitErrorKind::*;
        for (text, expected) in [
            ("", Transient),
            ("ERROR: Repository not found.", NotFound),
            ("fatal: remote error: upload-pack: not our ref 11", NotFound),
            ("a@b: Permission denied (publickey).\nfatal: Could not read from remote", Denied),
            ("fatal: could not read Username for 'https://h': terminal prompts disabled", Denied),
            ("ssh: connect to host b port 22: No route", Transient),
            ("Host key verification failed.\nfatal: Could not read from remote", Other),
            ("fatal: Could not read from remote repository.", NotFound),
            ("fatal: mismatched algorithms: client sha1; server sha256", Other),
            ("error: RPC failed; curl 18 transfer closed\nfatal: early EOF", Transient),
            ("fatal: early EOF\nfatal: fetch-pack: invalid index-pack output", Transient),
            ("fatal: protocol error: bad pack header", Transient),
            ("fatal: pack is corrupted (SHA1 mismatch)", Damaged),
            ("fatal: Out of memory, malloc failed", Limit),
            ("error: Server does not allow request for unadvertised object 11", NotServed),
            ("fatal: unable to access 'x': SSL certificate problem", Other),
            ("fatal: transport 'ext' not allowed", Denied),
        ] {
            let error = read(text).error();
            assert_eq!(error.kind, expected, "{text}: {error}");
        }
    }

    #[test]
    fn the_last_http_answer_counts() {
        let trace = "10:11:12.123456 http.c:845              <= Recv header: ";
        let text = format!(
            "{trace}HTTP/1.1 401 No\n{trace}Retry-After: 9\n{trace}HTTP/2 429\n\
             {trace}retry-after: 17\n{trace}Location: https://b/x\n"
        );
        let messages = read(&text);
        let location = Some("https://b/x".to_string());
        let retry_after = Some(Duration::from_secs(17));
        assert_eq!(messages.answer, HttpAnswer { status: 429, location, retry_after });
        assert_eq!(messages.warning(), None, "a trace is not for people");
        let error = messages.error();
        assert_eq!((error.kind, error.retry_after), (GitErrorKind::Transient, retry_after));
        let page = read(&format!("{trace}HTTP/1.1 200 OK\n{trace}Content-Type: text/html\n"));
        assert!(page.stop.unwrap().message.contains("no git server"));
    }

    #[test]
    fn waits_are_seconds_or_dates() {
        assert_eq!(wait_of("17"), Some(Duration::from_secs(17)));
        assert_eq!(wait_of("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let future = wait_of("Fri, 21 Oct 2180 07:28:00 GMT").unwrap();
        assert!(future > Duration::from_secs(1_000_000_000));
        assert_eq!(wait_of("soon"), None);
    }

    #[test]
    fn progress_is_counted_and_not_shown_as_a_message() {
        let messages = read(
            "remote: Enumerating objects: 5, done.\rremote: Counting objects:  20% (1/5)\r\
             Receiving objects:  40% (2/5), 1.00 KiB | 1.00 KiB/s\rremote: Total 5 (delta 0)\n",
        );
        assert_eq!((messages.objects, messages.warning()), (2, None));
        assert_eq!(messages.doing.as_deref(), Some("Total 5 (delta 0)"));
    }
}
