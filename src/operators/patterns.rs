//! Glob patterns in arguments.

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::code::Code;
use crate::operator::ArgError;

/// The glob patterns of an argument that is a list.
pub(super) fn glob_set(argument: &str, patterns: &[String]) -> Result<GlobSet, ArgError> {
    let bad = |path: String| {
        move |error: globset::Error| ArgError::new(path, Code::BadPattern, error.to_string())
    };
    let mut set = GlobSetBuilder::new();
    for (at, pattern) in patterns.iter().enumerate() {
        set.add(Glob::new(pattern).map_err(bad(format!("{argument}[{at}]")))?);
    }
    set.build().map_err(bad(argument.to_string()))
}
