//! A cluster is initialized once.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_controller::KindName;
use capstan_guest::{GuestCluster, Site};
use capstan_harness::{Checker, Objects, Step};
use capstan_object::Key;

use super::guests;
use crate::manifests::NAMESPACE;

/// S7: all machines of a Cluster are always nodes of one workload cluster, and its CA is the one in the Secret of the
/// management cluster.
pub struct InitializedOnce {
    site: Site,
    initialized: BTreeMap<String, Initialized>,
}

struct Initialized {
    guest: Arc<GuestCluster>,
    /// Uid of the CA Secret: a later Cluster of the same name has another one.
    secret: String,
}

impl InitializedOnce {
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone(), initialized: BTreeMap::new() }
    }
}

/// Fails if two observations of a cluster differ.
fn once<T>(known: &T, found: &T, same: impl Fn(&T, &T) -> bool, cluster: &str) -> Result<(), String> {
    if same(known, found) { Ok(()) } else { Err(format!("cluster {cluster} was initialized a second time")) }
}

impl Checker for InitializedOnce {
    fn name(&self) -> &'static str {
        "S7"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.look(objects)
    }

    fn idle(&mut self, objects: &Objects) -> Result<(), String> {
        self.look(objects)
    }
}

impl InitializedOnce {
    fn look(&mut self, objects: &Objects) -> Result<(), String> {
        let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
        for (cluster, machines) in guests::clusters(&self.site) {
            let stored = objects.get(&secrets, &Key::new(NAMESPACE, format!("{cluster}-ca")));
            let Some(stored) = stored else { continue };
            let secret = stored["metadata"]["uid"].as_str().unwrap_or_default();
            if self.initialized.get(&cluster).is_some_and(|initialized| initialized.secret != secret) {
                self.initialized.remove(&cluster);
            }
            for (vm, guest) in machines {
                let initialized = self
                    .initialized
                    .entry(cluster.clone())
                    .or_insert_with(|| Initialized { guest: guest.clone(), secret: secret.to_owned() });
                once(&initialized.guest, &guest, Arc::ptr_eq, &cluster)?;
                let certificate =
                    stored["data"]["tls.crt"].as_str().and_then(|text| STANDARD.decode(text).ok());
                if certificate.as_deref().is_none_or(|pem| !same_pem(pem, guest.ca_pem())) {
                    return Err(format!("the cluster of {} has another CA than its Secret", vm.id));
                }
            }
        }
        Ok(())
    }
}

fn same_pem(one: &[u8], other: &str) -> bool {
    String::from_utf8_lossy(one).trim() == other.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_initialization_is_caught() {
        assert!(once(&1, &1, i32::eq, "c").is_ok());
        assert!(once(&1, &2, i32::eq, "c").is_err());
        assert!(same_pem(b"a\n", "a") && !same_pem(b"a", "b"));
    }
}
