//! Actions of a step that may need consent: programs, variables and requests to servers, files.
//!
//! Steps declare them ([`BoundStep::demands`](super::BoundStep::demands)); a [`Consent`] knows the
//! user's decisions, which the module `trust` collects.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use galeras_git::GitServer;
use serde::Serialize;
use url::{Host, Url};

use super::pins::SideFile;

/// An action of a workflow on the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Access {
    /// Runs a program.
    Program {
        /// The full text for the shell, with params filled in.
        command: String,
        /// The working directory.
        folder: PathBuf,
        /// The files that it reads according to the workflow, by content.
        files: Vec<SideFile>,
    },
    /// Runs a program without a sandbox, or within a command of the workflow that may confine nothing.
    Unsandboxed {
        /// The full text for the shell.
        command: String,
    },
    /// Lets a program in a sandbox reach any server.
    Network {
        /// The full text for the shell.
        command: String,
    },
    /// Sends the value of an environment variable to a server.
    Variable {
        /// The variable.
        name: String,
        /// The server.
        to: ServerAddress,
    },
    /// Connects to a server.
    Host {
        /// The server.
        to: ServerAddress,
    },
    /// Reads a file, or the files of a folder.
    Read {
        /// The path.
        path: PathBuf,
    },
    /// Writes a file.
    Write {
        /// The path.
        path: PathBuf,
    },
    /// Lets a program write any file in a folder, also hidden ones, which other programs obey.
    WriteFolder {
        /// The path.
        path: PathBuf,
    },
    /// Sends data that did not come with the workflow.
    Send {
        /// Where the data is.
        from: DataSource,
        /// The server; `None` for those that rows name.
        to: Option<ServerAddress>,
    },
}

/// The place of data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DataSource {
    /// A file or folder.
    Path(PathBuf),
    /// A server.
    Server(ServerAddress),
}

impl DataSource {
    /// The place that this action gets data from, if it does.
    pub fn of(access: &Access) -> Option<Self> {
        match access {
            Access::Read { path } => Some(Self::Path(path.clone())),
            Access::Host { to } | Access::Variable { to, .. } => Some(Self::Server(to.clone())),
            Access::Program { .. }
            | Access::Unsandboxed { .. }
            | Access::Network { .. }
            | Access::Write { .. }
            | Access::WriteFolder { .. }
            | Access::Send { .. } => None,
        }
    }
}

impl fmt::Display for DataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Server(server) => write!(f, "{server}"),
        }
    }
}

/// An [`Access`] and the argument that causes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The action.
    pub access: Access,
    /// A path below `with:` such as `repos[2]`; empty for the step as a whole.
    pub at: String,
    /// The step's tables only list what is there (addresses, commits, descriptions): content enters
    /// with a later step that opens what rows name.
    pub is_listing: bool,
}

impl Demand {
    /// A demand of the argument at `path`.
    pub fn new(path: impl Into<String>, access: Access) -> Self {
        Self { access, at: path.into(), is_listing: false }
    }

    /// The same for a place that is only listed.
    pub fn listing(path: impl Into<String>, access: Access) -> Self {
        Self { is_listing: true, ..Self::new(path, access) }
    }
}

/// A server in requests: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ServerAddress {
    scheme: String,
    host: String,
    /// The port, if it is not the scheme's default.
    port: Option<u16>,
}

