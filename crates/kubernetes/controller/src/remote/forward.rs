//! Streams to ports of Pods through the API server.

use std::io;

use bytes::Bytes;
use capstan_object::Key;
use capstan_streams::spdy;
use capstan_streams::websocket::{self, Message, Reader, Side};
use http::{Method, Request, StatusCode, header};
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Remote;
use super::transport::http1_builder;
use crate::workload::Stream;

/// Bytes that are kept of why the server ends a stream.
const LONGEST_REASON: usize = 1024;

/// Channels of the one port that is asked for.
const DATA: u8 = 0;
const ERROR: u8 = 1;

/// Asks for WebSocket.
const WEBSOCKET: &[(&str, &str)] = &[
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    // Proves only that the other side speaks WebSocket.
    ("sec-websocket-key", "Y2Fwc3RhbiBmb3J3YXJkcw=="),
    ("sec-websocket-protocol", "v4.channel.k8s.io"),
];
/// Asks for SPDY.
const SPDY: &[(&str, &str)] = &[("upgrade", spdy::UPGRADE), ("x-stream-protocol-version", spdy::PROTOCOL)];

impl Remote {
    /// A stream to a port of a Pod.
    pub async fn port_forward(&self, pod: &Key, port: u16) -> io::Result<Box<dyn Stream>> {
        let path = format!("/api/v1/namespaces/{}/pods/{}/portforward?ports={port}", pod.namespace, pod.name);
        let (near, far) = tokio::io::duplex(64 * 1024);
        let upgraded = match self.upgrade(Method::GET, &path, WEBSOCKET).await? {
            // In-memory servers of providers speak SPDY alone.
            Err(StatusCode::BAD_REQUEST) => {
                self.upgrade(Method::POST, &path, SPDY).await?.map(Protocol::Spdy)
            }
            upgraded => upgraded.map(Protocol::WebSocket),
        };
        let protocol = upgraded
            .map_err(|status| io::Error::other(format!("port-forward was answered with {status}")))?;
        tokio::spawn(async move {
            let pumped = match protocol {
                Protocol::WebSocket(socket) => pump(TokioIo::new(socket), far).await,
                Protocol::Spdy(socket) => spdy::forward(TokioIo::new(socket), port, far).await,
            };
            if let Err(error) = pumped {
                tracing::debug!(%error, "a forwarded port was closed");
            }
        });
        Ok(Box::new(near))
    }

    /// A connection that leaves HTTP, or what the server answered instead.
    async fn upgrade(
        &self,
        method: Method,
        path: &str,
        protocol: &[(&str, &str)],
    ) -> io::Result<Result<Upgraded, StatusCode>> {
        let other = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
        let credential = self.credential().await?;
        let stream = self.connect(&credential, true).await?;
        let (mut sender, connection) =
            http1_builder().handshake(TokioIo::new(stream)).await.map_err(|error| other(&error))?;
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::builder().method(method).uri(path).header(header::CONNECTION, "Upgrade");
        for (name, value) in protocol {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Empty::<Bytes>::new()).map_err(|error| other(&error))?;
        self.address(&mut request, &credential, false).map_err(|error| other(&error))?;
        let response = sender.send_request(request).await.map_err(|error| other(&error))?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {
                Ok(Ok(hyper::upgrade::on(response).await.map_err(|error| other(&error))?))
            }
            status => Ok(Err(status)),
        }
    }
}

/// What is spoken once HTTP is left.
enum Protocol {
    WebSocket(Upgraded),
    Spdy(Upgraded),
}

