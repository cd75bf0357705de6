//! The frame of every page: styles, scripts, the policy that lets nothing else run, the header with
//! the switch of themes, the contents.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::context;
use sha2::{Digest as _, Sha256};

use crate::error::PageError;
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

static STYLE: LazyLock<String> = LazyLock::new(|| STYLES.concat());
static SCRIPT: LazyLock<String> = LazyLock::new(|| SCRIPTS.concat());

/// A page around its parts.
#[derive(Debug, Clone, Default)]
pub struct PageFrame<'a> {
    /// The title of the window, and the first heading.
    pub title: &'a str,
    /// A line above the heading: `Study`, `Review`.
    pub kicker: &'a str,
    /// The part below the heading.
    pub lead: Markup,
    /// The content: sections with headings of the second level.
    pub main: Markup,
    /// The contents: headings and their addresses (`#results`, or another page).
    pub contents: Vec<PageLink>,
    /// The last part.
    pub footer: Markup,
    /// A script in addition to those of every page; may be empty.
    pub script: &'a str,
    /// Styles in addition to those of every page; may be empty.
    pub style: &'a str,
    /// True if the page is served and may connect to its server (`connect-src 'self'`, `form-action
    /// 'self'`). A file may not.
    pub served: bool,
}

/// A link of the contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageLink {
    /// Where it leads.
    pub address: String,
    /// The text.
    pub text: String,
    /// True if it is this page.
    pub current: bool,
}

impl PageLink {
    /// A link to the element with this id.
    pub fn to_id(id: &str, text: &str) -> Self {
        Self { address: format!("#{id}"), text: text.to_string(), current: false }
    }
}

/// The whole page as HTML.
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn page(frame: PageFrame<'_>, parts: &Parts) -> Result<String, PageError> {
    let script = match frame.script.is_empty() {
        true => SCRIPT.clone(),
        false => format!("{}{}", *SCRIPT, frame.script),
    };
    let contents: Vec<minijinja::Value> = frame
        .contents
        .iter()
        .map(|link| context! { address => &link.address, text => &link.text, current => link.current })
        .collect();
    let html = render(
        "page.html",
        context! {
            title => frame.title,
            kicker => frame.kicker,
            lead => minijinja::Value::from(frame.lead),
            main => minijinja::Value::from(frame.main),
            footer => minijinja::Value::from(frame.footer),
            contents => contents,
            policy => policy(&script, frame.served),
            // Forms of a served page send their origin, which the server checks.
            referrer => if frame.served { "same-origin" } else { "no-referrer" },
            style => safe(format!("{}{}", *STYLE, frame.style)),
            script => safe(script),
            kept => minijinja::Value::from(parts.kept_json()),
        },
    )?;
    Ok(html.as_str().to_string())
}

fn safe(text: String) -> minijinja::Value {
    minijinja::Value::from_safe_string(text)
}

/// The content security policy of a page: its own script by its hash, its own styles, pictures and
/// fonts within it, and nothing from anywhere else.
pub fn policy(script: &str, served: bool) -> String {
    let own = if served { "connect-src 'self'; form-action 'self'" } else { "form-action 'none'" };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; \
         font-src data:; base-uri 'none'; {own}",
        STANDARD.encode(Sha256::digest(script.as_bytes()))
    )
}
