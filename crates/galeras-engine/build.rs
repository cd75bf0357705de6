//! Tells the code its target: cluster results are only accepted from machines of the same kind.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=GALERAS_TARGET={target}");
}
