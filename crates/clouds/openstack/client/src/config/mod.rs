//! Settings of a cloud: what `clouds.yaml` says, merged as other clients of OpenStack merge it, and checked.
//!
//! ```text
//! clouds.yaml ─┐
//! secure.yaml ─┼─ Clouds ── cloud(name, region) ── Cloud
//! clouds-public.yaml ─┘
//! ```
//!
//! [`Clouds::parse`] reads texts alone, for programs that keep settings elsewhere than in files. [`Files`] looks where
//! other clients look. [`Environment`] reads variables, and nothing else here does.

mod environment;
mod files;
mod merge;
mod order;
mod resolve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use capstan_cloud_http::Trust;
use serde_json::{Map, Value};
use url::Url;

pub use environment::Environment;
pub use files::Files;

use crate::auth::Credentials;
use crate::service::Service;

/// Longest file that is read.
const LONGEST_FILE: usize = 1024 * 1024;

/// From where a service is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Interface {
    /// From everywhere.
    #[default]
    Public,
    /// From inside the cloud.
    Internal,
    /// By operators.
    Admin,
}

impl Interface {
    /// The word in catalogs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}

/// Settings of one cloud, ready to be used.
#[derive(Debug, Clone)]
pub struct Cloud {
    /// What the settings call it.
    pub name: String,
    /// How to prove who asks.
    pub credentials: Credentials,
    /// Keystone, with its version.
    pub identity_url: Url,
    /// The region; without one the first endpoint in the catalog counts.
    pub region: Option<String>,
    /// From where services are reached.
    pub interface: Interface,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// The file with the authorities to believe, if the settings name one. It is not read: [`Cloud::read_ca_file`] does,
    /// where the settings come from whoever runs the program.
    pub ca_file: Option<PathBuf>,
    /// URLs that the settings have in place of the catalog's.
    pub endpoint_overrides: BTreeMap<Service, Url>,
}

impl Cloud {
    /// Believes the authorities in the file that the settings name, if they name one and do not turn checks off.
    pub fn read_ca_file(mut self) -> Result<Self, ConfigError> {
        if let (Some(path), Trust::System) = (&self.ca_file, &self.trust) {
            let pem = std::fs::read(path).map_err(|error| ConfigError::Unreadable {
                what: path.display().to_string(),
                why: error.kind().to_string(),
            })?;
            self.trust = Trust::Bundle(pem);
        }
        Ok(self)
    }

    /// Believes these authorities, in PEM, unless the settings turn checks off.
    #[must_use]
    pub fn with_ca(mut self, pem: Vec<u8>) -> Self {
        if !matches!(self.trust, Trust::Anyone) {
            self.trust = Trust::Bundle(pem);
        }
        self
    }
}

/// Settings that cannot be used. Messages never hold a value that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file or text is none of the kind that is expected.
    #[error("{what} cannot be read: {why}")]
    Unreadable {
        /// The file.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such cloud.
    #[error("there is no cloud {name:?} in clouds.yaml{}", offered(.known))]
    NoCloud {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Several clouds, and none was asked for.
    #[error("clouds.yaml has several clouds: name one of {}", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// The cloud does not have this region.
    #[error("cloud {cloud}: region {region:?} is none of its regions: {}", .known.join(", "))]
    NoRegion {
        /// The cloud.
        cloud: String,
        /// What was asked for.
        region: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A setting is missing.
    #[error("cloud {cloud}: {field} is missing: {mend}")]
    Missing {
        /// The cloud.
        cloud: String,
        /// The setting.
        field: &'static str,
        /// What to do.
        mend: String,
    },
    /// A setting has a value that cannot be used.
    #[error("cloud {cloud}: {field} {why}")]
    Invalid {
        /// The cloud.
        cloud: String,
        /// The setting.
        field: String,
        /// What is wrong with it.
        why: String,
    },
}

fn offered(known: &[String]) -> String {
    match known.is_empty() {
        true => String::new(),
        false => format!("; it has {}", known.join(", ")),
    }
}

/// The settings of several clouds, merged and not yet checked.
#[derive(Clone, Default)]
pub struct Clouds {
    clouds: Map<String, Value>,
    /// Names in the order of `clouds.yaml`.
    order: Vec<String>,
    profiles: Map<String, Value>,
}

impl Clouds {
    /// Reads the texts of `clouds.yaml` and, where there are such, of `secure.yaml` and `clouds-public.yaml`.
    pub fn parse(clouds: &str, secure: Option<&str>, public: Option<&str>) -> Result<Self, ConfigError> {
        let mut merged = files::read("clouds.yaml", clouds)?;
        if let Some(secure) = secure {
            merge::deep(&mut merged, files::read("secure.yaml", secure)?);
        }
        let public = public.map(|public| files::read("clouds-public.yaml", public)).transpose()?;
        Ok(Self { order: order::of(clouds), ..Self::of(merged, public.unwrap_or_default()) })
    }

    fn of(mut merged: Map<String, Value>, mut public: Map<String, Value>) -> Self {
        let section = |map: &mut Map<String, Value>, key: &str| match map.remove(key) {
            Some(Value::Object(section)) => section,
            _ => Map::new(),
        };
        Self {
            clouds: section(&mut merged, "clouds"),
            order: Vec::new(),
            profiles: section(&mut public, "public-clouds"),
        }
    }

    /// The names of the clouds: in the order of the text that [`Clouds::parse`] read, else sorted.
    pub fn names(&self) -> Vec<String> {
        let known = self.order.iter().filter(|name| self.clouds.contains_key(*name));
        let others = self.clouds.keys().filter(|name| !self.order.contains(name));
        known.chain(others).cloned().collect()
    }

    /// A cloud by name, or the only one there is. The region beats that of the settings.
    pub fn cloud(&self, name: Option<&str>, region: Option<&str>) -> Result<Cloud, ConfigError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => match self.names().as_slice() {
                [only] => only.clone(),
                [] => return Err(ConfigError::NoCloud { name: String::new(), known: Vec::new() }),
                several => return Err(ConfigError::Ambiguous(several.to_vec())),
            },
        };
        let Some(entry) = self.clouds.get(&name).and_then(Value::as_object) else {
            return Err(ConfigError::NoCloud { name, known: self.names() });
        };
        resolve::cloud(&name, entry, &self.profiles, region)
    }
}

/// Settings hold secrets.
impl std::fmt::Debug for Clouds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clouds").field("names", &self.names()).finish_non_exhaustive()
    }
}
