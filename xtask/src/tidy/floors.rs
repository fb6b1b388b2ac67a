//! Which crate may use which: a crate uses floors below its own, and of its own floor what stands before it.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Exception, Finding};
use crate::cargo;

/// The floors, lowest first, with the folders of their crates in order. Folders without a crate yet have their place too.
const FLOORS: &[(&str, &[&str])] = &[
    // Words of cloud-init and Ignition: no Kubernetes, no Cluster API, no cloud.
    ("user-data", &["crates/user-data"]),
    // A language of templates: what they are for is their users' business.
    ("go-template", &["crates/go-template"]),
    (
        "kubernetes",
        &[
            "crates/kubernetes/store",
            "crates/kubernetes/cel",
            "crates/kubernetes/schema",
            "crates/kubernetes/builtin",
            "crates/kubernetes/x509",
            "crates/kubernetes/etcd",
            "crates/kubernetes/encryption",
            "crates/kubernetes/object",
            "crates/kubernetes/env",
            "crates/kubernetes/pki",
            "crates/kubernetes/streams",
            "crates/kubernetes/transport",
            "crates/kubernetes/audit",
            "crates/kubernetes/oidc",
            "crates/kubernetes/apiserver",
            "crates/kubernetes/controller",
        ],
    ),
    // Reads conditions, operations and error codes.
    ("view", &["crates/view"]),
    (
        "capi",
        &[
            "crates/capi/types",
            "crates/capi/core",
            "crates/capi/runtime",
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
            "crates/sim/hypervisor",
            "crates/sim/guest",
            "crates/sim/cloudstack",
            "crates/sim/openstack",
            "crates/sim/site",
            "crates/sim/provider",
            "crates/sim/harness",
            "crates/sim/faults",
            "crates/sim/scenarios",
            "crates/sim/rehearsal",
            "crates/sim/planner",
        ],
    ),
    (
        "clouds",
        &[
            "crates/clouds/http",
            "crates/clouds/cloudstack/types",
            "crates/clouds/cloudstack/client",
            "crates/clouds/cloudstack/provider",
            "crates/clouds/cloudstack",
            "crates/clouds/openstack/types",
            "crates/clouds/openstack/client",
            "crates/clouds/openstack/provider",
            "crates/clouds/openstack",
            "crates/clouds/kvm",
        ],
    ),
    // Spans of any program, sent as clouds are called.
    ("traces", &["crates/traces"]),
    (
        "doors",
        &["crates/doors/lifecycle", "crates/doors/magnum", "crates/doors/gitops", "crates/doors/dashboard"],
    ),
    ("capstan", &["capstan"]),
    ("tests", &["tests/support", "tests/toy-provider", "tests/interop"]),
    ("tools", &["tools/release"]),
    ("xtask", &["xtask"]),
];

/// Pairs that the order would allow and that must not be, neither directly nor by way of other crates.
const APART: &[(&str, &str, &str)] = &[
    ("crates/kubernetes/controller", "crates/kubernetes/apiserver", "they meet at the traits of transport"),
    ("crates/sim/cloudstack", "crates/kubernetes/apiserver", "what its machines run on is a trait"),
    ("crates/sim/openstack", "crates/kubernetes/apiserver", "what its machines run on is a trait"),
    ("crates/clouds/openstack", "crates/clouds/cloudstack", "a cloud is complete in itself"),
    ("crates/clouds/kvm", "crates/clouds/cloudstack", "a cloud is complete in itself"),
    ("crates/clouds/kvm", "crates/clouds/openstack", "a cloud is complete in itself"),
    ("crates/clouds/cloudstack/client", "crates/clouds/cloudstack/types", "a client is usable alone"),
    ("xtask", "crates", "it is the first thing that CI builds"),
    ("xtask", "capstan", "it is the first thing that CI builds"),
    ("tools/release", "crates", "it packs any program, and asks it for what it must know"),
    ("tools/release", "capstan", "it packs any program, and asks it for what it must know"),
    ("tests/support", "crates", "xtask uses it"),
    ("tests/support", "capstan", "xtask uses it"),
];

/// Pairs of which the first may use the second in its tests alone.
const IN_TESTS: &[(&str, &str)] = &[
    // Caches, leader election and events are tested with a real server.
    ("crates/kubernetes/controller", "crates/kubernetes/apiserver"),
    // Its machines boot as guests there.
    ("crates/sim/cloudstack", "crates/sim/guest"),
    ("crates/sim/openstack", "crates/sim/guest"),
    // Its tests run the binary as the suites do.
    ("capstan", "tests/support"),
];

/// Today's violations, named `user -> used`.
pub const EXCEPTIONS: &[Exception] = &[];

