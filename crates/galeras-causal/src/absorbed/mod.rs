//! Linear regression with fixed effects that are absorbed: a constant for each level of one or more
//! factors, never estimated.
//!
//! `factor` is a factor, `within` takes the means of all factors out of a column, `effect` is the
//! regression on what is left.

mod effect;
mod factor;
#[cfg(test)]
mod tests;
mod within;

pub use effect::{AbsorbedEffect, absorbed};
