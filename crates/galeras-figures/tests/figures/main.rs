//! Figures from the outside: marks are at their data, labels have room, bytes are the same.

// Helpers of tests may panic as tests do.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod anything;
mod characters;
mod labels;
mod marks;
mod peers;
mod reading;
mod refusals;
mod same;
mod samples;
