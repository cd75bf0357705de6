//! Why there is no page.

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A template does not fit what it is filled with. That is a mistake of this crate.
    #[error("a template of the page does not fit its values")]
    Template(#[from] minijinja::Error),
    /// The page is larger than it may be, with the least of everything.
    #[error(
        "the page has {size}, more than the {limit} that it may have, even with the fewest rows, \
         data points and figures; show fewer sections"
    )]
    TooLarge {
        /// Its size, for people.
        size: String,
        /// The limit, for people.
        limit: String,
    },
}
