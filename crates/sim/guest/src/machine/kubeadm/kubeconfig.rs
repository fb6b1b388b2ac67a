//! The phase `kubeconfig`: kubeconfigs of the control plane components.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_pki::{Authority, Leaf};
use serde_json::{Value, json};

use super::config::Cluster;
use super::files::yaml;
use super::{Abort, DIRECTORY, Kubeadm};

/// A kubeconfig to write.
struct Entry<'a> {
    file: &'a str,
    user: String,
    groups: &'a [&'a str],
    server: &'a str,
}

/// Servers in kubeconfigs: the cluster's endpoint, or this machine's own API server.
pub(super) struct Servers {
    pub(super) cluster: String,
    pub(super) local: String,
}

impl Kubeadm<'_, '_> {
    /// Writes missing kubeconfigs of a control plane.
    pub(super) fn kubeconfigs(
        &mut self,
        phase: &str,
        cluster: &Cluster,
        node: &str,
        servers: &Servers,
    ) -> Result<(), Abort> {
        self.print(&format!("[kubeconfig] Using kubeconfig folder {DIRECTORY:?}"));
        let has_super_admin = self.version.at_least(29);
        let admins: &[&str] = if has_super_admin { &["kubeadm:cluster-admins"] } else { &["system:masters"] };
        let mut entries = vec![Entry {
            file: "admin.conf",
            user: "kubernetes-admin".to_owned(),
            groups: admins,
            server: &servers.cluster,
        }];
        if phase == "kubeconfig" {
            if has_super_admin {
                entries.push(Entry {
                    file: "super-admin.conf",
                    user: "kubernetes-super-admin".to_owned(),
                    groups: &["system:masters"],
                    server: &servers.cluster,
                });
            }
            entries.push(Entry {
                file: "kubelet.conf",
                user: format!("system:node:{node}"),
                groups: &["system:nodes"],
                server: &servers.cluster,
            });
        }
        for component in ["controller-manager", "scheduler"] {
            let file = if component == "scheduler" { "scheduler.conf" } else { "controller-manager.conf" };
            entries.push(Entry {
                file,
                user: format!("system:kube-{component}"),
                groups: &[],
                server: &servers.local,
            });
        }
        let directory = cluster.certificates_dir();
        for entry in entries {
            let path = format!("{DIRECTORY}/{}", entry.file);
            if self.guest.files.exists(&path) {
                self.print(&format!("[kubeconfig] Using existing kubeconfig file: {path:?}"));
                continue;
            }
            let failed =
                |why: String| Abort::phase(&format!("{phase}/{}", entry.file.trim_end_matches(".conf")), why);
            let config = self.kubeconfig(directory, cluster, &entry).map_err(&failed)?;
            self.print(&format!("[kubeconfig] Writing {:?} kubeconfig file", entry.file));
            self.put(&path, yaml(&config).as_bytes(), 0o600).map_err(|error| {
                failed(format!("failed to save kubeconfig file {path}: {}", error.lower()))
            })?;
        }
        Ok(())
    }

    fn kubeconfig(&self, directory: &str, cluster: &Cluster, entry: &Entry<'_>) -> Result<Value, String> {
        let credential = self
            .load_pair(directory, "ca")
            .map_err(|why| format!("couldn't create a kubeconfig; the CA files couldn't be loaded: {why}"))?;
        let ca = STANDARD.encode(credential.certificate_pem());
        let leaf = Leaf::Client {
            name: entry.user.clone(),
            groups: entry.groups.iter().map(|group| (*group).to_owned()).collect(),
        };
        let client = cluster
            .algorithm()
            .key()
            .and_then(|key| {
                Authority::new(credential).issue_for(self.guest.env, &leaf, key, cluster.validity(false))
            })
            .map_err(|error| error.to_string())?;
        let name = match cluster.text("/clusterName") {
            "" => "kubernetes",
            name => name,
        };
        let context = format!("{}@{name}", entry.user);
        Ok(json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": context,
            "clusters": [{"name": name, "cluster": {"server": entry.server, "certificate-authority-data": ca}}],
            "contexts": [{"name": context, "context": {"cluster": name, "user": entry.user}}],
            "users": [{"name": entry.user, "user": {
                "client-certificate-data": STANDARD.encode(client.certificate_pem()),
                "client-key-data": STANDARD.encode(client.key.to_pem()),
            }}],
        }))
    }
}
