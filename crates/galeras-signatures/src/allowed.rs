//! Files of allowed signers (ALLOWED SIGNERS of ssh-keygen(1)): on each line who signs, what may be
//! signed and when, and the key.
//!
//! Nobody has to say in whose name a signature is asked for, as with `ssh-keygen -Y find-principals`:
//! a good signature by any of the keys is accepted, and the principals of its line are its signer's
//! name. What of a line is not understood is an error, because a restriction that is passed over lets
//! in who should stay out.

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::pattern::PatternList;
use super::signature::{Signature, SignatureFile};
use super::signer_key::SignerKey;

/// Why a file of allowed signers cannot be used. Nothing of the file is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct AllowedSignersError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Why no signature is accepted, in words that follow “it”.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureRefusal {
    /// There is none.
    #[error("is not signed")]
    Unsigned,
    /// What should be a signature is not one, or is by a key of a kind that is not even known.
    #[error("has a signature that cannot be read as one by an ssh-ed25519 key")]
    Unreadable,
    /// The key is of a kind that cannot be verified.
    #[error("is signed by a key of the kind {0}; only ssh-ed25519 is supported")]
    OtherKind(String),
    /// Nobody who is allowed to sign has the key.
    #[error("is signed by {0}, which is not the key of an allowed signer")]
    OtherKey(SignerKey),
    /// The signer's time is over, or has not come.
    #[error("is signed by {0}, whose key is not valid at this time")]
    NotNow(String),
    /// The signer may only sign other things.
    #[error("is signed by {0}, who may not sign for `{1}`")]
    NotForThis(String, String),
    /// It was signed as something else.
    #[error("has a signature by {0} that was made for `{1}`, not for `{2}`")]
    OtherNamespace(String, String, String),
    /// The signature is of other bytes, or no signature at all.
    #[error("is not what {0} signed: the signature is of something else")]
    OtherContent(String),
}

/// Whose signatures are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedSigners(Vec<AllowedSigner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowedSigner {
    principals: String,
    /// `None` if it is of a kind that cannot be verified: then it allows nobody.
    key: Option<SignerKey>,
    limits: Limits,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Limits {
    namespaces: Option<PatternList>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl AllowedSigners {
    /// The signers in the text of a file.
    ///
    /// # Errors
    /// If a line cannot be read, has an option that is not supported, or no line has a key whose
    /// signatures can be verified.
    pub fn parse(text: &str) -> Result<Self, AllowedSignersError> {
        let mut signers = Vec::new();
        let mut last = 0;
        for (at, line) in text.lines().enumerate() {
            last = at + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let signer = signer(line);
            signers.push(signer.map_err(|problem| AllowedSignersError { line: last, problem })?);
        }
        if signers.iter().any(|signer| signer.key.is_some()) {
            return Ok(Self(signers));
        }
        let problem = match signers.is_empty() {
            true => "the file ends here and names nobody",
            false => "the file ends here and has no key of the kind ssh-ed25519",
        };
        Err(AllowedSignersError { line: last.max(1), problem: problem.into() })
    }

    /// The principals of the first good signature of these bytes for a namespace, at a time.
    ///
    /// # Errors
    /// Why none of the signatures is accepted: of the one that comes closest.
    pub fn accept(
        &self,
        file: &SignatureFile,
        namespace: &str,
        message: &[u8],
        now: SystemTime,
    ) -> Result<&str, SignatureRefusal> {
        let now = Timestamp::try_from(now).unwrap_or(Timestamp::MAX);
        let mut closest = match file.is_damaged() {
            true => SignatureRefusal::Unreadable,
            false => SignatureRefusal::Unsigned,
        };
        for signature in file.signatures() {
            match self.judge(signature, namespace, message, now) {
                Ok(signer) => return Ok(signer),
                Err(refusal) if closeness(&refusal) > closeness(&closest) => closest = refusal,
                Err(_) => {}
            }
        }
        Err(closest)
    }

    /// The principals of a key, if it may sign for the namespace now.
    pub fn name_of(&self, key: &SignerKey, namespace: &str, now: SystemTime) -> Option<&str> {
        let now = Timestamp::try_from(now).unwrap_or(Timestamp::MAX);
        let mut own = self.of(key);
        own.find(|signer| signer.limits.allow(namespace, now).is_ok())
            .map(|signer| signer.principals.as_str())
    }

    fn of(&self, key: &SignerKey) -> impl Iterator<Item = &AllowedSigner> {
        self.0.iter().filter(move |signer| signer.key.as_ref() == Some(key))
    }

    fn judge(
        &self,
        signature: &Signature,
        namespace: &str,
        message: &[u8],
        now: Timestamp,
    ) -> Result<&str, SignatureRefusal> {
        let key = signature.key();
        if !key.is_supported() {
            return Err(SignatureRefusal::OtherKind(key.kind()));
        }
        let mut refusal = SignatureRefusal::OtherKey(key.clone());
        for signer in self.of(&key) {
            let name = signer.principals.clone();
            let judged = match signer.limits.allow(namespace, now) {
                Err(Limit::Namespace) => SignatureRefusal::NotForThis(name, namespace.into()),
                Err(Limit::Time) => SignatureRefusal::NotNow(name),
                Ok(()) if signature.namespace() != namespace => {
                    let other = signature.namespace().to_string();
                    SignatureRefusal::OtherNamespace(name, other, namespace.into())
                }
                Ok(()) if signature.is_of(namespace, message) => return Ok(&signer.principals),
                Ok(()) => SignatureRefusal::OtherContent(name),
            };
            if closeness(&judged) > closeness(&refusal) {
                refusal = judged;
            }
        }
        Err(refusal)
    }
}

/// Of several refusals the one that says most is shown.
fn closeness(refusal: &SignatureRefusal) -> u8 {
    match refusal {
        SignatureRefusal::Unsigned => 0,
        SignatureRefusal::Unreadable => 1,
        SignatureRefusal::OtherKind(_) => 2,
        SignatureRefusal::OtherKey(_) => 3,
        SignatureRefusal::NotForThis(..) => 4,
        SignatureRefusal::NotNow(_) => 5,
        SignatureRefusal::OtherNamespace(..) => 6,
        SignatureRefusal::OtherContent(_) => 7,
    }
}

/// What a line does not allow.
enum Limit {
    Namespace,
    Time,
}

impl Limits {
    fn allow(&self, namespace: &str, now: Timestamp) -> Result<(), Limit> {
        if self.namespaces.as_ref().is_some_and(|list| !list.matches(namespace)) {
            return Err(Limit::Namespace);
        }
        let early = self.after.is_some_and(|after| now < after);
        let late = self.before.is_some_and(|before| now > before);
        if early || late { Err(Limit::Time) } else { Ok(()) }
    }
}

fn signer(line: &str) -> Result<AllowedSigner, String> {
    let (principals, rest) = first_word(line);
    let principals = principals.strip_prefix('"').map_or(principals, |p| p.trim_end_matches('"'));
    if PatternList::parse(principals).is_none() || is_kind(principals) {
        return Err("it does not begin with who signs, such as `ada@example.org`".into());
    }
    if principals.chars().any(char::is_control) {
        return Err("who signs has control characters".into());
    }
    let (limits, key) = match is_kind(first_word(rest).0) {
        true => (Limits::default(), rest),
        false => {
            let (options, rest) = first_word(rest);
            (limits(options)?, rest)
        }
    };
    let kind = first_word(key).0;
    if is_kind(kind) && kind != "ssh-ed25519" {
        return Ok(AllowedSigner { principals: principals.to_string(), key: None, limits });
    }
    let public = key.parse::<ssh_key::PublicKey>();
    let public = public.map_err(|_| "its key cannot be read; write `ssh-ed25519 AAAA…`")?;
    let key = Some(SignerKey(public.key_data().clone()));
    Ok(AllowedSigner { principals: principals.to_string(), key, limits })
}

/// Whether a word is the kind of a key.
fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|kind| word.starts_with(kind))
}

