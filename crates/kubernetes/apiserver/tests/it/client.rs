//! A client without a socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use capstan_apiserver::auth::User;
use capstan_apiserver::{Config, ReplyBody, Server};
use capstan_env::Env;
use capstan_pki::Pki;
use http::Request;
use http_body::Body;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

/// A server and a user with all permissions.
#[derive(Clone)]
pub struct Client {
    server: Server,
    user: User,
}

/// Status code and body.
pub type Answer = (u16, Value);

impl Client {
    /// A fresh server in memory.
    pub async fn start() -> Self {
        Self::with(Config::in_memory()).await
    }

    /// A server as configured.
    pub async fn with(config: Config) -> Self {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let server = Server::start(config, pki).await.expect("the server starts");
        Self { server, user: User::privileged("tester") }
    }

    /// The same server as another user.
    pub fn as_user(&self, user: User) -> Self {
        Self { server: self.server.clone(), user }
    }

    /// The server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Any request, and the whole response.
    pub async fn reply(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> http::Response<ReplyBody> {
        let mut request = Request::builder().method(method).uri(path).header("user-agent", "it/1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        self.server.handle_as(self.user.clone(), request).await
    }

    /// A request whose body never arrives.
    pub async fn upload_without_end(&self, method: &str, path: &str) -> http::Response<ReplyBody> {
        let body = StreamBody::new(futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body)
            .expect("a request");
        self.server.handle_as(self.user.clone(), request).await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> http::Response<ReplyBody> {
        self.reply(method, path, &[("content-type", content_type)], body).await
    }

    /// Any request with a JSON body.
    pub async fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        read(self.send(method, path, "application/json", body).await).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &Value::Null).await
    }

    pub async fn create(&self, path: &str, object: &Value) -> Answer {
        self.call("POST", path, object).await
    }

    pub async fn patch(&self, path: &str, content_type: &str, patch: &Value) -> Answer {
        read(self.send("PATCH", path, content_type, patch.to_string()).await).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &Value::Null).await
    }

    /// A watch, or another stream that is read later.
    pub async fn watch(&self, path: &str) -> Events {
        let reply = self.send("GET", path, "application/json", String::new()).await;
        assert_eq!(reply.status().as_u16(), 200, "{path}");
        Events { body: Box::pin(reply.into_body()), buffer: Vec::new() }
    }

    /// Polls until the response matches. Limited by the number of attempts, not by time.
    pub async fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        for _ in 0..10_000 {
            let answer = self.get(path).await;
            if wanted(&answer) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
        panic!("{path} never became what was wanted: {:?}", self.get(path).await);
    }
}

/// Status code and JSON body of a response.
pub async fn read(reply: http::Response<ReplyBody>) -> Answer {
    let code = reply.status().as_u16();
    let bytes = reply.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// The events of a watch.
pub struct Events {
    body: Pin<Box<ReplyBody>>,
    buffer: Vec<u8>,
}

impl Events {
    /// The next event; `None` at the end of the watch.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(at) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return Some(serde_json::from_slice(&line).expect("an event is JSON"));
            }
            let frame = std::future::poll_fn(|cx| self.body.as_mut().poll_frame(cx)).await?;
            let Ok(frame) = frame;
            self.buffer.extend_from_slice(&frame.into_data().expect("data"));
        }
    }

    /// The next chunk.
    pub async fn piece(&mut self) -> Option<Bytes> {
        let Ok(frame) = std::future::poll_fn(|cx| self.body.as_mut().poll_frame(cx)).await?;
        Some(frame.into_data().expect("data"))
    }

    /// Everything to the end.
    pub async fn collect(self) -> Bytes {
        self.body.collect().await.expect("a body").to_bytes()
    }

    /// The next events as `TYPE name`.
    pub async fn names(&mut self, count: usize) -> Vec<String> {
        let mut out = Vec::new();
        while out.len() < count {
            let event = self.next().await.expect("the watch goes on");
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
            out.push(format!("{} {name}", event["type"].as_str().unwrap_or_default()));
        }
        out
    }
}
