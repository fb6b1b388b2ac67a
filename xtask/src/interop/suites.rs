//! The suites: what each compares with, the peers it runs, the paths that can change its result, its cost.

use anyhow::{Context, Result};

use crate::peers::catalog as at;

/// One suite of `cargo xtask interop`.
#[derive(Debug)]
pub struct Suite {
    pub name: &'static str,
    /// Arguments of a run in CI, after the name.
    pub arguments: &'static [&'static str],
    /// A long suite is split. Each part is planned and run by itself, with `--part 3/16`.
    pub parts: u32,
    /// Arguments of a run of all parts, after `arguments`.
    pub whole: &'static [&'static str],
    /// Whether a run of all parts takes a sample of each, and so is no pass of any of them.
    pub sampled: bool,
    pub against: &'static [Against],
    /// Peers that must be built before it starts.
    pub peers: &'static [&'static [&'static str]],
    pub needs: &'static [Need],
    /// Paths of the suite's subject, its code and its data. A change there selects it first.
    pub about: &'static [&'static str],
    /// Other paths that it depends on.
    pub uses: &'static [&'static [&'static str]],
    /// Duration of a part in seconds on two idle cores, used until docs/dev/interop.md has a measured one.
    pub seconds: u64,
    /// Whether it is part of every run.
    pub smoke: bool,
}

/// A peer that a suite compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    Kubernetes,
    Etcd,
    ClusterApi,
    Capc,
    Capo,
    EksAnywhere,
    CorefileMigration,
    CloudStackGo,
    CloudStackPython,
    KubernetesPython,
    KubeRs,
    Containerd,
    Dex,
    Helm,
    Prometheus,
    Systemd,
    /// Our own guarantees; no other program.
    Capstan,
}

impl Against {
    /// Name and version, as shown in docs/dev/interop.md.
    pub fn label(self) -> String {
        let (name, version) = match self {
            Self::Kubernetes => ("Kubernetes", at::KUBERNETES),
            Self::Etcd => ("etcd", at::ETCD),
            Self::ClusterApi => ("Cluster API", at::CLUSTER_API),
            Self::Capc => ("CAPC", at::CAPC),
            Self::Capo => ("CAPO", at::CAPO),
            Self::EksAnywhere => ("EKS Anywhere", at::EKS_ANYWHERE),
            Self::CorefileMigration => ("corefile-migration", at::COREFILE_MIGRATION),
            Self::CloudStackGo => ("cloudstack-go", at::CLOUDSTACK_GO),
            Self::CloudStackPython => ("cs, apache-libcloud", ""),
            Self::KubernetesPython => ("kubernetes (Python)", ""),
            Self::KubeRs => ("kube-rs", ""),
            Self::Containerd => ("containerd", at::CONTAINERD),
            Self::Dex => ("Dex", at::DEX),
            Self::Helm => ("Helm", at::HELM),
            Self::Prometheus => ("Prometheus", at::PROMETHEUS),
            Self::Systemd => ("systemd", ""),
            Self::Capstan => ("Capstan itself", ""),
        };
        format!("{name} {version}").trim_end().to_owned()
    }
}

/// What a suite needs in addition to peers and our binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The program in tests/clients/kube-rs.
    KubeRsSuite,
    /// A root file system with the peers of a real node on it.
    NodeImage,
}

impl Need {
    /// Build time in seconds on two idle cores. If an image is cached, so are its peers.
    pub fn seconds(self) -> u64 {
        match self {
            Self::KubeRsSuite => 120,
            Self::NodeImage => 60,
        }
    }
}

