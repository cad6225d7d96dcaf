//! The binary. All code is in the library, so that tests and benches can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    fetchwell::run(std::env::args_os())
}
