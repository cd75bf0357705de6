//! Shared code of clients of servers: keys, time, HTTP, redirects, and secrets in addresses.

mod address;
mod causes;
mod clock;
mod http;
mod http_date;
mod secret;

pub use address::{UrlSecret, has_slashes, secret_in};
pub use causes::{causes, root_cause};
pub use clock::{Clock, Sleep, SystemClock};
pub use http::{AGENT, CONNECT_TIMEOUT, READ_TIMEOUT, http_builder, redirects_to};
pub use http_date::http_date;
pub use secret::{InvalidSecret, Secret};
