//! Connection limits, in total and per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// File descriptors needed in addition to connections: store, keys, webhooks, clouds and workload clusters.
const OTHER_FILES: u64 = 128;
/// Minimum interval between log lines about refused connections.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Limits of open connections. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// For all addresses together.
    pub total: usize,
    /// Per IPv4 address or IPv6 /64 network, which is what one host has.
    pub per_address: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { total: 4096, per_address: 1024 }
    }
}

impl ConnectionLimits {
    /// The same limits if they fit into `files` open files, lower ones otherwise. One address then gets at most half,
    /// so that others can still connect.
    #[must_use]
    pub fn within(self, files: u64) -> Self {
        let room = files.saturating_sub(OTHER_FILES).max(files / 2).max(2);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if self.total != 0 && self.total <= room {
            return self;
        }
        let of_one = room / 2;
        let per_address = if self.per_address == 0 { of_one } else { self.per_address.min(of_one) };
        Self { total: room, per_address }
    }
}

/// Why a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The total limit is reached.
    Total,
    /// The limit of the address is reached.
    Address,
    /// The process is out of file descriptors.
    Files,
}

impl Refusal {
    pub const ALL: [Self; 3] = [Self::Total, Self::Address, Self::Files];

    /// Label value in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Address => "address",
            Self::Files => "files",
        }
    }
}

/// The open connections of one server.
#[derive(Default)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    open: Mutex<Open>,
    refused: [AtomicU64; 3],
}

#[derive(Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One open connection. Dropping it frees its slot.
pub(crate) struct Permit {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Admits a connection from an address, or counts it as refused.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Permit, Refusal> {
        let address = counted_as(address);
        let mut open = self.open.lock();
        let full = |count: usize, limit: usize| limit != 0 && count >= limit;
        let refusal = if full(open.total, self.limits.total) {
            Some(Refusal::Total)
        } else if full(open.by_address.get(&address).copied().unwrap_or(0), self.limits.per_address) {
            Some(Refusal::Address)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.refuse(refusal);
            return Err(refusal);
        }
        open.total += 1;
        *open.by_address.entry(address).or_default() += 1;
        Ok(Permit { connections: self.clone(), address })
    }

    /// Counts a refused connection.
    pub fn refuse(&self, refusal: Refusal) {
        self.refused[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Number of open connections.
    pub fn open(&self) -> usize {
        self.open.lock().total
    }

    /// Number of refused connections, by reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize].load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.total -= 1;
        if let Some(count) = open.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

/// The unit of the limit: an IPv4 address, also if mapped to IPv6, or an IPv6 /64 network.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

/// Logs refused connections at most once a minute.
#[derive(Default)]
pub(super) struct RefusalLog {
    waiting: u64,
    last: Option<(Refusal, Option<IpAddr>)>,
    quiet_until: Option<Instant>,
}

impl RefusalLog {
    /// Records a refused connection. The first is logged at once.
    pub fn record(&mut self, refusal: Refusal, address: Option<IpAddr>) {
        self.waiting += 1;
        self.last = Some((refusal, address));
        if self.quiet_until.is_none_or(|until| until <= Instant::now()) {
            self.write();
        }
    }

    /// Resolves when a log line is due; never if there is nothing to log.
    pub async fn due(&self) {
        match self.quiet_until {
            Some(until) if self.waiting > 0 => tokio::time::sleep_until(until).await,
            _ => std::future::pending().await,
        }
    }

    /// Logs the connections refused since the last line and returns their number.
    pub fn write(&mut self) -> u64 {
        let count = std::mem::take(&mut self.waiting);
        self.quiet_until = Some(Instant::now() + LOG_EVERY);
        let Some((refusal, address)) = self.last else { return count };
        let address = address.map(|address| address.to_string()).unwrap_or_default();
        let why = match refusal {
            Refusal::Total => "as many are open as --max-connections or the limit of open files allows",
            Refusal::Address => "as many are open from this address as --max-connections-per-address allows",
            Refusal::Files => "the process cannot open more files; raise its limit (LimitNOFILE, ulimit -n)",
        };
        tracing::warn!(count, address, why, "connections refused");
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn one_address_cannot_take_the_room_of_another() {
        let connections = Arc::new(Connections::new(ConnectionLimits { total: 5, per_address: 3 }));
        let mut held: Vec<Permit> = (0..3)
            .map(|_| connections.admit(ip("10.0.0.1")).unwrap_or_else(|_| panic!("there is room")))
            .collect();
        assert_eq!(connections.admit(ip("::ffff:10.0.0.1")).err(), Some(Refusal::Address));
        held.extend(
            (0..2).map(|_| connections.admit(ip("10.0.0.2")).unwrap_or_else(|_| panic!("there is room"))),
        );
        assert_eq!(connections.admit(ip("10.0.0.3")).err(), Some(Refusal::Total));
        assert_eq!((connections.open(), connections.refused(Refusal::Address)), (5, 1));
        held.remove(0);
        assert!(connections.admit(ip("10.0.0.3")).is_ok());
        drop(held);
        assert_eq!((connections.open(), connections.open.lock().by_address.len()), (0, 0));
    }

    #[test]
    fn hosts_of_one_ipv6_network_count_as_one() {
        let connections = Arc::new(Connections::new(ConnectionLimits { total: 0, per_address: 1 }));
        let _held = connections.admit(ip("2001:db8::1")).unwrap_or_else(|_| panic!("there is room"));
        assert_eq!(connections.admit(ip("2001:db8::2")).err(), Some(Refusal::Address));
        assert!(connections.admit(ip("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn limits_leave_files_for_the_store_and_room_for_a_second_address() {
        let limits = ConnectionLimits::default();
        let within = |files| {
            let ConnectionLimits { total, per_address } = limits.within(files);
            (total, per_address)
        };
        assert_eq!(within(1 << 20), (4096, 1024));
        assert_eq!(within(1024), (896, 448));
        assert_eq!(within(256), (128, 64));
        assert_eq!(within(64), (32, 16));
        let unlimited = ConnectionLimits { total: 0, per_address: 0 }.within(1024);
        assert_eq!(unlimited, ConnectionLimits { total: 896, per_address: 448 });
    }

    #[tokio::test(start_paused = true)]
    async fn refused_connections_are_one_line_a_minute() {
        let mut log = RefusalLog::default();
        for _ in 0..1000 {
            log.record(Refusal::Address, None);
        }
        assert_eq!(log.waiting, 999, "the first is logged, the others wait");
        let began = Instant::now();
        log.due().await;
        assert_eq!(began.elapsed().as_secs(), 60);
        assert_eq!(log.write(), 999);
        tokio::time::timeout(Duration::from_secs(3600), log.due()).await.expect_err("nothing is left to log");
    }
}
