//! Connections by host and port.

use std::io;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::workload::Stream;

/// Makes connections.
pub trait Dial: Send + Sync {
    /// Connects to a port of a host.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;

    /// How often a server that says nothing is asked whether it is still there; never, if connections to it cannot die
    /// unnoticed.
    fn ask_every(&self, _host: &str, _port: u16) -> Option<Duration> {
        None
    }
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

    /// client-go's time.
    fn ask_every(&self, _host: &str, _port: u16) -> Option<Duration> {
        Some(Duration::from_secs(30))
    }
}
