//! Sockets from systemd and messages to it. Other supervisors use the same protocol, and without one nothing happens.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use anyhow::{Context, Result, ensure};
use listenfd::ListenFd;

/// The socket that `capstan.socket` listens on, if it started this process. Call it before there are other threads: the
/// variables that name the socket are removed.
pub fn inherited_listener() -> Result<Option<TcpListener>> {
    let mut passed = ListenFd::from_env();
    ensure!(passed.len() <= 1, "{} sockets were passed to the server: it serves on one", passed.len());
    if passed.len() == 0 {
        return Ok(None);
    }
    let listener = passed.take_tcp_listener(0).context("the socket that was passed to the server")?;
    if let Some(listener) = &listener {
        listener.set_nonblocking(true)?;
    }
    Ok(listener)
}

/// States of a service.
#[derive(Clone, Copy, Debug)]
pub enum State {
    Ready,
    Stopping,
}

/// Reports a state to systemd, which starts what depends on the server once it is ready.
pub fn notify(state: State) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let message = match state {
        State::Ready => "READY=1",
        State::Stopping => "STOPPING=1",
    };
    if let Err(error) = send(&socket, message) {
        tracing::warn!(%error, "systemd was not notified ({message})");
    }
}

/// A socket's name is a path, or after an `@` one without a file.
fn send(socket: &OsStr, message: &str) -> std::io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_sockets_of_both_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("@capstan-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).unwrap();
        let sockets = [
            (path.as_os_str(), UnixDatagram::bind(&path).unwrap()),
            (OsStr::new(&name), UnixDatagram::bind_addr(&address).unwrap()),
        ];
        for (socket, receiver) in sockets {
            send(socket, "READY=1").unwrap();
            let mut buffer = [0; 16];
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
    }

    #[test]
    fn a_socket_that_nobody_reads_is_an_error() {
        assert!(send(OsStr::new("/nonexistent/notify"), "READY=1").is_err());
    }
}
