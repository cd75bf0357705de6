//! Ids, digests, error chains, scratch files, terminal escaping: what every layer uses. No Arrow.

pub mod digest;
pub mod error_chain;
pub mod id;
pub mod memory_guard;
pub mod prose;
pub mod scratch;
pub mod small_file;
pub mod system_limits;
pub mod terminal_escape;
pub mod user_folder;
