//! Finds operators by name.

use super::contract::Operator;

/// The operators that workflows may name.
#[derive(Clone, Copy)]
pub struct Registry {
    operators: &'static [&'static dyn Operator],
}

impl Registry {
    /// Creates a registry of operators, which must have different names.
    pub const fn new(operators: &'static [&'static dyn Operator]) -> Self {
        Self { operators }
    }

    /// The operator of that name.
    pub fn get(&self, name: &str) -> Option<&'static dyn Operator> {
        self.iter().find(|op| op.descriptor().name == name)
    }

    /// All operators, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn Operator> {
        self.operators.iter().copied()
    }
}
