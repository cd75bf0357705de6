//! Completion: what may stand at the cursor of a command line, for the scripts that
//! `galeras completions` prints. They call the hidden verb `complete` for every TAB, so that it
//! knows the steps, params, columns and files of the moment.
//!
//! `shells` reads what a shell has and writes what it takes, `cursor` finds out by clap's own
//! description of the command line what is asked for, `candidates` finds the values. Nothing is
//! computed, fetched or changed, and what goes wrong gives no candidates and no message.

mod candidates;
mod cursor;
mod shells;
mod verb;

pub(super) use verb::{CompleteArgs, complete, script};
