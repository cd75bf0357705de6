//! The system calls that fail inside a sandbox.
//!
//! A list of denied calls, because interpreters differ in those that they need; Landlock and the
//! namespaces do not depend on it. System calls that are newer than the list do not exist inside.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};

/// The newest system call that exists inside: `mseal` of Linux 6.10. Greater numbers include those of
/// the x32 interface, whose calls would otherwise pass the list.
const NEWEST: u32 = 462;

/// Denied without a network. `socketpair` has a rule below.
const SOCKETS: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Denied with EPERM, with any arguments.
const DENIED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Mounts and namespaces. `clone` has a rule below.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Large or poorly tested surfaces of the kernel.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    // Memory that no limit counts. Pages in a pipe need not be mapped, and contexts of `io_setup` are few for
    // the whole machine.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_vmsplice,
    libc::SYS_io_setup,
    // Memory, queues and semaphores of the user's other programs, whose numbers can be guessed.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // The machine. All need privileges anyway.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

#[cfg(target_arch = "x86_64")]
const DENIED_X86: &[c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
];

/// `fchmodat2` of Linux 6.6, for which `libc` has no name yet on some systems.
const FCHMODAT2: c_long = 452;

/// `setrlimit`, for which `libc` has no name on some systems, and its number of `RLIMIT_CORE`.
const SETRLIMIT: c_long = if cfg!(target_arch = "x86_64") { 160 } else { 164 };
const CORE: u64 = 4;

/// Permissions and owners of files, which Landlock does not protect.
const PERMISSIONS: &[c_long] =
    &[libc::SYS_fchmod, libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat];

#[cfg(target_arch = "x86_64")]
const PERMISSIONS_X86: &[c_long] = &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown];

/// Times and attributes of files, which other users than the owner may change, and events.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_inotify_add_watch,
];

#[cfg(target_arch = "x86_64")]
const ATTRIBUTES_X86: &[c_long] = &[libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];

#[cfg(not(target_arch = "x86_64"))]
const DENIED_X86: &[c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const PERMISSIONS_X86: &[c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const ATTRIBUTES_X86: &[c_long] = &[];

/// Work for the filter that no other layer does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// The program may use the network.
    pub(crate) network: bool,
    /// Its memory is limited.
    pub(crate) memory: bool,
    /// The confined process, if it is not in a PID namespace.
    pub(crate) process: Option<u32>,
    /// Landlock does not hold signals back.
    pub(crate) signals: bool,
    /// Files outside can be named.
    pub(crate) attributes: bool,
    /// The user owns some of them.
    pub(crate) permissions: bool,
}

/// Confines this process and everything that it starts.
pub(crate) fn install(gaps: Gaps) -> Result<(), seccompiler::Error> {
    for program in programs(gaps)? {
        apply_filter(&program)?;
    }
    Ok(())
}

fn programs(gaps: Gaps) -> Result<[BpfProgram; 2], BackendError> {
    // The arguments of `clone3` are in memory, where no filter can read them. C libraries then use `clone`.
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut missing = compile(missing, libc::ENOSYS)?;
    missing.splice(0..0, no_newer_calls());
    Ok([missing, compile(rules(gaps)?, libc::EPERM)?])
}

fn compile(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    errno: libc::c_int,
) -> Result<BpfProgram, BackendError> {
    let denied = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?.try_into()
}

/// The start of a filter: system calls after [`NEWEST`] fail with ENOSYS.
fn no_newer_calls() -> [sock_filter; 3] {
    const LOAD_NUMBER: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS, at offset 0
    const JUMP_IF_GREATER: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let not_implemented = 0x0005_0000 | libc::ENOSYS.unsigned_abs(); // SECCOMP_RET_ERRNO
    [
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: NEWEST },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: not_implemented },
    ]
}

/// A condition on the lower half of an argument: the kernel ignores the upper half of an `int`.
fn argument(
    index: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}

