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

    type Headers<'a> = &'a [(&'static str, &'static str)];

    fn head(status: u16, headers: Headers<'_>) -> Head {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Head::new(status, &headers.iter().map(header).collect())
    }

    #[test]
    fn answers_have_a_verdict() {
        let limited = |seconds, primary| Verdict::Limited { seconds, primary };
        let failed = |at_least| Verdict::Failed { at_least };
        let (none, reset) = (("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1100"));
        let left: Headers<'_> = &[("x-ratelimit-remaining", "5"), reset];
        let text = "You have exceeded a secondary rate limit. Please wait";
        let date = ("date", "Sat, 21 Nov 2026 11:53:31 GMT");
        let until = ("retry-after", "Sat, 21 Nov 2026 11:54:31 GMT");
        for (status, headers, message, now, verdict) in [
            (403, &[none, reset][..], "", 1_000, limited(Some(101), true)),
            // The reset is over.
            (429, &[none, reset], "", 2_000, limited(Some(1), true)),
            (403, &[none, reset, ("retry-after", "30")], "", 1_000, limited(Some(30), false)),
            (403, &[("retry-after", "0")], "", 0, limited(Some(1), false)),
            (403, &[until, date], "", 0, limited(Some(60), false)),
            (403, left, text, 1_000, limited(None, false)),
            (403, left, "Resource not accessible", 0, Verdict::Forbidden),
            (429, left, "", 0, limited(None, false)),
            (403, &[], "abuse detection mechanism", 0, limited(None, false)),
            (502, &[], "", 0, failed(0)),
            (503, &[("retry-after", "7")], "", 0, failed(7)),
            (304, &[], "", 0, failed(0)),
            (401, &[], "rate limit", 0, Verdict::Unauthorized),
            (404, &[], "", 0, Verdict::Unexpected),
            (422, &[], "", 0, Verdict::InvalidQuery),
            (307, &[], "", 0, Verdict::Redirect),
        ] {
            let found = head(status, headers).judge(message, now);
            assert_eq!(found, verdict, "{status} {headers:?} {message}");
        }
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
    }
}
