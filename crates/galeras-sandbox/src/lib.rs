//! Runs untrusted programs, such as those that a model wrote, and reports how they ended.
//!
//! A [`Specification`] goes in: a command, files, limits. An [`Outcome`] comes out: how the program
//! ended, what it used, its outputs, and the layers that confined it. All are facts; the verdict on a
//! program is the caller's, who must reach it outside the program's process.
//!
//! ```no_run
//! use galeras_sandbox::{Ending, Launcher, Machine, Policy, Sandbox, Specification};
//!
//! fn main() -> Result<(), galeras_sandbox::SandboxError> {
//!     galeras_sandbox::launch_if_asked();
//!     let machine = Machine::probe(Launcher::this_program());
//!     let sandbox = Sandbox::new(&machine, Policy::Auto)?;
//!     let program = Specification::new(["python3", "main.py"]).file("main.py", "print(6 * 7)");
//!     let outcome = sandbox.run(program, &|| false)?;
//!     assert_eq!((outcome.ending, &*outcome.stdout.text()), (Ending::Exited(0), "42\n"));
//!     Ok(())
//! }
//! ```
//!
//! # Processes
//!
//! ```text
//! caller ─ launcher ─ confined process ─ program
//! ```
//!
//! The launcher and the confined process are the caller's own program, started again with a hidden
//! verb, which [`launch_if_asked`] handles. So every layer is applied by a fresh process of one thread, without
//! `unsafe` code between `fork` and `exec`. The launcher watches the limits and ends everything, also
//! if the caller is killed. The confined process applies the layers to itself. In a PID namespace it is the
//! first process and stays, because the kernel ends all others with it; otherwise it becomes the program.
//!
//! # Threats
//!
//! The program is hostile: it may execute any machine code as the user who runs Galeras. Unless the caller
//! gives it a network ([`Sandbox::with_network`]) or writable folders, it must not
//!
//! - read the user's files, keys, environment or other processes, nor learn their contents from the store;
//! - change or create anything outside its scratch folder, which disappears with it;
//! - reach the network, a local server, or a socket in the file system;
//! - signal, trace, slow down or outlive any other process;
//! - use more processor time, memory, disk or processes than its limits;
//! - gain privileges, or reach parts of the kernel that are rarely tested.
//!
//! | threat | stopped by |
//! |---|---|
//! | reading files | Landlock; a mount namespace, in which they do not exist |
//! | changing files | Landlock; read-only mounts; without them, seccomp denies `chmod`, `chown`, `utime` and extended attributes to programs of an ordinary user |
//! | the network | seccomp denies sockets; a network namespace without devices; Landlock denies TCP |
//! | other processes | a PID namespace; else Landlock's signal scope, or seccomp denies signals to others; seccomp denies `ptrace` |
//! | staying | the end of the PID namespace; else the launcher adopts orphans and ends them |
//! | processor time, memory, processes | limits of the kernel for each process; the launcher's watchdog for all together |
//! | crashes | a limit of core dumps, at which no handler outside is started |
//! | disk | a scratch file system in memory with a size; else the watchdog |
//! | privileges | `no_new_privs`; as root, another user without groups; no capabilities; no new namespaces |
//! | the kernel | seccomp denies `io_uring`, `bpf`, `userfaultfd`, `perf_event_open`, keyrings, mounts, and system calls that are newer than Linux 6.10 |
//! | the launcher | it is outside of the namespace; the process inside that reports cannot be traced |
//!
//! [`Policy::Auto`] uses all layers that the machine has. It refuses to run anything without Landlock, as root that
//! cannot become another user, and, without namespaces, on kernels before 6.2 or without seccomp. Namespaces are used
//! all together or not at all.
//!
//! Not promised: protection against flaws of the kernel; secrecy of what can be measured from inside
//! (the load of the machine, its model of processor, the clock); without a mount namespace, secrecy of
//! the names, sizes and times of files, and a limit of space for deleted files that are only mapped; memory
//! of the kernel itself, such as that of pipes, which only cgroups count; equal *times*. Measured memory and
//! processor time are compared with their limits every 20 ms, so that a program can exceed them for that
//! long.
//!
//! # Differences between machines
//!
//! The seccomp filter is the same with and without namespaces, so a program that needs a socket fails
//! everywhere, as does one that needs anonymous memory in a shared mapping while its memory is limited: the
//! pages of it that are not mapped are counted nowhere. Without namespaces, a program also cannot change
//! permissions and times of its own files (if it is not run by root), has no `/proc` and no `/dev/shm`, and
//! sees its folders under other names, which its outputs do not show. A linker that sets the permission to
//! execute then fails to: write into a file of the specification that has it.

// Other systems refuse to run programs, and need only the types.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod error;
mod layer;
mod machine;
mod outcome;
mod sandbox;
mod specification;

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod process_tree;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod seccomp;

pub use error::{Result, SandboxError};
#[cfg(target_os = "linux")]
pub use launcher::launch_if_asked;
pub use layer::Layer;
pub use machine::{Launcher, Machine, Missing};
pub use outcome::{Captured, Ending, Outcome, Usage};
pub use sandbox::{Policy, Sandbox};
pub use specification::{
    Input, InputFile, Limits, Output, SYSTEM_PATHS, Specification, TEMPORARY, WORK, environment,
};

/// Only Linux has a launcher.
#[cfg(not(target_os = "linux"))]
pub fn launch_if_asked() {}
