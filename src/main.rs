//! The binary: everything is in the library, so that tests and benches can use it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    fetchwell::cli::run(std::env::args_os())
}
