//! The `galeras` program: calls the command line and returns its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(galeras::cli::main().code())
}
