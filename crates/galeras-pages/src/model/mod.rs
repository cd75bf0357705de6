//! The data of a report, without their origin.
//!
//! All of it is serde, so that a page can be made from JSON. Texts are raw: the caller does not
//! escape, crop or format them.

mod diagram;
mod point;
mod section;
mod study;
mod table;

pub use diagram::{
    AssertionOutcome, ColumnPanel, ColumnStatistics, PortPanel, StepArrow, StepBox, StepCondition,
    StepDiagram, ValueBin, ValueCount,
};
pub use point::{
    CodeLanguage, DataPoint, DataPointBlock, Labelled, PromptMessage, ScoreValue, TraceStep,
};
pub use section::{
    AttritionBlock, AttritionStage, DiagnosticBlock, DiagnosticNote, EffectFinding, FigureBlock,
    FindingBlock, FindingStatus, LossReason, NoteSeverity, ReproduceBlock, ShellCommand, TextBlock,
};
pub use study::{MissingStep, ParamValue, Report, RunFacts, Section};
pub use table::{SortDirection, TableBlock, TableColumn};
