//! Counts the objects of a pack while gix-pack receives them.
//!
//! The progress that gix-pack and gix-protocol ask for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gix::progress::{Count, Id, MessageLevel, NestedProgress, Progress, Step, StepShared, Unit};

use super::wire::Wire;

/// A progress of which only the count of objects is used.
pub(super) struct Meter {
    wire: Arc<Wire>,
    id: Id,
    steps: StepShared,
}

impl Meter {
    /// A progress that tells `wire` about objects.
    pub(super) fn new(wire: Arc<Wire>) -> Self {
        Self::of(wire, gix::progress::UNKNOWN)
    }

    fn of(wire: Arc<Wire>, id: Id) -> Self {
        Self { wire, id, steps: Arc::new(AtomicUsize::new(0)) }
    }

    fn counts_objects(&self) -> bool {
        let objects: Id = gix_pack::index::write::ProgressId::IndexObjects.into();
        self.id == objects
    }
}

impl Count for Meter {
    fn set(&self, step: Step) {
        let before = self.steps.swap(step, Ordering::Relaxed);
        if self.counts_objects() {
            self.wire.count_objects(step.saturating_sub(before));
        }
    }

    fn step(&self) -> Step {
        self.steps.load(Ordering::Relaxed)
    }

    fn inc_by(&self, step: Step) {
        self.steps.fetch_add(step, Ordering::Relaxed);
        if self.counts_objects() {
            self.wire.count_objects(step);
        }
    }

    fn counter(&self) -> StepShared {
        Arc::clone(&self.steps)
    }
}

impl Progress for Meter {
    fn init(&mut self, _max: Option<Step>, _unit: Option<Unit>) {}

    fn set_name(&mut self, _name: String) {}

    fn name(&self) -> Option<String> {
        None
    }

    fn id(&self) -> Id {
        self.id
    }

    fn message(&self, _level: MessageLevel, _message: String) {}
}

impl NestedProgress for Meter {
    type SubProgress = Self;

    fn add_child(&mut self, _name: impl Into<String>) -> Self {
        Self::new(Arc::clone(&self.wire))
    }

    fn add_child_with_id(&mut self, _name: impl Into<String>, id: Id) -> Self {
        Self::of(Arc::clone(&self.wire), id)
    }
}
