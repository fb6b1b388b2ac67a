//! The server under systemd: sockets that are passed to it, and messages that it sends.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

use http::Method;
use serde_json::Value;

use crate::program::{Server, ask};

#[tokio::test]
async fn a_server_serves_on_the_socket_that_systemd_passes_and_reports_when() {
    let folder = tempfile::tempdir().unwrap();
    let notify = folder.path().join("notify");
    let messages = UnixDatagram::bind(&notify).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    let server = Server::start_on(listener, &folder.path().join("data"), &notify);
    assert_eq!(server.address, address, "--listen is not used");
    let mut message = [0; 64];
    let length = messages.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"READY=1");
    let (code, _) = ask(&server.admin(), Method::GET, "/readyz", &Value::Null).await;
    assert_eq!(code, 200);
}
