//! Fetches files from a URL into the folder of downloads, identified by their SHA-256.
//!
//! Files are fetched during planning. Servers without consent are not asked, not even after a
//! redirect; a redirect from another machine to this one is not followed either.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use galeras_git::shown_url;
use galeras_net::{AGENT, CONNECT_TIMEOUT, READ_TIMEOUT, causes, http_builder, redirects_to};
use sha2::Digest as _;

use galeras_base::scratch::{KEPT_FREE, WholeFile, clear_place, create_private, free_bytes};
use galeras_operator::{Access, ArgError, BindContext, ServerAddress, redirect_check};
use galeras_workflow::code::Code;

/// The most bytes of a file behind a URL.
const MAX_BYTES: u64 = 16 << 30;

/// The bytes received between two checks of the free disk space.
const ASKED_EVERY: u64 = 64 << 20;

/// A server that sends fewer than [`SLOWEST_BYTES`] in this time is abandoned: single bytes would
/// otherwise reset the time-out forever.
const SLOWEST: Duration = Duration::from_secs(300);
const SLOWEST_BYTES: u64 = 64 << 10;

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
    let access = ServerAddress::of(url).map(|to| Access::Host { to });
    if let Some(refused) = access.and_then(|access| cx.consent.refusal(&access)) {
        let message = format!("the step {}", refused.message);
        return Err(ArgError::new("url", Code::NotAllowed, message).help(refused.help));
    }
    create_private(downloads).map_err(|e| failed(&e))?;
    let check = redirect_check(Arc::clone(&cx.consent));
    let client = http_builder(AGENT, CONNECT_TIMEOUT, Some(READ_TIMEOUT))
        .redirect(redirects_to(move |from, to| check(from, to)))
        .build();
    let client = client.map_err(|e| failed(&format!("cannot set up HTTP: {}", causes(&e))))?;
    let mut response = client
        .get(url)
        .send()
        .await
        .and_then(|response| response.error_for_status())
        .map_err(|e| failed(&causes(&e.without_url())))?;
    let mut allowance = Allowance::new(MAX_BYTES, free_bytes(downloads));
    if let Some(length) = response.content_length() {
        allowance.announced(length).map_err(|why| failed(&why))?;
    }
    let whole = WholeFile::create_in(downloads).map_err(|e| failed(&e))?;
    let mut hasher = sha2::Sha256::new();
    let cut = |e: &dyn std::error::Error| failed(&format!("the answer stopped: {}", causes(e)));
    while let Some(chunk) = response.chunk().await.map_err(|e| cut(&e.without_url()))? {
        let free = || free_bytes(downloads);
        allowance.take(chunk.len() as u64, Instant::now(), free).map_err(|why| failed(&why))?;
        hasher.update(&chunk);
        whole.file().write_all(&chunk).map_err(|e| failed(&e))?;
    }
    let found = format!("{:x}", hasher.finalize());
    if let Some(wanted) = wanted
        && wanted != found
    {
        let message = format!("the file behind `{shown}` has the SHA-256 {found}");
        return Err(ArgError::new("sha256", Code::WrongContent, message)
            .help("the file has changed, or the digest was mistyped"));
    }
    let stored = downloads.join(&found);
    clear_place(&stored).and_then(|()| whole.finish(&stored)).map_err(|e| failed(&e))?;
    Ok(stored)
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut hasher = sha2::Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
    Ok(format!("{:x}", hasher.finalize()))
}

/// The bytes received by a download, or decompressed, and the bytes still allowed.
pub(super) struct Allowance {
    most: u64,
    taken: u64,
    /// The bytes received at the last check.
    asked_at: u64,
    /// The bytes allowed until the next check.
    free: u64,
    /// The window for measuring the speed: its start, and the bytes before it.
    since: Instant,
    before: u64,
}

impl Allowance {
    pub(super) fn new(most: u64, free: u64) -> Self {
        let since = Instant::now();
        Self { most, taken: 0, asked_at: ASKED_EVERY, free, since, before: 0 }
    }

    /// Checks the length that the server announces.
    fn announced(&self, length: u64) -> Result<(), String> {
        if length > self.most {
            return Err(too_large(self.most));
        }
        if length.saturating_add(KEPT_FREE) > self.free {
            return Err(format!(
                "it has {} MiB, and the disk of the store has {} MiB left; free some space, or \
                 choose another store with --cache",
                length >> 20,
                self.free >> 20
            ));
        }
        Ok(())
    }

    /// Adds bytes received at `now`.
    pub(super) fn take(
        &mut self,
        bytes: u64,
        now: Instant,
        free: impl Fn() -> u64,
    ) -> Result<(), String> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken > self.most {
            return Err(too_large(self.most));
        }
        if self.taken >= self.asked_at {
            self.asked_at = self.taken.saturating_add(ASKED_EVERY);
            if free() < KEPT_FREE {
                return Err(format!(
                    "the disk of the store has less than {} MiB left; free some space, or choose \
                     another store with --cache",
                    KEPT_FREE >> 20
                ));
            }
        }
        if now.saturating_duration_since(self.since) >= SLOWEST {
            if self.taken.saturating_sub(self.before) < SLOWEST_BYTES {
                return Err(format!(
                    "the server sent less than {} KiB in {} s",
                    SLOWEST_BYTES >> 10,
                    SLOWEST.as_secs()
                ));
            }
            (self.since, self.before) = (now, self.taken);
        }
        Ok(())
    }
}

fn too_large(most: u64) -> String {
    format!("it has more than {} MiB; download it yourself and name it with `path`", most >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: u64 = u64::MAX;

    #[test]
    fn a_download_has_a_largest_size_announced_or_not() {
        let allowance = Allowance::new(100, PLENTY);
        assert!(allowance.announced(100).is_ok());
        assert!(allowance.announced(101).unwrap_err().contains("more than"));
        let mut allowance = Allowance::new(100, PLENTY);
        let now = Instant::now();
        assert!(allowance.take(100, now, || PLENTY).is_ok());
        assert!(allowance.take(1, now, || PLENTY).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_download_leaves_some_of_the_disk_free() {
        let allowance = Allowance::new(PLENTY, KEPT_FREE + 100);
        assert!(allowance.announced(100).is_ok());
        assert!(allowance.announced(101).unwrap_err().contains("256 MiB left"));
        assert!(allowance.announced(u64::MAX).is_err());
        let mut allowance = Allowance::new(PLENTY, PLENTY);
        let now = Instant::now();
        assert!(allowance.take(ASKED_EVERY - 1, now, || 0).is_ok());
        assert!(allowance.take(1, now, || KEPT_FREE - 1).unwrap_err().contains("256 MiB left"));
    }

    #[test]
    fn a_server_that_trickles_is_given_up() {
        let mut allowance = Allowance::new(PLENTY, PLENTY);
        let later = |windows: u32| Instant::now() + SLOWEST * windows;
        assert!(allowance.take(1, Instant::now(), || PLENTY).is_ok());
        assert!(allowance.take(SLOWEST_BYTES, later(1), || PLENTY).is_ok());
        let error = allowance.take(SLOWEST_BYTES - 1, later(3), || PLENTY).unwrap_err();
        assert_eq!(error, "the server sent less than 64 KiB in 300 s");
    }
}
