//! The layers that a machine offers, each tried out once.

use std::path::PathBuf;

use crate::layer::Layer;

/// The program that starts confined processes: one whose `main` begins with
/// [`launch_if_asked`](crate::launch_if_asked).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    pub(crate) program: PathBuf,
}

impl Launcher {
    /// The program that is running.
    pub fn this_program() -> Self {
        Self { program: "/proc/self/exe".into() }
    }

    /// Another program.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }
}

/// The reason why a layer is missing, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// A sentence without a full stop, such as "the kernel was built without Landlock".
    pub reason: String,
    /// A way to enable the layer, if there is one.
    pub remedy: Option<String>,
}

impl Missing {
    fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: Some(remedy.into()) }
    }
}

/// A machine, as the user of this process meets it.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) launcher: Launcher,
    /// The version of Landlock.
    pub(crate) landlock: Result<i32, Missing>,
    pub(crate) seccomp: Result<(), Missing>,
    /// Namespaces; whether there is one of users for the program alone.
    pub(crate) namespaces: Result<bool, Missing>,
    /// For root, whether it can become another user. For others, they are one.
    pub(crate) unprivileged_user: Result<(), Missing>,
    pub(crate) is_root: bool,
    pub(crate) watchdog: Result<(), Missing>,
}

impl Machine {
    /// Tries each layer in a separate process. It takes some milliseconds; the result holds until the
    /// machine's settings change.
    #[cfg(target_os = "linux")]
    pub fn probe(launcher: Launcher) -> Self {
        use crate::protocol::{Confinement, LandlockSupport, Message};
        use crate::sandbox::probe;

        let none = Confinement::default();
        let missing =
            |failure: crate::SandboxError| Missing { reason: failure.to_string(), remedy: None };
        let is_root = rustix::process::geteuid().is_root();

        let newest = Confinement { landlock: Some(i32::MAX), ..none.clone() };
        let landlock = match probe(&launcher, newest) {
            Ok(Message::Ready { landlock: LandlockSupport::Version(version), .. }) => Ok(version),
            Ok(Message::Ready { landlock: LandlockSupport::NotEnabled, .. }) => Err(Missing::new(
                "the kernel has Landlock, but it is off",
                "add `landlock` to the list after `lsm=` on the kernel's command line and restart",
            )),
            Ok(_) => Err(Missing::new(
                "the kernel has no Landlock, or a container hides it",
                "use Linux 5.13 or later, built with CONFIG_SECURITY_LANDLOCK, and a container whose seccomp \
                 profile allows `landlock_create_ruleset`",
            )),
            Err(error) => Err(missing(error)),
        };
        let seccomp = match probe(&launcher, Confinement { seccomp: true, ..none.clone() }) {
            Ok(_) => Ok(()),
            Err(error) => Err(Missing {
                remedy: Some("use a kernel that was built with CONFIG_SECCOMP_FILTER".into()),
                ..missing(error)
            }),
        };
        let user = Confinement { unprivileged_user: is_root, ..none };
        let unprivileged_user = match probe(&launcher, user.clone()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Missing {
                remedy: Some("run as an ordinary user instead of root".into()),
                ..missing(error)
            }),
        };
        let user = Confinement { unprivileged_user: is_root && unprivileged_user.is_ok(), ..user };
        let namespaces = match probe(&launcher, Confinement { namespaces: true, ..user }) {
            Ok(Message::Ready { user_namespace, .. }) => Ok(user_namespace),
            Ok(_) => Err(Missing { reason: "the launcher gave no answer".into(), remedy: None }),
            Err(error) => {
                Err(Missing { remedy: Some(namespaces_remedy(is_root)), ..missing(error) })
            }
        };
        let watchdog = if crate::process_tree::can_list_children() {
            Ok(())
        } else {
            Err(Missing::new(
                "the kernel does not list a process's children in /proc",
                "use a kernel that was built with CONFIG_PROC_CHILDREN, and mount /proc",
            ))
        };
        Self { launcher, landlock, seccomp, namespaces, unprivileged_user, is_root, watchdog }
    }

    /// Other systems than Linux have none of the layers.
    #[cfg(not(target_os = "linux"))]
    pub fn probe(launcher: Launcher) -> Self {
        let missing =
            || Missing::new("only Linux has it", "run Galeras on Linux, or in a Linux container");
        Self {
            launcher,
            landlock: Err(missing()),
            seccomp: Err(missing()),
            namespaces: Err(missing()),
            unprivileged_user: Err(missing()),
            is_root: false,
            watchdog: Err(missing()),
        }
    }

    /// The same machine without a layer. Namespaces are there together or not at all.
    #[must_use]
    pub fn without(mut self, layer: Layer) -> Self {
        let missing = || Missing { reason: format!("{layer} is switched off"), remedy: None };
        match layer {
            Layer::LandlockFiles => self.landlock = Err(missing()),
            Layer::LandlockTcp => self.landlock = self.landlock.map(|version| version.min(3)),
            Layer::LandlockSignals => self.landlock = self.landlock.map(|version| version.min(5)),
            Layer::Seccomp => self.seccomp = Err(missing()),
            Layer::PidNamespace
            | Layer::NetworkNamespace
            | Layer::MountNamespace
            | Layer::IpcNamespace => {
                self.namespaces = Err(missing());
            }
            Layer::UserNamespace => {
                self.namespaces =
                    if self.is_root { self.namespaces.map(|_| false) } else { Err(missing()) };
            }
            Layer::UnprivilegedUser if self.is_root => self.unprivileged_user = Err(missing()),
            Layer::Watchdog => self.watchdog = Err(missing()),
            Layer::UnprivilegedUser
            | Layer::NoNewPrivs
            | Layer::ResourceLimits
            | Layer::Wrapper => {}
        }
        self
    }

    /// Every layer that a machine can have, and the reason if this one lacks it, for `galeras doctor`.
    pub fn layers(&self) -> Vec<(Layer, Result<(), Missing>)> {
        let landlock_since = |version: i32, what: &str, linux: &str| match &self.landlock {
            Err(missing) => Err(missing.clone()),
            Ok(found) if *found < version => Err(Missing::new(
                format!("Landlock of this kernel (version {found}) does not restrict {what}"),
                format!("use Linux {linux} or later"),
            )),
            Ok(_) => Ok(()),
        };
        let namespace = || self.namespaces.clone().map(|_| ());
        let user_namespace = match &self.namespaces {
            Ok(false) => Err(Missing::new(
                "root may not make a user namespace",
                "raise /proc/sys/user/max_user_namespaces",
            )),
            other => other.clone().map(|_| ()),
        };
        let linux_has_it = || if cfg!(target_os = "linux") { Ok(()) } else { self.seccomp.clone() };
        vec![
            (Layer::NoNewPrivs, linux_has_it()),
            (Layer::LandlockFiles, landlock_since(1, "files", "5.13")),
            (Layer::LandlockTcp, landlock_since(4, "TCP", "6.7")),
            (Layer::LandlockSignals, landlock_since(6, "signals", "6.12")),
            (Layer::Seccomp, self.seccomp.clone()),
            (Layer::UserNamespace, user_namespace),
            (Layer::PidNamespace, namespace()),
            (Layer::NetworkNamespace, namespace()),
            (Layer::MountNamespace, namespace()),
            (Layer::IpcNamespace, namespace()),
            (Layer::UnprivilegedUser, self.unprivileged_user.clone()),
            (Layer::ResourceLimits, linux_has_it()),
            (Layer::Watchdog, self.watchdog.clone()),
        ]
    }

    /// Why `sandbox: auto` would refuse to run programs here, as a sentence with a way out.
    pub fn refusal(&self) -> Option<String> {
        const ABOUT: [&str; 3] = ["files", "the network", "processes"];
        let (what, missing) = match self {
            Self { unprivileged_user: Err(missing), .. } => ("root", missing.clone()),
            Self { landlock: Err(missing), .. } => (ABOUT[0], missing.clone()),
            Self { namespaces: Err(_), seccomp: Err(missing), .. } => (ABOUT[1], missing.clone()),
            Self { namespaces: Err(_), watchdog: Err(missing), .. } => (ABOUT[2], missing.clone()),
            Self { namespaces: Err(namespaces), landlock: Ok(version @ ..3), .. } => {
                let reason = format!(
                    "Landlock of this kernel (version {version}) does not protect files from being emptied, and \
                     there are no namespaces: {}",
                    namespaces.reason
                );
                (ABOUT[0], Missing { reason, ..namespaces.clone() })
            }
            _ => return None,
        };
        let remedy =
            missing.remedy.map(|remedy| format!("; to change that, {remedy}")).unwrap_or_default();
        Some(format!(
            "this machine cannot keep programs away from {what}: {}{remedy}. Otherwise put a container around \
             them with `sandbox: {{ command: [bwrap, …] }}`, or agree to run them unprotected with `sandbox: none`. \
             `galeras doctor` lists what is missing",
            missing.reason
        ))
    }
}

/// A way to allow namespaces, from the settings that distributions forbid them with.
#[cfg(target_os = "linux")]
fn namespaces_remedy(is_root: bool) -> String {
    let setting = |path: &str| {
        std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().parse::<u64>().ok()
    };
    if !is_root && setting("kernel/unprivileged_userns_clone") == Some(0) {
        return "run `sysctl kernel.unprivileged_userns_clone=1`".into();
    }
    if !is_root && setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        return "run `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or give galeras an AppArmor profile \
                with `userns`"
            .into();
    }
    if setting("user/max_user_namespaces") == Some(0) {
        return "run `sysctl user.max_user_namespaces=10000`".into();
    }
    "in a container, allow namespaces: `--security-opt seccomp=unconfined` for docker and podman, with \
     `--cap-add SYS_ADMIN` as root"
        .into()
}
