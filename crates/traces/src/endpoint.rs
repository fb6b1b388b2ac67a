//! Where traces are sent, and the headers that the collector asks for.

use std::fmt;
use std::str::FromStr;

use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Path below the base URL, as OTLP defines it.
const PATH: &str = "/v1/traces";

/// A collector. Values of headers are not printed: they may be credentials.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

/// What is wrong with the address or the headers of a collector. Never contains them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("not a base URL such as http://127.0.0.1:4318")]
    Url,
    #[error("it has a user or a password: set OTEL_EXPORTER_OTLP_HEADERS instead")]
    Credentials,
    #[error("header {0} is not of the form name=value, with values percent-encoded")]
    Header(usize),
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// From the base URL.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let base: Uri = text.parse().map_err(|_| EndpointError::Url)?;
        let authority = base.authority().ok_or(EndpointError::Url)?;
        if authority.as_str().contains('@') {
            return Err(EndpointError::Credentials);
        }
        let web = matches!(base.scheme_str(), Some("http" | "https"));
        if !web || base.query().is_some() || authority.host().is_empty() {
            return Err(EndpointError::Url);
        }
        let path = format!("{}{PATH}", base.path().trim_end_matches('/'));
        let mut parts = base.into_parts();
        parts.path_and_query = Some(path.parse::<PathAndQuery>().map_err(|_| EndpointError::Url)?);
        let uri = Uri::from_parts(parts).map_err(|_| EndpointError::Url)?;
        Ok(Self { uri, headers: HeaderMap::new() })
    }
}

impl Endpoint {
    /// Whether it is reached without TLS.
    pub fn is_plain(&self) -> bool {
        self.uri.scheme_str() == Some("http")
    }

    /// With headers in the form of `OTEL_EXPORTER_OTLP_HEADERS`: `name=value,name=value`.
    pub fn with_headers(mut self, text: &str) -> Result<Self, EndpointError> {
        let all = text.split(',').map(str::trim).enumerate().filter(|(_, one)| !one.is_empty());
        for (index, one) in all {
            let (name, value) = header(one).ok_or(EndpointError::Header(index + 1))?;
            self.headers.insert(name, value);
        }
        Ok(self)
    }
}

fn header(text: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = text.split_once('=')?;
    let value: Vec<u8> = percent_encoding::percent_decode_str(value.trim()).collect();
    let mut value = HeaderValue::from_bytes(&value).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_below_the_base_url() {
        for (base, wanted) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://collector.example.org/", "https://collector.example.org/v1/traces"),
            ("https://example.org/otlp/", "https://example.org/otlp/v1/traces"),
        ] {
            assert_eq!(base.parse::<Endpoint>().unwrap().to_string(), wanted);
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for text in ["", "collector:4318", "grpc://a:4317", "http://a/?token=x", "/v1/traces"] {
            assert_eq!(text.parse::<Endpoint>().unwrap_err(), EndpointError::Url, "{text}");
        }
        assert_eq!("http://me:word@a".parse::<Endpoint>().unwrap_err(), EndpointError::Credentials);
    }

    #[test]
    fn headers_are_decoded_and_not_printed() {
        let endpoint: Endpoint = "http://a".parse().unwrap();
        let endpoint = endpoint.with_headers("Authorization=Bearer%20word, x-tenant = b").unwrap();
        assert_eq!(endpoint.headers["authorization"], "Bearer word");
        assert_eq!(endpoint.headers["x-tenant"], "b");
        assert!(!format!("{endpoint:?} {endpoint} {:?}", endpoint.headers).contains("word"));
        for (text, number) in [("a", 1), ("a=b,c d=e", 2), ("a=%0a", 1)] {
            let endpoint: Endpoint = "http://a".parse().unwrap();
            assert_eq!(endpoint.with_headers(text).unwrap_err(), EndpointError::Header(number), "{text}");
        }
    }
}
