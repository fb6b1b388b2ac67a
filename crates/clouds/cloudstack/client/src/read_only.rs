//! A transport that sends only commands that read. What would change something is refused before it is sent, and noted.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use parking_lot::Mutex;

use crate::command::Effect;
use crate::{Transport, TransportError};

/// Parameters that every request has, or that may hold secrets.
const HIDDEN: [&str; 10] = [
    "command",
    "response",
    "apikey",
    "signature",
    "signatureversion",
    "expires",
    "userdata",
    "password",
    "publickey",
    "secretkey",
];

/// Longest text of a command that is kept.
const LONGEST: usize = 300;

/// Refused commands with their parameters, each once, in order. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct RefusedCommands(Arc<Mutex<Vec<String>>>);

impl RefusedCommands {
    /// All so far.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn note(&self, text: String) {
        let mut all = self.0.lock();
        if !all.contains(&text) {
            all.push(text);
        }
    }
}

/// Sends commands that read over another transport.
pub struct ReadOnly {
    inner: Arc<dyn Transport>,
    refused: RefusedCommands,
}

impl ReadOnly {
    /// Notes what it refuses in `refused`.
    pub fn new(inner: Arc<dyn Transport>, refused: RefusedCommands) -> Self {
        Self { inner, refused }
    }
}

impl Transport for ReadOnly {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let form: Vec<(String, String)> = url::form_urlencoded::parse(query)
            .chain(url::form_urlencoded::parse(request.body()))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let command = form.iter().find(|(name, _)| name.eq_ignore_ascii_case("command"));
        let command = command.map_or("", |(_, command)| command.as_str());
        if Effect::of(command) == Effect::Read {
            return self.inner.send(request);
        }
        self.refused.note(summary(command, &form));
        std::future::ready(Ok(refusal())).boxed()
    }
}

/// The command and its parameters, without secrets.
fn summary(command: &str, form: &[(String, String)]) -> String {
    let shown = form.iter().filter(|(name, _)| !HIDDEN.contains(&name.to_lowercase().as_str()));
    let parameters: String = shown.map(|(name, value)| format!(" {name}={value}")).collect();
    format!("{command}{parameters}").chars().take(LONGEST).collect()
}

/// As a server answers to whom a command is not permitted: it is not repeated.
fn refusal() -> Response<Bytes> {
    let text = "the command was not sent: this connection only reads";
    let body = serde_json::json!({"errorresponse": {"errorcode": 432, "errortext": text}});
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(432).unwrap_or(StatusCode::FORBIDDEN);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(form: &str, in_body: bool) -> Request<Bytes> {
        let uri = "http://cloud/client/api";
        let (uri, body) = match in_body {
            true => (uri.to_owned(), form.to_owned()),
            false => (format!("{uri}?{form}"), String::new()),
        };
        Request::builder().uri(uri).body(Bytes::from(body)).expect("a request")
    }

    type Sent = BoxFuture<'static, Result<Response<Bytes>, TransportError>>;

    fn answer(_: Request<Bytes>) -> Sent {
        std::future::ready(Ok(Response::new(Bytes::from_static(b"{}")))).boxed()
    }

    #[tokio::test]
    async fn reads_pass_and_changes_are_refused_and_noted_without_secrets() {
        let refused = RefusedCommands::default();
        let transport = ReadOnly::new(Arc::new(answer), refused.clone());
        for in_body in [false, true] {
            let read =
                transport.send(request("command=listZones&apiKey=k", in_body)).await.expect("an answer");
            assert_eq!(read.status(), StatusCode::OK);
            let form = "command=createFirewallRule&startport=6443&cidrlist=0.0.0.0%2F0&apiKey=k&signature=s&userdata=u";
            let change = transport.send(request(form, in_body)).await.expect("an answer");
            assert_eq!(change.status().as_u16(), 432);
        }
        assert_eq!(refused.all(), ["createFirewallRule startport=6443 cidrlist=0.0.0.0/0"]);
    }

    #[tokio::test]
    async fn a_request_without_a_command_is_not_sent() {
        let transport = ReadOnly::new(Arc::new(answer), RefusedCommands::default());
        assert_eq!(transport.send(request("", true)).await.expect("an answer").status().as_u16(), 432);
    }
}
