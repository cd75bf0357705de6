//! Lines with a checksum, `SUM CONTENT`, in files that are appended to: a damaged line does not
//! affect the others.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

/// The digits of checksums of paid answers and of spending.
pub(super) const SUM: usize = 32;

/// The line with this content and a checksum of so many digits.
pub(super) fn line(digits: usize, content: &str) -> String {
    format!("{} {content}\n", checksum(digits, content.as_bytes()))
}

/// The content of a line without its line break, if the checksum matches.
pub(super) fn content(digits: usize, line: &[u8]) -> Option<&[u8]> {
    let (sum, content) = line.split_at_checked(digits)?;
    let content = content.strip_prefix(b" ")?;
    (sum == checksum(digits, content).as_bytes()).then_some(content)
}

fn checksum(digits: usize, content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..digits].to_string()
}

/// The lines up to the last line break; a line that was cut is left out.
pub(super) fn whole_lines(content: &[u8]) -> &[u8] {
    let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &content[..end]
}

/// Writes at the position of the file, durably. If that fails, the file is cut there.
pub(super) fn append(file: &mut File, text: &[u8]) -> io::Result<()> {
    let start = file.stream_position()?;
    file.write_all(text).and_then(|()| file.sync_data()).inspect_err(|_| {
        let _ = file.set_len(start).and_then(|()| file.seek(SeekFrom::Start(start)));
    })
}
