//! Figures from the outside: marks are where the data say, labels have room, bytes are the same.

mod characters;
mod labels;
mod marks;
mod peers;
mod reading;
mod refusals;
mod same;
#[path = "../../examples/gallery/samples.rs"]
mod samples;
