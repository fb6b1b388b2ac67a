//! Cluster API's core controllers: what keeps clusters and machines as their manifests say.
//!
//! ```text
//! Cluster ◀─ owns ─ MachineDeployment ─▶ MachineSet ─▶ Machine ─▶ bootstrap config, infrastructure machine
//!                        │                   ▲            ▲
//!                        └ rollout (pure) ───┘            └── MachineHealthCheck marks, the owner replaces
//! ```
//!
//! Each controller is a folder: `observe` reads, `decide` is pure, `status` words what is seen. What several
//! of them need stands beside them: [`conditions`] made of conditions, the provider [`contract`], Nodes of
//! [`workload`] clusters, [`template`]s compared and [`clone`]d, deterministic [`names`], what is
//! [`propagate`]d from owners to what they own.
//! No provider, no cloud, no kubeadm here: those are reached through references and the contract alone.

pub mod clone;
pub mod cluster;
pub mod conditions;
pub mod contract;
pub mod infrastructure;
pub mod machine;
pub mod machine_deployment;
pub mod machine_health_check;
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
