//! The right URL, where something else than the API answers behind the one that was given.

use http::{HeaderMap, Uri, header};

use crate::error::ErrorKind;

/// Adds the URL to try to an answer that is none of the API's.
pub(crate) fn hinted(kind: ErrorKind, uri: &Uri, headers: &HeaderMap) -> ErrorKind {
    let ErrorKind::Unreadable { status, why } = kind else { return kind };
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.filter(|_| (300..400).contains(&status));
    let why = match better(uri, location) {
        Some(url) if location.is_some() => format!("{why}; it redirects, try {url}"),
        Some(url) => format!("{why}; try {url}"),
        None => why,
    };
    ErrorKind::Unreadable { status, why }
}

/// A URL that may be the right one: with the scheme and host of a redirection, and a path that ends as APIs' do.
fn better(uri: &Uri, location: Option<&str>) -> Option<String> {
    let mut scheme = uri.scheme_str()?.to_owned();
    let mut server = server(uri)?;
    let target = location.and_then(|location| location.parse::<Uri>().ok());
    if let Some(target) = target
        && let Some(to @ ("http" | "https")) = target.scheme_str()
        && let Some(there) = self::server(&target)
    {
        (scheme, server) = (to.to_owned(), there);
    }
    let path = match uri.path().trim_end_matches('/') {
        "" | "/client" => "/client/api".to_owned(),
        path if path.ends_with("/api") => path.to_owned(),
        path => format!("{path}/api"),
    };
    let better = format!("{scheme}://{server}{path}");
    (better != uri.to_string().trim_end_matches('/')).then_some(better)
}

/// Host and port, without user information.
fn server(uri: &Uri) -> Option<String> {
    let host = uri.host()?;
    Some(uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// The URL with the other scheme, where a connection failed because only one side speaks TLS.
pub(crate) fn other_scheme(uri: &Uri, failure: &str) -> Option<String> {
    let names_one_of = |parts: &[&str]| parts.iter().any(|part| failure.contains(part));
    let scheme = match uri.scheme_str()? {
        "https" if names_one_of(&["InvalidContentType", "corrupt message"]) => "http",
        "http" if names_one_of(&["invalid HTTP version", "invalid HTTP"]) => "https",
        _ => return None,
    };
    Some(format!("{scheme}://{}{}", server(uri)?, uri.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_to_try_has_the_path_of_apis_and_follows_redirections() {
        for (given, location, wanted) in [
            ("http://c:8080/client", Some("http://c:8080/client/"), Some("http://c:8080/client/api")),
            ("http://c:8080/client", None, Some("http://c:8080/client/api")),
            ("http://c/", Some("/client/"), Some("http://c/client/api")),
            ("http://c/client/api", Some("https://c/client/api?command=x"), Some("https://c/client/api")),
            ("http://c", Some("https://user:word@d:8443/"), Some("https://d:8443/client/api")),
            ("https://c/cloud/", None, Some("https://c/cloud/api")),
            ("https://c/client/api", None, None),
            ("https://c/client/api/", Some("javascript:alert(1)"), None),
        ] {
            let uri: Uri = given.parse().expect("a URL");
            assert_eq!(better(&uri, location).as_deref(), wanted, "{given} {location:?}");
        }
    }

    #[test]
    fn a_connection_where_one_side_speaks_tls_hints_at_the_other_scheme() {
        for (given, failure, wanted) in [
            (
                "https://c:8080/client/api",
                "received corrupt message of type InvalidContentType",
                Some("http://c:8080/client/api"),
            ),
            ("http://c:8443/client/api", "invalid HTTP version parsed", Some("https://c:8443/client/api")),
            ("http://c/client/api", "connection refused", None),
        ] {
            let uri: Uri = given.parse().expect("a URL");
            assert_eq!(other_scheme(&uri, failure).as_deref(), wanted, "{given} {failure}");
        }
    }
}
