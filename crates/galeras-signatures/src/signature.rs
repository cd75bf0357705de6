//! Signatures, and files of them: what `ssh-keygen -Y sign` writes, one after the other.

use ssh_key::{LineEnding, PublicKey, SshSig};

use super::signer_key::SignerKey;

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// More signatures than this in one file are not read.
const MOST: usize = 64;

/// A signature by one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(SshSig);

impl Signature {
    pub(super) fn new(signature: SshSig) -> Self {
        Self(signature)
    }

    /// The key that it claims to be by.
    pub fn key(&self) -> SignerKey {
        SignerKey(self.0.public_key().clone())
    }

    /// What it was made for.
    pub fn namespace(&self) -> &str {
        self.0.namespace()
    }

    /// Whether it is by its key, for this namespace, and of these bytes. Says nothing about whose key
    /// that is.
    pub fn is_of(&self, namespace: &str, message: &[u8]) -> bool {
        let key = self.key();
        key.is_supported() && PublicKey::from(key.0).verify(namespace, message, &self.0).is_ok()
    }
}

/// What a file of signatures holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureFile {
    signatures: Vec<Signature>,
    unreadable: bool,
}

impl SignatureFile {
    /// The signatures in a text, which may be empty.
    pub fn parse(text: &str) -> Self {
        let mut file = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = rest.find(END).map(|at| at + END.len()).filter(|_| rest.starts_with(BEGIN));
            let block = end.and_then(|end| Some((end, SshSig::from_pem(&rest[..end]).ok()?)));
            match block {
                Some((end, signature)) if file.signatures.len() < MOST => {
                    file.signatures.push(Signature(signature));
                    rest = rest[end..].trim_start();
                }
                _ => {
                    file.unreadable = true;
                    break;
                }
            }
        }
        file
    }

    /// The signatures, in the order of the file.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Whether something in the file is no signature.
    pub fn is_damaged(&self) -> bool {
        self.unreadable
    }

    /// Whether there is nothing in the file.
    pub fn is_empty(&self) -> bool {
        self.signatures.is_empty() && !self.unreadable
    }

    /// The keys whose signatures are of these bytes, sorted.
    pub fn signers(&self, namespace: &str, message: &[u8]) -> Vec<SignerKey> {
        let of = self.signatures.iter().filter(|signature| signature.is_of(namespace, message));
        let mut keys: Vec<SignerKey> = of.map(Signature::key).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// The signatures of these bytes, one of each key, in a stable order.
    #[must_use]
    pub fn only_of(self, namespace: &str, message: &[u8]) -> Self {
        let mut signatures = self.signatures;
        signatures.retain(|signature| signature.is_of(namespace, message));
        signatures.sort_by_key(Signature::key);
        signatures.dedup_by_key(|signature| signature.key());
        Self { signatures, unreadable: false }
    }

    /// The signatures of both.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Signature>) -> Self {
        self.signatures.extend(more);
        self
    }

    /// The text of the file. The first signature is the one that `ssh-keygen -Y verify` looks at.
    pub fn render(&self) -> String {
        let texts = self.signatures.iter().filter_map(|signature| {
            let mut text = signature.0.to_pem(LineEnding::LF).ok()?;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            Some(text)
        });
        texts.collect()
    }
}

impl IntoIterator for SignatureFile {
    type Item = Signature;
    type IntoIter = std::vec::IntoIter<Signature>;

    fn into_iter(self) -> Self::IntoIter {
        self.signatures.into_iter()
    }
}
