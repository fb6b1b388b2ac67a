//! The TLS front door: accepts connections, hands the client's certificate to the server, drains on stop.

#[cfg(test)]
mod fuzz;

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower_service::Service;

use crate::pki::{PeerIdentity, Pki};
use crate::server::Server;

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to send its headers.
const HEADERS: Duration = Duration::from_secs(30);
/// How long open requests may go on after a stop. Watches end at once.
const DRAIN: Duration = Duration::from_secs(5);
/// How often a quiet HTTP/2 client is asked whether it is still there, as upstream.
const PING: Duration = Duration::from_secs(30);
/// How long it may take to say so.
const PONG: Duration = Duration::from_secs(15);
/// Streams one HTTP/2 connection may have open, as upstream.
const STREAMS: u32 = 250;

/// Serves until `stop` resolves, then lets open requests finish.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    pki: Arc<Pki>,
    server: Server,
    stop: impl Future<Output = ()> + Send,
) {
    let acceptor = TlsAcceptor::from(tls);
    let draining = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, _) = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: the pause lets some close.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        // Small writes are whole answers and watch events here: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let (acceptor, server, pki, watcher) =
            (acceptor.clone(), server.clone(), pki.clone(), draining.watcher());
        tokio::spawn(async move {
            let Some((stream, service)) = shake_hands(&acceptor, stream, &pki, server).await else { return };
            let mut builder = protocol(stream.get_ref().1.alpn_protocol());
            builder.http2().keep_alive_interval(PING).keep_alive_timeout(PONG);
            let connection = builder
                .serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service))
                .into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, draining.shutdown()).await.is_err() {
        tracing::info!("some connections were still open and are closed now");
    }
}

/// Serves one connection, from its TLS handshake on, until one side ends it. For servers that are reached by
/// something else than a listener, as in a simulation.
pub async fn serve_connection<S>(stream: S, tls: Arc<ServerConfig>, pki: Arc<Pki>, server: Server)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let acceptor = TlsAcceptor::from(tls);
    let Some((stream, service)) = shake_hands(&acceptor, stream, &pki, server).await else { return };
    let builder = protocol(stream.get_ref().1.alpn_protocol());
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn shake_hands<S>(
    acceptor: &TlsAcceptor,
    stream: S,
    pki: &Pki,
    server: Server,
) -> Option<(TlsStream<S>, WithPeer)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return None;
        }
        Err(_) => {
            tracing::debug!("a TLS handshake took too long");
            return None;
        }
    };
    // Once per connection: verifying a chain is dear, and a connection has one client.
    let peer = stream.get_ref().1.peer_certificates().and_then(|chain| pki.peer(chain)).map(Arc::new);
    Some((stream, WithPeer { server, peer }))
}

/// How a connection speaks HTTP: what its TLS handshake agreed on, version 1 where it agreed on nothing. To guess
/// from the first bytes would let a client that sends none stay for ever.
fn protocol(agreed: Option<&[u8]>) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS);
    if agreed == Some(b"h2") { builder.http2_only() } else { builder.http1_only() }
}

/// The server as one connection sees it.
#[derive(Clone)]
struct WithPeer {
    server: Server,
    peer: Option<Arc<PeerIdentity>>,
}

impl Service<http::Request<hyper::body::Incoming>> for WithPeer {
    type Response = crate::reply::Reply;
    type Error = std::convert::Infallible;
    type Future = <Server as Service<http::Request<hyper::body::Incoming>>>::Future;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<hyper::body::Incoming>) -> Self::Future {
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        self.server.call(request)
    }
}
