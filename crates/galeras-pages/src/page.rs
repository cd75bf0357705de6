//! The frame of every page: styles, scripts, the policy that lets nothing else run, the header with
//! the switch of themes, the contents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::context;
use minijinja::value::Serde;
use sha2::{Digest as _, Sha256};

use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

/// The styles of every page.
const STYLES: &[&str] = &[
    include_str!("../assets/page.css"),
    include_str!("../assets/parts.css"),
    include_str!("../assets/diagram.css"),
    include_str!("../assets/print.css"),
];

/// The scripts of every page. Each is a function that does nothing if its part is absent.
const SCRIPTS: &[&str] = &[
    include_str!("../assets/page.js"),
    include_str!("../assets/copy.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/points.js"),
    include_str!("../assets/diagram.js"),
];

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A template does not fit what it is filled with. That is a mistake of this crate.
    #[error("a template of the page does not fit its values")]
    Template(#[from] minijinja::Error),
    /// The page is larger than it may be, with the least of everything: its size and the limit.
    #[error(
        "the page has {0}, more than the {1} that it may have, even with the fewest rows, data \
         points and figures; show fewer sections"
    )]
    TooLarge(String, String),
}

/// A page around its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageFrame<'a> {
    /// The title of the window, and the first heading.
    pub(crate) title: &'a str,
    /// A line above the heading: `Study`, `Review`.
    pub(crate) kicker: &'a str,
    pub(crate) lead: Markup,
    /// Sections with headings of the second level.
    pub(crate) main: Markup,
    pub(crate) contents: Vec<PageLink>,
    pub(crate) footer: Markup,
    /// A script and styles in addition to those of every page; may be empty.
    pub(crate) script: &'a str,
    pub(crate) style: &'a str,
    /// True if the page is served and may connect to its server (`connect-src 'self'`, `form-action
    /// 'self'`). A file may not.
    pub(crate) served: bool,
}

/// A link of the contents.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct PageLink {
    /// Where it leads.
    pub address: String,
    /// The text.
    pub text: String,
    /// True if it is this page.
    pub current: bool,
}

/// The whole page as HTML.
pub(crate) fn page(frame: PageFrame<'_>, parts: &Parts) -> Result<String, PageError> {
    let script = SCRIPTS.concat() + frame.script;
    let html = render(
        "page.html",
        context! {
            title => frame.title,
            kicker => frame.kicker,
            lead => frame.lead,
            main => frame.main,
            footer => frame.footer,
            contents => Serde(&frame.contents),
            policy => policy(&script, frame.served),
            // Forms of a served page send their origin, which the server checks.
            referrer => if frame.served { "same-origin" } else { "no-referrer" },
            style => Markup(STYLES.concat() + frame.style),
            script => Markup(script),
            kept => parts.kept_json(),
        },
    )?;
    Ok(html.0)
}

/// The content security policy of a page: its own script by its hash, its own styles, pictures and
/// fonts within it, and nothing from anywhere else.
pub(crate) fn policy(script: &str, served: bool) -> String {
    let own = if served { "connect-src 'self'; form-action 'self'" } else { "form-action 'none'" };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; \
         font-src data:; base-uri 'none'; {own}",
        STANDARD.encode(Sha256::digest(script.as_bytes()))
    )
}
