//! A small TCP load balancer for the API servers of a cluster.
//!
//! It forwards to ready members; if there are none, to any reachable one, since a new server may not have been
//! checked yet. Connections to a member that stops responding are closed, so that clients reconnect at once instead
//! of waiting for a TCP timeout.

mod health;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

pub use health::HealthCheck;

/// Interval at which the list of members is read and each is checked.
const INTERVAL: Duration = Duration::from_millis(500);
/// Timeout of connections and health checks.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Failed checks in a row after which connections to a member are closed.
const MAX_FAILURES: u32 = 3;

/// State of a member.
struct Member {
    ready: bool,
    failures: u32,
    /// Incremented to close its connections.
    closing: watch::Sender<u32>,
}

impl Default for Member {
    fn default() -> Self {
        Self { ready: false, failures: 0, closing: watch::Sender::new(0) }
    }
}

#[derive(Default)]
struct Members {
    known: Mutex<BTreeMap<Ipv4Addr, Member>>,
    turn: AtomicUsize,
}

impl Members {
    /// Sets the members. Connections to removed ones are closed.
    fn set(&self, addresses: &[Ipv4Addr]) {
        let mut known = self.known.lock();
        known.retain(|address, member| {
            let stays = addresses.contains(address);
            if !stays {
                member.closing.send_modify(|times| *times += 1);
            }
            stays
        });
        for address in addresses {
            known.entry(*address).or_default();
        }
    }

    /// Records a health check.
    fn record_check(&self, address: Ipv4Addr, ready: bool) {
        let mut known = self.known.lock();
        let Some(member) = known.get_mut(&address) else { return };
        if member.ready != ready {
            tracing::info!(%address, ready, "API server changed");
        }
        member.ready = ready;
        member.failures = if ready { 0 } else { member.failures.saturating_add(1) };
        if member.failures == MAX_FAILURES {
            member.closing.send_modify(|times| *times += 1);
        }
    }

    /// Members to try, ready ones first, round-robin.
    fn candidates(&self) -> Vec<(Ipv4Addr, watch::Receiver<u32>)> {
        let known = self.known.lock();
        let (mut ready, mut others) = (Vec::new(), Vec::new());
        for (address, member) in known.iter() {
            let list = if member.ready { &mut ready } else { &mut others };
            list.push((*address, member.closing.subscribe()));
        }
        if !ready.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % ready.len();
            ready.rotate_left(turn);
        }
        ready.extend(others);
        ready
    }
}

/// Serves connections while polled. The file has one address per line and may change.
pub async fn serve(listener: TcpListener, file: PathBuf, port: u16, health: HealthCheck) {
    let members = Arc::new(Members::default());
    members.set(&read(&file));
    let looking = check_members(members.clone(), &file, port, health);
    let taking = accept(listener, members, port);
    tokio::join!(looking, taking);
}

fn read(file: &Path) -> Vec<Ipv4Addr> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

async fn check_members(members: Arc<Members>, file: &Path, port: u16, health: HealthCheck) {
    loop {
        let addresses = read(file);
        members.set(&addresses);
        let mut asked = tokio::task::JoinSet::new();
        for address in addresses {
            let (members, health) = (members.clone(), health.clone());
            asked.spawn(async move {
                let ready = timeout(TIMEOUT, health.is_ready((address, port).into())).await;
                members.record_check(address, ready.unwrap_or(false));
            });
        }
        asked.join_all().await;
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn accept(listener: TcpListener, members: Arc<Members>, port: u16) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                tokio::spawn(forward(client, members.clone(), port));
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(INTERVAL).await;
            }
        }
    }
}

async fn forward(mut client: TcpStream, members: Arc<Members>, port: u16) {
    for (address, mut closing) in members.candidates() {
        let address: SocketAddr = (address, port).into();
        let Ok(Ok(mut server)) = timeout(TIMEOUT, TcpStream::connect(address)).await else { continue };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            _ = closing.changed() => {}
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
    const B: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

    fn order(members: &Members) -> Vec<Ipv4Addr> {
        members.candidates().into_iter().map(|(address, _)| address).collect()
    }

    #[test]
    fn members_that_are_ready_come_first_and_take_turns() {
        let members = Members::default();
        members.set(&[A, B]);
        members.record_check(B, true);
        assert_eq!((order(&members), order(&members)), (vec![B, A], vec![B, A]));
        members.record_check(A, true);
        assert_ne!(order(&members), order(&members));
    }

    #[test]
    fn connections_to_a_removed_or_unresponsive_member_are_closed() {
        let members = Members::default();
        members.set(&[A, B]);
        let closing: BTreeMap<Ipv4Addr, _> = members.candidates().into_iter().collect();
        let closed = |address| closing[&address].has_changed().unwrap_or(true);
        for strike in 1..=MAX_FAILURES {
            members.record_check(A, false);
            assert_eq!(closed(A), strike == MAX_FAILURES, "after {strike}");
        }
        assert!(!closed(B));
        members.set(&[A]);
        assert!(closed(B));
    }

    #[tokio::test]
    async fn a_refused_connection_is_tried_on_the_next_member() {
        let server = TcpListener::bind((B, 0)).await.expect("a listener");
        let port = server.local_addr().expect("an address").port();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("members");
        std::fs::write(&file, format!("{A}\n{B}\nnonsense\n")).expect("written");
        let front = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
        let address = front.local_addr().expect("an address");
        let balancer = tokio::spawn(serve(front, file, port, HealthCheck::new().expect("a client")));
        let mut client = TcpStream::connect(address).await.expect("connected");
        // The first connection may be a health check: it starts with TLS.
        loop {
            let (mut accepted, _) = server.accept().await.expect("taken");
            client.write_all(b"x").await.expect("sent");
            let mut byte = [0];
            accepted.read_exact(&mut byte).await.expect("read");
            if byte == *b"x" {
                break;
            }
        }
        balancer.abort();
    }
}
