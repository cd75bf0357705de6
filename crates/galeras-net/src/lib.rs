//! Shared code of clients of servers: keys, time, HTTP, redirects, and secrets in addresses.

mod address;
mod clock;
mod http;
mod secret;
mod text;

pub use address::{UrlSecret, has_slashes, secret_in};
pub use clock::{Clock, Sleep, SystemClock, http_date};
pub use http::{AGENT, CONNECT_TIMEOUT, READ_TIMEOUT, http_builder, redirects_to};
pub use secret::{InvalidSecret, Secret};
pub use text::{causes, one_line};
