//! Corefiles, the configuration of CoreDNS, and their migration to a later CoreDNS version.
//!
//! ```text
//! text ─▶ Corefile ─▶ once per release on the way: rules ─▶ text
//! ```
//!
//! The rules are those of corefile-migration 1.0.34, the library that kubeadm and Cluster API use, with Cluster
//! API's options: deprecated plugins stay until they are removed. `cargo xtask corefile-goldens` compares both,
//! byte by byte.

mod parse;
mod rules;

use std::fmt;

use capstan_capi_types::version::COREDNS_RELEASES as RELEASES;

/// Why a Corefile cannot be migrated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// The current version is unknown.
    #[error("start version '{0}' not supported")]
    UnknownVersion(String),
    /// The target version is unknown or older.
    #[error("cannot migrate up to '{to}' from '{from}'")]
    NoWay { from: String, to: String },
    #[error("the Corefile is malformed: {0}")]
    Malformed(&'static str),
    /// It has a construct that no rule covers.
    #[error("{0}")]
    Unhandled(&'static str),
}

/// Releases of CoreDNS whose Corefiles can be migrated, in order.
pub fn releases() -> &'static [&'static str] {
    RELEASES
}

/// Migrates a Corefile to a later version of CoreDNS. Versions have no `v`: `1.11.3`. The same version changes
/// nothing; any other rewrites the Corefile in canonical form, without comments.
pub fn migrate(corefile: &str, from: &str, to: &str) -> Result<String, MigrateError> {
    if from == to {
        return Ok(corefile.to_owned());
    }
    let position = |version: &str| RELEASES.iter().position(|known| *known == version);
    let begin = position(from).ok_or_else(|| MigrateError::UnknownVersion(from.to_owned()))?;
    let no_way = || MigrateError::NoWay { from: from.to_owned(), to: to.to_owned() };
    let end = position(to).filter(|end| *end > begin).ok_or_else(no_way)?;
    let mut corefile = Corefile::parse(corefile)?;
    for release in &RELEASES[begin + 1..=end] {
        rules::apply(&mut corefile, release)?;
    }
    Ok(corefile.to_string())
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Corefile {
    servers: Vec<Server>,
}

/// A server block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Server {
    /// Zones, ports, or both: `.:53`.
    domains: Vec<String>,
    plugins: Vec<Plugin>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Plugin {
    name: String,
    args: Vec<String>,
    options: Vec<Setting>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    name: String,
    args: Vec<String>,
}

impl Plugin {
    fn new(name: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { name: name.to_owned(), args, options: Vec::new() }
    }
}

impl fmt::Display for Corefile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, server) in self.servers.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", words(&server.domains).join(" "))?;
            if server.plugins.is_empty() {
                continue;
            }
            writeln!(f, " {{")?;
            for plugin in &server.plugins {
                write!(f, "    {}", line(&plugin.name, &plugin.args))?;
                if !plugin.options.is_empty() {
                    writeln!(f, " {{")?;
                    for option in &plugin.options {
                        writeln!(f, "        {}", line(&option.name, &option.args))?;
                    }
                    write!(f, "    }}")?;
                }
                writeln!(f)?;
            }
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}

/// Writes a name, which is never quoted, and its arguments.
fn line(name: &str, args: &[String]) -> String {
    let mut words = words(args);
    words.insert(0, name.to_owned());
    words.join(" ")
}

/// Quotes arguments that contain several words.
fn words(args: &[String]) -> Vec<String> {
    let quoted = |arg: &String| match arg.split_whitespace().count() {
        0 | 1 => arg.clone(),
        _ => format!("\"{}\"", arg.replace('"', "\\\"")),
    };
    args.iter().map(quoted).collect()
}

#[cfg(test)]
mod tests;
