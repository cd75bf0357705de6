//! The `galeras` program: calls the command line and returns its exit code.

use std::process::ExitCode;

use galeras_base::memory_guard::GuardedAllocator;

#[global_allocator]
static ALLOCATOR: GuardedAllocator = GuardedAllocator;

fn main() -> ExitCode {
    // Before any thread starts: the program may be here to confine another one.
    galeras_sandbox::launch_if_asked();
    ExitCode::from(galeras::cli::main().code())
}
