//! The layers of a sandbox.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the layers that confine a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl Layer {
    /// All layers, in the order in which they are listed.
    pub const ALL: [Self; 14] = [
        Self::NoNewPrivs,
        Self::LandlockFiles,
        Self::LandlockTcp,
        Self::LandlockSignals,
        Self::Seccomp,
        Self::UserNamespace,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::MountNamespace,
        Self::IpcNamespace,
        Self::UnprivilegedUser,
        Self::ResourceLimits,
        Self::Watchdog,
        Self::Wrapper,
    ];

    /// The layer's name in tables and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoNewPrivs => "no_new_privs",
            Self::LandlockFiles => "landlock_files",
            Self::LandlockTcp => "landlock_tcp",
            Self::LandlockSignals => "landlock_signals",
            Self::Seccomp => "seccomp",
            Self::UserNamespace => "user_namespace",
            Self::PidNamespace => "pid_namespace",
            Self::NetworkNamespace => "network_namespace",
            Self::MountNamespace => "mount_namespace",
            Self::IpcNamespace => "ipc_namespace",
            Self::UnprivilegedUser => "unprivileged_user",
            Self::ResourceLimits => "resource_limits",
            Self::Watchdog => "watchdog",
            Self::Wrapper => "wrapper",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
