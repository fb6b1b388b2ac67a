//! The `clientConfig` of webhook configurations and CustomResourceDefinitions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use url::Url;

/// Address and CA of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    pub(super) target: Target,
    /// PEM certificates; empty means the CAs of the operating system.
    pub(super) ca_bundle: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Url(Url),
    Service(Service),
}

/// A Service that refers to the webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) port: u16,
}

impl Service {
    /// The name that the webhook's certificate must have.
    pub(super) fn server_name(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl ClientConfig {
    /// Parses a `clientConfig` object. Errors have upstream's text.
    pub fn from_json(config: &Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ca_bundle = STANDARD.decode(text(&config["caBundle"])).unwrap_or_default();
        let blank = ca_bundle.iter().all(u8::is_ascii_whitespace);
        let ca_bundle = if blank { Vec::new() } else { ca_bundle };
        let service = &config["service"];
        let target = if service.is_object() {
            Target::Service(Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                path: text(&service["path"]),
                port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
            })
        } else {
            let url = text(&config["url"]);
            if url.is_empty() {
                return Err("webhook configuration must have either service or URL".into());
            }
            Target::Url(Url::parse(&url).map_err(|error| format!("Unparsable URL: {error}"))?)
        };
        Ok(Self { target, ca_bundle })
    }

    /// The URL of a call, as shown in errors.
    pub(super) fn url(&self, timeout_seconds: u64) -> String {
        let (base, path) = match &self.target {
            Target::Url(url) => {
                let host = url.host_str().unwrap_or_default();
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                (format!("https://{host}{port}"), url.path().to_owned())
            }
            Target::Service(service) => {
                (format!("https://{}:{}", service.server_name(), service.port), service.path.clone())
            }
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{base}{slash}{path}?timeout={timeout_seconds}s")
    }

    /// Whether the target is this machine: such connections may multiplex calls.
    pub(super) fn is_local(&self) -> bool {
        match &self.target {
            Target::Service(_) => false,
            Target::Url(url) => match url.host() {
                Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
                Some(url::Host::Ipv4(address)) => address.is_loopback(),
                Some(url::Host::Ipv6(address)) => address.is_loopback(),
                None => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn urls_read_as_upstream_prints_them() {
        let table = [
            (json!({"url": "https://127.0.0.1:9/p"}), Ok("https://127.0.0.1:9/p?timeout=10s")),
            (json!({"url": "https://example.org"}), Ok("https://example.org/?timeout=10s")),
            (json!({"url": "https://[::1]:9/p"}), Ok("https://[::1]:9/p?timeout=10s")),
            (
                json!({"service": {"namespace": "ns", "name": "s", "path": "/p"}}),
                Ok("https://s.ns.svc:443/p?timeout=10s"),
            ),
            (
                json!({"service": {"namespace": "ns", "name": "s", "port": 8443}}),
                Ok("https://s.ns.svc:8443/?timeout=10s"),
            ),
            (json!({}), Err("webhook configuration must have either service or URL")),
        ];
        for (config, expected) in table {
            let url = ClientConfig::from_json(&config).map(|config| config.url(10));
            assert_eq!(url.as_deref().map_err(String::as_str), expected, "{config}");
        }
    }
}
