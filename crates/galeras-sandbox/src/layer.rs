//! The layers of a sandbox.

use serde::{Deserialize, Serialize};

/// One of the layers that confine a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Layer {
    /// Neither set-user-id programs nor file capabilities raise privileges.
    NoNewPrivs,
    /// Landlock: only named files can be opened.
    LandlockFiles,
    /// Landlock: no TCP (from ABI 4).
    LandlockTcp,
    /// Landlock: no signals and no abstract sockets to processes outside (from ABI 6).
    LandlockSignals,
    /// Dangerous system calls fail.
    Seccomp,
    /// A user without privileges in a namespace of users.
    UserNamespace,
    /// No process outside can be seen, and all inside end with the first.
    PidNamespace,
    /// A network without devices.
    NetworkNamespace,
    /// Only named files exist.
    MountNamespace,
    /// No shared memory or message queues of others.
    IpcNamespace,
    /// The program runs as another user than root.
    UnprivilegedUser,
    /// Limits of the kernel for each process.
    ResourceLimits,
    /// Limits for all processes together, which the launcher measures.
    Watchdog,
    /// The user's own command around the program (`sandbox: { command: … }`).
    Wrapper,
}
