//! Free loopback ports, chosen at run time so that suites can run side by side.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Mutex;

use anyhow::{Result, anyhow};

/// A free loopback port. This process never returns the same one twice.
pub fn free_port() -> Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().map_err(|_| anyhow!("choosing a port panicked"))?;
    loop {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        if given.insert(port) {
            return Ok(port);
        }
    }
}
