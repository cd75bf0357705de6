//! A folder of ratings: a file for each rater, and the decisions on their disagreements.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::csv_file::parse_csv;
use super::error::RatingsError;
use super::json_lines::parse_json_lines;
use super::rating::{RaterAnswers, Rating, RatingAnswer};
use galeras_base::digest::Digest;
use galeras_base::small_file;

/// The name of the file with decisions, without its suffix. No rater can have this name.
pub const ADJUDICATED: &str = "adjudicated";

/// Some hundred thousand ratings.
const MAX_FILE_BYTES: u64 = 64 << 20;

const MAX_FILES: usize = 1000;

/// The ratings of a folder and their files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ratings {
    /// The files in the order of their names, with the digests of their content.
    pub files: Vec<(String, Digest)>,
    /// The answers of every rater by name.
    pub raters: BTreeMap<String, RaterAnswers>,
    /// The decisions.
    pub adjudicated: RaterAnswers,
    /// Warnings, which stop nothing.
    pub warnings: Vec<String>,
}

impl Ratings {
    /// Reads a folder of files, or one file. `NAME.jsonl` has the ratings of NAME. `NAME.csv` has
    /// those of NAME, or of NAME-1, NAME-2, … if it is a sheet with columns for several raters.
    /// `adjudicated.jsonl` has the decisions. Hidden files and `.md` files are skipped; any other
    /// file is an error.
    ///
    /// # Errors
    /// All errors in the files.
    pub fn read(path: &Path, questions: &[&str]) -> Result<Self, Vec<RatingsError>> {
        let mut ratings = Self::default();
        let mut errors = Vec::new();
        let files = files(path).map_err(|error| vec![error])?;
        // The file that each name comes from, by the name in lower case.
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for file in files {
            match ratings.read_file(&file, questions) {
                Ok(found) => {
                    for (rater, answers) in found {
                        let shown = file_name(&file);
                        match names.insert(rater.to_lowercase(), shown.clone()) {
                            None if rater == ADJUDICATED => ratings.adjudicated = answers,
                            None => {
                                ratings.raters.insert(rater, answers);
                            }
                            Some(other) => {
                                let message = format!("`{other}` is of the same rater, `{rater}`");
                                let help = "put the lines of both into one file, or rename one of \
                                            them if they are two people";
                                errors.push(RatingsError::of_file(&shown, message).help(help));
                            }
                        }
                    }
                }
                Err(found) => errors.extend(found),
            }
        }
        if errors.is_empty() { Ok(ratings) } else { Err(errors) }
    }

