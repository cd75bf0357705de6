//! The operators that estimate: `regress`, `correlate`, `mixed`, `power`.

mod checks;
mod columns;
mod correlate;
mod mixed;
mod power;
mod regress;
mod shared_columns;
mod step;
mod words;

pub use correlate::CORRELATE;
pub use mixed::MIXED;
pub use power::POWER;
pub use regress::REGRESS;
