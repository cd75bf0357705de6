//! The public key that tells who signed.

use std::fmt;

use ssh_key::public::KeyData;
use ssh_key::{Fingerprint, HashAlg};

/// A public key. It is shown as its fingerprint, `SHA256:…`, as `ssh-keygen -l` shows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SignerKey(pub(super) KeyData);

impl SignerKey {
    /// Whether signatures by keys of this kind can be verified.
    pub(super) fn is_supported(&self) -> bool {
        matches!(self.0, KeyData::Ed25519(_))
    }

    /// The kind, such as `ssh-rsa`.
    pub(super) fn kind(&self) -> String {
        self.0.algorithm().as_str().to_string()
    }

    fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint(HashAlg::Sha256)
    }
}

impl fmt::Display for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fingerprint().fmt(f)
    }
}

impl fmt::Debug for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fingerprint().fmt(f)
    }
}
