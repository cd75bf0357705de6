//! Temporary folders, private folders, files that appear whole, and the room on a disk. Temporary
//! folders and files are locked while their process runs, so the next process recognises and
//! removes those of killed ones.

mod folder;
mod free_space;
mod private_folder;
mod whole_file;

pub use folder::{LazyScratch, ScratchFolder, sweep};
pub use free_space::{KEPT_FREE, free_bytes};
pub use private_folder::create_private;
pub use whole_file::{
    WholeFile, clear_place, make_folder, make_lasting_folder, sweep_unfinished, sync_folder,
};
