//! A small TCP balancer before the API servers of a cluster.
//!
//! It leads to members that say they are ready; if none does, to any that can be reached, for a server that nobody
//! has asked yet may still be the one. Connections to a member that stops answering are closed, so that clients
//! find another at once instead of waiting for a timeout of TCP.

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

pub use health::Asking;

/// How often the list of members is read and each is asked.
const EVERY: Duration = Duration::from_millis(500);
/// How long a member may take to take a connection or to say that it is ready.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often in a row a member may not answer before its connections are closed.
const STRIKES: u32 = 3;

/// What is known of a member.
struct Member {
    ready: bool,
    strikes: u32,
    /// Goes up when its connections are to be closed.
    closing: watch::Sender<u32>,
}

impl Default for Member {
    fn default() -> Self {
        Self { ready: false, strikes: 0, closing: watch::Sender::new(0) }
    }
}

/// Members and what is known of them.
#[derive(Default)]
struct Members {
    known: Mutex<BTreeMap<Ipv4Addr, Member>>,
    turn: AtomicUsize,
}

impl Members {
    /// The members are these from now on. Connections to others are closed.
    fn are(&self, addresses: &[Ipv4Addr]) {
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

    /// A member was asked.
    fn answered(&self, address: Ipv4Addr, ready: bool) {
        let mut known = self.known.lock();
        let Some(member) = known.get_mut(&address) else { return };
        if member.ready != ready {
            tracing::info!(%address, ready, "an API server has changed");
        }
        member.ready = ready;
        member.strikes = if ready { 0 } else { member.strikes.saturating_add(1) };
        if member.strikes == STRIKES {
            member.closing.send_modify(|times| *times += 1);
        }
    }

    /// Members to try, those that are ready first, each in turn.
    fn to_try(&self) -> Vec<(Ipv4Addr, watch::Receiver<u32>)> {
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

/// Serves connections for as long as it is polled. The file has one address per line and may change.
pub async fn serve(listener: TcpListener, file: PathBuf, port: u16, asking: Asking) {
    let members = Arc::new(Members::default());
    members.are(&read(&file));
    let looking = look(members.clone(), &file, port, asking);
    let taking = take(listener, members, port);
    tokio::join!(looking, taking);
}

fn read(file: &Path) -> Vec<Ipv4Addr> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

async fn look(members: Arc<Members>, file: &Path, port: u16, asking: Asking) {
    loop {
        let addresses = read(file);
        members.are(&addresses);
        let mut asked = tokio::task::JoinSet::new();
        for address in addresses {
            let (members, asking) = (members.clone(), asking.clone());
            asked.spawn(async move {
                let ready = timeout(PATIENCE, asking.is_ready((address, port).into())).await;
                members.answered(address, ready.unwrap_or(false));
            });
        }
        asked.join_all().await;
        tokio::time::sleep(EVERY).await;
    }
}

async fn take(listener: TcpListener, members: Arc<Members>, port: u16) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                tokio::spawn(lead(client, members.clone(), port));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(EVERY).await;
            }
        }
    }
}

async fn lead(mut client: TcpStream, members: Arc<Members>, port: u16) {
    for (address, mut closing) in members.to_try() {
        let address: SocketAddr = (address, port).into();
        let Ok(Ok(mut server)) = timeout(PATIENCE, TcpStream::connect(address)).await else { continue };
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
        members.to_try().into_iter().map(|(address, _)| address).collect()
    }

    #[test]
    fn members_that_are_ready_come_first_and_take_turns() {
        let members = Members::default();
        members.are(&[A, B]);
        members.answered(B, true);
        assert_eq!((order(&members), order(&members)), (vec![B, A], vec![B, A]));
        members.answered(A, true);
        assert_ne!(order(&members), order(&members));
    }

    #[test]
    fn connections_are_closed_when_a_member_goes_or_is_silent_for_long() {
        let members = Members::default();
        members.are(&[A, B]);
        let closing: BTreeMap<Ipv4Addr, _> = members.to_try().into_iter().collect();
        let closed = |address| closing[&address].has_changed().unwrap_or(true);
        for strike in 1..=STRIKES {
            members.answered(A, false);
            assert_eq!(closed(A), strike == STRIKES, "after {strike}");
        }
        assert!(!closed(B));
        members.are(&[A]);
        assert!(closed(B));
    }

    #[tokio::test]
    async fn a_connection_goes_on_to_the_next_member_when_one_refuses() {
        let server = TcpListener::bind((B, 0)).await.expect("a listener");
        let port = server.local_addr().expect("an address").port();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("members");
        std::fs::write(&file, format!("{A}\n{B}\nnonsense\n")).expect("written");
        let front = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
        let address = front.local_addr().expect("an address");
        let balancer = tokio::spawn(serve(front, file, port, Asking::new().expect("a client")));
        let mut client = TcpStream::connect(address).await.expect("connected");
        // The first to come may be the balancer asking whether the member is ready: it speaks TLS.
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
