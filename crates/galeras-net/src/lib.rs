//! Shared code of clients of servers.
//!
//! [`Secret`] holds a key so that no text shows it. [`Clock`] returns the time, so that tests need
//! not wait. [`http_builder`] sets up HTTP in one place: time-outs, user agent, proxies;
//! [`redirects_to`] limits redirects. [`secret_in`] finds passwords in addresses. [`causes`] formats an
//! error with its causes, [`one_line`] quotes a server, and [`http_date`] reads the dates of headers.

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
