//! Small objects that contain their digest: JSON whose last member is the digest of the bytes
//! before it, so that a flipped bit in a manifest, a part, an outcome or a record is noticed.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::Error as _;

const MEMBER: &[u8] = b",\n  \"integrity\": \"";
const DIGITS: usize = 64;
const END: &[u8] = b"\"\n}\n";

/// The JSON of an object with its digest. It is an error if the value has no members.
pub(super) fn seal(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    match bytes.strip_suffix(b"\n}").map(<[u8]>::len) {
        Some(length) => bytes.truncate(length),
        None => return Err(serde_json::Error::custom("only objects with members are stored")),
    }
    let digest = blake3::hash(&bytes).to_hex();
    bytes.extend_from_slice(MEMBER);
    bytes.extend_from_slice(digest.as_bytes());
    bytes.extend_from_slice(END);
    Ok(bytes)
}

/// Returns true if these bytes end in the digest of the bytes before it.
pub(super) fn is_sealed(bytes: &[u8]) -> bool {
    let digest = bytes.strip_suffix(END).and_then(|rest| rest.split_last_chunk::<DIGITS>());
    digest.is_some_and(|(rest, digest)| {
        rest.strip_suffix(MEMBER)
            .is_some_and(|body| blake3::hash(body).to_hex().as_bytes() == digest)
    })
}

/// The value in bytes that [`seal`] wrote, or the reason why they are something else.
pub(super) fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if !is_sealed(bytes) {
        return Err("its content does not match its digest".into());
    }
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_sealed_value_is_read_back_and_is_json() {
        let value = json!({"a": [1, 0.1, "text \" \n"], "b": {"c": null}});
        let bytes = seal(&value).unwrap();
        let read: Value = unseal(&bytes).unwrap();
        assert_eq!((&read["a"], &read["b"]), (&value["a"], &value["b"]));
        assert!(serde_json::from_slice::<Value>(&bytes).unwrap()["integrity"].is_string());
        assert!(seal(&json!({})).is_err() && seal(&json!([1])).is_err() && seal(&1).is_err());
    }

    #[test]
    fn a_flipped_bit_a_cut_and_an_addition_are_noticed() {
        let bytes = seal(&json!({"digest": "0011", "rows": 12, "x": {"y": [true]}})).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(unseal::<Value>(&damaged).is_err(), "byte {at}, bit {bit}");
            }
            assert!(unseal::<Value>(&bytes[..at]).is_err(), "cut at {at}");
        }
        assert!(unseal::<Value>(&[&bytes[..], b"\n"].concat()).is_err());
        assert!(unseal::<Value>(&[&bytes[..], &bytes].concat()).is_err());
    }
}