    fn read_file(
        &mut self,
        file: &Path,
        questions: &[&str],
    ) -> Result<Vec<(String, RaterAnswers)>, Vec<RatingsError>> {
        let name = file_name(file);
        let one = |message: String| vec![RatingsError::of_file(&name, message)];
        let bytes = small_file::read(file, MAX_FILE_BYTES)
            .map_err(|error| one(format!("it cannot be read: {error}")))?;
        self.files.push((name.clone(), Digest::of(&bytes)));
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let error = RatingsError::of_file(&name, format!("it is not UTF-8 at byte {at}"));
            vec![error.help("save it as `CSV UTF-8`, or as UTF-8 text")]
        })?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if suffix(file) == Some("jsonl") {
            let (answers, warnings) = parse_json_lines(&name, &text, questions)?;
            self.warnings.extend(warnings);
            return Ok(vec![(stem, answers)]);
        }
        let found = parse_csv(&name, &text, questions)?;
        let named = |(rater, answers)| match rater {
            0 => (stem.clone(), answers),
            number => (format!("{stem}-{number}"), answers),
        };
        Ok(found.into_iter().map(named).collect())
    }

    /// The current rating of a data point by a rater.
    pub fn rating(&self, rater: &str, id: &str, question: &str) -> Option<&Rating> {
        self.raters.get(rater)?.get(id)?.get(question)
    }

    /// The answers of the raters about a data point, by name.
    pub fn answers(&self, id: &str, question: &str) -> Vec<(&str, RatingAnswer)> {
        let mut found = Vec::new();
        for (rater, answers) in &self.raters {
            let rating = answers.get(id).and_then(|by_question| by_question.get(question));
            if let Some(answer) = rating.and_then(|rating| rating.answer) {
                found.push((rater.as_str(), answer));
            }
        }
        found
    }

    /// The decision about a data point, if there is one.
    pub fn decision(&self, id: &str, question: &str) -> Option<RatingAnswer> {
        self.adjudicated.get(id)?.get(question)?.answer
    }

    /// The data points with a rating or a decision.
    pub fn points(&self) -> BTreeSet<&str> {
        let all = self.raters.values().chain([&self.adjudicated]);
        all.flat_map(|answers| answers.keys().map(String::as_str)).collect()
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn suffix(path: &Path) -> Option<&str> {
    path.extension().and_then(|suffix| suffix.to_str())
}

fn files(path: &Path) -> Result<Vec<PathBuf>, RatingsError> {
    let of_folder = |message: String| RatingsError::of_file("", message);
    if !path.is_dir() {
        return check(path).map(|_| vec![path.to_path_buf()]);
    }
    let listed = |error: io::Error| of_folder(format!("the folder cannot be read: {error}"));
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(listed)? {
        let file = entry.map_err(listed)?.path();
        if check(&file)? {
            files.push(file);
        }
    }
    if files.len() > MAX_FILES {
        return Err(of_folder(format!("{} files are more than {MAX_FILES}", files.len())));
    }
    files.sort();
    Ok(files)
}

/// True if the file has ratings; an error if it looks like ratings but is not.
fn check(file: &Path) -> Result<bool, RatingsError> {
    let name = file_name(file);
    let Some(text) = file.file_name().and_then(|name| name.to_str()) else {
        return Err(RatingsError::of_file(&name, "its name is not UTF-8"));
    };
    if text.starts_with('.') || suffix(file) == Some("md") {
        return Ok(false);
    }
    if file.is_dir() {
        let help = "a folder of ratings has a file for each rater, and no folders";
        return Err(RatingsError::of_file(&name, "it is a folder").help(help));
    }
    match suffix(file) {
        Some("jsonl") => Ok(true),
        Some("csv") if file.file_stem().is_some_and(|stem| stem == ADJUDICATED) => {
            let help = "decisions are in `adjudicated.jsonl`, a line for each";
            Err(RatingsError::of_file(&name, "it has no notes and times").help(help))
        }
        Some("csv") => Ok(true),
        _ => {
            let help = "a file of ratings is called NAME.jsonl or NAME.csv; move others elsewhere";
            Err(RatingsError::of_file(&name, "it is neither .jsonl nor .csv").help(help))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTIONS: [&str; 1] = ["code"];

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
        folder
    }

    fn line(id: &str, answer: &str) -> String {
        format!("{{\"id\":\"{id}\",\"question\":\"code\",\"answer\":\"{answer}\"}}\n")
    }

    #[test]
    fn every_rater_has_a_file_and_decisions_have_one() {
        let folder = folder(&[
            ("ann.jsonl", line("a", "yes").as_bytes()),
            ("ben.csv", b"id,code_1\na,n\nb,u\n"),
            ("sheet.csv", b"id,code_1,code_2\nb,y,y\n"),
            ("adjudicated.jsonl", line("a", "no").as_bytes()),
            ("README.md", b"x"),
            (".gitattributes", b"x"),
        ]);
        let ratings = Ratings::read(folder.path(), &QUESTIONS).unwrap();
        let names: Vec<&String> = ratings.raters.keys().collect();
        assert_eq!(names, ["ann", "ben", "sheet-1", "sheet-2"]);
        assert_eq!(
            ratings.answers("a", "code"),
            [("ann", RatingAnswer::Yes), ("ben", RatingAnswer::No)]
        );
        assert_eq!(ratings.decision("a", "code"), Some(RatingAnswer::No));
        assert_eq!(ratings.decision("b", "code"), None);
        assert_eq!(ratings.points().into_iter().collect::<Vec<_>>(), ["a", "b"]);
        let files: Vec<&str> = ratings.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(files, ["adjudicated.jsonl", "ann.jsonl", "ben.csv", "sheet.csv"]);
        let one = Ratings::read(&folder.path().join("ben.csv"), &QUESTIONS).unwrap();
        assert_eq!(one.raters.keys().collect::<Vec<_>>(), ["ben"]);
    }

    #[test]
    fn what_could_be_ratings_and_is_not_is_told() {
        for (name, text, part) in [
            ("ann.xlsx", &b"PK"[..], "neither .jsonl nor .csv"),
            ("ann.CSV", b"id", "neither .jsonl nor .csv"),
            ("ann", b"", "neither .jsonl nor .csv"),
            ("ann.csv", b"\xff\xfei\0d\0", "not UTF-8 at byte 0"),
            ("adjudicated.csv", b"id,code_1\n", "no notes"),
        ] {
            let folder = folder(&[(name, text)]);
            let errors = Ratings::read(folder.path(), &QUESTIONS).unwrap_err();
            assert!(errors[0].to_string().contains(part), "{name}: {}", errors[0]);
        }
        let twice =
            folder(&[("Ann.jsonl", line("a", "yes").as_bytes()), ("ann.csv", b"id,code_1\na,n\n")]);
        let errors = Ratings::read(twice.path(), &QUESTIONS).unwrap_err();
        assert!(errors[0].to_string().contains("same rater"), "{}", errors[0]);
        let missing = Ratings::read(&twice.path().join("no.csv"), &QUESTIONS).unwrap_err();
        assert!(missing[0].to_string().contains("cannot be read"), "{}", missing[0]);
    }

    #[test]
    fn a_file_of_a_gigabyte_is_not_read() {
        let folder = folder(&[]);
        let file = fs::File::create(folder.path().join("ann.jsonl")).unwrap();
        file.set_len(1 << 30).unwrap();
        let errors = Ratings::read(folder.path(), &QUESTIONS).unwrap_err();
        assert!(errors[0].to_string().contains("1024 MiB"), "{}", errors[0]);
    }
}
