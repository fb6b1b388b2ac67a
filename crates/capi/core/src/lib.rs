//! Cluster API's core controllers: Clusters, Machines, MachineSets, MachineDeployments, MachinePools,
//! MachineHealthChecks.
//!
//! ```text
//! Cluster ◀─ owns ─ MachineDeployment ─▶ MachineSet ─▶ Machine ─▶ bootstrap config, infrastructure machine
//!                        │                   ▲            ▲
//!                        └ rollout (pure) ───┘            └── MachineHealthCheck marks it, its owner replaces it
//! ```
//!
//! Each controller is a folder: `observe` reads, `observed` is what it read, `decide` is pure, `status` reports.
//! Modules used by several controllers are next to them: merging [`conditions`], the provider [`contract`], Nodes of
//! [`workload`] clusters, comparing ([`template`]) and cloning ([`clone`]) templates, deterministic [`names`], and
//! fields that are [`propagate`]d from owners to children, and updates [`in_place`]. There is no provider, cloud or kubeadm here: those are
//! accessed only through references and the contract.

pub mod clone;
pub mod cluster;
pub mod conditions;
pub mod contract;
pub mod in_place;
pub mod machine;
pub mod machine_deployment;
pub mod machine_health_check;
pub mod machine_pool;
pub mod machine_set;
pub mod machines;
mod members;
pub mod names;
pub mod owners;
pub mod paused;
pub mod propagate;
pub mod secret;
pub mod selector;
pub mod template;
#[cfg(test)]
mod testing;
pub mod workload;
