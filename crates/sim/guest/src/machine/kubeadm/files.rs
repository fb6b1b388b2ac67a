//! Other files that kubeadm reads and writes.

use serde_json::Value;

use super::Kubeadm;
use crate::request::Files;

/// YAML; falls back to JSON, which is valid YAML.
pub(super) fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

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
}
