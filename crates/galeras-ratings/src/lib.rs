//! Ratings: people's answers to questions about data points, in files that are kept in Git. Parses
//! lines, reads folders, appends durably, measures agreement.

mod agreement;
mod append;
mod csv_file;
mod error;
mod folder;
mod json_lines;
mod rating;

pub use agreement::QuestionAgreement;
pub use append::{append, file_of, is_rater_name};
pub use error::RatingsError;
pub use folder::{ADJUDICATED, Ratings};
pub use rating::{NoAnswer, RaterAnswers, Rating, RatingAnswer, RatingEvent};
