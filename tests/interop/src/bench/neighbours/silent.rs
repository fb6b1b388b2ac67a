//! API servers of clusters that accept every connection and never say anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Open files for each endpoint: its listener, and the connections of every controller that asks the cluster.
const FILES_OF_EACH: u64 = 8;
/// Open files for everything else.
const FILES_OF_OTHERS: u64 = 256;

/// One endpoint per cluster on loopback. Connections stay open until the client closes them.
pub struct Silence {
    endpoints: Vec<Endpoint>,
    /// Aborted when dropped.
    _accepting: JoinSet<()>,
}

struct Endpoint {
    port: u16,
    accepted: Arc<AtomicUsize>,
}

impl Silence {
    pub async fn listen(count: usize) -> Result<Self> {
        raise_files(count as u64 * FILES_OF_EACH + FILES_OF_OTHERS)?;
        let (mut endpoints, mut accepting) = (Vec::new(), JoinSet::new());
        for _ in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await.context("listen for a silent cluster")?;
            let endpoint = Endpoint { port: listener.local_addr()?.port(), accepted: Arc::default() };
            accepting.spawn(accept(listener, endpoint.accepted.clone()));
            endpoints.push(endpoint);
        }
        Ok(Self { endpoints, _accepting: accepting })
    }

    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.endpoints.iter().map(|endpoint| endpoint.port)
    }

    /// How many endpoints somebody has connected to.
    pub fn met(&self) -> usize {
        self.endpoints.iter().filter(|endpoint| endpoint.accepted.load(Ordering::Relaxed) > 0).count()
    }

    /// Connections to all endpoints so far.
    pub fn connections(&self) -> usize {
        self.endpoints.iter().map(|endpoint| endpoint.accepted.load(Ordering::Relaxed)).sum()
    }
}

async fn accept(listener: TcpListener, accepted: Arc<AtomicUsize>) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            connection = listener.accept() => {
                let Ok((stream, _)) = connection else {
                    // Probably out of file descriptors: wait for some to close.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                accepted.fetch_add(1, Ordering::Relaxed);
                open.spawn(async move {
                    // What the client says is read, so that it is never the client that waits for room.
                    let mut stream = stream;
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                });
            }
            Some(_) = open.join_next() => {}
        }
    }
}

/// Raises the limit of open files of this process.
fn raise_files(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    ensure!(
        needed <= most,
        "{needed} open files are needed and {most} are allowed: raise the hard limit (ulimit -Hn {needed}, as root) or \
         choose a smaller --silent"
    );
    if limit.current.is_some_and(|current| current < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
            .context("raise the limit of open files")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn an_endpoint_accepts_reads_and_says_nothing() {
        let silence = Silence::listen(2).await.unwrap();
        assert_eq!(silence.met(), 0);
        let port = silence.ports().next().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // More than the buffers of the connection hold.
        stream.write_all(&vec![0; 16 << 20]).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_millis(50), stream.read_u8()).await;
        assert!(answer.is_err(), "it neither answers nor closes: {answer:?}");
        assert_eq!((silence.met(), silence.connections()), (1, 1));
    }
}
