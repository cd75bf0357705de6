//! Figures from the outside: marks are where the data say, labels have room, bytes are the same.

// What only helps a test, and is not one, may fail as tests do.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod anything;
mod characters;
mod labels;
mod marks;
mod peers;
mod reading;
mod refusals;
mod same;
#[path = "../../examples/gallery/samples.rs"]
mod samples;