const KUBE: &[&str] = &["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];
const KUBECTL: &[&str] = &["kubectl"];
const CLUSTERCTL: &[&str] = &["clusterctl"];
const HELM: &[&str] = &["helm"];
const DRIVERS: &[&str] = &["capi-core", "capi-bootstrap", "capi-controlplane"];
const CAPD: &[&str] = &["capd"];
const CAPC: &[&str] = &["capc"];

/// The API server and its dependencies.
const API: &[&str] = &[
    "crates/kubernetes/apiserver/**",
    "crates/kubernetes/audit/**",
    "crates/kubernetes/builtin/**",
    "crates/kubernetes/cel/**",
    "crates/kubernetes/encryption/**",
    "crates/kubernetes/env/**",
    "crates/kubernetes/object/**",
    "crates/kubernetes/oidc/**",
    "crates/kubernetes/pki/**",
    "crates/kubernetes/schema/**",
    "crates/kubernetes/store/**",
    "crates/kubernetes/streams/**",
    "crates/kubernetes/transport/**",
    "crates/kubernetes/x509/**",
];
/// Controllers of Cluster API and their runtime.
const CONTROLLERS: &[&str] = &[
    "crates/kubernetes/controller/**",
    "crates/kubernetes/env/**",
    "crates/kubernetes/etcd/**",
    "crates/kubernetes/object/**",
    "crates/kubernetes/pki/**",
    "crates/kubernetes/streams/**",
    "crates/kubernetes/transport/**",
    "crates/kubernetes/x509/**",
    "crates/capi/**",
    "crates/go-template/**",
];
/// Simulated machines.
const SIM: &[&str] = &[
    "crates/sim/guest/**",
    "crates/sim/hypervisor/**",
    "crates/sim/provider/**",
    "crates/sim/site/**",
    "crates/user-data/**",
];
const CLOUDSTACK: &[&str] =
    &["crates/clouds/cloudstack/**", "crates/clouds/http/**", "crates/sim/cloudstack/**"];
const OPENSTACK: &[&str] =
    &["crates/clouds/openstack/**", "crates/clouds/http/**", "crates/sim/openstack/**"];
const HARNESS: &[&str] = &["crates/sim/faults/**", "crates/sim/harness/**", "crates/sim/scenarios/**"];
/// The rest of our binary. A suite that starts it uses this and [`API`], and what it starts in it.
const BINARY: &[&str] = &["capstan/src/**", "crates/sim/rehearsal/**", "crates/traces/**", "crates/view/**"];
/// Code of one suite that others share.
const MANAGER_SUITE: &[&str] = &["tests/interop/src/cluster_api/manager/**"];
const CAPC_MANIFESTS: &[&str] = &["tests/interop/src/clouds/capc_on_sim/manifest.rs"];

const fn suite(name: &'static str, seconds: u64) -> Suite {
    Suite {
        name,
        arguments: &[],
        parts: 1,
        whole: &[],
        sampled: false,
        against: &[],
        peers: &[],
        needs: &[],
        about: &[],
        uses: &[],
        seconds,
        smoke: false,
    }
}

/// Every suite. Costs are measured on an idle machine with two cores and the profile `ci`.
pub const SUITES: &[Suite] = &[
    Suite {
        against: &[Against::ClusterApi, Against::Capc, Against::Capo],
        about: &[
            "crates/capi/types/**",
            "crates/clouds/cloudstack/types/**",
            "crates/clouds/openstack/types/**",
            "tests/interop/src/cluster_api/schema_diff.rs",
            "tests/schema-diff/**",
        ],
        smoke: true,
        ..suite("schema-diff", 8)
    },
    Suite {
        against: &[Against::ClusterApi],
        about: &["crates/capi/core/**", "tests/interop/src/cluster_api/planner/**"],
        smoke: true,
        ..suite("planner-goldens", 6)
    },
    Suite {
        against: &[Against::Kubernetes],
        peers: &[KUBECTL, CLUSTERCTL],
        about: &["README.md", "examples/**", "tests/interop/src/first_use/quick_start.rs"],
        uses: &[API, CONTROLLERS, SIM, BINARY],
        smoke: true,
        ..suite("quick-start", 45)
    },
    Suite {
        against: &[Against::Capstan],
        about: &["crates/kubernetes/apiserver/**", "tests/interop/src/self_checks/attacks/**"],
        uses: &[API, BINARY],
        ..suite("attacks", 120)
    },
    Suite {
        against: &[Against::Kubernetes],
        peers: &[KUBE],
        about: &[
            "crates/kubernetes/apiserver/**",
            "tests/interop/src/kubernetes/parity/**",
            "tests/kubectl-parity/**",
        ],
        uses: &[API, BINARY],
        smoke: true,
        ..suite("kubectl-parity", 150)
    },
    Suite {
        against: &[Against::Kubernetes],
        peers: &[KUBE],
        about: &[
            "crates/kubernetes/apiserver/**",
            "crates/kubernetes/builtin/**",
            "crates/kubernetes/schema/**",
            "tests/interop/src/kubernetes/raw/**",
            "tests/raw-parity/**",
        ],
        uses: &[API, BINARY, &["tests/kubectl-parity/setup.yaml"]],
        ..suite("raw-parity", 75)
    },
    Suite {
        against: &[Against::Dex],
        about: &["crates/kubernetes/oidc/**", "tests/interop/src/kubernetes/oidc/**"],
        uses: &[API, BINARY],
        ..suite("oidc", 90)
    },
    Suite {
        against: &[Against::Kubernetes],
        about: &["crates/kubernetes/encryption/**", "tests/interop/src/kubernetes/kms/**"],
        uses: &[API, BINARY],
        ..suite("kms", 150)
    },
    Suite {
        against: &[Against::Kubernetes],
        peers: &[&["kubeadm"]],
        about: &[
            "crates/capi/kubeadm/**",
            "tests/interop/src/cluster_api/kubeadm_accepts/**",
            "tests/kubeadm-accepts/**",
        ],
        uses: &[&["crates/capi/**", "crates/sim/guest/**", "crates/user-data/**"]],
        ..suite("kubeadm-accepts", 40)
    },
    Suite {
        arguments: &["--per-kind", "30"],
        against: &[Against::Kubernetes, Against::ClusterApi, Against::Capc, Against::Capo],
        peers: &[KUBE],
        about: &[
            "crates/kubernetes/schema/**",
            "crates/kubernetes/cel/**",
            "tests/interop/src/kubernetes/verdicts/**",
        ],
        uses: &[API, BINARY],
        ..suite("schema-verdicts", 100)
    },
    Suite {
        against: &[Against::CorefileMigration],
        about: &["crates/capi/kubeadm/**", "tests/interop/src/cluster_api/corefile_goldens/**"],
        ..suite("corefile-goldens", 30)
    },
    Suite {
        against: &[Against::EksAnywhere],
        about: &[
            "crates/doors/lifecycle/**",
            "tests/interop/src/clouds/eksa_goldens/**",
            "tests/eksa-goldens/**",
        ],
        uses: &[&[
            "crates/capi/types/**",
            "crates/clouds/cloudstack/types/**",
            "tests/interop/src/differences/**",
        ]],
        ..suite("eksa-goldens", 5)
    },
    Suite {
        against: &[Against::ClusterApi],
        about: &["crates/capi/types/**", "tests/interop/src/cluster_api/conversion_goldens/**"],
        ..suite("conversion-goldens", 70)
    },
    Suite {
        against: &[Against::Etcd],
        peers: &[&["etcd", "etcdctl"]],
        about: &["crates/kubernetes/etcd/**", "tests/interop/src/kubernetes/etcd_members/**"],
        uses: &[SIM],
        ..suite("etcd-members", 45)
    },
    Suite {
        against: &[Against::Kubernetes, Against::ClusterApi],
        peers: &[KUBECTL],
        about: &[
            "crates/kubernetes/apiserver/src/portforward/**",
            "crates/kubernetes/streams/**",
            "tests/interop/src/kubernetes/port_forward/**",
        ],
        uses: &[API, SIM],
        ..suite("port-forward", 60)
    },
    Suite {
        against: &[Against::KubernetesPython, Against::KubeRs],
        needs: &[Need::KubeRsSuite],
        about: &[
            "crates/kubernetes/apiserver/**",
            "tests/interop/src/kubernetes/clients/**",
            "tests/clients/**",
        ],
        uses: &[API, BINARY],
        ..suite("clients", 60)
    },
    Suite {
        against: &[Against::CloudStackPython, Against::CloudStackGo],
        about: &[
            "crates/sim/cloudstack/**",
            "tests/interop/src/clouds/cloudstack_clients.rs",
            "tests/clients/cloudstack/**",
        ],
        ..suite("cloudstack-clients", 45)
    },
    Suite {
        arguments: &["--rounds", "500", "--damage"],
        parts: 5,
        against: &[Against::Capstan],
        about: &["crates/kubernetes/store/**", "tests/interop/src/self_checks/crash/**"],
        uses: &[API, BINARY],
        ..suite("crash", 80)
    },
    Suite {
        arguments: &["--minutes", "2", "--cases", "1000"],
        against: &[Against::Capstan],
        about: &[
            "crates/clouds/cloudstack/client/**",
            "crates/clouds/openstack/client/**",
            "crates/user-data/**",
            "tests/interop/src/self_checks/fuzz.rs",
        ],
        uses: &[API, CONTROLLERS],
        ..suite("fuzz", 150)
    },
    Suite {
        against: &[Against::Kubernetes],
        peers: &[KUBECTL],
        about: &[
            "capstan/src/**",
            "crates/view/**",
            "examples/demo.yaml",
            "tests/interop/src/first_use/demo/**",
        ],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, OPENSTACK, BINARY],
        ..suite("demo", 120)
    },
    Suite {
        parts: 6,
        against: &[Against::Capstan],
        peers: &[KUBECTL],
        about: &["crates/view/**", "docs/mends.md", "tests/interop/src/first_use/mend/**", "tests/mend/**"],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, BINARY],
        ..suite("mend", 150)
    },
    Suite {
        against: &[Against::Kubernetes, Against::Etcd],
        peers: &[KUBE],
        about: &[
            "crates/kubernetes/controller/**",
            "crates/capi/plane/**",
            "tests/interop/src/cluster_api/manager/**",
        ],
        uses: &[API, CONTROLLERS, SIM, BINARY],
        ..suite("manager", 120)
    },
    Suite {
        arguments: &["--kills", "20"],
        parts: 5,
        against: &[Against::Kubernetes, Against::Etcd],
        peers: &[KUBE],
        about: &[
            "crates/kubernetes/controller/src/election.rs",
            "tests/interop/src/cluster_api/manager/failover.rs",
        ],
        uses: &[API, CONTROLLERS, SIM, BINARY, MANAGER_SUITE],
        ..suite("failover", 230)
    },
    Suite {
        against: &[Against::ClusterApi, Against::Kubernetes],
        peers: &[KUBE, DRIVERS],
        about: &[
            "crates/sim/provider/**",
            "crates/sim/guest/**",
            "tests/interop/src/cluster_api/manager/mixed.rs",
        ],
        uses: &[API, CONTROLLERS, SIM, BINARY, MANAGER_SUITE],
        ..suite("sim-under-upstream", 75)
    },
    Suite {
        against: &[Against::ClusterApi],
        peers: &[KUBECTL, CAPD],
        about: &[
            "crates/capi/core/**",
            "crates/capi/kubeadm/**",
            "tests/interop/src/cluster_api/manager/mixed.rs",
        ],
        uses: &[API, CONTROLLERS, BINARY, MANAGER_SUITE],
        ..suite("core-over-capd", 75)
    },
    Suite {
        against: &[Against::ClusterApi],
        peers: &[KUBE, CLUSTERCTL, DRIVERS, CAPD],
        about: &[
            "crates/capi/**",
            "packaging/clusterctl/**",
            "templates/cloudstack/**",
            "tests/interop/src/cluster_api/clusterctl/**",
            "tests/interop/src/cluster_api/upstream/**",
        ],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, BINARY],
        ..suite("clusterctl", 190)
    },
    Suite {
        against: &[Against::Helm, Against::Kubernetes],
        peers: &[KUBE, HELM],
        about: &[
            "packaging/helm/**",
            "packaging/manifests/**",
            "tools/release/src/kubernetes.rs",
            "tests/interop/src/cluster_api/helm/**",
        ],
        uses: &[API, CONTROLLERS, BINARY],
        ..suite("helm", 45)
    },
    Suite {
        against: &[Against::Systemd],
        about: &[
            "packaging/debian/**",
            "packaging/systemd/**",
            "tools/release/src/**",
            "tests/install/**",
            "tests/interop/src/packaging/install_deb.rs",
        ],
        uses: &[API, CONTROLLERS, SIM, BINARY, &["examples/**"]],
        ..suite("install-deb", 120)
    },
    Suite {
        against: &[Against::Prometheus],
        peers: &[&["promtool"]],
        about: &["packaging/monitoring/**", "tests/monitoring/**", "tests/interop/src/packaging/alerts.rs"],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, OPENSTACK, BINARY],
        ..suite("alerts", 60)
    },
    Suite {
        against: &[Against::Kubernetes],
        peers: &[KUBECTL],
        about: &["crates/sim/guest/**", "tests/interop/src/kubernetes/kubectl_workload.rs"],
        uses: &[API, CONTROLLERS, SIM, BINARY],
        ..suite("kubectl-workload", 45)
    },
    Suite {
        against: &[Against::Kubernetes],
        peers: &[&["e2e.test"]],
        about: &["crates/kubernetes/apiserver/**", "tests/interop/src/kubernetes/e2e/**", "tests/e2e/**"],
        uses: &[API, BINARY],
        ..suite("e2e", 160)
    },
    Suite {
        against: &[Against::ClusterApi],
        peers: &[KUBECTL, DRIVERS, CAPD],
        about: &[
            "crates/kubernetes/apiserver/**",
            "tests/interop/src/cluster_api/upstream/**",
            "tests/upstream/**",
        ],
        uses: &[API, BINARY],
        ..suite("upstream-on-capstan", 150)
    },
    Suite {
        against: &[Against::Capc, Against::ClusterApi],
        peers: &[KUBE, DRIVERS, CAPC],
        about: &[
            "capstan/src/adopt/**",
            "crates/clouds/cloudstack/provider/src/adoption.rs",
            "tests/interop/src/clouds/capc_adopted.rs",
        ],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, BINARY, CAPC_MANIFESTS],
        ..suite("capc-adopted", 330)
    },
    Suite {
        against: &[Against::Capc, Against::ClusterApi],
        peers: &[KUBE, CLUSTERCTL, DRIVERS, CAPC],
        about: &[
            "crates/clouds/cloudstack/provider/src/adoption.rs",
            "tests/interop/src/clouds/capc_moved/**",
        ],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, BINARY, CAPC_MANIFESTS],
        ..suite("capc-moved", 360)
    },
    Suite {
        arguments: &["--faults", "crash,lost", "--every", "128"],
        against: &[Against::Capstan],
        about: &[
            "crates/sim/scenarios/**",
            "crates/sim/harness/**",
            "crates/sim/faults/**",
            "crates/capi/**",
            "tests/interop/src/self_checks/simulate.rs",
        ],
        uses: &[API, CONTROLLERS, SIM],
        parts: 22,
        whole: &["--optimised"],
        ..suite("simulate", 160)
    },
    Suite {
        parts: 64,
        whole: &["--all", "--every", "8"],
        sampled: true,
        against: &[Against::Capstan],
        about: &[
            "crates/clouds/cloudstack/provider/**",
            "crates/sim/cloudstack/**",
            "tests/interop/src/self_checks/cloud_faults.rs",
        ],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, HARNESS],
        ..suite("cloudstack-faults", 200)
    },
    Suite {
        parts: 64,
        whole: &["--all", "--every", "8"],
        sampled: true,
        against: &[Against::Capstan],
        about: &[
            "crates/clouds/openstack/provider/**",
            "crates/sim/openstack/**",
            "tests/interop/src/self_checks/cloud_faults.rs",
        ],
        uses: &[API, CONTROLLERS, SIM, OPENSTACK, HARNESS],
        ..suite("openstack-faults", 200)
    },
    Suite {
        parts: 64,
        whole: &["--all", "--every", "8"],
        sampled: true,
        against: &[Against::Capstan],
        about: &["crates/doors/lifecycle/**", "tests/interop/src/self_checks/cloud_faults.rs"],
        uses: &[API, CONTROLLERS, SIM, CLOUDSTACK, HARNESS],
        ..suite("lifecycle-faults", 200)
    },
    Suite {
        against: &[Against::Kubernetes, Against::Etcd, Against::Containerd],
        peers: &[KUBECTL, CLUSTERCTL, &["etcdctl"], at::NODE_IMAGE],
        needs: &[Need::NodeImage],
        about: &[
            "crates/clouds/kvm/**",
            "crates/user-data/**",
            "tests/interop/src/clouds/real_cluster/**",
            "tests/support/src/node_image/**",
        ],
        uses: &[API, CONTROLLERS, BINARY],
        ..suite("real-cluster", 360)
    },
];