/// Up to the first white space outside of quotation marks, and what follows it.
fn first_word(line: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = line.find(|c: char| {
        quoted ^= c == '"';
        !quoted && (c == ' ' || c == '\t')
    });
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    (word, rest.trim_start())
}

fn limits(options: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    let mut rest = options;
    while !rest.is_empty() {
        let mut quoted = false;
        let end = rest.find(|c: char| {
            quoted ^= c == '"';
            !quoted && c == ','
        });
        let (option, more) = rest.split_at(end.unwrap_or(rest.len()));
        limits.add(option)?;
        rest = match more.strip_prefix(',') {
            Some("") => return Err("its options end in a comma".into()),
            Some(more) => more,
            None => more,
        };
    }
    if let (Some(after), Some(before)) = (limits.after, limits.before)
        && after >= before
    {
        return Err("its `valid-before` is not after its `valid-after`".into());
    }
    Ok(limits)
}

impl Limits {
    fn add(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name.to_ascii_lowercase(), Some(value)),
            None => (option.to_ascii_lowercase(), None),
        };
        let value = || {
            let quoted = value.and_then(|value| value.strip_prefix('"')?.strip_suffix('"'));
            quoted.ok_or_else(|| format!("`{name}` needs a value in quotation marks"))
        };
        let twice = || format!("it has `{name}` twice");
        match name.as_str() {
            "namespaces" => {
                let list = PatternList::parse(value()?);
                let list = list.ok_or("its `namespaces` has an empty entry")?;
                self.namespaces.replace(list).map_or(Ok(()), |_| Err(twice()))
            }
            "valid-after" => {
                let time = time(&name, value()?)?;
                self.after.replace(time).map_or(Ok(()), |_| Err(twice()))
            }
            "valid-before" => {
                let time = time(&name, value()?)?;
                self.before.replace(time).map_or(Ok(()), |_| Err(twice()))
            }
            "cert-authority" => {
                Err("`cert-authority` is not supported; list the keys of the signers".into())
            }
            _ => Err("it has an option that is not supported; `namespaces`, `valid-after` and \
                      `valid-before` are"
                .into()),
        }
    }
}

/// A time as ssh-keygen(1) writes it: `YYYYMMDD[HHMM[SS]]Z`.
fn time(name: &str, text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("`{name}` is not a time such as 20261231Z or 202612312359Z");
    let Some(digits) = text.strip_suffix(['Z', 'z']) else {
        let problem = "must end in Z, which is UTC: local time is another on every machine";
        return Err(format!("`{name}` {problem}"));
    };
    if ![8, 12, 14].contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let part = |from: usize, to: usize| digits.get(from..to).map_or(Ok(0), str::parse::<i16>);
    let small = |from: usize| part(from, from + 2).map(|value| value as i8);
    let parts = (part(0, 4), small(4), small(6), small(8), small(10), small(12));
    let (Ok(year), Ok(month), Ok(day), Ok(hour), Ok(minute), Ok(second)) = parts else {
        return Err(wrong());
    };
    let time = DateTime::new(year, month, day, hour, minute, second, 0);
    let zoned = time.and_then(|time| time.to_zoned(TimeZone::UTC));
    zoned.map(|zoned| zoned.timestamp()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests;
