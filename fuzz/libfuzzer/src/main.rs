//! libFuzzer over one target, which `GALERAS_FUZZ_TARGET` names (`list` lists all).
//!
//! `GALERAS_FUZZ_LAST` names a file with the current input: it remains after any end of the
//! process, even one without a signal handler, such as a stack overflow on another thread.
//! `benches/fuzz.sh` builds and runs this.

#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use galeras_fuzz_targets::{Target, targets};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("GALERAS_FUZZ_TARGET").unwrap_or_default();
    if let Some(target) = targets().into_iter().find(|target| target.name == name) {
        return target;
    }
    for target in targets() {
        println!("{}", target.name);
    }
    std::process::exit(if name == "list" { 0 } else { 2 });
});

static LAST: LazyLock<Option<File>> = LazyLock::new(|| {
    std::env::var_os("GALERAS_FUZZ_LAST").map(|path| match File::create(path) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("GALERAS_FUZZ_LAST: {error}");
            std::process::exit(2);
        }
    })
});

/// How the names of targets begin that read what users and programs give through libraries. The program
/// makes an error of a panic there, and so do they.
const CONTAINED: [&str; 3] = ["read_", "exec_output", "tokenizer_model"];

/// A panic ends the process, unless it is one of a library that is contained.
fn contain() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let of_library = panic.location().is_some_and(|at| at.file().contains("/registry/src/"));
        let contained = CONTAINED.iter().any(|name| TARGET.name.starts_with(name));
        if !(of_library && contained) {
            end(panic);
        }
    }));
}

fuzz_target!(init: {
    LazyLock::force(&TARGET);
    LazyLock::force(&LAST);
    contain();
}, |input| {
    if let Some(file) = &*LAST {
        // An input that is not kept is lost only if it also ends the process.
        let _ = file.write_all_at(input, 0).and_then(|()| file.set_len(input.len() as u64));
    }
    (TARGET.run)(input);
});
