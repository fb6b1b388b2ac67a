//! TLS with ALPN, as gRPC requires.

use std::io;
use std::sync::Arc;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Go's gRPC requires HTTP/2 by ALPN.
const HTTP2: &[u8] = b"h2";

pub async fn connect(
    stream: impl Stream + 'static,
    mut config: Arc<rustls::ClientConfig>,
    name: ServerName<'static>,
) -> io::Result<impl Stream + 'static> {
    if config.alpn_protocols != [HTTP2] {
        Arc::make_mut(&mut config).alpn_protocols = vec![HTTP2.to_vec()];
    }
    TlsConnector::from(config).connect(name, stream).await
}

pub async fn accept(
    stream: impl Stream + 'static,
    mut config: Arc<rustls::ServerConfig>,
) -> io::Result<impl Stream + 'static> {
    if config.alpn_protocols != [HTTP2] {
        Arc::make_mut(&mut config).alpn_protocols = vec![HTTP2.to_vec()];
    }
    TlsAcceptor::from(config).accept(stream).await
}
