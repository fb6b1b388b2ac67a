//! Real OpenStack services as processes on this machine, by the scripts in `tests/openstack-bed`. They live in a folder of
//! the cache of peers and are started once for many runs.

mod admin;
mod leftovers;
mod pairing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::cargo;
use crate::peers::Cache;
use admin::{Admin, Password};
pub use pairing::Pairing;

/// The tenant's cloud in `clouds.yaml`, its project and its user.
pub const TENANT: &str = "capstan";
/// Zones of the two hypervisors.
pub const ZONES: [&str; 2] = ["az1", "az2"];
/// Where the scripts are.
const SCRIPTS: &str = "tests/openstack-bed";
/// How our client calls itself in the services' logs of requests.
const AGENT: &str = "capstan/";

/// Running services.
#[derive(Debug)]
pub struct RealOpenStack {
    folder: PathBuf,
    /// What the tenant would put into a Secret.
    pub clouds_yaml: String,
    admin: Admin,
}

impl RealOpenStack {
    /// Installs and starts the services; those that run already are kept.
    pub async fn start(folder: Option<&Path>) -> Result<Self> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => Cache::locate()?.folder("openstack-bed")?,
        };
        for verb in ["install", "up"] {
            script(&folder, verb).await?;
        }
        let clouds_yaml = std::fs::read_to_string(folder.join("clouds.yaml"))?;
        let clouds: Value = serde_saphyr::from_str(&clouds_yaml)?;
        let auth = |cloud: &str, field: &str| {
            let value = clouds["clouds"][cloud]["auth"][field].as_str().map(ToOwned::to_owned);
            value.with_context(|| format!("clouds.yaml has no {field} for {cloud}"))
        };
        let session = async |cloud: &str| {
            let (url, password) = (auth(cloud, "auth_url")?, auth(cloud, "password")?);
            Admin::sign_in(&Password { auth_url: &url, user: cloud, password: &password }).await
        };
        // Neutron makes a tenant's default group when the tenant first looks.
        session(TENANT).await?.list("network", "/v2.0/security-groups").await?;
        let admin = session("admin").await?;
        Ok(Self { folder, clouds_yaml, admin })
    }

    /// Stops the services; their data stay.
    pub async fn stop(&self) -> Result<()> {
        script(&self.folder, "down").await
    }

    /// Everything that the tenant has in any service, and Octavia for it.
    pub async fn resources(&self) -> Result<BTreeSet<String>> {
        leftovers::of(&self.admin, TENANT).await
    }

    /// Boots guests for the tenant's servers.
    pub async fn pair(&self, listener: TcpListener) -> Result<Pairing> {
        Pairing::start(self.admin.clone(), leftovers::project(&self.admin, TENANT).await?, listener)
    }

    /// The tenant's servers as Nova shows them to an administrator.
    pub async fn servers(&self) -> Result<Vec<Value>> {
        let project = leftovers::project(&self.admin, TENANT).await?;
        self.admin.list("compute", &format!("/servers/detail?all_tenants=1&project_id={project}")).await
    }

    /// Number of requests of our provider so far, by service, method and path.
    pub fn calls(&self) -> Result<BTreeMap<String, u64>> {
        let mut calls = BTreeMap::new();
        let folder = self.folder.join("run/calls");
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let service = entry.file_name().to_string_lossy().trim_end_matches("-api").to_owned();
            // A name in a query may be any bytes.
            let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
            for call in text.lines().filter_map(|line| counted(&service, line)) {
                *calls.entry(call).or_default() += 1;
            }
        }
        Ok(calls)
    }
}

/// What a line of a log of requests counts as: `status method path milliseconds agent`. Only ours count.
fn counted(service: &str, line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (_status, method, path, _took, agent) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    if !agent.starts_with(AGENT) {
        return None;
    }
    let path = path.split('?').next().unwrap_or_default();
    let is_id =
        |part: &&str| part.len() >= 32 && part.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
    let path: Vec<&str> = path.split('/').map(|part| if is_id(&part) { "{id}" } else { part }).collect();
    Some(format!("{service} {method} {}", path.join("/")))
}

async fn script(folder: &Path, verb: &str) -> Result<()> {
    let path = cargo::root().join(SCRIPTS).join("bed.sh");
    let status = tokio::process::Command::new("bash")
        .arg(&path)
        .arg(verb)
        .env("BED_DIR", folder)
        .stdin(Stdio::null())
        .status()
        .await
        .with_context(|| format!("run {}", path.display()))?;
    if !status.success() {
        bail!("{} {verb} with BED_DIR={} failed with {status}", path.display(), folder.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_our_client_count_without_ids_and_queries() {
        let line = |agent: &str| {
            format!("200 GET /v2.0/ports/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0?fields=id 12 {agent}")
        };
        let ours = counted("neutron", &line("capstan/0.1.0"));
        assert_eq!(ours.as_deref(), Some("neutron GET /v2.0/ports/{id}"));
        assert_eq!(counted("neutron", &line("interop")), None);
        assert_eq!(counted("neutron", "cut off"), None);
    }
}
