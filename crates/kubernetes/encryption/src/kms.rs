//! KMS v2 plug-ins: `Status`, `Encrypt` and `Decrypt` over gRPC on a unix socket.
//!
//! The store opens values on threads that must not wait for a runtime of their own, so each plug-in has a thread with
//! one. Only data keys are sent to a plug-in: one per start for writing, and one for each earlier start that still has
//! values in the files.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream as StdStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as blocking};

use capstan_etcd::{Channel, Error};
use prost::Message;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use zeroize::{Zeroize as _, Zeroizing};

use crate::config::KmsConfig;

const STATUS: &str = "/v2.KeyManagementService/Status";
const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";
const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";
/// Limits of the protocol.
const MAX_ID: usize = 1024;
const MAX_CIPHERTEXT: usize = 1024;
const MAX_ANNOTATIONS: usize = 32 << 10;

#[derive(Clone, PartialEq, Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
struct StatusResponse {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    healthz: String,
    #[prost(string, tag = "3")]
    key_id: String,
}

#[derive(Clone, PartialEq, Message)]
struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
}

#[derive(Clone, PartialEq, Message)]
struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
}

impl Drop for EncryptRequest {
    fn drop(&mut self) {
        self.plaintext.zeroize();
    }
}

impl Drop for DecryptResponse {
    fn drop(&mut self) {
        self.plaintext.zeroize();
    }
}

/// A data key as the plug-in has wrapped it, with what it needs to unwrap it.
#[derive(Clone, PartialEq, Message)]
struct Wrapped {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(btree_map = "string, bytes", tag = "2")]
    annotations: BTreeMap<String, Vec<u8>>,
}

/// Why a plug-in did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error(
    "the KMS plug-in {name} ({socket}) failed: {problem}; check that it runs and can reach its key service"
)]
pub struct KmsError {
    name: String,
    socket: String,
    problem: String,
}

enum Request {
    Status(blocking::SyncSender<Result<StatusResponse, String>>),
    Encrypt(EncryptRequest, blocking::SyncSender<Result<EncryptResponse, String>>),
    Decrypt(DecryptRequest, blocking::SyncSender<Result<DecryptResponse, String>>),
}

/// A plug-in and its thread.
pub(crate) struct Plugin {
    config: KmsConfig,
    requests: mpsc::UnboundedSender<Request>,
    count: AtomicU64,
}

impl Plugin {
    pub fn new(config: KmsConfig) -> Arc<Self> {
        let (requests, received) = mpsc::unbounded_channel();
        let served = config.clone();
        // If there is no thread, the channel is closed and every call fails.
        let _ = std::thread::Builder::new().name("kms".to_owned()).spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
                runtime.block_on(serve(&served, received));
            }
        });
        Arc::new(Self { config, requests, count: AtomicU64::new(0) })
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The id of the key that the plug-in encrypts with.
    pub fn current_key_id(&self) -> Result<String, KmsError> {
        let status = self.ask(Request::Status)?;
        if !["v2", "v2beta1"].contains(&status.version.as_str()) {
            return Err(self.failed(format!("it speaks version {:?}, not v2", short(&status.version))));
        }
        if status.healthz != "ok" {
            return Err(self.failed(format!("it reports {:?}", short(&status.healthz))));
        }
        self.check_id(&status.key_id)?;
        Ok(status.key_id)
    }

    /// Wraps a data key. Returns the id of the key used.
    pub fn encrypt(&self, data_key: &[u8]) -> Result<(String, Vec<u8>), KmsError> {
        self.current_key_id()?;
        let question = EncryptRequest { plaintext: data_key.to_vec(), uid: self.next_uid() };
        let EncryptResponse { ciphertext, key_id, annotations } =
            self.ask(|reply| Request::Encrypt(question, reply))?;
        self.check_id(&key_id)?;
        if ciphertext.is_empty() || ciphertext.len() > MAX_CIPHERTEXT {
            return Err(self.failed(format!("its ciphertext has {} bytes of 1 to 1024", ciphertext.len())));
        }
        let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        if size > MAX_ANNOTATIONS {
            return Err(self.failed(format!("its annotations have {size} bytes, more than 32 KiB")));
        }
        if ciphertext.windows(data_key.len()).any(|part| part == data_key) {
            return Err(self.failed("its ciphertext contains the plaintext".to_owned()));
        }
        Ok((key_id, Wrapped { ciphertext, annotations }.encode_to_vec()))
    }

    /// Unwraps a data key.
    pub fn decrypt(&self, key_id: &str, wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, KmsError> {
        let Ok(Wrapped { ciphertext, annotations }) = Wrapped::decode(wrapped) else {
            return Err(self.failed("a wrapped key is malformed".to_owned()));
        };
        let (key_id, uid) = (key_id.to_owned(), self.next_uid());
        let question = DecryptRequest { ciphertext, uid, key_id, annotations };
        let mut answer = self.ask(|reply| Request::Decrypt(question, reply))?;
        Ok(Zeroizing::new(std::mem::take(&mut answer.plaintext)))
    }

    /// Identifies a call in the logs of both sides.
    fn next_uid(&self) -> String {
        format!("{}-{}", std::process::id(), self.count.fetch_add(1, Ordering::Relaxed))
    }

    fn check_id(&self, id: &str) -> Result<(), KmsError> {
        match id.len() {
            1..=MAX_ID => Ok(()),
            length => Err(self.failed(format!("its key id has {length} bytes of 1 to 1024"))),
        }
    }

    fn ask<T>(
        &self,
        request: impl FnOnce(blocking::SyncSender<Result<T, String>>) -> Request,
    ) -> Result<T, KmsError> {
        let (reply, answer) = blocking::sync_channel(1);
        let stopped = || self.failed("its thread has stopped".to_owned());
        self.requests.send(request(reply)).map_err(|_| stopped())?;
        // The thread answers every request within its time limit.
        answer.recv().map_err(|_| stopped())?.map_err(|problem| self.failed(problem))
    }

    fn failed(&self, problem: String) -> KmsError {
        let KmsConfig { name, socket, .. } = &self.config;
        KmsError { name: name.clone(), socket: socket.clone(), problem }
    }
}