/// Carries bytes both ways until one side ends.
async fn pump(
    socket: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin,
    stream: tokio::io::DuplexStream,
) -> io::Result<()> {
    let (from_server, mut to_server) = tokio::io::split(socket);
    let mut from_server = Reader::new(from_server, Side::Client);
    let (mut from_client, mut to_client) = tokio::io::split(stream);
    // Pings are answered by the half that writes.
    let (pings, mut pinged) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
    let inward = async {
        let mut announced = [false; 2];
        loop {
            match from_server.read().await? {
                Message::Close => return Ok::<_, io::Error>(()),
                Message::Ping(content) => drop(pings.send(content).await),
                Message::Data(data) => {
                    let Some((channel, rest)) = data.split_first() else { continue };
                    // The first message of a channel repeats the port.
                    if let Some(seen) = announced.get_mut(usize::from(*channel))
                        && !std::mem::replace(seen, true)
                        && rest.len() == 2
                    {
                        continue;
                    }
                    match *channel {
                        DATA => to_client.write_all(rest).await?,
                        ERROR => {
                            let rest = &rest[..rest.len().min(LONGEST_REASON)];
                            return Err(io::Error::other(String::from_utf8_lossy(rest).into_owned()));
                        }
                        _ => {}
                    }
                }
            }
        }
    };
    let outward = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                biased;
                Some(content) = pinged.recv() => {
                    websocket::write(&mut to_server, Side::Client, websocket::PONG, [&content, &[]]).await?;
                }
                read = from_client.read(&mut buffer) => match read? {
                    0 => return websocket::write(&mut to_server, Side::Client, websocket::CLOSE, [&[], &[]]).await,
                    read => {
                        websocket::write(&mut to_server, Side::Client, websocket::BINARY, [&[DATA], &buffer[..read]]).await?;
                    }
                },
            }
        }
    };
    tokio::select! {
        biased;
        ended = inward => ended,
        ended = outward => ended,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_apiserver::auth::MASTERS;
    use capstan_apiserver::front;
    use capstan_apiserver::{Config, Server};
    use capstan_env::Env;
    use capstan_pki::Pki;
    use capstan_streams::{PodStreamError, PodStreams};
    use futures::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;
    use crate::client::Transport;
    use crate::remote::{Access, Dial};

    #[tokio::test]
    async fn bytes_travel_both_ways_and_an_error_ends_the_stream() {
        let (client_side, mut server) = tokio::io::duplex(4096);
        let (mut near, far) = tokio::io::duplex(4096);
        let pumping = tokio::spawn(pump(client_side, far));
        for channel in [DATA, ERROR] {
            say(&mut server, channel, &2379u16.to_le_bytes()).await;
        }
        near.write_all(b"hello").await.expect("sent");
        let heard = Reader::new(&mut server, Side::Server).read().await.expect("read");
        assert_eq!(heard, Message::Data(b"\0hello".to_vec()));
        say(&mut server, DATA, b"world").await;
        let mut answer = [0; 5];
        near.read_exact(&mut answer).await.expect("read");
        assert_eq!(&answer, b"world");
        say(&mut server, ERROR, b"refused").await;
        let error = pumping.await.expect("no panic").expect_err("an error");
        assert_eq!(error.to_string(), "refused");
    }

    async fn say(server: &mut tokio::io::DuplexStream, channel: u8, content: &[u8]) {
        let parts = [&[channel], content];
        websocket::write(server, Side::Server, websocket::BINARY, parts).await.expect("sent");
    }

    /// Port 2379 of every Pod says who it is and then repeats what it hears.
    struct Echoes;

    impl PodStreams for Echoes {
        fn connect<'a>(
            &'a self,
            namespace: &'a str,
            pod: &'a str,
            port: u16,
        ) -> BoxFuture<'a, Result<Box<dyn capstan_streams::Stream>, PodStreamError>> {
            Box::pin(async move {
                if port != 2379 {
                    return Err(PodStreamError::Refused);
                }
                let (near, mut far) = tokio::io::duplex(1024);
                let greeting = format!("{namespace}/{pod}\n");
                tokio::spawn(async move {
                    far.write_all(greeting.as_bytes()).await.expect("greeted");
                    let (mut read, mut write) = tokio::io::split(far);
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
                Ok(Box::new(near) as Box<dyn capstan_streams::Stream>)
            })
        }
    }

    /// Connections to a server in this process.
    struct InProcess(Server);

    impl Dial for InProcess {
        fn dial<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
            Box::pin(async {
                let (near, far) = tokio::io::duplex(1 << 16);
                let pki = self.0.pki().clone();
                let tls = pki.server_config(&["server".to_owned()]).map_err(io::Error::other)?;
                tokio::spawn(front::serve_connection(far, tls, pki, self.0.clone()));
                Ok(Box::new(near) as Box<dyn Stream>)
            })
        }
    }

    async fn plane(config: Config) -> Server {
        Server::start(config, Arc::new(Pki::ephemeral(Env::system()))).await.expect("a server")
    }

    /// A client with a certificate for a user.
    fn remote(plane: &Server, user: &str, groups: &[&str]) -> Remote {
        let credential = plane.pki().client(user, groups).expect("a certificate");
        let access = Access {
            host: "server".into(),
            port: 6443,
            prefix: String::new(),
            server_name: None,
            authorities: plane.pki().ca_pem().expect("an authority").into_bytes(),
            identity: Some((credential.certificate_pem().into_bytes(), credential.key.to_pem().into_bytes())),
            authorization: None,
        };
        Remote::new(access, Arc::new(InProcess(plane.clone())), &Env::system()).expect("a client")
    }

    async fn create(remote: &Remote, path: &str, object: &Value) {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Bytes::from(object.to_string())).expect("a request");
        assert_eq!(remote.send(request).await.expect("an answer").status(), StatusCode::CREATED, "{path}");
    }

    fn pod(name: &str, node: &str) -> Value {
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "i"}]});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    }

    const PODS: &str = "/api/v1/namespaces/kube-system/pods";

    async fn refusal(remote: &Remote, pod: &str) -> String {
        match remote.port_forward(&Key::new("kube-system", pod), 2379).await {
            Ok(_) => "forwarded".into(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_port_of_a_pod_is_reached_through_a_server() {
        let plane = plane(Config::in_memory().with_pods(Arc::new(Echoes))).await;
        let admin = remote(&plane, "admin", &[MASTERS]);
        create(&admin, PODS, &pod("etcd-a", "a")).await;
        let key = Key::new("kube-system", "etcd-a");
        let mut stream = admin.port_forward(&key, 2379).await.expect("a stream");
        // More than fits into any buffer on the way, so that both directions must move at once.
        let sent: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
        let (mut read, mut write) = tokio::io::split(&mut stream);
        let mut greeting = [0; 19];
        read.read_exact(&mut greeting).await.expect("greeted");
        assert_eq!(&greeting, b"kube-system/etcd-a\n");
        let mut heard = vec![0; sent.len()];
        let (written, done) = tokio::join!(write.write_all(&sent), read.read_exact(&mut heard));
        written.expect("sent");
        done.expect("heard");
        assert!(heard == sent);

        let mut refused = admin.port_forward(&key, 1).await.expect("a stream");
        assert_eq!(refused.read(&mut greeting).await.expect("an end"), 0);
    }

    #[tokio::test]
    async fn ports_are_forwarded_of_pods_that_exist_for_those_who_may() {
        let plane = plane(Config::in_memory().with_pods(Arc::new(Echoes))).await;
        let admin = remote(&plane, "admin", &[MASTERS]);
        for (name, node) in [("here", "a"), ("nowhere", "")] {
            create(&admin, PODS, &pod(name, node)).await;
        }
        let (reader, forwarder) = (remote(&plane, "reader", &[]), remote(&plane, "forwarder", &[]));
        let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system";
        for (user, verbs) in [("reader", json!(["get"])), ("forwarder", json!(["get", "create"]))] {
            let role = json!({
                "metadata": {"name": user},
                "rules": [{"apiGroups": [""], "resources": ["pods/portforward"], "verbs": verbs}],
            });
            create(&admin, &format!("{roles}/roles"), &role).await;
            let binding = json!({
                "metadata": {"name": user},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            });
            create(&admin, &format!("{roles}/rolebindings"), &binding).await;
        }
        let answered = |code: &str| format!("port-forward was answered with {code}");
        assert_eq!(refusal(&forwarder, "here").await, "forwarded");
        assert_eq!(refusal(&reader, "here").await, answered("403 Forbidden"));
        assert_eq!(refusal(&remote(&plane, "nobody", &[]), "here").await, answered("403 Forbidden"));
        assert_eq!(refusal(&admin, "absent").await, answered("404 Not Found"));
        assert_eq!(refusal(&admin, "nowhere").await, answered("400 Bad Request"));
    }

    #[tokio::test]
    async fn a_server_that_runs_no_pods_says_so() {
        let plane = plane(Config::in_memory()).await;
        let admin = remote(&plane, "admin", &[MASTERS]);
        create(&admin, PODS, &pod("here", "a")).await;
        assert_eq!(refusal(&admin, "here").await, "port-forward was answered with 501 Not Implemented");
    }
}
