//! GitHub's rules for rate limits (“Rate limits for the REST API” in its documentation), applied to the
//! status and the headers of an answer. octocrab's retry layer waits by its own clock, in silence.

use galeras_net::http_date;
use http::HeaderMap;

/// The status of an answer, and its headers with limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) status: u16,
    remaining: Option<u64>,
    reset: Option<u64>,
    retry_after: Option<u64>,
    date: Option<u64>,
}

/// The meaning of an answer that is not 2xx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Redirect,
    /// The request may be sent again after some seconds, if GitHub gives their number.
    Limited {
        seconds: Option<u64>,
        primary: bool,
    },
    /// GitHub failed, and asks to wait for some seconds at least.
    Failed {
        at_least: u64,
    },
    Unauthorized,
    Forbidden,
    InvalidQuery,
    Unexpected,
}

impl Head {
    /// Reads the headers.
    pub(super) fn new(status: u16, headers: &HeaderMap) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let number = |name| header(name).and_then(|text| text.trim().parse().ok());
        let date = header("date").and_then(http_date);
        // HTTP also allows a date; GitHub sends seconds.
        let retry_after = number("retry-after").or_else(|| {
            let until = header("retry-after").and_then(http_date)?;
            Some(until.saturating_sub(date?))
        });
        Self {
            status,
            remaining: number("x-ratelimit-remaining"),
            reset: number("x-ratelimit-reset"),
            retry_after,
            date,
        }
    }

    /// Seconds until the window of the primary limit ends, if it is used up.
    ///
    /// They are counted by GitHub's clock if it sends its time: with ours ahead of it, a request would come
    /// too early, which GitHub punishes.
    pub(super) fn used_up(&self, now: u64) -> Option<u64> {
        let reset = self.reset.filter(|_| self.remaining == Some(0))?;
        // The reset is in whole seconds, so one more is safe.
        Some(reset.saturating_sub(self.date.unwrap_or(now)).saturating_add(1))
    }

    /// The verdict on the answer; `message` is that of GitHub's error.
    pub(super) fn judge(&self, message: &str, now: u64) -> Verdict {
        match self.status {
            301 | 302 | 303 | 307 | 308 => Verdict::Redirect,
            // 304 is a failure, as no request is conditional.
            304 | 408 | 500.. => Verdict::Failed { at_least: self.retry_after.unwrap_or(0) },
            401 => Verdict::Unauthorized,
            403 | 429 => self.limited(message, now).unwrap_or(Verdict::Forbidden),
            422 => Verdict::InvalidQuery,
            _ => Verdict::Unexpected,
        }
    }

    /// Reads the wait in the order that GitHub documents: `retry-after`, the end of the window, and
    /// without either an unknown time.
    fn limited(&self, message: &str, now: u64) -> Option<Verdict> {
        if let Some(seconds) = self.retry_after {
            return Some(Verdict::Limited { seconds: Some(seconds.max(1)), primary: false });
        }
        if let Some(seconds) = self.used_up(now) {
            return Some(Verdict::Limited { seconds: Some(seconds), primary: true });
        }
        let message = message.to_lowercase();
        // GitHub Enterprise servers still call secondary limits an “abuse detection mechanism”.
        let limited = message.contains("rate limit") || message.contains("abuse detection");
        (limited || self.status == 429)
            .then_some(Verdict::Limited { seconds: None, primary: false })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn head(status: u16, headers: &[(&'static str, &'static str)]) -> Head {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Head::new(status, &headers.iter().map(header).collect())
    }

    fn limited(seconds: impl Into<Option<u64>>, primary: bool) -> Verdict {
        Verdict::Limited { seconds: seconds.into(), primary }
    }

    #[test]
    fn limits_are_taken_in_the_documented_order() {
        let used = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1100")];
        assert_eq!(head(403, &used).judge("", 1_000), limited(101, true));
        assert_eq!(head(429, &used).judge("", 2_000), limited(1, true), "the reset is over");
        let both = [used[0], used[1], ("retry-after", "30")];
        assert_eq!(head(403, &both).judge("", 1_000), limited(30, false));
        assert_eq!(head(403, &[("retry-after", "0")]).judge("", 0), limited(1, false));
        let left = [("x-ratelimit-remaining", "5"), ("x-ratelimit-reset", "1100")];
        let text = "You have exceeded a secondary rate limit. Please wait";
        assert_eq!(head(403, &left).judge(text, 1_000), limited(None, false));
        assert_eq!(head(403, &left).judge("Resource not accessible", 0), Verdict::Forbidden);
        assert_eq!(head(429, &left).judge("", 0), limited(None, false));
        assert_eq!(head(403, &[]).judge("abuse detection mechanism", 0), limited(None, false));
    }

    #[test]
    fn githubs_clock_counts() {
        let headers = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1795262071"),
            ("date", "Sat, 21 Nov 2026 11:53:31 GMT"),
        ];
        assert_eq!(head(200, &headers).used_up(1_895_262_011), Some(61));
        assert_eq!(head(200, &headers[..1]).used_up(0), None);
        let until = [("retry-after", "Sat, 21 Nov 2026 11:54:31 GMT"), headers[2]];
        assert_eq!(head(403, &until).judge("", 0), limited(60, false));
    }

    #[test]
    fn other_statuses() {
        let failed = |at_least| Verdict::Failed { at_least };
        assert_eq!(head(502, &[]).judge("", 0), failed(0));
        assert_eq!(head(503, &[("retry-after", "7")]).judge("", 0), failed(7));
        assert_eq!(head(304, &[]).judge("", 0), failed(0));
        assert_eq!(head(401, &[]).judge("rate limit", 0), Verdict::Unauthorized);
        assert_eq!(head(404, &[]).judge("", 0), Verdict::Unexpected);
        assert_eq!(head(422, &[]).judge("", 0), Verdict::InvalidQuery);
        assert_eq!(head(307, &[]).judge("", 0), Verdict::Redirect);
    }
}
