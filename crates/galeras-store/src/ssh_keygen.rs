//! Signatures by SSH keys, made and checked by `ssh-keygen -Y` as Git does.
//!
//! A signature is checked in two steps, whose results are remembered. The first finds the key of a
//! good signature of some bytes, with a process for each signature. The second looks the key up in
//! a list of allowed signers, with two processes for each key.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tempfile::NamedTempFile;

use galeras_base::digest::Digest;

/// The namespace of signatures of manifests.
pub const SIGNATURE_NAMESPACE: &str = "galeras-manifest";

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// The most signatures that are read from one file.
const MAX_SIGNATURES: usize = 64;

/// A signature by a key that is in no list: with it, `ssh-keygen` checks the lines of a list.
const PROBE: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgp/lsIeOfowXEFj2OrvHLUjN22g
m9fXdaMXAIaC6uCj0AAAAQZ2FsZXJhcy1tYW5pZmVzdAAAAAAAAAAGc2hhNTEyAAAAUwAA
AAtzc2gtZWQyNTUxOQAAAEArb4sCWPrm/et2Nv9lp4/1TwG0Fj2d30BIZtuTW190Fz1mVM
SobL6r2oX/paHITPBk5lqL0GApP95muAa4pk8C
-----END SSH SIGNATURE-----
";

/// A failure of `ssh-keygen`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SshKeygenError {
    /// The program is not installed.
    #[error("`ssh-keygen` was not found; install OpenSSH 8.9 or later")]
    Missing,
    /// The program does not know the operation.
    #[error("`ssh-keygen` is too old; install OpenSSH 8.9 or later")]
    TooOld,
    /// The program failed.
    #[error("`ssh-keygen` failed: {0}")]
    Failed(String),
}

/// Why a signature is not accepted, in words that follow “it”. Of the refusals of several
/// signatures, the last of these variants is reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum SignatureRefusal {
    /// It has no signature.
    #[error("is not signed")]
    Unsigned,
    /// The text is not a signature.
    #[error("has a signature that cannot be read")]
    Unreadable,
    /// The key is not in the list of allowed signers.
    #[error("is signed by {0}, which is not the key of an allowed signer")]
    OtherKey(SignerKey),
    /// The list allows the signer other namespaces.
    #[error("is signed by {0}, who may not sign for `{SIGNATURE_NAMESPACE}`")]
    NotForThis(String),
    /// The key has expired, or is not yet valid.
    #[error("is signed by {0}, whose key is not valid at this time")]
    NotNow(SignerKey),
    /// The signature was made for another namespace.
    #[error("has a signature that was not made for `{SIGNATURE_NAMESPACE}`")]
    OtherNamespace,
    /// The signature is of other bytes.
    #[error("is not what was signed: the signature is of something else")]
    OtherContent,
}

/// Why a signature was not checked, or is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// `ssh-keygen` checked it.
    #[error(transparent)]
    Refused(#[from] SignatureRefusal),
    /// `ssh-keygen` could not check it.
    #[error("has a signature that cannot be checked: {0}")]
    Unchecked(#[from] SshKeygenError),
}

/// The fingerprint of a public key, `SHA256:…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignerKey(String);

impl fmt::Display for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The results of checks in this process, by the digest of a signature and its bytes.
static CHECKED: LazyLock<Mutex<HashMap<Digest, Result<SignerKey, SignatureRefusal>>>> =
    LazyLock::new(Mutex::default);

/// One signature, in the text form of `ssh-keygen -Y sign`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(String);

impl Signature {
    /// Returns the key of a good signature of `message`.
    pub fn check(&self, message: &[u8]) -> Result<SignerKey, SignatureError> {
        let id = Digest::of(&[self.0.as_bytes(), message].concat());
        let locked = || CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locked().get(&id).cloned() {
            return Ok(known?);
        }
        let file = scratch(&self.0)?;
        let args = ["-Y", "check-novalidate", "-n", SIGNATURE_NAMESPACE, "-s"];
        let answer = ssh_keygen(&args, &[file.path()], message)?;
        // Good "galeras-manifest" signature with ED25519 key SHA256:…
        let key = answer.stdout.split_whitespace().find(|word| word.starts_with("SHA256:"));
        let is = |words: &str| answer.stderr.contains(words);
        let checked = match key {
            Some(key) if answer.success => Ok(SignerKey(key.to_string())),
            _ if is("namespace does not match") => Err(SignatureRefusal::OtherNamespace),
            _ if is("incorrect signature") => Err(SignatureRefusal::OtherContent),
            _ => Err(SignatureRefusal::Unreadable),
        };
        locked().insert(id, checked.clone());
        Ok(checked?)
    }
}

/// The signatures in one file, one after the other. `ssh-keygen -Y verify` looks at the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureFile {
    /// In the order of the file.
    pub(super) signatures: Vec<Signature>,
    /// True if a part of the file is not a signature.
    pub(super) damaged: bool,
}