/// Paths that every suite depends on.
pub const EVERY_SUITE_USES: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "tests/interop/src/api.rs",
    "tests/interop/src/bed/**",
    "tests/interop/src/diff.rs",
    "tests/interop/src/discovery.rs",
    "tests/support/**",
];

/// Why a run of everything leaves a suite out that needs nothing but peers.
const NOT_YET: &str = "is taken once it has passed in a whole run on an idle machine";

/// The suites that no run takes, which are started by name only, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("autoscaler", "needs a program whose module is not on the Go proxy, given with `--autoscaler`"),
    ("capc-on-sim", NOT_YET),
    ("cloudstack-golden", "needs recorded replies of a management server, in `$CAPSTAN_CLOUDSTACK_GOLDEN`"),
    ("cloudstack-replay", "needs recorded replies of a management server, in `$CAPSTAN_CLOUDSTACK_GOLDEN`"),
    ("gitops", NOT_YET),
    ("openstack-capo", NOT_YET),
    ("openstack-occm", NOT_YET),
    ("openstack-real", "needs OpenStack services on this machine, which are set up as root"),
    ("openstack-replay", "needs recorded replies of OpenStack services, given as a file"),
    ("topology-diff", NOT_YET),
];

pub fn find(name: &str) -> Result<&'static Suite> {
    SUITES.iter().find(|suite| suite.name == name).with_context(|| {
        let known: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        format!("{name}: no such suite; the suites are {}", known.join(", "))
    })
}

