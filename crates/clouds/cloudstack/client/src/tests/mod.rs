//! Claims about the client, against a server made of a script that checks every signature as CloudStack does.

mod cache;
mod errors;
mod fuzz;
mod https;
mod jobs;
mod model;
mod pages;
mod repeats;
mod secrecy;
mod signing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Client, Credentials, Endpoint, Limits, Policy, Rotating, Transport, TransportError};

const API_KEY: &str = "the-api-key-of-alice";
const SECRET_KEY: &str = "the-secret-key-of-alice";

/// A request as the script sees it.
#[derive(Debug, Clone)]
struct Seen {
    method: Method,
    command: String,
    parameters: BTreeMap<String, String>,
    key: String,
}

impl Seen {
    fn get(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }
}

/// What the script answers.
enum Reply {
    Ok(Value),
    Status(u16, Value),
    Text(u16, &'static str, &'static str),
    RetryAfter(u16, u64, Value),
    Broken { never_sent: bool },
    Never,
}

type Rule = dyn Fn(&Seen, usize) -> Reply + Send + Sync;

/// A server made of a script: what it answers, by request and how many came before.
struct Script {
    rule: Box<Rule>,
    seen: Mutex<Vec<Seen>>,
    under_way: Mutex<(usize, usize)>,
    takes: Duration,
}

impl Script {
    fn new(rule: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Self::slow(Duration::ZERO, rule)
    }

    fn slow(takes: Duration, rule: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { rule: Box::new(rule), seen: Mutex::default(), under_way: Mutex::default(), takes })
    }

    fn endpoint(self: &Arc<Self>, limits: Limits) -> Arc<Endpoint> {
        let clock = Arc::new(|| "2026-01-01T00:05:00Z".parse::<Timestamp>().unwrap());
        let endpoint = Endpoint::new("https://cloud.example/client/api", self.clone(), limits).unwrap();
        Arc::new(endpoint.with_clock(clock))
    }

    fn client_with(self: &Arc<Self>, policy: Policy) -> Client {
        Client::with_policy(self.endpoint(Limits::default()), Arc::new(alice()), policy)
    }

    fn client(self: &Arc<Self>) -> Client {
        self.client_with(Policy::default())
    }

    fn rotating(self: &Arc<Self>) -> (Client, Arc<Rotating>) {
        let keys = Arc::new(Rotating::new(alice()));
        (Client::new(self.endpoint(Limits::default()), keys.clone()), keys)
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    fn count(&self, command: &str) -> usize {
        self.seen.lock().iter().filter(|seen| seen.command == command).count()
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let seen = read(&request);
        let before = {
            let mut all = self.seen.lock();
            all.push(seen.clone());
            all.len() - 1
        };
        {
            let mut under_way = self.under_way.lock();
            under_way.0 += 1;
            under_way.1 = under_way.1.max(under_way.0);
        }
        tokio::time::sleep(self.takes).await;
        self.under_way.lock().0 -= 1;
        let response = |status: u16, kind: &str, body: String| {
            let builder = Response::builder().status(status).header("content-type", kind);
            builder.body(Bytes::from(body)).unwrap()
        };
        const JSON: &str = "application/json;charset=utf-8";
        match (self.rule)(&seen, before) {
            Reply::Ok(value) => {
                let wrapped = json!({ format!("{}response", seen.command.to_lowercase()): value });
                Ok(response(200, JSON, wrapped.to_string()))
            }
            Reply::Status(status, value) => Ok(response(status, JSON, value.to_string())),
            Reply::Text(status, kind, text) => Ok(response(status, kind, text.to_owned())),
            Reply::RetryAfter(status, seconds, value) => {
                let mut response = response(status, JSON, value.to_string());
                response.headers_mut().insert("retry-after", seconds.into());
                Ok(response)
            }
            Reply::Broken { never_sent } => {
                Err(TransportError { message: "connection reset".to_owned(), never_sent })
            }
            Reply::Never => std::future::pending().await,
        }
    }
}

impl Transport for Script {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(self.answer(request))
    }
}

fn alice() -> Credentials {
    Credentials::new(API_KEY, SECRET_KEY)
}

/// An error as the server words it.
fn refusal(code: u16, cs_code: u32, text: &str) -> Reply {
    let body = json!({ "uuidList": [], "errorcode": code, "cserrorcode": cs_code, "errortext": text });
    Reply::Status(code, json!({ "anyresponse": body }))
}

/// A policy that fails at once.
fn once() -> Policy {
    Policy { attempts: 1, ..Policy::default() }
}

/// Reads a request and checks its signature the way the server does it: over the names as they were sent, sorted, the
/// values encoded by the rules of Java's `URLEncoder`.
fn read(request: &Request<Bytes>) -> Seen {
    let form = match *request.method() {
        Method::GET => request.uri().query().unwrap().to_owned(),
        _ => {
            let kind = request.headers()["content-type"].to_str().unwrap();
            assert_eq!(kind, "application/x-www-form-urlencoded");
            String::from_utf8(request.body().to_vec()).unwrap()
        }
    };
    let mut parameters: BTreeMap<String, String> =
        url::form_urlencoded::parse(form.as_bytes()).map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    let signature = parameters.remove("signature").unwrap();
    let mut text = String::new();
    for (name, value) in &parameters {
        let separator = if text.is_empty() { "" } else { "&" };
        text += &format!("{separator}{name}={}", java(value));
    }
    let secret = SECRET_KEY.replace("alice", parameters["apiKey"].rsplit('-').next().unwrap());
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    let expected = ring::hmac::sign(&key, text.to_lowercase().as_bytes());
    assert_eq!(signature, base64::engine::general_purpose::STANDARD.encode(expected), "{text}");
    Seen {
        method: request.method().clone(),
        command: parameters.remove("command").unwrap(),
        key: parameters.remove("apiKey").unwrap(),
        parameters,
    }
}

fn java(value: &str) -> String {
    value
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'*' => (byte as char).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}
