//! Keys: the private one that signs, and the public one that tells who did.

use std::fmt;

use ssh_key::public::KeyData;
use ssh_key::{Algorithm, Fingerprint, HashAlg, PrivateKey, SshSig};

use super::signature::Signature;

/// A private Ed25519 key.
pub struct SigningKey(PrivateKey);

/// Why a file is no key that can sign.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// It needs a passphrase.
    #[error("the key is encrypted with a passphrase")]
    Encrypted,
    /// It is a key of another kind.
    #[error("the key is of the kind {0}, and only ssh-ed25519 is supported")]
    OtherKind(String),
    /// It is the public half.
    #[error("this is a public key; the private one has the same name without `.pub`")]
    Public,
    /// It is something else.
    #[error("this is not a private key that `ssh-keygen -t ed25519` wrote")]
    NotAKey,
    /// The key could not sign.
    #[error("the key cannot sign")]
    Signing,
}

impl SigningKey {
    /// The key in the text of a file that `ssh-keygen -t ed25519` wrote.
    ///
    /// # Errors
    /// If it is not such a key, or is encrypted. Nothing of the text is quoted.
    pub fn parse(text: &str) -> Result<Self, SigningKeyError> {
        let Ok(key) = PrivateKey::from_openssh(text) else {
            let public = text.parse::<ssh_key::PublicKey>().is_ok();
            return Err(if public { SigningKeyError::Public } else { SigningKeyError::NotAKey });
        };
        match key.algorithm() {
            Algorithm::Ed25519 if key.is_encrypted() => Err(SigningKeyError::Encrypted),
            Algorithm::Ed25519 => Ok(Self(key)),
            other => Err(SigningKeyError::OtherKind(other.as_str().to_string())),
        }
    }

    /// Signs these bytes for a namespace. The same bytes give the same signature.
    ///
    /// # Errors
    /// If the namespace is empty.
    pub fn sign(&self, namespace: &str, message: &[u8]) -> Result<Signature, SigningKeyError> {
        let signed = SshSig::sign(&self.0, namespace, HashAlg::Sha512, message);
        signed.map(Signature::new).map_err(|_| SigningKeyError::Signing)
    }

    /// The public half.
    pub fn public(&self) -> SignerKey {
        SignerKey(self.0.public_key().key_data().clone())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public()).finish()
    }
}

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
