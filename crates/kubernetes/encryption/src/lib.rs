//! Encryption at rest: which kinds are encrypted, and with which keys.
//!
//! ```text
//! key-encryption key (key file, systemd credential, KMS plug-in)
//!        │ wraps
//! data key: one per start and configuration entry, random, in no file in clear text
//!        │ seals (AES-256-GCM)
//! value: names its key-encryption key and carries the wrapped data key
//! ```
//!
//! A sealed value needs nothing but the configuration to be opened, so log, snapshots, backups and parts of damaged
//! files can each be read alone. Snapshots are sealed with the current data key: data that was sealed with an earlier
//! key is re-encrypted when the next snapshot is written.
//!
//! The configuration is an EncryptionConfiguration as kube-apiserver reads it. What is stored differs: here the keys of
//! `aesgcm` and `secretbox` wrap data keys, and no object is sealed with them directly.

mod config;
mod envelope;
#[cfg(test)]
mod fuzz;
mod key_file;
mod kms;
mod local;
mod resources;
mod usage;

pub use config::{ConfigError, Configuration};
pub use envelope::{Encryption, EncryptionError};
pub use key_file::{KeyFile, KeyFileError};
pub use usage::{Usage, usage};
