//! Packs the sample corpus, CPython's standard library from the `rustpython-pylib` crate, into one
//! compressed file that the binary includes.
//!
//! The format, compressed with zstd: for each file in the order of paths, the length of the path
//! (u32, little endian), the path, the length of the content (u32), the content.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use walkdir::WalkDir;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(rustpython_pylib::LIB_PATH);
    let mut files = Vec::new();
    for entry in WalkDir::new(&root) {
        let path = entry?.into_path();
        if path.extension().is_some_and(|e| e == "py") && path.is_file() {
            let name = path.strip_prefix(&root)?.to_str().ok_or("a path is not UTF-8")?;
            files.push((name.replace('\\', "/"), path.clone()));
        }
    }
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
