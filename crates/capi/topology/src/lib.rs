//! Clusters of a ClusterClass.
//!
//! ```text
//!  ClusterClass ─┐
//!  templates ────┼─▶ Blueprint ─┐
//!  Cluster ──────┘              ├─▶ desired (pure) ── patches (pure) ──▶ Desired ─▶ applied, in order
//!  objects of the cluster ──────┘        └── versions: which part may be upgraded now
//!                                        └── ask: what extensions must answer first
//! ```
//!
//! [`desired`] says what a cluster consists of, [`patches`] what a class changes in its templates; both are pure. The
//! controllers are folders: [`cluster`] applies what is desired, server-side and as upstream's field manager, so that
//! users may own other fields; [`cluster_class`] reports the variables of a class and owns its templates.

pub mod ask;
pub mod blueprint;
pub mod cluster;
pub mod cluster_class;
pub mod current;
pub mod desired;
pub mod patches;
#[cfg(test)]
mod testing;

/// Field manager of everything that a topology consists of, as upstream's.
pub const FIELD_MANAGER: &str = "capi-topology";