impl ServerAddress {
    /// The server of a URL, or of git's `user@host:path`. `None` if there is no host in the text.
    ///
    /// HTTP addresses are parsed here as the HTTP clients parse them, those of git and ssh by
    /// [`GitServer`]: two parsers may see two hosts in one text.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let own = matches!(scheme.as_deref(), Some("ssh" | "git")) || !text.contains("://");
        // HTTP clients read `https:host` as a URL.
        if own && !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Self::of_git(text);
        }
        let url = Url::parse(text).ok()?;
        // The parser skips control characters, so it reads `s\tsh` and `\0ssh` as schemes.
        if matches!(url.scheme(), "ssh" | "git") {
            return Self::of_git(url.as_str());
        }
        let host = url.host_str().filter(|host| !host.is_empty())?.to_lowercase();
        Some(Self { scheme: url.scheme().to_string(), host, port: url.port() })
    }

    fn of_git(text: &str) -> Option<Self> {
        let GitServer { scheme, host, port } = GitServer::of(text)?;
        Some(Self { scheme: scheme.into(), host, port })
    }

    /// `http`, `https`, `ssh`, `git`, `s3`, `gs`.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host's name or address, without brackets.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The host, with the port if it is not the default: `example.org`, `[::1]:8000`.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// True for a server at its default port over TLS.
    pub fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }

    /// True if every connection uses credentials of the user: the keys of ssh, and those of the
    /// environment for a bucket.
    pub fn uses_credentials(&self) -> bool {
        matches!(self.scheme.as_str(), "ssh" | "s3" | "gs")
    }

    /// True for this machine: `localhost`, or a loopback address.
    pub fn is_loopback(&self) -> bool {
        match Host::parse(&self.host) {
            Ok(Host::Domain(name)) => name == "localhost",
            Ok(Host::Ipv4(address)) => address.is_loopback(),
            Ok(Host::Ipv6(address)) => address.is_loopback(),
            Err(_) => false,
        }
    }

    /// True unless the address or the kind of name is valid only in a local network.
    pub fn is_public(&self) -> bool {
        const LOCAL: [&str; 6] = ["local", "localhost", "internal", "lan", "home.arpa", "intranet"];
        match Host::parse(&self.host) {
            Ok(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                let ends = |end: &&str| {
                    name.strip_suffix(*end)
                        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                };
                name.contains('.') && !LOCAL.iter().any(ends)
            }
            Ok(Host::Ipv4(address)) => {
                let bits = address.to_bits();
                RESERVED_V4.iter().all(|(a, b, c, length)| {
                    let network = u32::from_be_bytes([*a, *b, *c, 0]);
                    (bits ^ network) >> (32 - length) != 0
                })
            }
            Ok(Host::Ipv6(address)) => {
                let bits = address.to_bits();
                let within = |(a, b, length): &(u16, u16, u32)| {
                    let network = u128::from(*a) << 112 | u128::from(*b) << 96;
                    (bits ^ network) >> (128 - length) == 0
                };
                within(&GIVEN_OUT_V6) && !RESERVED_V6.iter().any(within)
            }
            Err(_) => false,
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority())
    }
}

/// IPv4 networks that are not on the internet, by their first three bytes and the length of the
/// prefix (IANA's registry of special-purpose addresses).
const RESERVED_V4: [(u8, u8, u8, u32); 15] = [
    (0, 0, 0, 8),       // this network
    (10, 0, 0, 8),      // private
    (100, 64, 0, 10),   // between a provider and its customers
    (127, 0, 0, 8),     // loopback
    (169, 254, 0, 16),  // link-local, servers of metadata
    (172, 16, 0, 12),   // private
    (192, 0, 0, 24),    // protocols
    (192, 0, 2, 24),    // documentation
    (192, 88, 99, 24),  // relays from IPv6
    (192, 168, 0, 16),  // private
    (198, 18, 0, 15),   // benchmarks
    (198, 51, 100, 24), // documentation
    (203, 0, 113, 24),  // documentation
    (224, 0, 0, 4),     // multicast
    (240, 0, 0, 4),     // reserved, broadcast
];

/// Allocated public addresses of IPv6: first two segments, length of the prefix. Excludes loopback
/// (`::1`), addresses of IPv4 (`::a.b.c.d`, `::ffff:a.b.c.d`, `64:ff9b::`), `100::`, private
/// (`fc00::`), link-local (`fe80::`), site-local (`fec0::`) and multicast (`ff00::`) addresses.
const GIVEN_OUT_V6: (u16, u16, u32) = (0x2000, 0, 3);

/// Exceptions within it that are not on the internet, or contain an IPv4 address that may not be.
const RESERVED_V6: [(u16, u16, u32); 4] = [
    (0x2001, 0, 23),     // protocols, Teredo among them
    (0x2001, 0xdb8, 32), // documentation
    (0x2002, 0, 16),     // 6to4
    (0x3fff, 0, 20),     // documentation
];

