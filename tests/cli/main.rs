//! Tests of the `galeras` program from outside.
