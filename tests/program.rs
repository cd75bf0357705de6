//! The `galeras` program as the tests run it: the same `main`, built with the tests.

use std::process::ExitCode;

use galeras_base::memory_guard::GuardedAllocator;

#[global_allocator]
static ALLOCATOR: GuardedAllocator = GuardedAllocator;

fn main() -> ExitCode {
    ExitCode::from(galeras::cli::main().code())
}