/// The user's decisions.
pub trait Consent: Send + Sync + fmt::Debug {
    /// The reason why this is not allowed; `None` if it is.
    fn refusal(&self, access: &Access) -> Option<RefusedAccess>;
    /// True if data from there did not come with the workflow, so that sending it needs consent.
    fn is_users_data(&self, _from: &DataSource) -> bool {
        false
    }
}

/// A refused action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAccess {
    /// The action, as a sentence without its subject: `runs a program that …`.
    pub message: String,
    /// The way to allow it.
    pub help: String,
}

/// Decides if a redirect from the first URL to the second may be followed. The error names the
/// target and the way to allow it.
pub type RedirectCheck = dyn Fn(&str, &str) -> Result<(), String> + Send + Sync;

/// Follows redirects within a server, over TLS if the first request was, and to servers that are
/// allowed. A redirect from another server to this machine is refused: access to this machine needs
/// no consent only because the user knows what runs here.
pub fn redirect_check(consent: Arc<dyn Consent>) -> Arc<RedirectCheck> {
    Arc::new(move |from, to| {
        let from = ServerAddress::of(from);
        let Some(to) = ServerAddress::of(to) else {
            return Err("it redirects to no server".to_string());
        };
        let same = from.as_ref().is_some_and(|from| {
            *from == to || (to.is_encrypted() && to.authority() == from.authority())
        });
        if same {
            return Ok(());
        }
        if to.is_loopback() && !from.is_some_and(|from| from.is_loopback()) {
            return Err(format!("it redirects to {to}, which is this machine"));
        }
        match consent.refusal(&Access::Host { to: to.clone() }) {
            None => Ok(()),
            Some(refused) => {
                let help = refused.help;
                Err(format!("it redirects to {to}, which was not agreed to; {help}"))
            }
        }
    })
}

/// Allows everything: for callers who know the workflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullConsent;

impl Consent for FullConsent {
    fn refusal(&self, _: &Access) -> Option<RefusedAccess> {
        None
    }
}

/// Allows nothing: to inspect a step that will not run.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoConsent;

