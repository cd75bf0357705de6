//! The signers of the results that `verify` checks.

use std::collections::BTreeMap;

use serde_json::json;

use super::Format;
use super::context::{Exit, Failure, print, print_json};
use galeras_base::digest::Digest;
use galeras_base::visible::escape;
use galeras_display::count;
use galeras_engine::runner::SignatureDemand;
use galeras_store::{SignatureState, SignerKey, Store};

/// The signatures of some results.
pub(super) struct SignedResults {
    /// The number of results, signed or not.
    results: u64,
    /// Files with signatures.
    pub(super) files: u64,
    /// Results by their signers: the key, and its principals if it may sign.
    by_signer: BTreeMap<(SignerKey, Option<String>), u64>,
    signed: u64,
    /// The keys of results with a signature for something else.
    pub(super) wrong: Vec<Digest>,
}

impl SignedResults {
    pub(super) async fn of(
        store: &Store,
        keys: &[Digest],
        allowed: Option<&SignatureDemand>,
    ) -> Result<Self, Failure> {
        let results = keys.len() as u64;
        let mut found =
            Self { results, files: 0, by_signer: BTreeMap::new(), signed: 0, wrong: Vec::new() };
        let allowed = allowed.map(|demand| &demand.signers);
        for (key, state) in store.signature_states(keys.iter().copied(), allowed).await? {
            found.files += u64::from(state != SignatureState::Unsigned);
            match state {
                SignatureState::Unsigned => {}
                SignatureState::Signed(signers) => {
                    found.signed += 1;
                    for signer in signers {
                        *found.by_signer.entry(signer).or_default() += 1;
                    }
                }
                SignatureState::Wrong => found.wrong.push(key),
            }
        }
        Ok(found)
    }

    /// Prints how many results each key signed. Without any signature, prints only if signers are asked for.
    pub(super) fn told(
        &self,
        allowed: Option<&SignatureDemand>,
        format: Format,
    ) -> Result<Exit, Failure> {
        if self.signed == 0 && allowed.is_none() {
            return Ok(Exit::Done);
        }
        if format == Format::Json {
            let signers: Vec<_> = self
                .by_signer
                .iter()
                .map(|((key, name), results)| {
                    json!({"key": key.to_string(), "principals": name, "results": results})
                })
                .collect();
            return print_json(&json!({"event": "signatures", "results": self.results,
                "signed": self.signed, "signers": signers}));
        }
        let all = count(self.results);
        let mut text = String::new();
        for ((key, name), results) in &self.by_signer {
            let results = count(*results);
            let who = match (name, allowed) {
                (Some(name), _) => format!("{} ({key})", escape(name)),
                (None, None) => key.to_string(),
                (None, Some(allowed)) => {
                    format!("{key}, which is not an allowed signer in {}", escape(&allowed.file))
                }
            };
            text.push_str(&format!("{results} of {all} results signed by {who}\n"));
        }
        if self.signed < self.results {
            let unsigned = count(self.results - self.signed);
            text.push_str(&format!("{unsigned} of {all} results not signed\n"));
        }
        print(&text)
    }
}
