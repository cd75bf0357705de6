//! The `galeras` program as the tests run it: the same `main`, built with the tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(galeras::cli::main().code())
}