/// The beginning of a text from outside.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

async fn serve(config: &KmsConfig, mut requests: mpsc::UnboundedReceiver<Request>) {
    let mut channel = None;
    while let Some(request) = requests.recv().await {
        // Nobody waits for an answer any more if sending it fails.
        match request {
            Request::Status(reply) => {
                let _ = reply.send(call(config, &mut channel, "status", STATUS, &StatusRequest {}).await);
            }
            Request::Encrypt(question, reply) => {
                let _ = reply.send(call(config, &mut channel, "encrypt", ENCRYPT, &question).await);
            }
            Request::Decrypt(question, reply) => {
                let _ = reply.send(call(config, &mut channel, "decrypt", DECRYPT, &question).await);
            }
        }
    }
}

/// Makes a call on the open connection, and once more on a new one if that has broken.
async fn call<T: Message + Default>(
    config: &KmsConfig,
    channel: &mut Option<Channel>,
    name: &'static str,
    path: &str,
    question: &impl Message,
) -> Result<T, String> {
    let is_reused = channel.is_some();
    let mut result = attempt(config, channel, name, path, question).await;
    if is_reused && matches!(result, Err(Error::Unavailable(_))) {
        *channel = None;
        result = attempt(config, channel, name, path, question).await;
    }
    result.map_err(|error| {
        *channel = None;
        short(&match error {
            Error::Unavailable(problem) => problem,
            Error::Grpc { code, message } => format!("it answered {code}: {message}"),
            error => error.to_string(),
        })
    })
}

async fn attempt<T: Message + Default>(
    config: &KmsConfig,
    channel: &mut Option<Channel>,
    name: &'static str,
    path: &str,
    question: &impl Message,
) -> Result<T, Error> {
    let after = config.timeout;
    let exchange = async {
        let open = match channel {
            Some(open) => open,
            None => {
                let stream =
                    connect(&config.socket).await.map_err(|error| Error::Unavailable(error.to_string()))?;
                channel
                    .insert(Channel::over(stream, "http://localhost".to_owned()).await?.with_deadline(after))
            }
        };
        open.ask(name, path, question).await
    };
    tokio::time::timeout(after, exchange).await.unwrap_or(Err(Error::DeadlineExceeded { call: name, after }))
}

async fn connect(socket: &str) -> io::Result<UnixStream> {
    let Some(name) = socket.strip_prefix('@') else { return UnixStream::connect(socket).await };
    let stream = StdStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

#[cfg(test)]
pub(crate) mod tests;
