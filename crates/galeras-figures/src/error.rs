//! Why there is no figure.

/// The reason why a figure cannot be drawn, in a sentence that names the column or the option.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FigureError {
    /// The spec does not fit its kind of figure, or an option is out of its range.
    #[error("{0}")]
    Spec(String),
    /// The columns do not fit the spec, or hold rows that the kind cannot show, or too many.
    #[error("{0}")]
    Data(String),
    /// No row can be drawn: the rows left out with the reasons, or that there are none.
    #[error("there is nothing to draw: {0}")]
    NoRows(String),
    /// The columns hold more than a picture of this size has room for.
    #[error("{0}")]
    TooSmall(String),
    /// The kind cannot be drawn with characters.
    #[error("{0} cannot be drawn on a terminal")]
    NoTerminal(String),
    /// An SVG could not be turned into a PNG or a PDF.
    #[error("the SVG cannot be drawn: {0}")]
    Render(String),
}
