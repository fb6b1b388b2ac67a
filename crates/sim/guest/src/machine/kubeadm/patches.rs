//! User patches to kubeadm's files: files named `target[suffix][+type].yaml` in a directory.

use capstan_schema::patch::{json, merge, strategic};
use serde_json::Value;

use super::config::Patches;
use super::{Abort, Kubeadm};

/// Patch targets. The CoreDNS Deployment is in the cluster: its patches are read but not applied here.
const TARGETS: [&str; 6] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubeletconfiguration",
    "corednsdeployment",
];

/// Type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Merge,
    Strategic,
}

impl Kind {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// The patches of one file.
#[derive(Debug, Clone)]
pub(super) struct PatchSet {
    target: &'static str,
    kind: Kind,
    documents: Vec<Value>,
}

/// Target and type, from the name of a file.
fn named(name: &str) -> Option<(&'static str, Kind)> {
    let base = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".json"))?;
    let (base, kind) = match base.split_once('+') {
        None | Some((_, "strategic")) => (base, Kind::Strategic),
        Some((_, "merge")) => (base, Kind::Merge),
        Some((_, "json")) => (base, Kind::Json),
        Some(_) => return None,
    };
    TARGETS.into_iter().find(|target| base.starts_with(target)).map(|target| (target, kind))
}

impl Kubeadm<'_, '_> {
    /// Reads the patch directory, which must exist and contain YAML.
    pub(super) fn read_patches(&mut self, patches: Option<&Patches>, phase: &str) -> Result<(), Abort> {
        let directory = patches.map(|patches| patches.directory.clone()).unwrap_or_default();
        if directory.is_empty() {
            return Ok(());
        }
        let names = self.guest.files.list(&directory).map_err(|error| {
            let why = error.lower();
            Abort::phase(
                phase,
                format!("could not list patch files for path {directory:?}: open {directory}: {why}"),
            )
        })?;
        self.print(&format!("[patches] Reading patches from path {directory:?}"));
        let mut found = Vec::new();
        for name in names {
            let Some((target, kind)) = named(&name) else {
                self.print(&format!("[patches] Ignored file {name:?}: unknown target, type or extension"));
                continue;
            };
            let text = self.guest.files.text(&format!("{directory}/{name}")).unwrap_or_default();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|_| {
                Abort::phase(
                    phase,
                    format!("could not parse patches for file {name:?}: it is not valid YAML"),
                )
            })?;
            self.patches.push(PatchSet { target, kind, documents });
            found.push(name);
        }
        self.print(&format!("[patches] Found the following patch files: [{}]", found.join(" ")));
        Ok(())
    }

    /// Applies the patches to a file.
    pub(super) fn patched(&mut self, target: &str, phase: &str, mut value: Value) -> Result<Value, Abort> {
        let sets: Vec<PatchSet> = self.patches.iter().filter(|set| set.target == target).cloned().collect();
        for set in sets {
            for patch in set.documents.into_iter().filter(|patch| !patch.is_null()) {
                let done = match set.kind {
                    Kind::Json => json::Patch::decode(patch, false).and_then(|patch| patch.apply(value)),
                    Kind::Merge => merge::apply(value, patch),
                    // Lists of a Pod have merge keys; other targets use merge patches.
                    Kind::Strategic => {
                        match capstan_builtin::schema("", "v1", "Pod").filter(|_| value["kind"] == "Pod") {
                            Some(schema) => strategic::apply(value, patch, &schema),
                            None => merge::apply(value, patch),
                        }
                    }
                };
                value = done.map_err(|error| {
                    Abort::phase(phase, format!("could not apply the patch to {target:?}: {error}"))
                })?;
            }
            let kind = set.kind.media_type();
            self.print(&format!("[patches] Applied patch of type {kind:?} to target {target:?}"));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_determine_target_and_type() {
        for (name, expected) in [
            ("kube-apiserver0+merge.yaml", Some(("kube-apiserver", Kind::Merge))),
            ("etcd.json", Some(("etcd", Kind::Strategic))),
            ("kubeletconfiguration+json.yaml", Some(("kubeletconfiguration", Kind::Json))),
            ("etcd+magic.yaml", None),
            ("README.md", None),
            ("kube-vip.yaml", None),
        ] {
            assert_eq!(named(name), expected, "{name}");
        }
    }
}
