//! The TLS listener: accepts connections, passes the client's certificate to the server, closes idle connections,
//! drains on shutdown.

mod activity;
mod answering;
mod body;
mod connections;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod leaving_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unread_tests;

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use capstan_pki::Pki;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower_service::Service;

use crate::audit::RemoteAddress;
use crate::auth::Peer;
use crate::server::Server;
use activity::Activity;
use answering::{Answering, Received};
use body::BusyBody;
pub use connections::ConnectionLimits;
pub(crate) use connections::{Connections, Refusal};
use connections::{Permit, RefusalLog};

/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Timeout of the request headers, from the moment the connection is ready for them.
const HEADERS: Duration = Duration::from_secs(30);
/// How long open requests may continue after a shutdown, and an idle connection after it was asked to close.
const DRAIN: Duration = Duration::from_secs(5);
/// Interval of HTTP/2 pings on an idle connection, as upstream.
const PING: Duration = Duration::from_secs(30);
/// Timeout of a ping.
const PONG: Duration = Duration::from_secs(15);
/// Concurrent streams of one HTTP/2 connection, as upstream.
const STREAMS: u32 = 250;

/// Serves until `stop` resolves, then drains open requests.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    pki: Arc<Pki>,
    server: Server,
    stop: impl Future<Output = ()> + Send,
) {
    let acceptor = TlsAcceptor::from(tls);
    let connections = server.connections().clone();
    let (stopping, stopped) = watch::channel(false);
    // Every connection holds a sender: the channel closes with the last of them.
    let (open, mut drained) = mpsc::channel::<Infallible>(1);
    let mut refusals = RefusalLog::default();
    let mut stop = pin!(stop);
    loop {
        let (stream, address) = tokio::select! {
            biased;
            () = &mut stop => break,
            () = refusals.due() => {
                refusals.write();
                continue;
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => (stream, address.ip()),
                Err(error) => {
                    // Most likely out of file descriptors: the pause lets some connections close.
                    tracing::debug!(%error, "cannot accept a connection");
                    connections.refuse(Refusal::Files);
                    refusals.record(Refusal::Files, None);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let permit = match connections.admit(address) {
            Ok(permit) => permit,
            Err(refusal) => {
                refusals.record(refusal, Some(address));
                continue;
            }
        };
        // Small writes are complete responses and watch events: waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let stream = Counted { stream, _permit: permit };
        let (acceptor, server, pki) = (acceptor.clone(), server.clone(), pki.clone());
        let (stopped, open) = (stopped.clone(), open.clone());
        tokio::spawn(async move {
            serve_until_idle(&acceptor, stream, address, &pki, server, stopped, open).await;
        });
    }
    drop((listener, open));
    let _ = stopping.send(true);
    if tokio::time::timeout(DRAIN, drained.recv()).await.is_err() {
        tracing::info!("closing connections that are still open");
    }
}

/// Serves one connection until the client closes it or does not read its responses, it is idle for too long, or the
/// server shuts down. `open` is held for as long as a request of it goes on, which may be longer.
async fn serve_until_idle<S>(
    acceptor: &TlsAcceptor,
    stream: S,
    address: IpAddr,
    pki: &Pki,
    server: Server,
    mut stopped: watch::Receiver<bool>,
    open: mpsc::Sender<Infallible>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Some((stream, mut service)) = handshake(acceptor, stream, pki, server, Some(address)).await else {
        return;
    };
    service.to_their_end = Some(open);
    let activity = service.activity.clone();
    let mut builder = protocol(stream.get_ref().1.alpn_protocol());
    builder.http2().keep_alive_interval(PING).keep_alive_timeout(PONG);
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = async { tokio::select! { biased; () = activity.expired() => {}, _ = stopped.wait_for(|stop| *stop) => {} } } => {
            connection.as_mut().graceful_shutdown();
            // A client that does not read would never let it end.
            tokio::time::timeout(DRAIN, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// A connection that counts as open while it exists, also after a protocol upgrade.
struct Counted<S> {
    stream: S,
    _permit: Permit,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Serves one connection, from its TLS handshake on, until one side closes it. For servers without a listener, as in
/// a simulation: requests end with their connection, so that nothing runs on in a server that has crashed.
pub async fn serve_connection<S>(stream: S, tls: Arc<ServerConfig>, pki: Arc<Pki>, server: Server)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let acceptor = TlsAcceptor::from(tls);
    let Some((stream, service)) = handshake(&acceptor, stream, &pki, server, None).await else { return };
    let builder = protocol(stream.get_ref().1.alpn_protocol());
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn handshake<S>(
    acceptor: &TlsAcceptor,
    stream: S,
    pki: &Pki,
    server: Server,
    address: Option<IpAddr>,
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
            tracing::debug!("a TLS handshake timed out");
            return None;
        }
    };
    // Once per connection: verifying a chain is expensive, and a connection has one client.
    let peer = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| pki.peer(chain))
        .map(|peer| Arc::new(Peer::new(peer)));
    let address = address.map(RemoteAddress);
    let activity = Activity::new();
    Some((stream, WithPeer { server, peer, address, activity, to_their_end: None }))
}

/// The HTTP version of a connection: as negotiated by ALPN, HTTP/1 otherwise. Detecting it from the first bytes would
/// let a client that sends none stay forever.
fn protocol(agreed: Option<&[u8]>) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS);
    if agreed == Some(b"h2") { builder.http2_only() } else { builder.http1_only() }
}

/// The server with the state of one connection.
#[derive(Clone)]
struct WithPeer {
    server: Server,
    peer: Option<Arc<Peer>>,
    address: Option<RemoteAddress>,
    activity: Arc<Activity>,
    /// Held by changing requests, which go on when their client has gone. `None` if they end there.
    to_their_end: Option<mpsc::Sender<Infallible>>,
}

impl Service<http::Request<hyper::body::Incoming>> for WithPeer {
    type Response = http::Response<BusyBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<hyper::body::Incoming>) -> Self::Future {
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        if let Some(address) = self.address {
            request.extensions_mut().insert(address);
        }
        let busy = self.activity.begin();
        let server = self.server.clone();
        let open = self.to_their_end.clone().filter(|_| answering::is_changing(request.method()));
        let to_its_end = open.is_some();
        let (head, body) = request.into_parts();
        let body = Received::new(body, head.version);
        let request = http::Request::from_parts(head, body);
        let answered = async move {
            let reply = server.handle(request).await;
            drop(open);
            reply.map(|body| BusyBody::new(body, busy))
        };
        Answering::new(answered, to_its_end)
    }
}