impl Consent for NoConsent {
    fn refusal(&self, _: &Access) -> Option<RefusedAccess> {
        let message = "needs the consent that is asked for when the step is planned".to_string();
        Some(RefusedAccess { message, help: "mend the mistakes of the step first".to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> ServerAddress {
        ServerAddress::of(text).unwrap()
    }

    #[test]
    fn addresses_name_their_server() {
        for (text, shown, authority) in [
            ("https://API.example.org/v1?x#y", "https://api.example.org", "api.example.org"),
            ("http://u:p@host:8000/v1", "http://host:8000", "host:8000"),
            ("https://host:443/", "https://host", "host"),
            ("http://[::1]:80/v1", "http://[::1]", "[::1]"),
            ("git@example.org:a/b.git", "ssh://example.org", "example.org"),
            ("ssh://git@example.org:22/x", "ssh://example.org", "example.org"),
            ("git://Example.org/x", "git://example.org", "example.org"),
        ] {
            assert_eq!(server(text).to_string(), shown);
            assert_eq!(server(text).authority(), authority);
        }
        for text in ["", "/a/b", "./a", "https://", "file:///x"] {
            assert_eq!(ServerAddress::of(text), None, "{text}");
        }
    }

    /// Allows what needs no consent, and one more server.
    #[derive(Debug)]
    struct Public(ServerAddress);

    impl Consent for Public {
        fn refusal(&self, access: &Access) -> Option<RefusedAccess> {
            let Access::Host { to } = access else { return None };
            let free = to.is_loopback() || (to.is_encrypted() && to.is_public()) || *to == self.0;
            let help = format!("allow it with --allow host:{to}");
            (!free).then(|| RefusedAccess { message: "connects".into(), help })
        }
    }

    #[test]
    fn redirects_lead_to_servers_that_may_be_asked() {
        let check = redirect_check(Arc::new(Public(server("http://10.0.0.2/"))));
        for (from, to, words) in [
            ("https://a.example/x", "https://b.example/y", ""),
            ("https://a.example/x", "http://10.0.0.2/y", ""),
            ("http://10.0.0.1/x", "http://10.0.0.1/y", ""),
            ("http://10.0.0.1/x", "https://10.0.0.1/y", ""),
            ("http://localhost:1/x", "http://127.0.0.1:2/y", ""),
            ("https://a.example/x", "https://10.0.0.1/y", "--allow host:https://10.0.0.1"),
            ("https://a.example/x", "http://b.example/y", "--allow host:http://b.example"),
            ("https://a.example/x", "http://a.example/x", "--allow host:http://a.example"),
            ("http://10.0.0.1/x", "http://10.0.0.1:81/y", "--allow host:http://10.0.0.1:81"),
            ("https://a.example/x", "http://localhost:8/y", "http://localhost:8, which is this"),
            ("http://10.0.0.2/x", "https://127.0.0.1/y", "which is this machine"),
            ("https://a.example/x", "http://[::1]:1/y", "which is this machine"),
            ("", "http://localhost/y", "which is this machine"),
            ("https://a.example/x", "file:///etc/passwd", "no server"),
        ] {
            let said = check(from, to).err().unwrap_or_default();
            assert!(
                said.contains(words) && said.is_empty() == words.is_empty(),
                "{from}, {to}: {said}"
            );
        }
    }

    /// Consent is checked for the same server that is contacted, for every form of a repository's
    /// address.
    #[test]
    fn who_is_judged_is_who_is_asked() {
        let users =
            ["", "git@", "u:p@", "localhost#@", "localhost?@", "localhost\\@", "localhost%23@"];
        let hosts = "evil.example EVIL.example. [::1] [2001:DB8::1] 127.0.0.1 2130706433 \
                     localhost#.evil.example localhost\\.evil.example localhost%2eevil.example \
                     xn--bcher-kva.example b\u{fc}cher.example -oProxyCommand=x";
        let mut judged = 0;
        for scheme in ["http://", "https://", "HTTPS://", "ssh://", "SSH://", "git://", "", "ssh:"]
        {
            for (user, host) in
                users.iter().flat_map(|user| hosts.split(' ').map(move |host| (user, host)))
            {
                for end in ["/x", ":22/x", ":443/x", ":x", ":/x", "#@localhost/x", "?@localhost/x"]
                {
                    let text = format!("{scheme}{user}{host}{end}");
                    let location =
                        galeras_git::RepositoryLocation::parse(&text, std::path::Path::new("/no"));
                    let Ok(galeras_git::RepositoryLocation::Remote(url)) = location else {
                        continue;
                    };
                    assert_eq!(ServerAddress::of(&url), ServerAddress::of_git(&url), "{text}");
                    let here = ["[::1]", "127.0.0.1", "2130706433"].contains(&host);
                    // To git, `u:p@host` without a scheme is the path `p@host` on `u`.
                    let here = here && (!scheme.is_empty() || !user.contains(':'));
                    assert_eq!(server(&url).is_loopback(), here, "{text}");
                    judged += 1;
                }
            }
        }
        assert!(judged > 50, "{judged}");
    }

    #[test]
    fn a_web_address_without_slashes_names_its_host() {
        for text in ["https:evil.example/v1", "HTTPS:/evil.example", "https:\\\\evil.example/x"] {
            assert_eq!(server(text).to_string(), "https://evil.example", "{text}");
        }
        assert_eq!(server("ssh://localhost#@evil.example/x").host(), "evil.example");
    }

    #[test]
    fn what_is_no_name_of_a_host_is_no_git_server() {
        for host in ["ada%2Fa", "a%00b", "%2d", "H\u{401}.Example", "a%20b", "a%40b", "a\\b"] {
            for text in [format!("ssh://git@{host}/x"), format!("git://{host}/x")] {
                assert_eq!(ServerAddress::of(&text), None, "{text}");
                assert!(galeras_git::RepositoryLocation::parse(&text, "/".as_ref()).is_err());
            }
        }
        // A control character in the scheme must not change the parser.
        for text in ["\0ssh://localhost#@evil.example/x", "s\tsh://localhost#@evil.example/x"] {
            assert_eq!(server(text).host(), "evil.example");
        }
    }

    #[test]
    fn private_link_local_and_reserved_addresses_are_not_public() {
        // The first and the last address of each network, and its public neighbours.
        for (first, last, public) in [
            ("0.0.0.0", "0.255.255.255", &["1.0.0.0"][..]),
            ("10.0.0.0", "10.255.255.255", &["9.255.255.255", "11.0.0.0"]),
            ("100.64.0.0", "100.127.255.255", &["100.63.255.255", "100.128.0.0"]),
            ("127.0.0.0", "127.255.255.255", &["126.255.255.255", "128.0.0.0"]),
            ("169.254.0.0", "169.254.255.255", &["169.253.255.255", "169.255.0.0"]),
            ("172.16.0.0", "172.31.255.255", &["172.15.255.255", "172.32.0.0"]),
            ("192.0.0.0", "192.0.0.255", &["191.255.255.255", "192.0.1.0"]),
            ("192.0.2.0", "192.0.2.255", &["192.0.1.255", "192.0.3.0"]),
            ("192.88.99.0", "192.88.99.255", &["192.88.98.255", "192.88.100.0"]),
            ("192.168.0.0", "192.168.255.255", &["192.167.255.255", "192.169.0.0"]),
            ("198.18.0.0", "198.19.255.255", &["198.17.255.255", "198.20.0.0"]),
            ("198.51.100.0", "198.51.100.255", &["198.51.99.255", "198.51.101.0"]),
            ("203.0.113.0", "203.0.113.255", &["203.0.112.255", "203.0.114.0"]),
            ("224.0.0.0", "255.255.255.255", &["223.255.255.255"]),
            ("[::]", "[1fff:ffff::ffff]", &["[2000::]", "[2400::]"]),
            ("[::1]", "[::10.0.0.1]", &[]),
            ("[::ffff:10.0.0.1]", "[::ffff:8.8.8.8]", &[]),
            ("[64:ff9b::10.0.0.1]", "[64:ff9b:1::1]", &[]),
            ("[100::]", "[100::ffff:ffff:ffff:ffff]", &[]),
            ("[2001::]", "[2001:1ff:ffff::]", &["[2001:200::]"]),
            ("[2001:db8::]", "[2001:db8:ffff::]", &["[2001:db7:ffff::]", "[2001:db9::]"]),
            ("[2002::]", "[2002:0a00:1::]", &["[2001:ffff::]", "[2003::]"]),
            ("[3fff::]", "[3fff:fff:ffff::]", &["[3fff:1000::]"]),
            ("[4000::]", "[fbff::1]", &["[3ffe::1]"]),
            ("[fc00::]", "[fdff:ffff::1]", &[]),
            ("[fe80::]", "[febf::1]", &[]),
            ("[fec0::]", "[ffff:ffff::1]", &[]),
        ] {
            let is_public = |address: &str| server(&format!("https://{address}/")).is_public();
            assert!(!is_public(first) && !is_public(last), "{first}, {last}");
            public.iter().for_each(|address| assert!(is_public(address), "{address}"));
        }
    }

    #[test]
    fn this_machine_and_the_internet_are_told_apart() {
        for text in
            ["http://localhost:1/", "http://127.9.9.9/", "http://[::1]/", "http://2130706433/"]
        {
            assert!(server(text).is_loopback(), "{text}");
        }
        for text in
            ["http://localhost.evil.example/", "http://127.0.0.1.nip.io/", "http://0.0.0.0/"]
        {
            assert!(!server(text).is_loopback(), "{text}");
        }
        for text in ["https://example.org/", "https://8.8.8.8/", "https://[2606:4700::1]/"] {
            assert!(server(text).is_public(), "{text}");
        }
        let private = "10.0.0.1 169.254.169.254 192.168.1.1 100.100.0.1 0.0.0.0 [fe80::1] [fd00::1] \
                       [::ffff:10.0.0.1] gpu printer.local metadata.google.internal.";
        for host in private.split(' ') {
            assert!(!server(&format!("https://{host}/")).is_public(), "{host}");
        }
    }
}
