//! The limits of the system on this process, for messages about threads and memory that it refused.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::error_chain::plain;

/// The advice after a refusal.
pub const ADVICE: &str = "raise the limit, or compute fewer steps side by side with --jobs";

/// The limits that are set: "1024 MiB of addresses (`ulimit -v`)".
pub fn limits() -> String {
    let limits = [
        (Resource::As, 20, "MiB of addresses (`ulimit -v`)"),
        (Resource::Data, 20, "MiB of data (`ulimit -d`)"),
        (Resource::Nproc, 0, "threads of this user (`ulimit -u`)"),
    ];
    let limits = limits.into_iter().filter_map(|(resource, shift, what)| {
        getrlimit(resource).current.map(|most| format!("{} {what}", most >> shift))
    });
    let limits: Vec<String> = limits.collect();
    match limits.is_empty() {
        true => "those of the container or the machine".to_string(),
        false => limits.join(" and "),
    }
}

/// The message about a thread that could not be started.
pub fn no_thread(error: &io::Error) -> String {
    format!("the system starts no more threads ({}); its limits are {}", plain(error), limits())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_refused_thread_is_told_with_the_limits() {
        let message = no_thread(&io::Error::from_raw_os_error(11));
        let start = "the system starts no more threads (Resource temporarily unavailable); its ";
        assert_eq!(message, format!("{start}limits are {}", limits()));
    }
}
