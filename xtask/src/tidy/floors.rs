//! Which crate may use which: a crate uses floors below its own, and of its own floor what stands before it.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Exception, Finding};
use crate::cargo;

/// The floors, lowest first, with the folders of their crates in order. Folders without a crate yet have their place too.
const FLOORS: &[(&str, &[&str])] = &[
    ("view", &["crates/view"]),
    (
        "kubernetes",
        &[
            "crates/kubernetes/store",
            "crates/kubernetes/cel",
            "crates/kubernetes/schema",
            "crates/kubernetes/builtin",
            "crates/kubernetes/x509",
            "crates/kubernetes/etcd",
            "crates/kubernetes/object",
            "crates/kubernetes/env",
            "crates/kubernetes/pki",
            "crates/kubernetes/streams",
            "crates/kubernetes/apiserver",
            "crates/kubernetes/controller",
        ],
    ),
    (
        "capi",
        &[
            "crates/capi/user-data",
            "crates/capi/types",
            "crates/capi/core",
            "crates/capi/kubeadm",
            "crates/capi/addons",
            "crates/capi/topology",
            "crates/capi/provider-kit",
            "crates/capi/plane",
        ],
    ),
    (
        "sim",
        &[
            "crates/sim/guest",
            "crates/sim/cloudstack",
            "crates/sim/openstack",
            "crates/sim/site",
            "crates/sim/provider",
            "crates/sim/harness",
            "crates/sim/scenarios",
            "crates/sim/rehearsal",
            "crates/sim/planner",
        ],
    ),
    (
        "clouds",
        &[
            "crates/clouds/cloudstack/types",
            "crates/clouds/cloudstack/client",
            "crates/clouds/cloudstack/provider",
            "crates/clouds/cloudstack",
            "crates/clouds/openstack",
            "crates/clouds/kvm",
        ],
    ),
    (
        "doors",
        &["crates/doors/lifecycle", "crates/doors/magnum", "crates/doors/gitops", "crates/doors/dashboard"],
    ),
    ("capstan", &["capstan"]),
    ("tests", &["tests/support", "tests/toy-provider", "tests/interop"]),
    ("xtask", &["xtask"]),
];

/// Pairs that the order would allow and that must not be.
const APART: &[(&str, &str, &str)] = &[
    ("crates/kubernetes/controller", "crates/kubernetes/apiserver", "they meet only on the wire"),
    ("crates/clouds/openstack", "crates/clouds/cloudstack", "a cloud is complete in itself"),
    ("crates/clouds/kvm", "crates/clouds/cloudstack", "a cloud is complete in itself"),
    ("crates/clouds/kvm", "crates/clouds/openstack", "a cloud is complete in itself"),
    ("crates/clouds/cloudstack/client", "crates/clouds/cloudstack/types", "a client is usable alone"),
    ("xtask", "crates", "it is the first thing that CI builds"),
    ("xtask", "capstan", "it is the first thing that CI builds"),
    ("tests/support", "crates", "xtask uses it"),
    ("tests/support", "capstan", "xtask uses it"),
];

/// Today's violations, named `user -> used`.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        place: "crates/kubernetes/controller -> crates/kubernetes/apiserver",
        reason: "Env, wire types and the in-process transport still live in the API server",
    },
    Exception {
        place: "crates/view -> crates/kubernetes/controller",
        reason: "operations and error codes still live in the controller runtime",
    },
    Exception {
        place: "crates/view -> crates/kubernetes/object",
        reason: "conditions are read with the types of objects",
    },
];

/// A crate of the workspace and the crates of the workspace that it uses, as folders.
#[derive(Debug)]
pub struct Package {
    folder: String,
    uses: Vec<String>,
}

/// All crates of the workspace, as Cargo reads them.
pub fn packages() -> Result<Vec<Package>> {
    let output = cargo::command()
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .context("run cargo metadata")?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    read(&serde_json::from_slice(&output.stdout)?)
}

fn read(metadata: &Value) -> Result<Vec<Package>> {
    let root = metadata["workspace_root"].as_str().context("no workspace_root")?;
    let below = |path: &str| path.strip_prefix(root).map(|rest| rest.trim_start_matches('/').to_owned());
    let mut all = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let manifest =
            package["manifest_path"].as_str().and_then(below).context("a crate outside of the workspace")?;
        let uses = package["dependencies"].as_array().into_iter().flatten();
        let uses = uses.filter_map(|dependency| below(dependency["path"].as_str()?)).collect();
        let folder = manifest.trim_end_matches("/Cargo.toml").to_owned();
        all.push(Package { folder, uses });
    }
    Ok(all)
}

pub fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(own) = position(&package.folder) else {
            let what = "stands on no floor: give it a place in xtask/src/tidy/floors.rs".to_owned();
            findings.push(Finding { place: package.folder.clone(), what });
            continue;
        };
        for used in &package.uses {
            let Some(other) = position(used) else { continue };
            let apart = APART.iter().find(|(user, of, _)| within(&package.folder, user) && within(used, of));
            let what = match apart {
                Some((_, _, reason)) => format!("must not be used: {reason}"),
                None if other > own => {
                    format!("floor {} is not below floor {}", FLOORS[other.0].0, FLOORS[own.0].0)
                }
                None => continue,
            };
            findings.push(Finding { place: format!("{} -> {used}", package.folder), what });
        }
    }
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    findings.dedup();
    findings
}

/// Floor and place on it.
fn position(folder: &str) -> Option<(usize, usize)> {
    FLOORS.iter().enumerate().find_map(|(floor, (_, crates))| {
        crates.iter().position(|known| *known == folder).map(|place| (floor, place))
    })
}

fn within(folder: &str, above: &str) -> bool {
    folder.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(user: &str, used: &str) -> Vec<String> {
        let package = Package { folder: user.to_owned(), uses: vec![used.to_owned()] };
        check(&[package]).into_iter().map(|one| one.place).collect()
    }

    #[test]
    fn crates_use_what_is_below_and_what_stands_before_them() {
        for (user, used, allowed) in [
            ("crates/capi/core", "crates/kubernetes/controller", true),
            ("crates/kubernetes/controller", "crates/capi/core", false),
            ("crates/capi/kubeadm", "crates/capi/core", true),
            ("crates/capi/core", "crates/capi/kubeadm", false),
            ("crates/sim/cloudstack", "crates/clouds/cloudstack/client", false),
            ("crates/clouds/cloudstack/provider", "crates/sim/cloudstack", true),
            ("crates/clouds/kvm", "crates/clouds/cloudstack/types", false),
            ("xtask", "tests/support", true),
            ("xtask", "crates/view", false),
        ] {
            assert_eq!(findings(user, used).is_empty(), allowed, "{user} -> {used}");
        }
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(findings("crates/attic", "crates/view"), ["crates/attic"]);
    }

    #[test]
    fn dependencies_of_every_kind_are_read() {
        let metadata = json!({ "workspace_root": "/w", "packages": [{
            "manifest_path": "/w/crates/view/Cargo.toml",
            "dependencies": [{ "path": "/w/crates/capi/core", "kind": "dev" }, { "path": null }],
        }] });
        let all = read(&metadata).unwrap();
        assert_eq!(
            (all[0].folder.as_str(), all[0].uses.as_slice()),
            ("crates/view", &["crates/capi/core".to_owned()][..])
        );
    }
}