impl Suite {
    /// Names of its peers, without duplicates.
    pub fn peer_names(&self) -> impl Iterator<Item = &'static str> {
        let mut names: Vec<_> = self.peers.iter().flat_map(|group| group.iter().copied()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }

    /// Names and versions of what it compares with.
    pub fn against_labels(&self) -> String {
        self.against.iter().map(|one| one.label()).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a path of the repository matches a pattern: `**` is any number of folders, `*` anything within a name.
pub fn matches(pattern: &str, path: &str) -> bool {
    if pattern == "**" {
        return true;
    }
    let (head, more) = pattern.split_once('/').map_or((pattern, None), |(head, rest)| (head, Some(rest)));
    if head == "**" {
        let Some(rest) = more else { return true };
        return matches(rest, path) || path.split_once('/').is_some_and(|(_, below)| matches(pattern, below));
    }
    match (more, path.split_once('/')) {
        (None, None) => name_matches(head, path),
        (Some(rest), Some((first, below))) => name_matches(head, first) && matches(rest, below),
        _ => false,
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| name_matches(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::peers::catalog;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, path, wanted) in [
            ("Cargo.lock", "Cargo.lock", true),
            ("Cargo.lock", "tests/Cargo.lock", false),
            ("crates/**", "crates/view/src/lib.rs", true),
            ("crates/view/**", "crates/viewer/src/lib.rs", false),
            ("crates/*/core/**", "crates/capi/core/src/lib.rs", true),
            ("**/main.go", "tests/interop/src/kubernetes/port_forward/main.go", true),
            ("docs/*.md", "docs/cli.md", true),
            ("docs/*.md", "docs/dev/cli.md", false),
        ] {
            assert_eq!(matches(pattern, path), wanted, "{pattern} {path}");
        }
    }

    #[test]
    fn every_peer_of_a_suite_is_in_the_catalog_and_names_are_unique() {
        let mut names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        for suite in SUITES {
            for peer in suite.peer_names() {
                assert!(catalog::PEERS.iter().any(|known| known.name == peer), "{}: {peer}", suite.name);
            }
            assert!(!suite.about.is_empty() && !suite.against.is_empty(), "{}", suite.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUITES.len());
    }

    #[test]
    fn every_suite_is_described_on_the_page() {
        let page = std::fs::read_to_string(crate::cargo::root().join(super::super::history::PAGE)).unwrap();
        for name in SUITES.iter().map(|suite| suite.name).chain(LEFT_OUT.iter().map(|(name, _)| *name)) {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn a_change_in_any_crate_of_the_product_ends_the_pass_of_a_suite() {
        let packages = crate::tidy::packages().unwrap();
        let product = packages.iter().map(|one| &one.folder).filter(|one| one.starts_with("crates/"));
        for folder in product {
            let path = format!("{folder}/src/lib.rs");
            let depends = |suite: &Suite| declared(suite).any(|pattern| matches(pattern, &path));
            assert!(SUITES.iter().any(depends), "no suite declares {folder}");
        }
    }

    #[test]
    fn every_pattern_matches_a_file_of_the_repository() {
        let files = files();
        let all = SUITES.iter().flat_map(declared);
        for pattern in all.chain(EVERY_SUITE_USES.iter().copied()) {
            assert!(files.iter().any(|file| matches(pattern, file)), "{pattern} matches nothing");
        }
    }

    /// The option of a suite that starts our binary.
    const TAKES_BINARY: &str = "capstan: Option<PathBuf>";

    #[test]
    fn a_suite_that_starts_our_binary_declares_its_code_and_that_of_the_server() {
        let files = files();
        let mut found = 0;
        for suite in SUITES {
            let is_source = |file: &&String| {
                file.starts_with("tests/interop/src/") && suite.about.iter().any(|one| matches(one, file))
            };
            let sources: Vec<_> = files.iter().filter(is_source).map(|file| read(file)).collect();
            assert!(!sources.is_empty(), "{} does not declare its own code", suite.name);
            if !sources.iter().any(|text| text.contains(TAKES_BINARY)) {
                continue;
            }
            found += 1;
            for path in ["capstan/src/main.rs", "crates/kubernetes/apiserver/src/lib.rs"] {
                assert!(
                    declared(suite).any(|one| matches(one, path)),
                    "{} does not declare {path}",
                    suite.name
                );
            }
        }
        assert!(found > 20, "{TAKES_BINARY} is in the sources of {found} suites");
    }

    /// Commands of tests/interop that compare nothing.
    const NO_SUITES: &[&str] = &["bad-day", "bed", "bench", "older-data", "picture"];

    #[test]
    fn every_command_of_the_suites_is_run_or_left_out_with_a_reason() {
        let source = read("tests/interop/src/main.rs");
        let (_, after) = source.split_once("enum Command {\n").unwrap();
        let (variants, _) = after.split_once("\n}\n").unwrap();
        let name = |line: &str| {
            let variant = line.strip_prefix("    ").filter(|it| it.starts_with(char::is_uppercase))?;
            let variant = &variant[..variant.find(|c: char| !c.is_ascii_alphanumeric())?];
            let dashed = variant.chars().flat_map(|c| c.is_uppercase().then_some('-').into_iter().chain([c]));
            Some(dashed.skip(1).collect::<String>().to_lowercase())
        };
        let mut commands: Vec<_> = variants.lines().filter_map(name).collect();
        let run = SUITES.iter().map(|suite| suite.name);
        let left_out = LEFT_OUT.iter().map(|(name, _)| *name);
        let mut known: Vec<_> = run.chain(left_out).chain(NO_SUITES.iter().copied()).collect();
        commands.sort_unstable();
        known.sort_unstable();
        assert_eq!(commands, known);
    }

    /// All paths that a suite declares. A change elsewhere ends its pass only in [`EVERY_SUITE_USES`].
    fn declared(suite: &Suite) -> impl Iterator<Item = &'static str> {
        suite.about.iter().chain(suite.uses.iter().copied().flatten()).copied()
    }

    /// Paths of all files in the repository.
    fn files() -> Vec<String> {
        let output = Command::new("git").arg("ls-files").current_dir(crate::cargo::root()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
    }

    fn read(path: &str) -> String {
        std::fs::read_to_string(crate::cargo::root().join(path)).unwrap()
    }
}
