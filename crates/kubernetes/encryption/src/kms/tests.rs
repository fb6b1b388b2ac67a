//! A plug-in on a socket, in this process.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use capstan_store::{Cipher as _, CipherError};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::{Request as HttpRequest, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;

use super::*;
use crate::{Configuration, Encryption};

/// Reverses what it is to encrypt, under the name of its key.
struct Fake {
    key: Mutex<String>,
    healthz: Mutex<&'static str>,
    hangs: AtomicBool,
    decrypted: AtomicU64,
}

type Body = StreamBody<futures::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

impl Fake {
    /// Serves until the process ends.
    fn start(socket: &Path) -> Arc<Self> {
        let fake = Arc::new(Self {
            key: Mutex::new("one".to_owned()),
            healthz: Mutex::new("ok"),
            hangs: AtomicBool::new(false),
            decrypted: AtomicU64::new(0),
        });
        let (served, listener) = (fake.clone(), std::os::unix::net::UnixListener::bind(socket).unwrap());
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let fake = served.clone();
                    tokio::spawn(async move {
                        let service = hyper::service::service_fn(move |request| {
                            let fake = fake.clone();
                            async move { Ok::<_, Infallible>(fake.respond(request).await) }
                        });
                        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        let _ = server.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            });
        });
        fake
    }

    async fn respond(&self, request: HttpRequest<Incoming>) -> Response<Body> {
        if self.hangs.load(Ordering::Relaxed) {
            futures::future::pending::<()>().await;
        }
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let question = &body[5..];
        let (mut code, mut answer) = ("0", Vec::new());
        match path.as_str() {
            STATUS => {
                answer = StatusResponse {
                    version: "v2".into(),
                    healthz: (*self.healthz.lock()).into(),
                    key_id: self.key.lock().clone(),
                }
                .encode_to_vec();
            }
            ENCRYPT => {
                let plaintext = EncryptRequest::decode(question).unwrap().plaintext.clone();
                answer = EncryptResponse {
                    ciphertext: plaintext.into_iter().rev().collect(),
                    key_id: self.key.lock().clone(),
                    annotations: BTreeMap::from([("kms.example.org".to_owned(), b"note".to_vec())]),
                }
                .encode_to_vec();
            }
            DECRYPT => {
                self.decrypted.fetch_add(1, Ordering::Relaxed);
                let DecryptRequest { ciphertext, annotations, .. } =
                    DecryptRequest::decode(question).unwrap();
                if annotations.get("kms.example.org").is_some_and(|note| note == b"note") {
                    let plaintext = ciphertext.into_iter().rev().collect();
                    answer = DecryptResponse { plaintext }.encode_to_vec();
                } else {
                    code = "3";
                }
            }
            _ => code = "12",
        }
        let mut framed = vec![0];
        framed.extend_from_slice(&(answer.len() as u32).to_be_bytes());
        framed.extend(answer);
        let trailers = [("grpc-status".parse().unwrap(), code.parse().unwrap())].into_iter().collect();
        let frames = vec![Ok(Frame::data(framed.into())), Ok(Frame::trailers(trailers))];
        let mut response = Response::new(StreamBody::new(futures::stream::iter(frames)));
        response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        response
    }
}

fn encryption(socket: &Path) -> Result<Encryption, crate::EncryptionError> {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: ['*.*']\n  \
         providers:\n  - kms: {{apiVersion: v2, name: fake, endpoint: 'unix://{}', timeout: 300ms}}\n",
        socket.display()
    );
    Encryption::new(&Configuration::parse(&text).unwrap())
}

#[test]
fn a_plug_in_wraps_data_keys_and_not_values() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kms.sock");
    let fake = Fake::start(&socket);
    let first = encryption(&socket).unwrap();
    let mut sealed = vec![Vec::new(); 3];
    for sealed in &mut sealed {
        first.seal("/secrets", b"a", b"hunter2", sealed);
    }
    // Another start asks once for the data key of this one.
    let second = encryption(&socket).unwrap();
    for sealed in &sealed {
        assert_eq!(second.open(b"a", sealed).unwrap(), b"hunter2");
        assert!(second.is_current(sealed));
    }
    assert_eq!(fake.decrypted.load(Ordering::Relaxed), 1);
    assert_eq!(second.writes_with("/secrets").unwrap(), "key one of the KMS plug-in fake");
}

#[test]
fn a_new_key_of_the_service_is_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kms.sock");
    let fake = Fake::start(&socket);
    let encryption = encryption(&socket).unwrap();
    let mut before = Vec::new();
    encryption.seal("/secrets", b"a", b"hunter2", &mut before);
    assert!(!encryption.refresh().unwrap());
    *fake.key.lock() = "two".to_owned();
    assert!(encryption.refresh().unwrap());
    assert!(!encryption.is_current(&before));
    assert_eq!(encryption.open(b"a", &before).unwrap(), b"hunter2");
    let mut after = Vec::new();
    encryption.seal("/secrets", b"a", b"hunter2", &mut after);
    assert!(encryption.is_current(&after));
}

#[test]
fn a_plug_in_that_is_down_hangs_or_is_unhealthy_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kms.sock");
    let error = encryption(&socket).err().unwrap().to_string();
    assert!(error.contains("the KMS plug-in fake") && error.contains("No such file"), "{error}");
    let fake = Fake::start(&socket);
    *fake.healthz.lock() = "vault is sealed";
    let error = encryption(&socket).err().unwrap().to_string();
    assert!(error.contains("it reports \"vault is sealed\""), "{error}");
    *fake.healthz.lock() = "ok";
    let first = encryption(&socket).unwrap();
    let mut sealed = Vec::new();
    first.seal("/secrets", b"a", b"hunter2", &mut sealed);
    let second = encryption(&socket).unwrap();
    fake.hangs.store(true, Ordering::Relaxed);
    let error = second.open(b"a", &sealed).unwrap_err();
    assert!(
        matches!(&error, CipherError::Unavailable(text) if text.contains("no answer within 300ms")),
        "{error}"
    );
    // What is in memory still works, and so does the plug-in when it is back.
    let mut more = Vec::new();
    second.seal("/secrets", b"b", b"hunter3", &mut more);
    fake.hangs.store(false, Ordering::Relaxed);
    assert_eq!(second.open(b"a", &sealed).unwrap(), b"hunter2");
}
