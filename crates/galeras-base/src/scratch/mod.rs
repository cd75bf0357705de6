//! Temporary folders, and files on their way to their names. Both are locked for as long as their
//! process lives: what a killed one leaves is told apart by that, and removed by the next. And how
//! much room a disk has for them, and folders that are private.
//!
//! Does not live here: the temporary files of a store (`store`), which follow the same rule.

mod folder;
mod free_space;
mod private_folder;
mod whole_file;

pub use folder::{LazyScratch, ScratchFolder, sweep};
pub use free_space::{KEPT_FREE, free_bytes};
pub use private_folder::create_private;
pub use whole_file::{WholeFile, clear_place, make_folder, make_lasting_folder, sync_folder};