/// A crate of the workspace and the crates of the workspace that it uses, as folders.
#[derive(Debug)]
pub struct Package {
    pub folder: String,
    uses: Vec<Use>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    of: String,
    in_tests: bool,
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
        let uses = uses.filter_map(|dependency| {
            let of = below(dependency["path"].as_str()?)?;
            Some(Use { of, in_tests: dependency["kind"] == "dev" })
        });
        let folder = manifest.trim_end_matches("/Cargo.toml").to_owned();
        all.push(Package { uses: uses.collect(), folder });
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
        let apart_from =
            |used: &str| APART.iter().find(|(user, of, _)| within(&package.folder, user) && within(used, of));
        for Use { of, in_tests } in &package.uses {
            if *in_tests && IN_TESTS.contains(&(&package.folder, of)) {
                continue;
            }
            let Some(other) = position(of) else { continue };
            let what = match apart_from(of) {
                Some((_, _, reason)) => format!("must not be used: {reason}"),
                None if other > own => {
                    format!("floor {} is not below floor {}", FLOORS[other.0].0, FLOORS[own.0].0)
                }
                None => continue,
            };
            findings.push(Finding { place: format!("{} -> {of}", package.folder), what });
        }
        for (used, by_way_of) in reached(packages, package) {
            if let Some((_, _, reason)) = apart_from(used) {
                let what = format!("must not be used, {by_way_of} brings it: {reason}");
                findings.push(Finding { place: format!("{} -> {used}", package.folder), what });
            }
        }
    }
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    findings.dedup();
    findings
}

/// What a crate uses by way of others, tests left out, and by way of which of those that it uses itself.
fn reached<'a>(packages: &'a [Package], from: &'a Package) -> Vec<(&'a str, &'a str)> {
    let built = |package: &'a Package| package.uses.iter().filter(|one| !one.in_tests).map(|one| &*one.of);
    let mut all: Vec<(&str, &str)> = Vec::new();
    let direct: Vec<_> = built(from).collect();
    let mut open: Vec<_> = direct.iter().map(|of| (*of, *of)).collect();
    while let Some((of, by_way_of)) = open.pop() {
        let Some(package) = packages.iter().find(|package| package.folder == of) else { continue };
        for used in built(package) {
            if !direct.contains(&used) && !all.iter().any(|(known, _)| *known == used) {
                all.push((used, by_way_of));
                open.push((used, by_way_of));
            }
        }
    }
    all
}

/// Floor and place on it.
pub fn position(folder: &str) -> Option<(usize, usize)> {
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

    fn package(folder: &str, uses: &[(&str, bool)]) -> Package {
        let uses = uses.iter().map(|(of, in_tests)| Use { of: (*of).to_owned(), in_tests: *in_tests });
        Package { folder: folder.to_owned(), uses: uses.collect() }
    }

    fn places(packages: &[Package]) -> Vec<String> {
        check(packages).into_iter().map(|one| one.place).collect()
    }

    fn findings(user: &str, used: &str) -> Vec<String> {
        places(&[package(user, &[(used, false)])])
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
            ("crates/sim/cloudstack", "crates/sim/hypervisor", true),
            ("crates/kubernetes/apiserver", "crates/kubernetes/transport", true),
            ("crates/kubernetes/controller", "crates/kubernetes/apiserver", false),
            ("crates/user-data", "crates/kubernetes/object", false),
            ("crates/view", "crates/kubernetes/object", true),
            ("crates/view", "crates/capi/core", false),
            ("xtask", "tests/support", true),
            ("xtask", "crates/view", false),
            ("tools/release", "tests/support", true),
            ("tools/release", "capstan", false),
        ] {
            assert_eq!(findings(user, used).is_empty(), allowed, "{user} -> {used}");
        }
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(findings("crates/attic", "crates/view"), ["crates/attic"]);
    }

    #[test]
    fn what_must_be_apart_does_not_meet_by_way_of_others() {
        let server = "crates/kubernetes/apiserver";
        let by_way_of = |in_tests| {
            places(&[
                package("crates/sim/guest", &[(server, in_tests)]),
                package("crates/sim/cloudstack", &[("crates/sim/guest", false)]),
            ])
        };
        assert_eq!(by_way_of(false), ["crates/sim/cloudstack -> crates/kubernetes/apiserver"]);
        assert!(by_way_of(true).is_empty());
    }

    #[test]
    fn tests_use_more_than_what_they_test_but_not_everything() {
        for (user, used, allowed) in [
            ("crates/kubernetes/controller", "crates/kubernetes/apiserver", true),
            ("crates/kubernetes/controller", "crates/capi/core", false),
        ] {
            assert_eq!(places(&[package(user, &[(used, true)])]).is_empty(), allowed, "{user} -> {used}");
        }
    }

    #[test]
    fn dependencies_of_every_kind_are_read() {
        let metadata = json!({ "workspace_root": "/w", "packages": [{
            "manifest_path": "/w/crates/view/Cargo.toml",
            "dependencies": [
                { "path": "/w/crates/capi/core", "kind": "dev" },
                { "path": "/w/crates/user-data", "kind": null },
                { "path": null },
            ],
        }] });
        let all = read(&metadata).unwrap();
        let uses = [("crates/capi/core", true), ("crates/user-data", false)];
        assert_eq!((all.len(), &all[0].folder[..]), (1, "crates/view"));
        assert_eq!(all[0].uses, package("crates/view", &uses).uses);
    }
}
