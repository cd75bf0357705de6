//! No code: the features that the tests' servers ask of dependencies, so that `cargo run` and
//! `cargo test` compile what rests on these once.
