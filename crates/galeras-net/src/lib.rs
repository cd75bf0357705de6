//! Shared code of clients of servers.
//!
//! [`Secret`] holds a key so that no text shows it. [`Clock`] returns the time, so that tests need
//! not wait. [`http_builder`] sets up HTTP in one place: time-outs, user agent, proxies;
//! [`redirects_to`] limits redirects. [`secret_in`] finds passwords in addresses. [`causes`] formats an
//! error with its causes, and [`http_date`] reads the dates of HTTP headers.

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
