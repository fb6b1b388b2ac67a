//! Files that kubeadm reads and writes beside certificates.

use serde_json::Value;

use super::config::Patches;
use super::{Abort, Kubeadm};
use crate::request::Files;

/// A value as YAML. JSON is YAML too, should it not be possible otherwise.
pub(super) fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// What patches may be for.
const TARGETS: [&str; 7] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubeletconfiguration",
    "corednsdeployment",
    "kube-proxy",
];

impl Kubeadm<'_, '_> {
    /// Files below a directory, by path relative to it.
    pub(super) fn gather(&self, directory: &str) -> Files {
        let mut found = Files::new();
        let mut waiting = vec![String::new()];
        while let Some(base) = waiting.pop() {
            let path = format!("{directory}/{base}");
            for name in self.guest.files.list(&path).unwrap_or_default() {
                let inner = if base.is_empty() { name } else { format!("{base}/{name}") };
                let path = format!("{directory}/{inner}");
                if self.guest.files.is_directory(&path) {
                    waiting.push(inner);
                } else if let Ok(content) = self.guest.files.read(&path) {
                    found.insert(inner, content.to_vec());
                }
            }
        }
        found
    }

    /// Reads the directory of patches: it must be there, and what it holds must be YAML.
    pub(super) fn read_patches(&mut self, patches: Option<&Patches>, phase: &str) -> Result<(), Abort> {
        let Some(directory) =
            patches.map(|patches| patches.directory.clone()).filter(|path| !path.is_empty())
        else {
            return Ok(());
        };
        let names = self.guest.files.list(&directory).map_err(|error| {
            Abort::phase(
                phase,
                format!(
                    "could not list patch files for path {directory:?}: open {directory}: {}",
                    error.lower()
                ),
            )
        })?;
        self.say(&format!("[patches] Reading patches from path {directory:?}"));
        let mut found = Vec::new();
        for name in names {
            let known = TARGETS.iter().any(|target| name.starts_with(target));
            let kind = name.rsplit('.').next().is_some_and(|end| matches!(end, "json" | "yaml"));
            if !known || !kind {
                self.say(&format!("[patches] Ignored file {name:?}: unknown target or extension"));
                continue;
            }
            let text = self.guest.files.text(&format!("{directory}/{name}")).unwrap_or_default();
            let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
            if parsed.is_err() {
                return Err(Abort::phase(
                    phase,
                    format!("could not read patch file {name:?}: yaml: it cannot be parsed"),
                ));
            }
            found.push(name);
        }
        self.say(&format!("[patches] Found the following patch files: [{}]", found.join(" ")));
        Ok(())
    }
}
