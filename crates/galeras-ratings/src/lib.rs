//! Ratings: what people answer to questions about data points, in files that they keep in Git.
//!
//! Lives here: what a line says, reading a folder with a file for each rater, adding a line so that
//! it is on disk, how far raters agree. Does not live here: which rows of a table leave because of
//! it (`operators`), the page on which people rate (`view`).

mod agreement;
mod append;
mod csv_file;
mod error;
mod folder;
mod json_lines;
mod rating;

pub use agreement::QuestionAgreement;
pub use append::{append, is_rater_name};
pub use error::RatingsError;
pub use folder::{ADJUDICATED, Ratings};
pub use rating::{NoAnswer, RaterAnswers, Rating, RatingAnswer, RatingEvent};
