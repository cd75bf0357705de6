//! The private key that signs.

use std::fmt;

use ssh_key::{Algorithm, HashAlg, PrivateKey, SshSig};

use super::signature::Signature;
use super::signer_key::SignerKey;

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
