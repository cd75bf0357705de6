//! The items of `--allow`: `exec`, `unsandboxed`, `network`, `env:NAME=HOST`, `host:HOST`, `read:PATH`,
//! `write:PATH`, `send:FROM=HOST`.
//!
//! A host means its server over TLS. Any other connection is written with its scheme
//! (`http://HOST`): consent to TLS is not consent to send the same unencrypted.
//!
//! A character that would end an item, or control a terminal, is written as `%2C`: printed items
//! can be pasted, and mean exactly what was shown.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::ground::{lies_in, real};
use galeras_base::terminal_escape::escape_all;
use galeras_operator::{Access, DataSource, ServerAddress};

/// An item of `--allow`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allowance {
    /// Any program.
    Program,
    /// Any program without a sandbox.
    Unsandboxed,
    /// The network, for any program in a sandbox.
    Network,
    /// The value of a variable may go to a server.
    Variable {
        /// The variable.
        name: String,
        /// The server, in the form of `server`.
        host: String,
    },
    /// Connections to a server.
    Host(String),
    /// Reading a file, or the files in a folder.
    Read(PathBuf),
    /// Writing a file, or files in a folder.
    Write(PathBuf),
    /// Sending data to a server.
    Send {
        /// A file, or the files in a folder; or a server.
        from: DataSource,
        /// The server, in the form of `server`; `None` for any.
        host: Option<String>,
    },
}

impl Allowance {
    /// Parses an item; relative paths start in the current folder.
    ///
    /// # Errors
    /// A text that lists the kinds of items.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "exec" => return Ok(Self::Program),
            "unsandboxed" => return Ok(Self::Unsandboxed),
            "network" => return Ok(Self::Network),
            _ => {}
        }
        let usage = "write exec, unsandboxed, network, env:NAME=HOST, host:HOST, read:PATH, write:PATH or \
                     send:FROM=HOST";
        let (kind, rest) = text.split_once(':').ok_or(usage)?;
        let path = |text: &str| {
            let path = PathBuf::from(OsString::from_vec(decoded(text)));
            let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
            real(&current.join(path))
        };
        let plain = |text: &str| String::from_utf8(decoded(text)).map_err(|_| usage.to_string());
        if rest.is_empty() {
            return Err(usage.into());
        }
        match kind {
            "env" => match rest.rsplit_once('=') {
                Some((name, host)) if !name.is_empty() && !host.is_empty() => {
                    Ok(Self::Variable { name: plain(name)?, host: server_in(&plain(host)?) })
                }
                _ => Err("write env:NAME=HOST".into()),
            },
            "host" => Ok(Self::Host(server_in(&plain(rest)?))),
            "read" => Ok(Self::Read(path(rest))),
            "write" => Ok(Self::Write(path(rest))),
            "send" => match rest.rsplit_once('=') {
                Some((from, host)) if !from.is_empty() && !host.is_empty() => {
                    let named = plain(from).ok().filter(|text| text.contains("://"));
                    // git's parser requires a path.
                    let server = named.and_then(|text| ServerAddress::of(&format!("{text}/")));
                    let from = match server {
                        Some(server) => DataSource::Server(server),
                        None => DataSource::Path(path(from)),
                    };
                    let host = plain(host)?;
                    Ok(Self::Send { from, host: (host != ANY).then(|| server_in(&host)) })
                }
                _ => Err("write send:FROM=HOST".into()),
            },
            _ => Err(usage.into()),
        }
    }

    /// The smallest item that allows this action; it also allows all programs or the files in the
    /// folder.
    pub fn of(access: &Access) -> Self {
        match access {
            Access::Program { .. } => Self::Program,
            Access::Unsandboxed { .. } => Self::Unsandboxed,
            Access::Network { .. } => Self::Network,
            Access::Variable { name, to } => {
                Self::Variable { name: name.clone(), host: server(to) }
            }
            Access::Host { to } => Self::Host(server(to)),
            Access::Read { path } => Self::Read(path.clone()),
            Access::Write { path } | Access::WriteFolder { path } => Self::Write(path.clone()),
            Access::Send { from, to } => {
                Self::Send { from: from.clone(), host: to.as_ref().map(server) }
            }
        }
    }

    /// True if it allows this action, whose paths are resolved.
    pub fn covers(&self, access: &Access) -> bool {
        match (self, access) {
            (Self::Program, Access::Program { .. })
            | (Self::Unsandboxed, Access::Unsandboxed { .. })
            | (Self::Network, Access::Network { .. }) => true,
            (Self::Variable { name, host }, Access::Variable { name: wanted, to }) => {
                name == wanted && *host == server(to)
            }
            // Consent to send a secret includes consent to connect.
            (Self::Variable { host, .. } | Self::Host(host), Access::Host { to }) => {
                *host == server(to)
            }
            (Self::Read(folder), Access::Read { path })
            | (Self::Write(folder), Access::Write { path } | Access::WriteFolder { path }) => {
                lies_in(path, folder)
            }
            (Self::Send { from, host }, Access::Send { from: wanted, to }) => {
                let from = match (from, wanted) {
                    (DataSource::Path(folder), DataSource::Path(path)) => lies_in(path, folder),
                    (from, wanted) => from == wanted,
                };
                from && host
                    .as_ref()
                    .is_none_or(|host| to.as_ref().map(server).as_ref() == Some(host))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |path: &Path| encoded(path.as_os_str().as_bytes());
        match self {
            Self::Program => f.write_str("exec"),
            Self::Unsandboxed => f.write_str("unsandboxed"),
            Self::Network => f.write_str("network"),
            Self::Variable { name, host } => {
                let [name, host] = [name, host].map(|text| encoded_part(text.as_bytes()));
                write!(f, "env:{name}={host}")
            }
            Self::Send { from, host } => {
                let from = match from {
                    DataSource::Path(path) => encoded_part(path.as_os_str().as_bytes()),
                    DataSource::Server(server) => encoded_part(server.to_string().as_bytes()),
                };
                let host = host.as_ref().map_or(ANY.into(), |host| encoded_part(host.as_bytes()));
                write!(f, "send:{from}={host}")
            }
            Self::Host(host) => write!(f, "host:{}", encoded(host.as_bytes())),
            Self::Read(folder) => write!(f, "read:{}", path(folder)),
            Self::Write(folder) => write!(f, "write:{}", path(folder)),
        }
    }
}

/// Any server, in an item.
const ANY: &str = "*";

/// A server in an item: its host, with the scheme in front if that is not https.
fn server(to: &ServerAddress) -> String {
    if to.is_encrypted() { to.authority() } else { to.to_string() }
}

/// The server of an item in the form of [`server`].
fn server_in(text: &str) -> String {
    let text = text.to_lowercase();
    // git's parser requires a path.
    let address = format!("{text}/");
    let known = text.contains("://").then(|| ServerAddress::of(&address)).flatten();
    known.map_or(text, |to| server(&to))
}

/// The text of bytes, with `%XX` for those that cannot be in a list, or cannot be shown.
fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let hide = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(out, "%{byte:02X}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut buffer = [0; 4];
            let text: &str = c.encode_utf8(&mut buffer);
            if ",%".contains(c) || escape_all(text) != text {
                hide(&mut out, text.as_bytes());
            } else {
                out.push(c);
            }
        }
        hide(&mut out, chunk.invalid());
    }
    out
}

