//! A site of simulated machines, in this process or in one of its own that outlives every plane.
//!
//! ```text
//!   provider ── Ground ─┬─ Here: Site ────────────────────────────────────────────┐
//!                       └─ Elsewhere: client.rs ── HTTP, JSON ──▶ server.rs ──▶ Site (capstan-guest)
//! ```
//!
//! A plane that moves its clusters to another one hands over objects, never machines: those stay where they run.
//! With the site in a process of its own both planes see the same machines, as both would see the same cloud.
//! Clusters themselves are reached as ever, over TLS at their addresses.

mod changes;
mod client;
mod server;
mod wire;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use capstan_guest::vm::{Vm, VmSpec};
use capstan_guest::{Balancer, Site, SiteError};

pub use changes::{Changed, Changes};
pub use client::{BadUrl, Remote};
pub use server::serve;

/// Why a site did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// It says no.
    #[error("{0}")]
    Refused(#[from] SiteError),
    /// Nobody heard its answer: it may have done it or not.
    #[error("the site at {url} does not answer: {why}")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What happened instead.
        why: String,
    },
}

/// Where simulated machines are.
#[derive(Clone)]
pub enum Ground {
    /// In this process.
    Here(Site),
    /// In another one.
    Elsewhere(Remote),
}

impl From<Site> for Ground {
    fn from(site: Site) -> Self {
        Self::Here(site)
    }
}

impl From<Remote> for Ground {
    fn from(remote: Remote) -> Self {
        Self::Elsewhere(remote)
    }
}

impl Ground {
    /// A machine.
    pub async fn vm(&self, id: &str) -> Result<Option<Vm>, GroundError> {
        match self {
            Self::Here(site) => Ok(site.vm(id)),
            Self::Elsewhere(remote) => remote.vm(id).await,
        }
    }

    /// Creates a machine and switches it on.
    pub async fn create(&self, spec: VmSpec) -> Result<Vm, GroundError> {
        match self {
            Self::Here(site) => Ok(site.create(spec)?),
            Self::Elsewhere(remote) => remote.create(&spec).await,
        }
    }

    /// Removes a machine with its disk.
    pub async fn destroy(&self, id: &str) -> Result<(), GroundError> {
        match self {
            Self::Here(site) => Ok(site.destroy(id)?),
            Self::Elsewhere(remote) => remote.destroy(id).await,
        }
    }

    /// A load balancer, if its address is allocated.
    pub async fn balancer(&self, name: &str) -> Result<Option<Balancer>, GroundError> {
        match self {
            Self::Here(site) => Ok(site.balancer(name)),
            Self::Elsewhere(remote) => remote.balancer(name).await,
        }
    }

    /// Allocates the address of a load balancer, unless it is.
    pub async fn allocate(&self, name: &str) -> Result<(), GroundError> {
        match self {
            Self::Here(site) => {
                site.endpoint(name);
                Ok(())
            }
            Self::Elsewhere(remote) => remote.allocate(name).await,
        }
    }

    /// Says which machines a load balancer leads to; nothing happens to one that is not there.
    pub async fn balance(&self, name: &str, members: &BTreeSet<Ipv4Addr>) -> Result<(), GroundError> {
        match self {
            Self::Here(site) => {
                if let Some(held) = site.balancer(name) {
                    site.balance(held.endpoint, members.clone());
                }
                Ok(())
            }
            Self::Elsewhere(remote) => remote.balance(name, members).await,
        }
    }

    /// Gives the address of a load balancer back, if it has one.
    pub async fn release(&self, name: &str) -> Result<(), GroundError> {
        match self {
            Self::Here(site) => {
                if let Some(held) = site.balancer(name) {
                    site.release(held.endpoint);
                }
                Ok(())
            }
            Self::Elsewhere(remote) => remote.release(name).await,
        }
    }

    /// What changes from here on.
    pub fn changes(&self) -> Changes {
        match self {
            Self::Here(site) => Changes::here(site.changes()),
            Self::Elsewhere(remote) => Changes::elsewhere(remote.clone()),
        }
    }
}
