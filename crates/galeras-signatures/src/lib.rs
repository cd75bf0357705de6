//! Signatures of files by SSH keys, in the format of `ssh-keygen -Y sign` (SSHSIG, PROTOCOL.sshsig of
//! OpenSSH), and whose are accepted: files of allowed signers as `ssh-keygen -Y verify` and Git read
//! them.
//!
//! Keys are of the kind Ed25519. What a signature says is in its namespace: one that was made for
//! something else is not accepted.
//!
//! Does not live here: what is signed, and where signatures are stored (`galeras`).

mod allowed;
mod pattern;
mod signature;
mod signer_key;
mod signing_key;

pub use allowed::{AllowedSigners, AllowedSignersError, SignatureRefusal};
pub use signature::{Signature, SignatureFile};
pub use signer_key::SignerKey;
pub use signing_key::{SigningKey, SigningKeyError};
