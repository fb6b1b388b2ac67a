//! A cluster is founded once.

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

/// S7: all machines of a Cluster, for its whole life, are nodes of one cluster, whose authority is the one in the
/// management plane's Secret.
pub struct FoundedOnce {
    site: Site,
    founded: BTreeMap<String, Founded>,
}

struct Founded {
    guest: Arc<GuestCluster>,
    /// Uid of the Secret with the authority: a Cluster of the same name may come again, with another one.
    secret: String,
}

impl FoundedOnce {
    /// Looks at the clusters of a site.
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone(), founded: BTreeMap::new() }
    }
}

/// Whether clusters, as one sees them one after the other, are one and the same.
fn once<T>(known: &T, found: &T, same: impl Fn(&T, &T) -> bool, cluster: &str) -> Result<(), String> {
    if same(known, found) { Ok(()) } else { Err(format!("cluster {cluster} was founded a second time")) }
}

impl Checker for FoundedOnce {
    fn name(&self) -> &'static str {
        "S7"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.look(objects)
    }

    fn at_rest(&mut self, objects: &Objects) -> Result<(), String> {
        self.look(objects)
    }
}

impl FoundedOnce {
    fn look(&mut self, objects: &Objects) -> Result<(), String> {
        let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
        for (cluster, machines) in guests::clusters(&self.site) {
            let stored = objects.get(&secrets, &Key::new(NAMESPACE, format!("{cluster}-ca")));
            let Some(stored) = stored else { continue };
            let secret = stored["metadata"]["uid"].as_str().unwrap_or_default();
            if self.founded.get(&cluster).is_some_and(|founded| founded.secret != secret) {
                self.founded.remove(&cluster);
            }
            for (vm, guest) in machines {
                let founded = self
                    .founded
                    .entry(cluster.clone())
                    .or_insert_with(|| Founded { guest: guest.clone(), secret: secret.to_owned() });
                once(&founded.guest, &guest, Arc::ptr_eq, &cluster)?;
                let certificate =
                    stored["data"]["tls.crt"].as_str().and_then(|text| STANDARD.decode(text).ok());
                if certificate.as_deref().is_none_or(|pem| !same_pem(pem, guest.ca_pem())) {
                    return Err(format!(
                        "the cluster of {} trusts another authority than its Secret has",
                        vm.id
                    ));
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
    fn a_second_founding_is_caught() {
        assert!(once(&1, &1, i32::eq, "c").is_ok());
        assert!(once(&1, &2, i32::eq, "c").is_err());
        assert!(same_pem(b"a\n", "a") && !same_pem(b"a", "b"));
    }
}
