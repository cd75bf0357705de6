//! Who signed the results that `verify` looks at.

use std::collections::BTreeMap;
use std::time::SystemTime;

use galeras_signatures::SignerKey;
use serde_json::json;

use super::Format;
use super::context::{Exit, fail_cache, print, print_json};
use galeras_base::digest::Digest;
use galeras_base::visible::escape;
use galeras_display::count;
use galeras_engine::runner::SignatureDemand;
use galeras_store::{SIGNATURE_NAMESPACE, SignatureState, Store};

/// The signatures of some results.
pub(super) struct SignedResults {
    /// How many results there are, signed or not.
    results: u64,
    /// Files with signatures.
    pub(super) files: u64,
    /// Results by whom they are signed.
    by_key: BTreeMap<SignerKey, u64>,
    signed: u64,
    /// The keys of results beside which there is a signature of something else.
    pub(super) wrong: Vec<Digest>,
}

impl SignedResults {
    /// Looks at the signatures of the results that a store has under these keys.
    pub(super) async fn of(store: &Store, keys: &[Digest]) -> Result<Self, Exit> {
        let results = keys.len() as u64;
        let mut found =
            Self { results, files: 0, by_key: BTreeMap::new(), signed: 0, wrong: Vec::new() };
        for key in keys {
            let state = store.signature_state(key).await.map_err(|error| fail_cache(&error))?;
            found.files += u64::from(state != SignatureState::Unsigned);
            match state {
                SignatureState::Unsigned => {}
                SignatureState::Signed(signers) => {
                    found.signed += 1;
                    for signer in signers {
                        *found.by_key.entry(signer).or_default() += 1;
                    }
                }
                SignatureState::Wrong => found.wrong.push(*key),
            }
        }
        Ok(found)
    }

    /// Says who signed how many. Of results without signatures only if somebody asks for signers.
    pub(super) fn told(&self, allowed: Option<&SignatureDemand>, format: Format) -> Exit {
        if self.signed == 0 && allowed.is_none() {
            return Exit::Done;
        }
        let now = SystemTime::now();
        let name = |key: &SignerKey| {
            allowed.and_then(|allowed| allowed.signers.name_of(key, SIGNATURE_NAMESPACE, now))
        };
        if format == Format::Json {
            let signers: Vec<_> = self
                .by_key
                .iter()
                .map(|(key, results)| {
                    json!({"key": key.to_string(), "principals": name(key), "results": results})
                })
                .collect();
            return print_json(&json!({"event": "signatures", "results": self.results,
                "signed": self.signed, "signers": signers}));
        }
        let all = count(self.results);
        let mut text = String::new();
        for (key, results) in &self.by_key {
            let results = count(*results);
            let who = match (name(key), allowed) {
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
