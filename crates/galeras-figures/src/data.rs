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
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    columns: Vec<Column>,
}

impl Data {
    /// A table of these columns.
    ///
    /// # Errors
    ///
    /// Two columns have one name, or one has another number of rows than the first.
    pub fn new(columns: Vec<Column>) -> Result<Data, FigureError> {
        let mut data = Data::default();
        for column in columns {
            data.push(column)?;
        }
        Ok(data)
    }

    /// As [`Data::new`], without units and descriptions.
    ///
    /// # Errors
    ///
    /// As [`Data::new`].
    pub fn of<const N: usize>(columns: [(&str, Values); N]) -> Result<Data, FigureError> {
        let column = |(name, values): (&str, Values)| Column {
            name: name.to_string(),
            values,
            unit: None,
            description: None,
        };
        Data::new(columns.into_iter().map(column).collect())
    }

    /// Adds a column.
    ///
    /// # Errors
    ///
    /// As [`Data::new`].
    pub fn push(&mut self, column: Column) -> Result<(), FigureError> {
        if self.column(&column.name).is_some() {
            return Err(FigureError::TwoColumns { column: column.name });
        }
        if let Some(first) = self.columns.first()
            && first.values.len() != column.values.len()
        {
            return Err(FigureError::Length {
                column: column.name,
                rows: column.values.len(),
                expected: first.values.len(),
            });
        }
        self.columns.push(column);
        Ok(())
    }

    /// The columns, in the order they were given.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The number of rows; 0 without columns.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Values::Numbers(values.into_iter().map(Some).collect())
    }
}

impl From<Vec<&str>> for Values {
    fn from(values: Vec<&str>) -> Self {
        Values::Texts(values.into_iter().map(|v| Some(v.to_string())).collect())
    }
}
