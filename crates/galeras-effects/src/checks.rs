//! Checks of arguments that the operators share. All errors are collected.

use arrow::datatypes::DataType;

use galeras_operator::columns::require_column;
use galeras_operator::{ArgError, BindContext};
use galeras_workflow::code::Code;

/// The type of columns that become labels.
pub(crate) fn is_plain(data_type: &DataType) -> bool {
    !data_type.is_nested()
}

/// The default of `alpha`.
pub(crate) fn five_percent() -> f64 {
    0.05
}

/// Arguments that are checked, and their errors.
pub(crate) struct ArgChecks<'a> {
    pub cx: &'a BindContext,
    pub errors: Vec<ArgError>,
}

impl<'a> ArgChecks<'a> {
    pub(crate) fn new(cx: &'a BindContext) -> Self {
        Self { cx, errors: Vec::new() }
    }

    pub(crate) fn error(&mut self, path: &str, code: Code, message: impl Into<String>) {
        self.errors.push(ArgError::new(path, code, message));
    }

    pub(crate) fn out_of_range(&mut self, path: &str, message: impl Into<String>) {
        self.error(path, Code::OutOfRange, message);
    }

    /// Reports arguments that contradict each other.
    pub(crate) fn conflict(&mut self, path: &str, message: impl Into<String>, help: &str) {
        self.errors.push(ArgError::new(path, Code::ConflictingArguments, message).help(help));
    }

    pub(crate) fn alpha(&mut self, alpha: f64) {
        if !(alpha > 0.0 && alpha < 1.0) {
            self.out_of_range("alpha", "`alpha` must lie between 0 and 1");
        }
    }

    /// The input has a column of a type that `fits`.
    pub(crate) fn column(
        &mut self,
        path: &str,
        name: &str,
        wanted: &str,
        fits: impl Fn(&DataType) -> bool,
    ) {
        require_column(self.cx, path, name, wanted, fits, &mut self.errors);
    }

    /// The input has these columns, and each is named once.
    pub(crate) fn columns(
        &mut self,
        list: &str,
        names: &[String],
        wanted: &str,
        fits: impl Fn(&DataType) -> bool,
    ) {
        for (at, name) in names.iter().enumerate() {
            let path = format!("{list}[{at}]");
            self.column(&path, name, wanted, &fits);
            if names[..at].contains(name) {
                let message = format!("column `{name}` is named twice");
                self.error(&path, Code::DuplicateColumn, message);
            }
        }
    }

    /// The columns of the list have no other role.
    pub(crate) fn role(
        &mut self,
        list: &str,
        names: &[String],
        code: Code,
        role: impl Fn(&String) -> Option<&'static str>,
    ) {
        for (at, name) in names.iter().enumerate() {
            if let Some(role) = role(name) {
                let message = format!("column `{name}` is already {role}");
                self.error(&format!("{list}[{at}]"), code, message);
            }
        }
    }

    /// Every value is listed once.
    pub(crate) fn once<T: PartialEq>(&mut self, list: &str, values: &[T], message: &str) {
        for at in (0..values.len()).filter(|at| values[..*at].contains(&values[*at])) {
            self.conflict(&format!("{list}[{at}]"), message, "remove one of them");
        }
    }
}
