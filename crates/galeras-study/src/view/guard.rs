//! Access to the server is limited to browsers on this machine with the token, and to requests from
//! the server's own pages.
//!
//! The server listens on loopback, which any page in a browser on this machine can send requests
//! to. So the `Host` must be this server (another name that resolves to it is refused), every POST
//! must come from the server's pages (`Origin`), and everything needs the token: first in the
//! address, later in a cookie.

use std::fs::File;
use std::io::{self, Read as _};

use axum::http::{HeaderMap, Method, StatusCode, header};

/// The values that requests are checked against.
#[derive(Clone, Debug)]
pub struct Guard {
    port: u16,
    token: String,
}

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is answered.
    Admitted,
    /// It has the token: the browser gets the cookie, and is redirected to an address without the
    /// token.
    Welcome,
    /// It is refused, for this reason.
    Refused(StatusCode, &'static str),
}

impl Guard {
    /// A guard with a new token.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn new(port: u16) -> io::Result<Self> {
        let mut bytes = [0_u8; 24];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { port, token })
    }

    /// The address to open, with the token.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// The cookie of a browser that sent the token. Cookies are shared between ports, so the port
    /// is in the name.
    pub(super) fn cookie(&self) -> String {
        let Self { port, token } = self;
        format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", Self::cookie_name(*port))
    }

    fn cookie_name(port: u16) -> String {
        format!("galeras_view_{port}")
    }

    /// Decides about a request with this method, query and headers.
    pub(super) fn admit(&self, method: &Method, query: &str, headers: &HeaderMap) -> Admission {
        use Admission::{Admitted, Refused, Welcome};
        let text = |name: header::HeaderName| {
            let mut values = headers.get_all(name).iter();
            match (values.next(), values.next()) {
                (Some(value), None) => value.to_str().ok(),
                _ => None,
            }
        };
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        if !text(header::HOST).is_some_and(|host| hosts.iter().any(|own| own == host)) {
            return Refused(StatusCode::FORBIDDEN, "The Host header is not that of this server.");
        }
        // Browsers send the origin of a request; a link or a form elsewhere only gets the page that
        // the user opens.
        let site = headers.get("sec-fetch-site").map(|site| site.to_str().unwrap_or_default());
        let own = |origin: &str| hosts.iter().any(|host| origin == format!("http://{host}"));
        let from_here = text(header::ORIGIN).is_some_and(own);
        let admitted = match *method {
            Method::POST => from_here && site.is_none_or(|site| site == "same-origin"),
            Method::GET | Method::HEAD => from_here || !headers.contains_key(header::ORIGIN),
            _ => {
                let message = "Only GET and POST are answered.";
                return Refused(StatusCode::METHOD_NOT_ALLOWED, message);
            }
        };
        if !admitted {
            return Refused(StatusCode::FORBIDDEN, "The request comes from another site.");
        }
        let name = Self::cookie_name(self.port);
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut given = cookies.flat_map(|line| line.split(';')).filter_map(|pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name).then_some(value)
        });
        if given.any(|value| self.is_token(value)) {
            return Admitted;
        }
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let brought = pairs.any(|(key, value)| key == "token" && self.is_token(value));
        if brought && *method == Method::GET {
            return Welcome;
        }
        Refused(
            StatusCode::UNAUTHORIZED,
            "The token is missing. Open the address that `galeras view` printed.",
        )
    }

    /// Compares all bytes, so that the time does not reveal where they differ.
    fn is_token(&self, given: &str) -> bool {
        let (own, given) = (self.token.as_bytes(), given.as_bytes());
        own.len() == given.len()
            && own.iter().zip(given).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        of.iter().for_each(|(name, value)| {
            headers.append(*name, value.parse().unwrap());
        });
        headers
    }

    fn code(admission: Admission) -> u16 {
        match admission {
            Admission::Admitted => 200,
            Admission::Welcome => 299,
            Admission::Refused(status, _) => status.as_u16(),
        }
    }

    #[test]
    fn only_pages_of_this_server_with_the_token_are_answered() {
        let guard = Guard::new(8000).unwrap();
        let (cookie, token) = (guard.cookie(), guard.token.clone());
        let cookie = cookie.split(';').next().unwrap().to_string();
        let host = ("host", "127.0.0.1:8000");
        let with = ("cookie", cookie.as_str());
        let get = |of: &[(&'static str, &str)], query: &str| {
            code(guard.admit(&Method::GET, query, &headers(of)))
        };
        let post = |of: &[(&'static str, &str)]| code(guard.admit(&Method::POST, "", &headers(of)));
        let own = ("origin", "http://127.0.0.1:8000");
        let query = format!("a=b&token={token}");
        assert_eq!(get(&[host, with], ""), 200);
        assert_eq!(get(&[("host", "localhost:8000"), with], ""), 200);
        assert_eq!(get(&[host], &query), 299);
        assert_eq!(get(&[host, ("cookie", "x=1"), with], &query), 200);
        for bad in ["evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "127.0.0.1:8000.evil", ""] {
            assert_eq!(get(&[("host", bad), with], &query), 403, "{bad}");
        }
        assert_eq!(get(&[with], &query), 403);
        assert_eq!(get(&[host, host, with], ""), 403);
        assert_eq!(get(&[host], ""), 401);
        assert_eq!(get(&[host], "token="), 401);
        assert_eq!(get(&[host], &format!("token={}", &token[1..])), 401);
        assert_eq!(get(&[host, ("cookie", "galeras_view_8000=x")], ""), 401);
        assert_eq!(get(&[host, with, ("origin", "http://evil.example")], ""), 403);
        assert_eq!(post(&[host, with, own]), 200);
        assert_eq!(post(&[host, own]), 401);
        assert_eq!(post(&[host, with]), 403);
        for bad in
            ["null", "http://evil.example", "http://127.0.0.1:8001", "https://127.0.0.1:8000"]
        {
            assert_eq!(post(&[host, with, ("origin", bad)]), 403, "{bad}");
        }
        assert_eq!(post(&[host, with, own, ("sec-fetch-site", "same-site")]), 403);
        assert_eq!(code(guard.admit(&Method::PUT, "", &headers(&[host, with, own]))), 405);
        assert_eq!(code(guard.admit(&Method::POST, &query, &headers(&[host, own]))), 401);
    }

    #[test]
    fn every_server_has_a_token_of_its_own() {
        let (one, other) = (Guard::new(1).unwrap(), Guard::new(1).unwrap());
        assert_ne!(one.token, other.token);
        assert_eq!(one.token.len(), 48);
    }
}
