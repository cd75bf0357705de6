//! Packs the sample corpus, CPython's standard library from the `rustpython-pylib` crate, into one
//! compressed file that the binary includes.
//!
//! The format, compressed with zstd: for each file in the order of paths, the length of the path
//! (u32, little endian), the path, the length of the content (u32), the content.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(rustpython_pylib::LIB_PATH);
    let mut files = Vec::new();
    collect(&root, &root, &mut files)?;
    files.sort();
    let mut packed = Vec::new();
    for (name, path) in &files {
        let content = fs::read(path)?;
        for part in [name.as_bytes(), &content] {
            packed.extend(u32::try_from(part.len())?.to_le_bytes());
            packed.extend(part);
        }
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("python-stdlib.zst"), zstd::bulk::compress(&packed, 19)?)?;
    println!("cargo:rustc-env=GALERAS_STDLIB_BYTES={}", packed.len());
    println!("cargo:rustc-env=GALERAS_STDLIB_DIGEST={}", blake3::hash(&packed).to_hex());
    Ok(())
}

/// The Python files below `folder` with their paths from `root`, separated by `/`.
fn collect(
    root: &Path,
    folder: &Path,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|e| e == "py") {
            let name = path.strip_prefix(root)?.to_str().ok_or("a path is not UTF-8")?;
            files.push((name.replace('\\', "/"), path.clone()));
        }
    }
    Ok(())
}
