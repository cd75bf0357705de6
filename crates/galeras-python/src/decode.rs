//! Decodes Python source files: byte-order mark, encoding declaration (PEP 263) and the encodings
//! in real use. Line endings and NULs pass unchanged.

use thiserror::Error;

/// A decoded source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text, without a byte-order mark.
    pub text: String,
    /// Name of the encoding: `utf-8`, `ascii`, `iso-8859-1`, `iso-8859-15` or `cp1252`.
    pub encoding: &'static str,
}

/// The reason why a file cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A byte has no meaning in the encoding of the file.
    #[error("invalid {encoding} at byte {offset}")]
    Invalid {
        /// The encoding that was used.
        encoding: &'static str,
        /// Offset of the first bad byte in the file.
        offset: usize,
    },
    /// The file declares an encoding that is not supported.
    #[error("unsupported source encoding `{name}`")]
    Unsupported {
        /// The name as declared, normalised to lower case and hyphens.
        name: String,
    },
}

/// Decodes a Python source file.
///
/// # Errors
/// [`DecodeError::Invalid`] with the offset of the first byte that does not fit the encoding.
/// [`DecodeError::Unsupported`] if the file declares an encoding not listed at
/// [`Decoded::encoding`], or one other than UTF-8 after a byte-order mark (also an error in
/// Python).
pub fn decode_source(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let (body, mark) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(body) => (body, 3),
        None => (bytes, 0),
    };
    let encoding = match declared(body) {
        None => "utf-8",
        Some(name) => match known(&name) {
            Some(encoding) if mark == 0 || encoding == "utf-8" => encoding,
            _ => return Err(DecodeError::Unsupported { name }),
        },
    };
    let invalid = |offset: usize| DecodeError::Invalid { encoding, offset: mark + offset };
    let text = match encoding {
        "iso-8859-1" => body.iter().map(|&byte| char::from(byte)).collect(),
        "iso-8859-15" => {
            let (text, _) = encoding_rs::ISO_8859_15.decode_without_bom_handling(body);
            text.into_owned()
        }
        "cp1252" => {
            // The five bytes that Python's cp1252 leaves undefined.
            let hole = |byte: &u8| matches!(byte, 0x81 | 0x8d | 0x8f | 0x90 | 0x9d);
            if let Some(offset) = body.iter().position(hole) {
                return Err(invalid(offset));
            }
            let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(body);
            text.into_owned()
        }
        _ => {
            if encoding == "ascii"
                && let Some(offset) = body.iter().position(|byte| !byte.is_ascii())
            {
                return Err(invalid(offset));
            }
            let text = std::str::from_utf8(body).map_err(|error| invalid(error.valid_up_to()))?;
            text.to_owned()
        }
    };
    Ok(Decoded { text, encoding })
}

fn declared(body: &[u8]) -> Option<String> {
    for line in body.split(|&byte| byte == b'\n').take(2) {
        let line = &line[..line.len().min(1024)];
        let start = line.iter().position(|byte| !matches!(byte, b' ' | b'\t' | 0x0c | b'\r'));
        let Some(start) = start else { continue };
        if line[start] != b'#' {
            return None;
        }
        if let Some(name) = cookie(&String::from_utf8_lossy(&line[start..])) {
            return Some(name);
        }
    }
    None
}

/// The name after `coding:` or `coding=` in a comment.
fn cookie(comment: &str) -> Option<String> {
    comment.match_indices("coding").find_map(|(at, word)| {
        let rest = comment.get(at + word.len()..)?.strip_prefix([':', '='])?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_ascii_lowercase().replace('_', "-"))
    })
}

fn known(name: &str) -> Option<&'static str> {
    match name {
        "utf-8" | "utf8" | "u8" | "utf" | "cp65001" => Some("utf-8"),
        "ascii" | "us-ascii" | "646" => Some("ascii"),
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "iso-latin-1" | "8859" | "cp819"
        | "l1" => Some("iso-8859-1"),
        "latin-9" | "latin9" | "iso-8859-15" | "iso8859-15" | "l9" => Some("iso-8859-15"),
        "cp1252" | "windows-1252" | "1252" => Some("cp1252"),
        // Editors append line-ending hints: `utf-8-unix`, `latin-1-dos`.
        _ if name.starts_with("utf-8-") || name.starts_with("utf8-") => Some("utf-8"),
        _ if name.starts_with("latin-1-") || name.starts_with("iso-8859-1-") => Some("iso-8859-1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_as_they_declare() {
        let invalid = |encoding, offset| Err(DecodeError::Invalid { encoding, offset });
        let unsupported = |name: &str| Err(DecodeError::Unsupported { name: name.to_owned() });
        let cases: [(&[u8], _); 12] = [
            (b"\xef\xbb\xbfx = '\xc3\xa9'\r\ny\0\r", Ok(("utf-8", "x = 'é'\r\ny\0\r"))),
            (
                b"# -*- coding: latin-1 -*-\n\xe9\x80",
                Ok(("iso-8859-1", "# -*- coding: latin-1 -*-\né\u{80}")),
            ),
            (
                b"#!/usr/bin/python\n# vim: set fileencoding=ISO_8859_15 :\n\xa4",
                Ok(("iso-8859-15", "#!/usr/bin/python\n# vim: set fileencoding=ISO_8859_15 :\n€")),
            ),
            (b"\n#coding=cp1252\n\x80", Ok(("cp1252", "\n#coding=cp1252\n€"))),
            (b"# coding: cp1252\na\x81", invalid("cp1252", 18)),
            (b"# coding: ascii\n\xc3\xa9", invalid("ascii", 16)),
            // Not a declaration: below code, or in the third line.
            (b"x = 1\n# coding: latin-1\n\xe9", invalid("utf-8", 24)),
            (b"\n\n# coding: latin-1\n\xe9", invalid("utf-8", 20)),
            (b"\xef\xbb\xbfab\xff", invalid("utf-8", 5)),
            (b"# coding: EUC_JP\n", unsupported("euc-jp")),
            (b"\xef\xbb\xbf# coding: latin-1\n", unsupported("latin-1")),
            (b"", Ok(("utf-8", ""))),
        ];
        for (bytes, expected) in cases {
            let decoded = decode_source(bytes);
            let decoded = decoded.as_ref().map(|found| (found.encoding, found.text.as_str()));
            assert_eq!(decoded, expected.as_ref().copied(), "{}", String::from_utf8_lossy(bytes));
        }
        let error = decode_source(b"\xef\xbb\xbfab\xff").unwrap_err();
        assert_eq!(error.to_string(), "invalid utf-8 at byte 5");
    }
}
