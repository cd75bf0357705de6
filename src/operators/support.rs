//! Small tables (`cells`), numbers in sentences (`words`), what is done about missing values
//! (`missing`).

pub(super) mod cells;
pub(super) mod missing;
pub(super) mod words;