impl SignatureFile {
    /// The signatures in a text, which may be empty. None of them is checked.
    pub fn parse(text: &str) -> Self {
        let mut file = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = rest.find(END).map(|at| at + END.len()).filter(|_| rest.starts_with(BEGIN));
            let Some(end) = end.filter(|_| file.signatures.len() < MAX_SIGNATURES) else {
                file.damaged = true;
                break;
            };
            file.signatures.push(Signature(format!("{}\n", &rest[..end])));
            rest = rest[end..].trim_start();
        }
        file
    }

    /// Returns true if the file is empty.
    pub fn is_empty(&self) -> bool {
        self.signatures.is_empty() && !self.damaged
    }

    /// Adds signatures.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.signatures.extend(more.signatures);
        self
    }

    /// Keeps the good signatures of `message`, the first of each key, sorted by key.
    pub fn only_of(self, message: &[u8]) -> Result<Self, SshKeygenError> {
        let mut good = BTreeMap::new();
        for signature in self.signatures {
            match signature.check(message) {
                Ok(key) => _ = good.entry(key).or_insert(signature),
                Err(SignatureError::Refused(_)) => {}
                Err(SignatureError::Unchecked(error)) => return Err(error),
            }
        }
        Ok(Self { signatures: good.into_values().collect(), damaged: false })
    }

    /// The text of the file.
    pub fn render(&self) -> String {
        self.signatures.iter().map(|signature| signature.0.as_str()).collect()
    }
}

/// Why a file cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The private key needs a passphrase, and no agent has the key.
    #[error("the key is encrypted with a passphrase, and no ssh-agent has it")]
    Encrypted,
    /// Other users may read the private key.
    #[error("other users may read the key; run chmod 600 on it")]
    Permissions,
    /// The file is not a key.
    #[error("this is not a key that `ssh-keygen` wrote")]
    NotAKey,
    /// The file is a public key without its private half.
    #[error("this is a public key, and neither an ssh-agent nor a file has its private half")]
    Public,
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// `ssh-keygen` cannot be run.
    #[error(transparent)]
    SshKeygen(#[from] SshKeygenError),
}

/// A key that signs: a file with a private key, or with a public key whose private half is in an
/// ssh-agent.
#[derive(Debug)]
pub struct SigningKey {
    file: PathBuf,
    /// A signature of no bytes, which shows that the key can sign.
    trial: Signature,
}

impl SigningKey {
    /// Opens the key in a file, and signs an empty message with it as a test.
    pub fn open(file: &Path) -> Result<Self, SigningKeyError> {
        File::open(file)?;
        let file = std::path::absolute(file)?;
        let trial = sign(&file, b"")?;
        Ok(Self { file, trial })
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Result<SignatureFile, SigningKeyError> {
        Ok(SignatureFile { signatures: vec![sign(&self.file, message)?], damaged: false })
    }
}

fn sign(file: &Path, message: &[u8]) -> Result<Signature, SigningKeyError> {
    // With `-P`, an encrypted key is an error; without it there would be a prompt per signature.
    let args = ["-q", "-P", "", "-Y", "sign", "-n", SIGNATURE_NAMESPACE, "-f"];
    let answer = ssh_keygen(&args, &[file], message)?;
    if answer.success && answer.stdout.starts_with(BEGIN) {
        return Ok(Signature(answer.stdout));
    }
    let is = |words: &str| answer.stderr.contains(words);
    let last = answer.stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(match () {
        () if is("incorrect passphrase") => SigningKeyError::Encrypted,
        () if is("UNPROTECTED PRIVATE KEY") => SigningKeyError::Permissions,
        () if is("Couldn't load public key") || is("invalid format") => SigningKeyError::NotAKey,
        () if is("No private key found") => SigningKeyError::Public,
        () => SshKeygenError::Failed(last.unwrap_or("it gave no reason").into()).into(),
    })
}

/// Why a file of allowed signers cannot be used. Nothing of the file is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowedSignersError {
    /// `ssh-keygen` does not understand a line.
    #[error("line {0}: {1}")]
    Line(usize, String),
    /// No line names a signer.
    #[error("it names no signer")]
    Empty,
    /// `ssh-keygen` cannot be run.
    #[error(transparent)]
    SshKeygen(#[from] SshKeygenError),
}

/// A list of allowed signers, as it was when it was read.
#[derive(Clone, Debug)]
pub struct AllowedSigners {
    copy: Arc<NamedTempFile>,
    /// The principals of keys, for keys that were looked up.
    known: Arc<Mutex<HashMap<SignerKey, Result<String, SignatureRefusal>>>>,
}

impl AllowedSigners {
    /// Reads the text of a file (ALLOWED SIGNERS of ssh-keygen(1)). A line that `ssh-keygen` does
    /// not understand is an error; `ssh-keygen` would ignore it, and with it a signer.
    pub fn parse(text: &str) -> Result<Self, AllowedSignersError> {
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        if let Some(at) = text.find(|c: char| c.is_control() && !"\t\r\n".contains(c)) {
            return Err(AllowedSignersError::Line(line_of(at), "a control character".into()));
        }
        if text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#')) {
            return Err(AllowedSignersError::Empty);
        }
        let copy = Arc::new(scratch(text)?);
        let answer = find_principals(copy.path(), &Signature(PROBE.into()))?;
        // FILE:LINE: PROBLEM, also for an empty line.
        let place = format!("{}:", copy.path().display());
        for problem in answer.stderr.lines().filter_map(|line| line.strip_prefix(&place)) {
            let Some((number, problem)) = problem.split_once(':') else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            let line = text.lines().nth(number.saturating_sub(1)).unwrap_or_default();
            if !line.trim().is_empty() {
                return Err(AllowedSignersError::Line(number, problem.trim().into()));
            }
        }
        Ok(Self { copy, known: Arc::default() })
    }

