//! The text of a file as the readers need it: decompressed, and with the JSON columns that are kept as
//! texts.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flate2::bufread::MultiGzDecoder;
use serde::Deserializer as _;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;
use zstd::stream::read::Decoder;

use super::fetch::Allowance;
use super::formats::{BYTE_ORDER_MARK, FileFormat};
use galeras_base::scratch::{ScratchFolder, free_bytes};

/// The beginnings of files that gzip and Zstandard wrote.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTANDARD: &[u8] = b"\x28\xb5\x2f\xfd";

/// The most bytes of a decompressed file.
const MAX_BYTES: u64 = 16 << 30;

/// The bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

/// A temporary file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct PlainText(ScratchFolder);

impl PlainText {
    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("text")
    }
}

/// Writes the text of a file that is compressed, or has columns of `json`; the values of these become
/// texts, and the lines keep their numbers. `None` if the file can be read as it is.
///
/// # Errors
/// The problem with the file or the disk.
pub(super) fn plain_text(
    file: &Path,
    format: FileFormat,
    json: &BTreeSet<String>,
) -> Result<Option<PlainText>, String> {
    let words = |error: std::io::Error| error.to_string();
    let mut file = BufReader::with_capacity(1 << 16, File::open(file).map_err(words)?);
    let head = file.fill_buf().map_err(words)?;
    let mut source: Box<dyn BufRead> = if format == FileFormat::Parquet {
        return Ok(None);
    } else if head.starts_with(GZIP) {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)))
    } else if head.starts_with(ZSTANDARD) {
        Box::new(BufReader::with_capacity(1 << 16, Decoder::with_buffer(file).map_err(words)?))
    } else if json.is_empty() {
        return Ok(None);
    } else {
        Box::new(file)
    };
    let plain = PlainText(ScratchFolder::create().map_err(words)?);
    let folder = plain.0.path();
    let mut allowance = Allowance::new(MAX_BYTES, free_bytes(folder));
    let mut text = BufWriter::new(File::create(plain.path()).map_err(words)?);
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let read = match format {
            _ if json.is_empty() => source.by_ref().take(PIECE).read_to_end(&mut piece),
            FileFormat::Json => source.read_to_end(&mut piece),
            _ => source.read_until(b'\n', &mut piece),
        };
        if read.map_err(words)? == 0 {
            break;
        }
        let rows = piece.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&piece);
        let changed = match format {
            _ if json.is_empty() => None,
            FileFormat::Json => list_with_texts(rows, json),
            _ => row_with_texts(rows, json),
        };
        let bytes = changed.as_deref().unwrap_or(&piece);
        allowance.take(bytes.len() as u64, Instant::now(), || free_bytes(folder))?;
        text.write_all(bytes).map_err(words)?;
    }
    text.flush().map_err(words)?;
    drop(text);
    Ok(Some(plain))
}

/// The rows of a list, one a line. `None` if this is not a JSON list of objects: the reader reports the
/// mistake.
fn list_with_texts(list: &[u8], json: &BTreeSet<String>) -> Option<Vec<u8>> {
    let rows: Vec<&RawValue> = serde_json::from_slice(list).ok()?;
    let rows: Option<Vec<Vec<u8>>> =
        rows.iter().map(|row| row_with_texts(row.get().as_bytes(), json)).collect();
    Some([&b"["[..], &rows?.join(&b",\n"[..]), b"]\n"].concat())
}

/// The row with these columns as texts. `None` if this is not a JSON object.
fn row_with_texts(row: &[u8], json: &BTreeSet<String>) -> Option<Vec<u8>> {
    let mut reader = Deserializer::from_slice(row);
    let mut changed = reader.deserialize_map(RowVisitor(json)).ok()?;
    reader.end().ok()?;
    changed.extend_from_slice(if row.ends_with(b"\n") { b"}\n" } else { b"}" });
    Some(changed)
}

/// Writes the object again, without its last bracket. Keys that come twice stay: the reader refuses them.
struct RowVisitor<'a>(&'a BTreeSet<String>);

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<u8>, A::Error> {
        let mut row = vec![b'{'];
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            if row.len() > 1 {
                row.push(b',');
            }
            serde_json::to_writer(&mut row, &key).map_err(A::Error::custom)?;
            row.push(b':');
            match value.get() {
                text if self.0.contains(&key) && text != "null" => {
                    serde_json::to_writer(&mut row, text).map_err(A::Error::custom)?;
                }
                text => row.extend_from_slice(text.as_bytes()),
            }
        }
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(row: &str) -> Option<String> {
        let json = BTreeSet::from(["x".to_owned()]);
        row_with_texts(row.as_bytes(), &json).map(|row| String::from_utf8(row).unwrap())
    }

    #[test]
    fn values_of_any_kind_become_texts_and_others_stay_as_they_are() {
        for (row, wanted) in [
            (
                "{\"x\": [1, [\"a\", 2.50]], \"y\" : [ 1 ]}\n",
                r#"{"x":"[1, [\"a\", 2.50]]","y":[ 1 ]}"#,
            ),
            (
                r#"{"x":123456789012345678901234567890}"#,
                r#"{"x":"123456789012345678901234567890"}"#,
            ),
            (r#"{"x":"a\u00e9","y":"\u00e9"}"#, r#"{"x":"\"a\\u00e9\"","y":"\u00e9"}"#),
            (r#"{"x":null,"x":{},"y":1}"#, r#"{"x":null,"x":"{}","y":1}"#),
            ("{}", "{}"),
        ] {
            assert_eq!(texts(row).unwrap().trim_end(), wanted, "{row}");
        }
        assert!(texts("{\"x\":1}\n").unwrap().ends_with("}\n"));
        for row in ["\n", "[1]", "{\"x\":1} 2", "{\"x\":}", "{\"x\":1"] {
            assert_eq!(texts(row), None, "{row}");
        }
    }
}
