//! Tests of the exact aggregates: `sums` for the accumulator itself, `sql` for the functions
//! in queries, `expected` the values both are held to, made by `expected.py`.

mod expected;
mod sql;
mod sums;
