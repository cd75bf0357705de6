//! Linker arguments of the program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Arguments of rustc's own linker, lld on x86_64; one that somebody configured may not know them
    // (`zig cc` of `maturin build --zig`, GNU ld).
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && std::env::var_os("RUSTC_LINKER").is_none() {
        // At a fixed address: half a million addresses need neither be stored (a twentieth of the
        // file) nor be put right at each start.
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if target("ARCH") == "x86_64" {
            // Generic code over Arrow types compiles to many equal functions: keep one of each.
            println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        }
    }
}