/// The same for a part of an item before or after a `=`.
fn encoded_part(bytes: &[u8]) -> String {
    encoded(bytes).replace('=', "%3D")
}

/// The inverse of [`encoded`].
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use galeras_operator::ServerAddress;

    #[test]
    fn what_is_printed_says_just_that_again() {
        let to = ServerAddress::of("https://a,exec/x").unwrap();
        let other = ServerAddress::of("http://10.0.0.1:81/x").unwrap();
        let local = ServerAddress::of("http://localhost:8000/x").unwrap();
        let odd =
            PathBuf::from(OsString::from_vec(b"/no/a,exec %41\x1b[31m\xff/\xc3\xa9".to_vec()));
        for access in [
            Access::Variable { name: "A=B,exec".into(), to: to.clone() },
            Access::Host { to },
            Access::Read { path: odd.clone() },
            Access::Write { path: odd.clone() },
            Access::WriteFolder { path: odd.clone() },
            Access::Send { from: DataSource::Path(odd.join("a=b")), to: Some(other.clone()) },
            Access::Send { from: DataSource::Path(odd), to: None },
            Access::Send { from: DataSource::Server(local), to: Some(other) },
            Access::Program { command: "x".into(), folder: "/".into(), files: Vec::new() },
            Access::Unsandboxed { command: "x".into() },
            Access::Network { command: "x".into() },
        ] {
            let text = Allowance::of(&access).to_string();
            assert!(!text.contains(',') && !text.chars().any(char::is_control), "{text}");
            let parsed = Allowance::parse(&text).unwrap();
            assert_eq!(parsed, Allowance::of(&access), "{text}");
            assert!(parsed.covers(&access));
        }
    }

    /// A workflow edited from https to http, for example, does not send unencrypted what was
    /// allowed over TLS.
    #[test]
    fn a_host_without_a_scheme_is_reached_through_tls() {
        let to = |url| ServerAddress::of(url).unwrap();
        let sends = |url| Access::Variable { name: "KEY".into(), to: to(url) };
        let asks = |url| Access::Host { to: to(url) };
        let covers = |item: &str, access: Access| Allowance::parse(item).unwrap().covers(&access);
        let others = ["http://h.example/v1", "ssh://h.example/v1", "git://h.example/v1"];
        for url in others {
            assert!(!covers("env:KEY=h.example", sends(url)), "{url}");
            assert!(!covers("env:KEY=h.example", asks(url)), "{url}");
            assert!(!covers("host:h.example", asks(url)), "{url}");
            assert!(!covers("host:https://h.example", asks(url)), "{url}");
            for other in others {
                assert_eq!(covers(&format!("host:{other}"), asks(url)), url == other, "{other}");
            }
        }
        assert!(covers("env:KEY=http://H.example/", sends("http://h.example/v1")));
        assert!(!covers("env:KEY=http://h.example", sends("https://h.example/v1")));
        for item in ["env:KEY=https://h.example/v1", "env:KEY=https://h.example:443"] {
            assert!(covers(item, sends("https://h.example/v1")), "{item}");
        }
        assert!(covers("host:ssh://git@h.example", asks("git@h.example:x")));
        assert_eq!(Allowance::of(&sends(others[0])).to_string(), "env:KEY=http://h.example");
        assert_eq!(Allowance::of(&asks("git@h.example:x")).to_string(), "host:ssh://h.example");
    }

    #[test]
    fn an_allowance_covers_its_own_kind() {
        let to = |url| ServerAddress::of(url).unwrap();
        let sends = |name: &str, url| Access::Variable { name: name.into(), to: to(url) };
        let key = Allowance::parse("env:KEY=Example.org").unwrap();
        assert!(key.covers(&sends("KEY", "https://example.org/v1")));
        assert!(!key.covers(&sends("OTHER", "https://example.org/v1")));
        assert!(!key.covers(&sends("KEY", "https://example.org:8443/v1")));
        assert!(!key.covers(&sends("KEY", "https://evil.example/v1")));
        assert!(key.covers(&Access::Host { to: to("https://example.org/") }));
        let host = Allowance::parse("host:10.0.0.1:8000").unwrap();
        assert!(host.covers(&Access::Host { to: to("https://10.0.0.1:8000/") }));
        assert!(!host.covers(&sends("KEY", "https://10.0.0.1:8000/")));
        let read = Allowance::parse("read:/srv/data").unwrap();
        assert!(read.covers(&Access::Read { path: "/srv/data/x".into() }));
        assert!(!read.covers(&Access::Read { path: "/srv/database".into() }));
        assert!(!read.covers(&Access::Read { path: "/srv/data/../x".into() }));
        assert!(!read.covers(&Access::Write { path: "/srv/data/x".into() }));
        let sends = |path: &str, url: Option<&'static str>| Access::Send {
            from: DataSource::Path(path.into()),
            to: url.map(to),
        };
        let send = Allowance::parse("send:/srv/data=h.example").unwrap();
        assert!(send.covers(&sends("/srv/data/x", Some("https://h.example/v1"))));
        for (path, url) in [
            ("/srv/data/x", Some("http://h.example/v1")),
            ("/srv/data/x", Some("https://other.example/v1")),
            ("/srv/data/x", None),
            ("/srv/database", Some("https://h.example/v1")),
        ] {
            assert!(!send.covers(&sends(path, url)), "{path} {url:?}");
        }
        assert!(!send.covers(&Access::Host { to: to("https://h.example/v1") }));
        let any = Allowance::parse("send:/srv/data=*").unwrap();
        assert!(any.covers(&sends("/srv/data/x", None)));
        assert!(any.covers(&sends("/srv/data/x", Some("http://h.example/v1"))));
        // A program in a sandbox is not one outside of it.
        let exec = Allowance::parse("exec").unwrap();
        assert!(!exec.covers(&Access::Unsandboxed { command: "x".into() }));
        assert!(!exec.covers(&Access::Network { command: "x".into() }));
        for wrong in ["", "execute", "env:KEY", "env:=h", "read:", "net", "write", "send:x"] {
            assert!(Allowance::parse(wrong).is_err(), "{wrong}");
        }
    }
}
