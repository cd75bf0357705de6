//! The operators that estimate: `regress`, `correlate`, `mixed`, `power`.

mod checks;
mod columns;
mod correlate;
mod mixed;
mod power;
mod regress;
mod step;
mod words;

pub use correlate::CorrelateOperator;
pub use mixed::MixedOperator;
pub use power::PowerOperator;
pub use regress::RegressOperator;
