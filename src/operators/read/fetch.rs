//! Files behind a URL: fetched into the folder of downloads, known by their SHA-256.
//!
//! That happens while a workflow is planned, so that no server is asked which needs consent and
//! has none; a redirect to such a server is not followed either.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use galeras_git::shown_url;
use galeras_net::{AGENT, CONNECT_TIMEOUT, READ_TIMEOUT, causes, http_builder, redirects_to};
use sha2::Digest as _;

use crate::code::Code;
use crate::operator::{Access, ArgError, BindContext, Consent, RefusedAccess, ServerAddress};

/// Fetches `url` into the folder of downloads, or finds it there by its SHA-256.
pub(super) async fn fetch(
    url: &str,
    sha256: Option<&str>,
    cx: &BindContext,
) -> Result<PathBuf, ArgError> {
    let downloads: &Path = &cx.downloads;
    let shown = shown_url(url);
    let failed = |e: &dyn std::fmt::Display| {
        ArgError::new("url", Code::UnreachableUrl, format!("cannot fetch `{shown}`: {e}"))
    };
    let wanted = sha256.map(str::to_lowercase);
    if let Some(wanted) = &wanted {
        if wanted.len() != 64 || !wanted.bytes().all(|b| b.is_ascii_hexdigit()) {
            let message = "a SHA-256 has 64 hexadecimal digits";
            return Err(ArgError::new("sha256", Code::WrongType, message));
        }
        let stored = downloads.join(wanted);
        if stored.is_file() && sha256_of(&stored).is_ok_and(|found| found == *wanted) {
            return Ok(stored);
        }
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let error = ArgError::new("url", Code::UnsupportedUrl, "only http and https are supported");
        return Err(error.help("use `path:` for a local file"));
    }
    if let Some(refused) = refusal(url, cx.consent.as_ref()) {
        let message = format!("the step {}", refused.message);
        return Err(ArgError::new("url", Code::NotAllowed, message).help(refused.help));
    }
    std::fs::create_dir_all(downloads).map_err(|e| failed(&e))?;
    let client = http_builder(AGENT, CONNECT_TIMEOUT, Some(READ_TIMEOUT))
        .redirect(redirects_to(may_ask(Arc::clone(&cx.consent))))
        .build();
    let client = client.map_err(|e| failed(&format!("cannot set up HTTP: {}", causes(&e))))?;
    let mut response = client
        .get(url)
        .send()
        .await
        .and_then(|response| response.error_for_status())
        .map_err(|e| failed(&causes(&e.without_url())))?;
    let mut temp = tempfile::NamedTempFile::new_in(downloads).map_err(|e| failed(&e))?;
    let mut hasher = sha2::Sha256::new();
    let cut = |e: &dyn std::error::Error| failed(&format!("the answer stopped: {}", causes(e)));
    while let Some(chunk) = response.chunk().await.map_err(|e| cut(&e.without_url()))? {
        hasher.update(&chunk);
        std::io::Write::write_all(&mut temp, &chunk).map_err(|e| failed(&e))?;
    }
    let found: String = hasher.finalize().iter().map(|b| format!("{b:02x}")).collect();
    if let Some(wanted) = wanted
        && wanted != found
    {
        let message = format!("the file behind `{shown}` has the SHA-256 {found}");
        return Err(ArgError::new("sha256", Code::WrongContent, message)
            .help("the file has changed, or the digest was mistyped"));
    }
    let stored = downloads.join(&found);
    temp.as_file().sync_all().map_err(|e| failed(&e))?;
    temp.persist(&stored).map_err(|e| failed(&e))?;
    Ok(stored)
}

/// Why the server of `url` may not be asked.
fn refusal(url: &str, consent: &dyn Consent) -> Option<RefusedAccess> {
    consent.refusal(&Access::Host { to: ServerAddress::of(url)? })
}

/// Why an answer may not send us on to a URL.
fn may_ask(consent: Arc<dyn Consent>) -> impl Fn(&str) -> Result<(), String> + Send + Sync {
    move |url| match refusal(url, consent.as_ref()) {
        None => Ok(()),
        Some(_) => Err(format!("it redirects to {}, which was not agreed to", shown_url(url))),
    }
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(hasher.finalize().iter().map(|b| format!("{b:02x}")).collect());
        }
        hasher.update(&buffer[..n]);
    }
}
