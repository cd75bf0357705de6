//! Gives the name of the target to the code: results of a cluster are only taken from equal machines.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=GALERAS_TARGET={target}");
}
