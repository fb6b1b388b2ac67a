//! A site of simulated machines, in this process or in its own process that outlives management clusters.
//!
//! ```text
//!   provider ── SiteHandle ─┬─ Local: Site ───────────────────────────────────────────┐
//!                       └─ Remote: client.rs ───── HTTP, JSON ──▶ server.rs ──▶ Site (capstan-guest)
//! ```
//!
//! `clusterctl move` moves objects, not machines. With the site in its own process both management clusters see the
//! same machines, as with a real cloud. Workload clusters are reached over TLS at their own addresses.

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

/// Why a call to a site failed.
#[derive(Debug, thiserror::Error)]
pub enum SiteCallError {
    #[error("{0}")]
    Refused(#[from] SiteError),
    /// The response was lost: the call may have taken effect.
    #[error("the site at {url} does not answer: {why}")]
    Unreachable { url: String, why: String },
}

/// A local or remote site.
#[derive(Clone)]
pub enum SiteHandle {
    Local(Site),
    Remote(Remote),
}

impl From<Site> for SiteHandle {
    fn from(site: Site) -> Self {
        Self::Local(site)
    }
}

impl From<Remote> for SiteHandle {
    fn from(remote: Remote) -> Self {
        Self::Remote(remote)
    }
}

impl SiteHandle {
    pub async fn vm(&self, id: &str) -> Result<Option<Vm>, SiteCallError> {
        match self {
            Self::Local(site) => Ok(site.vm(id)),
            Self::Remote(remote) => remote.vm(id).await,
        }
    }

    /// Creates a machine and powers it on.
    pub async fn create(&self, spec: VmSpec) -> Result<Vm, SiteCallError> {
        match self {
            Self::Local(site) => Ok(site.create(spec)?),
            Self::Remote(remote) => remote.create(&spec).await,
        }
    }

    /// Removes a machine with its disk.
    pub async fn destroy(&self, id: &str) -> Result<(), SiteCallError> {
        match self {
            Self::Local(site) => Ok(site.destroy(id)?),
            Self::Remote(remote) => remote.destroy(id).await,
        }
    }

    pub async fn balancer(&self, name: &str) -> Result<Option<Balancer>, SiteCallError> {
        match self {
            Self::Local(site) => Ok(site.balancer(name)),
            Self::Remote(remote) => remote.balancer(name).await,
        }
    }

    /// Allocates the address of a load balancer, if it has none.
    pub async fn allocate(&self, name: &str) -> Result<(), SiteCallError> {
        match self {
            Self::Local(site) => {
                site.endpoint(name);
                Ok(())
            }
            Self::Remote(remote) => remote.allocate(name).await,
        }
    }

    /// Sets the members of a load balancer; no effect if it does not exist.
    pub async fn balance(&self, name: &str, members: &BTreeSet<Ipv4Addr>) -> Result<(), SiteCallError> {
        match self {
            Self::Local(site) => {
                if let Some(held) = site.balancer(name) {
                    site.balance(held.endpoint, members.clone());
                }
                Ok(())
            }
            Self::Remote(remote) => remote.balance(name, members).await,
        }
    }

    /// Releases the address of a load balancer.
    pub async fn release(&self, name: &str) -> Result<(), SiteCallError> {
        match self {
            Self::Local(site) => {
                if let Some(held) = site.balancer(name) {
                    site.release(held.endpoint);
                }
                Ok(())
            }
            Self::Remote(remote) => remote.release(name).await,
        }
    }

    /// Changes of machines from now on.
    pub fn changes(&self) -> Changes {
        match self {
            Self::Local(site) => Changes::local(site.changes()),
            Self::Remote(remote) => Changes::remote(remote.clone()),
        }
    }
}
