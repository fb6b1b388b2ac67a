//! A Cluster API management plane as one program; `main.rs` runs it with the clouds of [`providers`].
//!
//! ```text
//! providers.rs ── the list of clouds ──▶ cli.rs ──▶ a module per verb
//!                                          └── plugins.rs: definitions, flags, codes … of all clouds together
//! ```
//!
//! Only that list and the demo's choice of a cloud (`demo/choice.rs`) name a cloud.

mod adopt;
mod apply;
mod assembly;
mod audit;
mod backup;
mod bundle;
mod change;
mod cli;
mod codes;
mod completion;
mod connection;
mod console;
mod delete;
mod demo;
mod doctor;
mod encryption;
mod events;
mod exit;
mod follow;
mod generate;
mod get;
mod init;
mod inspect;
mod kinds;
mod kubeconfig;
mod logging;
mod manager;
mod open_files;
mod orphans;
mod output;
mod pause;
mod plan;
mod plugins;
mod prompt;
mod providers;
#[cfg(test)]
mod reference;
mod release_files;
#[cfg(test)]
mod rights;
mod scale;
mod server;
mod set;
mod signals;
mod sim;
mod store;
mod systemd;
mod top;
mod topology;
mod traces;
mod up;
mod upgrade;
mod version;
mod versions;
mod wait;
mod workers;

pub use cli::run;
pub use providers::providers;
