//! The data of a figure: named columns of numbers or texts, all of one length.

use crate::error::FigureError;

/// The cells of a column, one for each row; `None` is an absent value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers. Rows with NaN or an infinity are left out, and the caption counts them.
    Numbers(Vec<Option<f64>>),
    /// Texts, of any length and with any characters.
    Texts(Vec<Option<String>>),
}

impl Values {
    fn rows(&self) -> usize {
        match self {
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }
}

/// A column: its name, its cells, and facts about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name that a [`crate::Spec`] refers to.
    pub name: String,
    /// The cells.
    pub values: Values,
    /// The unit of the numbers, such as `tokens` or `s`, which follows the label of the axis.
    pub unit: Option<String>,
    /// A few words about the column, for screen readers.
    pub description: Option<String>,
}

/// Columns of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Data {
    pub(crate) columns: Vec<Column>,
}

impl Data {
    /// A table of these columns.
    ///
    /// # Errors
    /// Two columns have one name, or one has another number of rows than the first.
    pub fn new(columns: Vec<Column>) -> Result<Data, FigureError> {
        for (at, Column { name, values, .. }) in columns.iter().enumerate() {
            let (rows, expected) = (values.rows(), columns[0].values.rows());
            if columns[..at].iter().any(|other| other.name == *name) {
                return Err(FigureError::Data(format!("there are two columns `{name}`")));
            }
            if rows != expected {
                return Err(FigureError::Data(format!(
                    "column `{name}` has {rows} rows where the others have {expected}"
                )));
            }
        }
        Ok(Data { columns })
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The number of rows; 0 without columns.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.rows())
    }
}
