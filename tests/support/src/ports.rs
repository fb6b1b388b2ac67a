//! Free ports for programs that take theirs as a flag, chosen at run time so that tests can run side by side.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::Mutex;

use anyhow::{Context as _, Result, anyhow};

/// Below the ports of clients and of listeners on port 0, which the kernel chooses: a port of theirs can be taken
/// between the choice here and the program's start. Below node ports, too.
const PORTS: Range<u16> = 12_000..30_000;

/// How many ports a process can take before it comes to those of the process after it.
const OF_A_PROCESS: u32 = 64;

/// A port that is free on all addresses. This process never returns the same one twice.
pub fn free_port() -> Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().map_err(|_| anyhow!("choosing a port panicked"))?;
    let count = u32::from(PORTS.end - PORTS.start);
    let first = std::process::id().wrapping_mul(OF_A_PROCESS) % count;
    let mut ports = (0..count).filter_map(|n| u16::try_from((first + n) % count).ok());
    let free =
        |port: &u16| !given.contains(port) && TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    let port = ports.find_map(|n| Some(PORTS.start + n).filter(free)).context("no port is free")?;
    given.insert(port);
    Ok(port)
}
