//! Connections by host and port.

use std::io;

use futures::future::BoxFuture;

use crate::workload::Stream;

/// Makes connections.
pub trait Dial: Send + Sync {
    /// Connects to a port of a host.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;
}

/// Connections over TCP.
pub struct TcpDial;

impl Dial for TcpDial {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
