//! The limits of the system on this process, for messages about threads and memory that it refused.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::error_chain::plain;

/// The advice after a refusal.
pub const ADVICE: &str = "raise the limit, or compute fewer steps side by side with --jobs";

/// The limits that are set: "1024 MiB of addresses (`ulimit -v`)".
pub fn limits() -> String {
    let limit = |resource| getrlimit(resource).current;
    let addresses = limit(Resource::As);
    let addresses = addresses.map(|most| format!("{} MiB of addresses (`ulimit -v`)", most >> 20));
    let threads = limit(Resource::Nproc);
    let threads = threads.map(|most| format!("{most} threads of this user (`ulimit -u`)"));
    let limits: Vec<String> = addresses.into_iter().chain(threads).collect();
    match limits.is_empty() {
        true => "those of the container or the machine".to_string(),
        false => limits.join(" and "),
    }
}

/// The message about a thread that could not be started.
pub fn no_thread(error: &io::Error) -> String {
    format!("the system starts no more threads ({}); its limits are {}", plain(error), limits())
}
