//! A Cluster API management plane as one program; `main.rs` runs it with the clouds of [`providers`].
//!
//! ```text
//! providers.rs ── the list of clouds ──▶ cli.rs ──▶ a module per verb
//!                                          └── plugins.rs: what all clouds add to one thing, put together
//! ```
//!
//! No cloud is named here but in that list, and in the choice of a cloud that the demonstration makes.

mod apply;
mod assembly;
mod backup;
mod bundle;
mod change;
mod cli;
mod codes;
mod console;
mod delete;
mod demo;
mod doctor;
mod events;
mod exit;
mod follow;
mod get;
mod kinds;
mod kubeconfig;
mod logging;
mod manager;
mod orphans;
mod output;
mod pause;
mod picture;
mod plan;
mod plugins;
mod providers;
mod reach;
#[cfg(test)]
mod reference;
mod scale;
mod server;
mod signals;
mod sim;
mod up;
mod upgrade;
mod version;
mod wait;

pub use cli::run;
pub use providers::providers;
