//! Claims about the client, against a cloud made of a script: Keystone answers by itself, everything else by a rule.

mod errors;
mod fuzz;
mod golden;
mod pages;
mod samples;
mod secrecy;
mod tokens;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::config::Clouds;
use crate::{Client, Cloud, Policy, Transport, TransportError};

const PASSWORD: &str = "the-password-of-alice";
const SETTINGS: &str = "
clouds:
  test:
    auth:
      auth_url: https://keystone.example:5000
      username: alice
      user_domain_name: Default
      project_name: p1
      project_domain_name: Default
      password: the-password-of-alice
    region_name: RegionOne
";

/// A request as the script sees it.
#[derive(Debug, Clone)]
struct Seen {
    method: Method,
    host: String,
    path: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Value,
}

impl Seen {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What the script answers.
enum Reply {
    Json(u16, Value),
    With(u16, Vec<(&'static str, String)>, Value),
    Text(u16, &'static str),
    Broken { never_sent: bool },
    Never,
}

fn ok(value: Value) -> Reply {
    Reply::Json(200, value)
}

type Rule = dyn Fn(&Seen, usize) -> Reply + Send + Sync;

/// A cloud made of a script. The rule gets how many requests came before, those to Keystone not counted.
struct Script {
    rule: Box<Rule>,
    seen: Mutex<Vec<Seen>>,
    tokens: Mutex<Vec<Reply>>,
    started: tokio::time::Instant,
    /// How long a token holds.
    lifetime: Mutex<Duration>,
    takes: Mutex<Duration>,
    issued: Mutex<usize>,
    /// Tokens below this number are refused.
    oldest_good: Mutex<usize>,
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl Script {
    fn new(rule: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            rule: Box::new(rule),
            seen: Mutex::default(),
            tokens: Mutex::default(),
            started: tokio::time::Instant::now(),
            lifetime: Mutex::new(Duration::from_secs(3600)),
            takes: Mutex::default(),
            issued: Mutex::default(),
            oldest_good: Mutex::default(),
        })
    }

    fn now(&self) -> Timestamp {
        start() + SignedDuration::try_from(self.started.elapsed()).unwrap()
    }

    fn client_of(self: &Arc<Self>, cloud: Cloud, policy: Policy) -> Client {
        let script = self.clone();
        Client::with_clock(cloud, self.clone(), policy, Arc::new(move || script.now()))
    }

    fn client(self: &Arc<Self>) -> Client {
        self.client_of(cloud(SETTINGS), Policy::default())
    }

    fn once(self: &Arc<Self>) -> Client {
        self.client_of(cloud(SETTINGS), Policy { attempts: 1, ..Policy::default() })
    }

    /// Keystone's next answers, before it goes on with tokens.
    fn keystone_says(&self, replies: Vec<Reply>) {
        *self.tokens.lock() = replies;
    }

    /// Revokes all tokens so far.
    fn revoke(&self) {
        *self.oldest_good.lock() = *self.issued.lock();
    }

    fn logins(&self) -> usize {
        self.seen.lock().iter().filter(|seen| seen.path == "/v3/auth/tokens").count()
    }

    fn requests(&self) -> Vec<Seen> {
        self.seen.lock().iter().filter(|seen| seen.path != "/v3/auth/tokens").cloned().collect()
    }

    fn token(&self) -> Reply {
        let mut tokens = self.tokens.lock();
        if !tokens.is_empty() {
            return tokens.remove(0);
        }
        let number = {
            let mut issued = self.issued.lock();
            *issued += 1;
            *issued - 1
        };
        let (now, lifetime) = (self.now(), SignedDuration::try_from(*self.lifetime.lock()).unwrap());
        let endpoint = |interface: &str, region: &str, host: &str| {
            let url = format!("https://{host}.{interface}.{region}.example");
            json!({ "interface": interface, "region": region, "region_id": region, "url": url })
        };
        let service = |kind: &str, host: &str| {
            let all = ["RegionOne", "RegionTwo"]
                .iter()
                .flat_map(|region| ["public", "internal"].map(|interface| endpoint(interface, region, host)));
            json!({ "type": kind, "name": host, "endpoints": all.collect::<Vec<_>>() })
        };
        let body = json!({ "token": {
            "methods": ["password"],
            "issued_at": now.to_string(),
            "expires_at": (now + lifetime).to_string(),
            "user": { "id": "u1", "name": "alice", "domain": { "id": "default", "name": "Default" } },
            "project": { "id": "p1id", "name": "p1", "domain": { "id": "default", "name": "Default" } },
            "roles": [{ "id": "r1", "name": "member" }],
            "catalog": [
                service("compute", "nova"),
                service("network", "neutron"),
                service("image", "images"),
                service("volumev3", "cinder"),
                service("load-balancer", "octavia"),
            ],
        } });
        Reply::With(201, vec![("x-subject-token", format!("token-{number}"))], body)
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let (head, body) = request.into_parts();
        let query = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
        let seen = Seen {
            method: head.method,
            host: head.uri.host().unwrap().to_owned(),
            path: head.uri.path().to_owned(),
            query: query.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
            headers: head.headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        };
        let before = self.requests().len();
        self.seen.lock().push(seen.clone());
        let takes = *self.takes.lock();
        tokio::time::sleep(takes).await;
        let reply = if seen.path == "/v3/auth/tokens" && seen.method == Method::POST {
            self.token()
        } else {
            let number: usize = seen.header("x-auth-token").trim_start_matches("token-").parse().unwrap();
            match number >= *self.oldest_good.lock() {
                true => (self.rule)(&seen, before),
                false => Reply::Json(401, unauthorized()),
            }
        };
        let (status, headers, body) = match reply {
            Reply::Json(status, body) => (status, Vec::new(), body.to_string()),
            Reply::With(status, headers, body) => (status, headers, body.to_string()),
            Reply::Text(status, text) => (status, Vec::new(), text.to_owned()),
            Reply::Broken { never_sent } => {
                return Err(TransportError { message: "connection reset".to_owned(), never_sent });
            }
            Reply::Never => return std::future::pending().await,
        };
        let mut builder = Response::builder().status(status);
        for (name, value) in headers {
            builder = builder.header(name, value);
        }
        Ok(builder.body(Bytes::from(body)).unwrap())
    }
}

impl Transport for Script {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(self.answer(request))
    }
}

fn cloud(settings: &str) -> Cloud {
    Clouds::parse(settings, None, None).unwrap().cloud(None, None).unwrap()
}

/// What all services say about a token that they do not know.
fn unauthorized() -> Value {
    let message = "The request you have made requires authentication.";
    json!({ "error": { "code": 401, "title": "Unauthorized", "message": message } })
}

/// What Neutron says of an error.
fn neutron(status: u16, kind: &str, message: &str) -> Reply {
    Reply::Json(status, json!({ "NeutronError": { "type": kind, "message": message, "detail": "" } }))
}
