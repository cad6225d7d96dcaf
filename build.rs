//! Links debug binaries and tests for Linux with glibc at a fixed address. The loader then has no addresses to relocate, which
//! takes more than a third off the start; the tests start thousands of processes. Release binaries keep their random addresses.

#![expect(clippy::disallowed_methods, reason = "cargo tells a build script its target by the environment")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_debug = variable("PROFILE") == "debug";
    let has_glibc = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static");
    if is_debug && has_glibc && !is_static {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
