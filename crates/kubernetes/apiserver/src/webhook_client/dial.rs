//! Connections to webhooks: by address, by name, or through a Service.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::config::Service;
use crate::auth::{ObjectSource, bucket, key};

/// Why a connection failed, with Go's text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct DialError(String);

#[derive(Clone)]
pub(super) enum Connector {
    /// To the host of the URL.
    Host,
    /// To an endpoint of a Service, looked up for each connection.
    Service(Service, Arc<dyn ObjectSource>),
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let address = match self {
            Self::Host => {
                let host = uri.host().unwrap_or_default();
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                Ok((host, uri.port_u16().unwrap_or(443)))
            }
            Self::Service(service, source) => endpoint(service, &**source),
        };
        Box::pin(async move {
            let (host, port) = address.map_err(DialError)?;
            connect(&host, port).await
        })
    }
}

async fn connect(host: &str, port: u16) -> Result<TokioIo<TcpStream>, DialError> {
    let addresses = tokio::net::lookup_host((host, port))
        .await
        .map_err(|_| DialError(format!("dial tcp: lookup {host}: no such host")))?;
    let mut refusal = DialError(format!("dial tcp: lookup {host}: no such host"));
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Without the option only latency suffers.
                let _ = stream.set_nodelay(true);
                return Ok(TokioIo::new(stream));
            }
            Err(error) => refusal = DialError(format!("dial tcp {address}: connect: {}", reason(&error))),
        }
    }
    Err(refusal)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".into(),
        io::ErrorKind::TimedOut => "connection timed out".into(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".into(),
        io::ErrorKind::HostUnreachable => "no route to host".into(),
        _ => error.to_string().to_lowercase(),
    }
}

/// The address of a ready endpoint of a Service that serves the port.
fn endpoint(service: &Service, source: &dyn ObjectSource) -> Result<(String, u16), String> {
    let Service { namespace, name, port, .. } = service;
    let stored = source.get(bucket::SERVICES, &key(namespace, name));
    let stored = stored.ok_or_else(|| format!("service {name:?} not found"))?;
    match stored["spec"]["type"].as_str().unwrap_or("ClusterIP") {
        "ClusterIP" | "LoadBalancer" | "NodePort" => {}
        other => return Err(format!("unsupported service type {other:?}")),
    }
    let ports = stored["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let wanted = ports.iter().find(|candidate| candidate["port"] == *port);
    let wanted = wanted.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let port_name = wanted["name"].as_str().unwrap_or_default();
    from_slices(service, port_name, source)
        .or_else(|| from_endpoints(service, port_name, source))
        .ok_or_else(|| format!("no endpoints available for service {name:?}"))
}

fn from_slices(service: &Service, port: &str, source: &dyn ObjectSource) -> Option<(String, u16)> {
    let belongs = |slice: &&Arc<Value>| {
        slice["metadata"]["namespace"] == service.namespace
            && slice["metadata"]["labels"]["kubernetes.io/service-name"] == service.name
    };
    source.list(bucket::ENDPOINT_SLICES).iter().filter(belongs).find_map(|slice| {
        let number = port_number(&slice["ports"], port)?;
        let ready = |endpoint: &&Value| endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
        let endpoint = slice["endpoints"].as_array()?.iter().find(ready)?;
        Some((endpoint["addresses"][0].as_str()?.to_owned(), number))
    })
}

/// Used for a Service without slices: nothing here mirrors Endpoints to slices.
fn from_endpoints(service: &Service, port: &str, source: &dyn ObjectSource) -> Option<(String, u16)> {
    let endpoints = source.get(bucket::ENDPOINTS, &key(&service.namespace, &service.name))?;
    endpoints["subsets"].as_array()?.iter().find_map(|subset| {
        let number = port_number(&subset["ports"], port)?;
        Some((subset["addresses"][0]["ip"].as_str()?.to_owned(), number))
    })
}

fn port_number(ports: &Value, name: &str) -> Option<u16> {
    let port = ports.as_array()?.iter().find(|port| port["name"].as_str().unwrap_or_default() == name)?;
    port["port"].as_u64().and_then(|number| u16::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::testing::Objects;

    #[test]
    fn a_service_resolves_to_a_ready_endpoint_or_an_error() {
        let service = Service { namespace: "ns".into(), name: "s".into(), path: "/".into(), port: 443 };
        let objects = Objects::default();
        let find = || endpoint(&service, &objects);
        assert_eq!(find(), Err("service \"s\" not found".into()));

        let stored = |spec: Value| json!({"metadata": {"namespace": "ns", "name": "s"}, "spec": spec});
        objects.put(bucket::SERVICES, stored(json!({"type": "ExternalName"})));
        assert_eq!(find(), Err("unsupported service type \"ExternalName\"".into()));
        objects.put(bucket::SERVICES, stored(json!({"ports": [{"port": 80}]})));
        assert_eq!(find(), Err("no service port 443 found for service \"s\"".into()));
        objects.put(bucket::SERVICES, stored(json!({"ports": [{"name": "h", "port": 443}]})));
        assert_eq!(find(), Err("no endpoints available for service \"s\"".into()));

        let mut endpoints = stored(Value::Null);
        endpoints["subsets"] =
            json!([{"addresses": [{"ip": "127.0.0.9"}], "ports": [{"name": "h", "port": 9}]}]);
        objects.put(bucket::ENDPOINTS, endpoints);
        assert_eq!(find(), Ok(("127.0.0.9".into(), 9)));
        objects.put(
            bucket::ENDPOINT_SLICES,
            json!({
                "metadata": {
                    "namespace": "ns", "name": "s-1", "labels": {"kubernetes.io/service-name": "s"},
                },
                "ports": [{"name": "h", "port": 8443}],
                "endpoints": [
                    {"addresses": ["127.0.0.1"], "conditions": {"ready": false}},
                    {"addresses": ["127.0.0.2"]},
                ],
            }),
        );
        assert_eq!(find(), Ok(("127.0.0.2".into(), 8443)));
    }
}
