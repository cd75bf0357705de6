//! Bundles from outside.

use std::fs;
use std::io::{Cursor, Write as _};

use galeras_base::digest::Digest;
use galeras_study::sharing::{BUNDLE_RECORD, LISTING, OpenedBundle};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A zip file as it is, or else what is put into one, parted by lines of `%%`: the record, names of
/// files, and lines of the list of digests besides those of these files.
pub(crate) fn bundle(input: &[u8]) {
    let folder = super::folder().join("bundle");
    // The files of the last unpacking.
    let _ = fs::remove_dir_all(&folder);
    let to = folder.join("unpacked");
    fs::create_dir_all(&to).unwrap();
    let path = folder.join("b.zip");
    let bytes = if input.starts_with(b"PK") { input.to_vec() } else { packed(input) };
    fs::write(&path, bytes).unwrap();
    assert!(OpenedBundle::is_one(&path));
    let Ok(mut opened) = OpenedBundle::open(&path) else { return };
    match opened.record() {
        Ok(record) => assert!(record.left_out() as u64 <= input.len() as u64),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // The names of two of its files may not be those of a file and of a folder in one place.
    let Ok((files, problems)) = opened.check(&to, |name| !name.ends_with(".csv")) else { return };
    assert!(files > 0 || !problems.is_empty());
    assert!(problems.iter().all(|problem| !problem.problem.is_empty()));
    // There is nothing next to the folder of the unpacking.
    let mut beside: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
    beside.retain(|entry| entry.file_name() != "b.zip" && entry.file_name() != "unpacked");
    assert!(beside.is_empty(), "{beside:?}");
    if problems.is_empty() {
        assert!(!to.join(LISTING).exists(), "the list is no file of the list");
    }
}

fn packed(input: &[u8]) -> Vec<u8> {
    let texts = crate::texts(input);
    let text = |at: usize| texts.get(at).map_or("", String::as_str);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut listing = text(2).to_string();
    let names = text(1).lines().take(20).map(|name| (name, name.repeat(3)));
    for (name, content) in [(BUNDLE_RECORD, text(0).to_string())].into_iter().chain(names) {
        // A writer also refuses content that a bundle must not have.
        if zip.start_file(name, SimpleFileOptions::default()).is_ok() {
            zip.write_all(content.as_bytes()).unwrap();
            listing.push_str(&format!("{}  {name}\n", Digest::of(content.as_bytes())));
        }
    }
    zip.start_file(LISTING, SimpleFileOptions::default()).ok();
    zip.write_all(listing.as_bytes()).ok();
    let mut bytes = zip.finish().unwrap().into_inner();
    seal(&mut bytes);
    bytes
}

/// Gives the file the comment that it ends in.
fn seal(bytes: &mut Vec<u8>) {
    let length = "galeras bundle blake3:".len() + 64;
    let end = bytes.len() - 2;
    bytes[end..].copy_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
    let digest = Digest::of(bytes);
    bytes.extend_from_slice(format!("galeras bundle blake3:{digest}").as_bytes());
}
