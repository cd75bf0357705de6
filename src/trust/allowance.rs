//! What `--allow` says: `exec`, `env:NAME=HOST`, `host:HOST`, `read:PATH`, `write:PATH`.
//!
//! A character that would end an item, or steer a terminal, is written as `%2C`: what we print can
//! be pasted, and says no more than was shown.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::ground::{lies_in, real};
use crate::operator::Access;
use crate::visible::escape_all;

/// An item of `--allow`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allowance {
    /// Any program.
    Program,
    /// The value of a variable may go to a server.
    Variable {
        /// The variable.
        name: String,
        /// The server, as [`authority`](crate::operator::ServerAddress::authority) writes it.
        host: String,
    },
    /// A server may be asked.
    Host(String),
    /// A file, or what lies in a folder, may be read.
    Read(PathBuf),
    /// A file, or into a folder, may be written.
    Write(PathBuf),
}

impl Allowance {
    /// Reads an item; relative paths start in the current folder.
    ///
    /// # Errors
    /// A text that says which items there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "exec" {
            return Ok(Self::Program);
        }
        let usage = "write exec, env:NAME=HOST, host:HOST, read:PATH or write:PATH";
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
                    Ok(Self::Variable { name: plain(name)?, host: plain(host)?.to_lowercase() })
                }
                _ => Err("write env:NAME=HOST".into()),
            },
            "host" => Ok(Self::Host(plain(rest)?.to_lowercase())),
            "read" => Ok(Self::Read(path(rest))),
            "write" => Ok(Self::Write(path(rest))),
            _ => Err(usage.into()),
        }
    }

    /// What allows just this, and with it all programs or what lies in the folder.
    pub fn of(access: &Access) -> Self {
        match access {
            Access::Program { .. } => Self::Program,
            Access::Variable { name, to } => {
                Self::Variable { name: name.clone(), host: to.authority() }
            }
            Access::Host { to } => Self::Host(to.authority()),
            Access::Read { path } => Self::Read(path.clone()),
            Access::Write { path } => Self::Write(path.clone()),
        }
    }

    /// Whether it allows this, whose paths are settled.
    pub fn covers(&self, access: &Access) -> bool {
        match (self, access) {
            (Self::Program, Access::Program { .. }) => true,
            (Self::Variable { name, host }, Access::Variable { name: wanted, to }) => {
                name == wanted && *host == to.authority()
            }
            // Who may have a secret may be asked.
            (Self::Variable { host, .. } | Self::Host(host), Access::Host { to }) => {
                *host == to.authority()
            }
            (Self::Read(folder), Access::Read { path })
            | (Self::Write(folder), Access::Write { path }) => lies_in(path, folder),
            _ => false,
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |path: &Path| encoded(path.as_os_str().as_bytes());
        match self {
            Self::Program => f.write_str("exec"),
            Self::Variable { name, host } => {
                let [name, host] =
                    [name, host].map(|text| encoded(text.as_bytes()).replace('=', "%3D"));
                write!(f, "env:{name}={host}")
            }
            Self::Host(host) => write!(f, "host:{}", encoded(host.as_bytes())),
            Self::Read(folder) => write!(f, "read:{}", path(folder)),
            Self::Write(folder) => write!(f, "write:{}", path(folder)),
        }
    }
}

/// The text of bytes, with `%XX` for what cannot stand in a list, or cannot be shown.
fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    // Writing to a String cannot fail.
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::operator::ServerAddress;

    #[test]
    fn what_is_printed_says_just_that_again() {
        let to = ServerAddress::of("https://a,exec/x").unwrap();
        let odd =
            PathBuf::from(OsString::from_vec(b"/no/a,exec %41\x1b[31m\xff/\xc3\xa9".to_vec()));
        for access in [
            Access::Variable { name: "A=B,exec".into(), to: to.clone() },
            Access::Host { to },
            Access::Read { path: odd.clone() },
            Access::Write { path: odd },
            Access::Program { command: "x".into(), folder: "/".into(), files: Vec::new() },
        ] {
            let text = Allowance::of(&access).to_string();
            assert!(!text.contains(',') && !text.chars().any(char::is_control), "{text}");
            let parsed = Allowance::parse(&text).unwrap();
            assert_eq!(parsed, Allowance::of(&access), "{text}");
            assert!(parsed.covers(&access));
        }
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
        assert!(key.covers(&Access::Host { to: to("http://example.org/") }));
        let host = Allowance::parse("host:10.0.0.1:8000").unwrap();
        assert!(host.covers(&Access::Host { to: to("http://10.0.0.1:8000/") }));
        assert!(!host.covers(&sends("KEY", "http://10.0.0.1:8000/")));
        let read = Allowance::parse("read:/srv/data").unwrap();
        assert!(read.covers(&Access::Read { path: "/srv/data/x".into() }));
        assert!(!read.covers(&Access::Read { path: "/srv/database".into() }));
        assert!(!read.covers(&Access::Read { path: "/srv/data/../x".into() }));
        assert!(!read.covers(&Access::Write { path: "/srv/data/x".into() }));
        for wrong in ["", "execute", "env:KEY", "env:=h", "read:", "network", "write"] {
            assert!(Allowance::parse(wrong).is_err(), "{wrong}");
        }
    }
}
