//! Addresses with a secret: they end up in files, logs and shell histories, so they are refused
//! where they are given.

use std::fmt;

use reqwest::Url;

/// A secret in a URL, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlSecret {
    /// A user, a password, or a token instead of them.
    User,
    /// The value of a query's parameter of this name.
    Query(String),
}

impl fmt::Display for UrlSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("a user or password"),
            Self::Query(name) => write!(f, "a secret in its query (`{name}`)"),
        }
    }
}

/// Parameters of a query whose value is a key, a password, or a signature made with them, in lower
/// case and without `-` and `_`.
const SECRET_PARAMETERS: &str = "\
    accesskey accesstoken apikey apitoken auth authorization authtoken awsaccesskeyid bearer \
    clientsecret idtoken jwt oauthtoken passwd password privatetoken pwd refreshtoken secret \
    secretkey sessiontoken sig signature token xamzcredential xamzsecuritytoken \
    xamzsignature xgoogcredential xgoogsignature";

/// The secret that `url` holds: a user or password, or a token or signature in its query. `None`
/// if there is none, or if `url` is not a URL.
///
/// The user of an ssh address is not a secret. Only parameters with a known name are found, and
/// paths are not searched.
pub fn secret_in(url: &str) -> Option<UrlSecret> {
    let url = url.trim();
    let (scheme, rest) = match url.split_once("://") {
        Some(parts) => parts,
        // HTTP clients add the slashes.
        None => url.split_once(':').filter(|(scheme, _)| is_web(scheme))?,
    };
    let ssh = scheme.eq_ignore_ascii_case("ssh");
    let Ok(parsed) = Url::parse(url) else {
        // A program that is less strict could still send it.
        let rest = rest.trim_start_matches(['/', '\\']);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let (user, _) = authority.rsplit_once('@')?;
        return (!ssh || user.contains(':')).then_some(UrlSecret::User);
    };
    if parsed.password().is_some() || (!ssh && !parsed.username().is_empty()) {
        return Some(UrlSecret::User);
    }
    let mut names = parsed.query_pairs().filter(|(_, value)| !value.is_empty());
    let found = names.find(|(name, _)| {
        let name = name.to_ascii_lowercase().replace(['-', '_'], "");
        SECRET_PARAMETERS.split(' ').any(|known| known == name)
    });
    found.map(|(name, _)| UrlSecret::Query(name.into_owned()))
}

/// Returns true if `//` follows the scheme of a URL. Parsers of web addresses add it if it is missing,
/// but a reader may take `https:host/x` for something else.
pub fn has_slashes(url: &str) -> bool {
    url.trim().split_once(':').is_some_and(|(_, rest)| rest.starts_with("//"))
}

fn is_web(scheme: &str) -> bool {
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_their_place_or_name() {
        let user = Some(UrlSecret::User);
        let query = |name: &str| Some(UrlSecret::Query(name.to_string()));
        for (url, secret) in [
            ("http://me:hunter2@host/v1", user.clone()),
            ("https://hunter2@host", user.clone()),
            ("http:///me:hunter2@host", user.clone()),
            ("ssh://git:hunter2@host/x", user.clone()),
            ("HTTP://me:hunter2@ho st/x", user.clone()),
            (" https://:hunter2@host/ ", user.clone()),
            ("s3://me:hunter2@bucket/x", user.clone()),
            // Slashes that are missing hide nothing.
            ("https:me:hunter2@host/v1", user.clone()),
            ("https:me:hunter2@ho st", user.clone()),
            ("https:\\\\me@host", user),
            ("https:host/v1?api_key=hunter2", query("api_key")),
            ("HTTP:/host/v1?api_key=hunter2", query("api_key")),
            ("https://host/x?token=hunter2", query("token")),
            ("https://host/x?a=1&X-Amz-Signature=hunter2", query("X-Amz-Signature")),
            ("https://host/x?private%5Ftoken=hunter2", query("private_token")),
            ("https://host/x?api_key=hunter2#y", query("api_key")),
            ("https://host/v1?api-version=2024-02-01", None),
            ("https://host/a@b/c?page=2&max_tokens=5&token=", None),
            ("ssh://git@host/x", None),
            ("git@host:x/y.git", None),
            ("owner/name", None),
            ("./a:b@c", None),
            ("http://[::1]:8080/x", None),
            ("", None),
        ] {
            let found = secret_in(url);
            assert!(!found.as_ref().is_some_and(|found| found.to_string().contains("hunter2")));
            assert_eq!(found, secret, "{url}");
        }
        for (url, slashes) in [
            (" https://host", true),
            ("host", false),
            ("https:host/v1", false),
            ("HTTP:/host/v1", false),
            ("https:\\\\me@host", false),
        ] {
            assert_eq!(has_slashes(url), slashes, "{url}");
        }
    }
}
