//! Private values that must not leave the machine: secrets, and paths that identify it. Nothing is
//! removed silently; content with a private value is refused and named.

use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use galeras_net::secret_in;

/// Shorter values are placeholders for "no key".
const SECRET: usize = 8;

/// A text that must not be in a bundle.
#[derive(Clone)]
struct Private {
    text: String,
    /// The kind of value, in words that follow "it holds".
    what: String,
    /// Searched only in the texts of the workflow: code in tables may contain such a common value.
    common: bool,
}

/// The private values. They are never printed.
#[derive(Clone)]
pub struct Privacy {
    private: Vec<Private>,
}

impl Privacy {
    /// The values of these environment variables, by name, and the paths of these folders, each
    /// with a description. Values that are too short to be secrets are ignored. A folder directly
    /// below the root, such as `/root`, may be in any program, so it is only searched in the texts
    /// of the workflow.
    pub fn of(
        variables: impl IntoIterator<Item = (String, String)>,
        folders: impl IntoIterator<Item = (PathBuf, String)>,
    ) -> Self {
        let mut private = Vec::new();
        for (name, value) in variables {
            let text = value.trim().to_string();
            if text.len() >= SECRET {
                let what = format!("the value of the environment variable {name}");
                private.push(Private { text, what, common: false });
            }
        }
        for (folder, what) in folders {
            let Some(text) = folder.to_str().map(|text| text.trim_end_matches('/').to_string())
            else {
                continue;
            };
            let depth = Path::new(&text).components().count();
            if depth < 2 || !folder.is_absolute() {
                continue;
            }
            let common = depth == 2;
            let text = if common { format!("{text}/") } else { text };
            private.push(Private { text, what, common });
        }
        Self { private }
    }

    /// The private value in a cell of a table.
    pub(super) fn in_cell(&self, text: &str) -> Option<&str> {
        let mut searched = self.private.iter().filter(|private| !private.common);
        searched.find(|private| text.contains(&private.text)).map(|p| p.what.as_str())
    }

    /// The column of a table with a private value, and that value.
    pub(super) fn in_table(&self, batch: &RecordBatch) -> Option<(String, String)> {
        let schema = batch.schema();
        let mut columns = schema.fields().iter().zip(batch.columns());
        columns.find_map(|(field, column)| {
            let what = self.in_cells(column.as_ref())?;
            Some((field.name().clone(), what.to_string()))
        })
    }

    /// The private value in the texts of cells, at any depth of lists and structs.
    fn in_cells(&self, array: &dyn Array) -> Option<&str> {
        let look = |text: &str| self.in_cell(text);
        match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().iter().flatten().find_map(look),
            DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().find_map(look),
            DataType::Utf8View => array.as_string_view().iter().flatten().find_map(look),
            DataType::Binary => {
                let mut values = array.as_binary::<i32>().iter().flatten();
                values.find_map(|value| self.in_cell(&String::from_utf8_lossy(value)))
            }
            DataType::List(_) => self.in_cells(array.as_list::<i32>().values().as_ref()),
            DataType::LargeList(_) => self.in_cells(array.as_list::<i64>().values().as_ref()),
            DataType::Struct(_) => {
                array.as_struct().columns().iter().find_map(|column| self.in_cells(column.as_ref()))
            }
            _ => None,
        }
    }

    /// The private value in a text, and its line.
    pub(super) fn in_text(&self, text: &str) -> Option<(usize, String)> {
        let found = self.private.iter().find_map(|private| {
            text.find(&private.text).map(|place| (place, private.what.clone()))
        });
        if let Some((place, what)) = found {
            return Some((text[..place].matches('\n').count() + 1, what));
        }
        let mut lines = text.lines().enumerate().filter(|(_, line)| line.contains("://"));
        lines.find_map(|(at, line)| {
            let words = line.split(|c: char| c.is_whitespace() || "\"'`<>()[]{},".contains(c));
            let mut addresses = words.filter(|word| word.contains("://"));
            addresses
                .find_map(secret_in)
                .map(|secret| (at + 1, format!("an address with {secret}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privacy() -> Privacy {
        let secrets =
            [("KEY".to_string(), "sk-hunter2hunter2".to_string()), ("A".into(), "x".into())];
        let folders = [("/home/ada", "the home folder"), ("/root", "the root"), ("/", "all")];
        let folders = folders.map(|(path, what)| (PathBuf::from(path), what.to_string()));
        Privacy::of(secrets, folders)
    }

    #[test]
    fn secrets_and_folders_are_found_and_not_shown() {
        let (line, what) = privacy().in_text("a\nb sk-hunter2hunter2").unwrap();
        assert_eq!((line, what.contains("KEY"), what.contains("hunter2")), (2, true, false));
        assert_eq!(privacy().in_text("x: /home/ada/data.csv").unwrap().0, 1);
        assert!(privacy().in_text("x: /root/data.csv").is_some());
        assert!(privacy().in_cell("os.path.join('/root/x')").is_none());
        assert!(privacy().in_cell("file:///home/ada/r").is_some());
        assert!(privacy().in_text("x y / /rooted").is_none());
    }

    #[test]
    fn an_address_with_a_password_is_found() {
        let (line, what) =
            privacy().in_text("a\nurl: \"https://me:hunter2@example.org/x\"").unwrap();
        assert_eq!(line, 2);
        assert!(what.contains("password") && !what.contains("hunter2"), "{what}");
        assert!(privacy().in_text("see https://example.org/x?page=2").is_none());
    }
}