fn rules(gaps: Gaps) -> Result<BTreeMap<c_long, Vec<SeccompRule>>, BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};

    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
    let sockets = SOCKETS.iter().filter(|_| !gaps.network);
    for call in DENIED.iter().chain(DENIED_X86).chain(sockets) {
        rules.insert(*call, Vec::new());
    }
    let attributes = ATTRIBUTES.iter().chain(ATTRIBUTES_X86).filter(|_| gaps.attributes);
    let permissions = PERMISSIONS.iter().chain(PERMISSIONS_X86).filter(|_| gaps.permissions);
    rules.extend(attributes.chain(permissions).map(|call| (*call, Vec::new())));
    let mut deny = |call: c_long, conditions: Vec<SeccompCondition>| {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<_, BackendError>(())
    };

    if gaps.network {
        // A socket in the file system may belong to a service of the user.
        let internet = [libc::AF_INET, libc::AF_INET6]
            .map(|family| argument(0, Ne, u64::from(family.unsigned_abs())));
        let internet = internet.into_iter().collect::<Result<Vec<_>, _>>()?;
        deny(libc::SYS_socket, internet)?;
        // Rare protocols would load rarely tested parts of the kernel.
        let usual = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP]
            .map(|protocol| argument(2, Ne, u64::from(protocol.unsigned_abs())));
        let usual = usual.into_iter().collect::<Result<Vec<_>, _>>()?;
        deny(libc::SYS_socket, usual)?;
    }

    // Pairs of connected streams and sequences are pipes. A datagram socket could send elsewhere.
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    deny(libc::SYS_socketpair, vec![argument(0, Ne, unix)?])?;
    for kind in [0, 2, 3, 4, 6, 10] {
        deny(libc::SYS_socketpair, vec![argument(1, MaskedEq(0xf), kind)?])?;
    }

    for flag in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ] {
        let flag = u64::from(flag.unsigned_abs());
        deny(libc::SYS_clone, vec![argument(0, MaskedEq(flag), flag)?])?;
    }

    // Typing into a terminal.
    for request in [0x5412, 0x541c] {
        deny(libc::SYS_ioctl, vec![argument(1, Eq, request)?])?;
    }

    // Leases and notices of files: others that open such a file would wait.
    for command in [libc::F_SETLEASE, libc::F_NOTIFY] {
        deny(libc::SYS_fcntl, vec![argument(1, Eq, u64::from(command.unsigned_abs()))?])?;
    }

    // A crash may start a handler outside, but not at this limit (see `set_limits`).
    deny(SETRLIMIT, vec![argument(0, Eq, CORE)?])?;
    let changes = SeccompCondition::new(2, SeccompCmpArgLen::Qword, Ne, 0)?;
    deny(libc::SYS_prlimit64, vec![argument(1, Eq, CORE)?, changes])?;

    if gaps.process.is_none() {
        // The first process of the namespace, which reports.
        let changes = SeccompCondition::new(2, SeccompCmpArgLen::Qword, Ne, 0)?;
        deny(libc::SYS_prlimit64, vec![argument(0, Eq, 1)?, changes])?;
    }

    if gaps.memory {
        // What is written there stays in memory when all but one page of it are unmapped.
        let shared = u64::from((libc::MAP_SHARED | libc::MAP_ANONYMOUS).unsigned_abs());
        deny(libc::SYS_mmap, vec![argument(3, MaskedEq(shared), shared)?])?;
    }

    if gaps.attributes {
        // Attributes, verity and encryption of files (`f`, `X`), and subvolumes of Btrfs. Only the copies of
        // Btrfs need a file that is open for writing.
        for kind in [b'f', b'X'] {
            deny(libc::SYS_ioctl, vec![argument(1, MaskedEq(0xff00), u64::from(kind) << 8)?])?;
        }
        let copies = [0x4004_9409, 0x4020_940d].map(|copy| argument(1, Ne, copy));
        let mut others = copies.into_iter().collect::<Result<Vec<_>, _>>()?;
        others.push(argument(1, MaskedEq(0xff00), 0x9400)?);
        deny(libc::SYS_ioctl, others)?;
    }

    if let Some(pid) = gaps.process {
        // Limits and priorities of the user's other processes. A program names itself by 0 or by its number.
        for call in [
            libc::SYS_prlimit64,
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
        ] {
            deny(call, vec![argument(0, Ne, 0)?, argument(0, Ne, u64::from(pid))?])?;
        }
        // The first argument names a process, a group, or a user, of whom 0 is this one.
        for (call, user) in [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)] {
            deny(call, vec![argument(1, Ne, 0)?])?;
            deny(call, vec![argument(0, Eq, user)?])?;
        }
    }

    if let (Some(pid), true) = (gaps.process, gaps.signals) {
        let pid = u64::from(pid);
        deny(libc::SYS_kill, vec![argument(0, Ne, pid)?, argument(0, Ne, 0)?])?;
        for call in [libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo] {
            deny(call, vec![argument(0, Ne, pid)?])?;
        }
        // Descriptors that send a signal when they are ready.
        for command in [libc::F_SETOWN, 10, 15] {
            deny(libc::SYS_fcntl, vec![argument(1, Eq, u64::from(command.unsigned_abs()))?])?;
        }
        for request in [0x8901, 0x8902] {
            deny(libc::SYS_ioctl, vec![argument(1, Eq, request)?])?;
        }
        rules.insert(libc::SYS_tkill, Vec::new());
        rules.insert(libc::SYS_pidfd_send_signal, Vec::new());
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_compile_for_every_gap() {
        for process in [None, Some(7)] {
            for gap in [false, true] {
                let programs = programs(Gaps {
                    network: gap,
                    memory: gap,
                    process,
                    signals: gap,
                    attributes: gap,
                    permissions: gap,
                })
                .unwrap();
                assert!(programs.iter().all(|program| program.len() < 4096), "{programs:?}");
            }
        }
    }
}