    /// Returns the principals of the first good signature of `message` by an allowed signer.
    pub fn accept(&self, file: &SignatureFile, message: &[u8]) -> Result<String, SignatureError> {
        let mut closest = match file.damaged {
            true => SignatureRefusal::Unreadable,
            false => SignatureRefusal::Unsigned,
        };
        for signature in &file.signatures {
            let judged = signature.check(message);
            match judged.and_then(|key| self.principals(&key, signature, message)) {
                Err(SignatureError::Refused(refusal)) => closest = closest.max(refusal),
                judged => return judged,
            }
        }
        Err(closest.into())
    }

    /// Returns the principals of a key that made a good signature of `message`.
    pub fn principals(
        &self,
        key: &SignerKey,
        signature: &Signature,
        message: &[u8],
    ) -> Result<String, SignatureError> {
        let locked = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locked().get(key).cloned() {
            return Ok(known?);
        }
        let found = self.look_up(key, signature, message)?;
        locked().insert(key.clone(), found.clone());
        Ok(found?)
    }

    /// Returns the fingerprint of a key, and true if the list allows it to sign.
    pub fn allows(&self, key: &SigningKey) -> Result<(SignerKey, bool), SignatureError> {
        let signer = key.trial.check(b"")?;
        match self.principals(&signer, &key.trial, b"") {
            Ok(_) => Ok((signer, true)),
            Err(SignatureError::Refused(_)) => Ok((signer, false)),
            Err(error) => Err(error),
        }
    }

    fn look_up(
        &self,
        key: &SignerKey,
        signature: &Signature,
        message: &[u8],
    ) -> Result<Result<String, SignatureRefusal>, SshKeygenError> {
        let found = find_principals(self.copy.path(), signature)?;
        if !found.success {
            let late = ["key has expired", "key is not yet valid"];
            let late = late.iter().any(|words| found.stderr.contains(words));
            return Ok(Err(match late {
                true => SignatureRefusal::NotNow(key.clone()),
                false => SignatureRefusal::OtherKey(key.clone()),
            }));
        }
        let file = scratch(&signature.0)?;
        let names: Vec<&str> = found.stdout.lines().collect();
        for name in &names {
            let args = ["-Y", "verify", "-n", SIGNATURE_NAMESPACE, "-I", name, "-f"];
            let paths = [self.copy.path(), Path::new("-s"), file.path()];
            if ssh_keygen(&args, &paths, message)?.success {
                return Ok(Ok(names.join(",")));
            }
        }
        Ok(Err(SignatureRefusal::NotForThis(names.join(","))))
    }
}

fn find_principals(list: &Path, signature: &Signature) -> Result<Answer, SshKeygenError> {
    let file = scratch(&signature.0)?;
    ssh_keygen(&["-Y", "find-principals", "-f"], &[list, Path::new("-s"), file.path()], b"")
}

/// The exit and the output of a process.
struct Answer {
    success: bool,
    stdout: String,
    stderr: String,
}

/// Runs `ssh-keygen ARGS PATHS`, without a shell. Each path and name follows a flag that takes a
/// value, so none is read as a flag.
fn ssh_keygen(args: &[&str], paths: &[&Path], input: &[u8]) -> Result<Answer, SshKeygenError> {
    let mut command = Command::new("ssh-keygen");
    command.args(args).args(paths);
    // Without the terminal's locale, and without a window that asks for a passphrase.
    command.env("LC_ALL", "C").env("SSH_ASKPASS_REQUIRE", "never");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: io::Error| SshKeygenError::Failed(error.to_string());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SshKeygenError::Missing,
        _ => failed(error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // The process may end before it has read everything.
        _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().map_err(failed)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let answer = Answer { success: output.status.success(), stdout, stderr };
    let unknown =
        ["usage: ssh-keygen", "Unsupported operation", "unknown option", "illegal option"];
    let is_unknown = !answer.success && unknown.iter().any(|words| answer.stderr.contains(words));
    match output.status.code() {
        None => Err(SshKeygenError::Failed(output.status.to_string())),
        Some(_) if is_unknown => Err(SshKeygenError::TooOld),
        Some(_) => Ok(answer),
    }
}

/// A file for a program to read.
fn scratch(text: &str) -> Result<NamedTempFile, SshKeygenError> {
    let write = || {
        let mut file = NamedTempFile::new()?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    };
    write().map_err(|error: io::Error| SshKeygenError::Failed(error.to_string()))
}
