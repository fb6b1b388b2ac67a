//! The real programs that the suites compare with, and how each is built from its Go module.

use std::fmt::Write as _;

use anyhow::{Result, bail};

/// Kubernetes release the peers are built from.
pub const KUBERNETES: &str = "1.36.3";
/// Kubernetes release that clusters of real nodes are upgraded from.
pub const KUBERNETES_BEFORE: &str = "1.35.4";
/// Suffix of the programs of [`KUBERNETES_BEFORE`].
pub const BEFORE: &str = "-before";
pub const ETCD: &str = "3.6.5";
/// Cluster API release. Its `test` module of 1.14.1 and 1.14.2 was never published, so all three modules stay at 1.14.0.
pub const CLUSTER_API: &str = "1.14.0";
pub const CAPC: &str = "0.6.1";
/// Release of the OpenStack provider for Cluster API.
pub const CAPO: &str = "0.14.7";
/// Release of the OpenStack Resource Controller that this CAPO uses. CAPO does not start without its Image kind.
pub const ORC: &str = "2.4.0";
/// Release of the OpenStack cloud controller manager.
pub const CLOUD_PROVIDER_OPENSTACK: &str = "1.36.0";

pub const CONTAINERD: &str = "2.4.2";
pub const RUNC: &str = "1.5.2";
pub const CNI_PLUGINS: &str = "1.9.1";
/// Release of Helm that charts are tried with.
pub const HELM: &str = "4.3.1";
/// Release of Flux's controllers: the newest whose modules Go's module proxy serves in full.
pub const FLUX: &str = "1.7.3";
/// Release of Prometheus whose promtool checks the alert rules.
pub const PROMETHEUS: &str = "3.15.0";
/// Version of its Go module, which is not yet 1.
const PROMETHEUS_MODULE_VERSION: &str = "0.315.0";
/// Release of CoreDNS that kubeadm of [`KUBERNETES`] asks for.
pub const COREDNS: &str = "1.14.2";

/// Release of EKS Anywhere.
pub const EKS_ANYWHERE: &str = "0.26.1";
/// Release of EKS Anywhere that has expected objects for most of its manifests. Later ones have few, and Go's module proxy
/// does not serve those between.
pub const EKS_ANYWHERE_BEFORE: &str = "0.19.0";

/// Release of the library that migrates Corefiles, the one that this Cluster API uses.
pub const COREFILE_MIGRATION: &str = "1.0.34";

/// Release of CloudStack's Go client, the one that this CAPC uses.
pub const CLOUDSTACK_GO: &str = "2.17.1";

/// Release of Dex: the newest that Go's module proxy serves, because later ones have tags that Go does not accept for its
/// module path.
pub const DEX: &str = "2.13.0+incompatible";

pub const DEX_MODULE: &str = "github.com/dexidp/dex";
pub const CLOUDSTACK_GO_MODULE: &str = "github.com/apache/cloudstack-go/v2";
pub const EKS_ANYWHERE_MODULE: &str = "github.com/aws/eks-anywhere";
pub const COREFILE_MIGRATION_MODULE: &str = "github.com/coredns/corefile-migration";
/// Module path of Cluster API's managers.
pub const CLUSTER_API_MODULE: &str = "sigs.k8s.io/cluster-api";
/// Module path of Cluster API's development provider (CAPD) and its templates.
pub const CLUSTER_API_TEST_MODULE: &str = "sigs.k8s.io/cluster-api/test";
pub const CAPC_MODULE: &str = "sigs.k8s.io/cluster-api-provider-cloudstack";
pub const CAPO_MODULE: &str = "sigs.k8s.io/cluster-api-provider-openstack";
pub const CLOUD_PROVIDER_OPENSTACK_MODULE: &str = "k8s.io/cloud-provider-openstack";
pub const ORC_MODULE: &str = "github.com/k-orc/openstack-resource-controller/v2";

pub const CONTAINERD_MODULE: &str = "github.com/containerd/containerd/v2";
pub const RUNC_MODULE: &str = "github.com/opencontainers/runc";
pub const CNI_PLUGINS_MODULE: &str = "github.com/containernetworking/plugins";
pub const SOURCE_CONTROLLER_MODULE: &str = "github.com/fluxcd/source-controller";
pub const KUSTOMIZE_CONTROLLER_MODULE: &str = "github.com/fluxcd/kustomize-controller";
pub const HELM_MODULE: &str = "helm.sh/helm/v4";
pub const PROMETHEUS_MODULE: &str = "github.com/prometheus/prometheus";
pub const COREDNS_MODULE: &str = "github.com/coredns/coredns";

/// Prefix of the module paths of wrappers.
const OWN_MODULES: &str = "capstan.peers/";

/// Programs of one wrapper module. They share one dependency graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Kubernetes,
    KubernetesBefore,
    Etcd,
    ClusterApi,
    Capc,
    Capo,
    CloudProviderOpenStack,
    Containerd,
    Runc,
    CniPlugins,
    CoreDns,
    Helm,
    Flux,
    Prometheus,
}

#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub name: &'static str,
    pub family: Family,
    pub package: &'static str,
    /// Built with `go test -c` rather than `go build`.
    pub is_test_binary: bool,
    /// Build time in seconds on two idle cores, once the shared packages of its family are compiled.
    pub seconds: u64,
}

const fn peer(name: &'static str, family: Family, package: &'static str, seconds: u64) -> Peer {
    Peer { name, family, package, is_test_binary: false, seconds }
}

pub const PEERS: &[Peer] = &[
    peer("kubectl", Family::Kubernetes, "k8s.io/kubernetes/cmd/kubectl", 45),
    peer("etcd", Family::Etcd, "go.etcd.io/etcd/server/v3", 20),
    peer("etcdctl", Family::Etcd, "go.etcd.io/etcd/etcdctl/v3", 10),
    peer("kube-apiserver", Family::Kubernetes, "k8s.io/kubernetes/cmd/kube-apiserver", 150),
    peer("kube-controller-manager", Family::Kubernetes, "k8s.io/kubernetes/cmd/kube-controller-manager", 75),
    peer("capi-core", Family::ClusterApi, "sigs.k8s.io/cluster-api/core", 30),
    peer("capi-bootstrap", Family::ClusterApi, "sigs.k8s.io/cluster-api/bootstrap/kubeadm", 15),
    peer("capi-controlplane", Family::ClusterApi, "sigs.k8s.io/cluster-api/controlplane/kubeadm", 20),
    peer("capd", Family::ClusterApi, "sigs.k8s.io/cluster-api/test/infrastructure/docker", 45),
    peer("clusterctl", Family::ClusterApi, "sigs.k8s.io/cluster-api/cmd/clusterctl", 60),
    peer("kubeadm", Family::Kubernetes, "k8s.io/kubernetes/cmd/kubeadm", 30),
    Peer { is_test_binary: true, ..peer("e2e.test", Family::Kubernetes, "k8s.io/kubernetes/test/e2e", 120) },
    peer("kubelet", Family::Kubernetes, "k8s.io/kubernetes/cmd/kubelet", 90),
    peer("kube-scheduler", Family::Kubernetes, "k8s.io/kubernetes/cmd/kube-scheduler", 30),
    peer("kube-proxy", Family::Kubernetes, "k8s.io/kubernetes/cmd/kube-proxy", 20),
    peer("kube-apiserver-before", Family::KubernetesBefore, "k8s.io/kubernetes/cmd/kube-apiserver", 150),
    peer(
        "kube-controller-manager-before",
        Family::KubernetesBefore,
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        75,
    ),
    peer("kube-scheduler-before", Family::KubernetesBefore, "k8s.io/kubernetes/cmd/kube-scheduler", 30),
    peer("kube-proxy-before", Family::KubernetesBefore, "k8s.io/kubernetes/cmd/kube-proxy", 20),
    peer("kubeadm-before", Family::KubernetesBefore, "k8s.io/kubernetes/cmd/kubeadm", 30),
    peer("kubelet-before", Family::KubernetesBefore, "k8s.io/kubernetes/cmd/kubelet", 90),
    peer("containerd", Family::Containerd, "github.com/containerd/containerd/v2/cmd/containerd", 30),
    peer(
        "containerd-shim-runc-v2",
        Family::Containerd,
        "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        10,
    ),
    peer("ctr", Family::Containerd, "github.com/containerd/containerd/v2/cmd/ctr", 10),
    peer("runc", Family::Runc, RUNC_MODULE, 15),
    peer("bridge", Family::CniPlugins, "github.com/containernetworking/plugins/plugins/main/bridge", 5),
    peer(
        "host-local",
        Family::CniPlugins,
        "github.com/containernetworking/plugins/plugins/ipam/host-local",
        5,
    ),
    peer("loopback", Family::CniPlugins, "github.com/containernetworking/plugins/plugins/main/loopback", 5),
    peer("portmap", Family::CniPlugins, "github.com/containernetworking/plugins/plugins/meta/portmap", 5),
    peer("coredns", Family::CoreDns, "capstan.peers/coredns/coredns", 15),
    peer("capc", Family::Capc, CAPC_MODULE, 30),
    peer("helm", Family::Helm, "helm.sh/helm/v4/cmd/helm", 30),
    peer("capo", Family::Capo, CAPO_MODULE, 30),
    peer(
        "openstack-cloud-controller-manager",
        Family::CloudProviderOpenStack,
        "k8s.io/cloud-provider-openstack/cmd/openstack-cloud-controller-manager",
        30,
    ),
    peer("source-controller", Family::Flux, SOURCE_CONTROLLER_MODULE, 30),
    peer("kustomize-controller", Family::Flux, KUSTOMIZE_CONTROLLER_MODULE, 30),
    peer("promtool", Family::Prometheus, "github.com/prometheus/prometheus/cmd/promtool", 20),
];

/// Peers on a node image and in the container images of its control plane.
pub const NODE_IMAGE: &[&str] = &[
    "kubectl",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kubeadm",
    "kubelet",
    "kube-scheduler",
    "kube-proxy",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "runc",
    "bridge",
    "host-local",
    "loopback",
    "portmap",
    "coredns",
    "etcdctl",
];

/// CoreDNS with only the plugins that kubeadm's Corefile uses: plugins for clouds and databases are most of its
/// build.
const COREDNS_MAIN: &str = include_str!("coredns.go");

/// The named peers, or all if no name is given, in build order.
pub fn select(only: &[String]) -> Result<Vec<Peer>> {
    for name in only {
        if !PEERS.iter().any(|peer| peer.name == name) {
            let known: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
            bail!("{name}: no such peer; the peers are {}", known.join(", "));
        }
    }
    let wanted = |peer: &&Peer| only.is_empty() || only.iter().any(|name| name == peer.name);
    Ok(PEERS.iter().filter(wanted).copied().collect())
}

/// Name of the cache folder of these versions.
pub fn version_set() -> String {
    format!("kubernetes-{KUBERNETES}_etcd-{ETCD}_cluster-api-{CLUSTER_API}_capc-{CAPC}")
}

impl Family {
    /// Folder name of the wrapper module.
    pub fn name(self) -> &'static str {
        match self {
            Family::Kubernetes => "kubernetes",
            Family::KubernetesBefore => "kubernetes-before",
            Family::Etcd => "etcd",
            Family::ClusterApi => "cluster-api",
            Family::Capc => "capc",
            Family::Capo => "capo",
            Family::CloudProviderOpenStack => "cloud-provider-openstack",
            Family::Containerd => "containerd",
            Family::Runc => "runc",
            Family::CniPlugins => "cni-plugins",
            Family::CoreDns => "coredns",
            Family::Helm => "helm",
            Family::Flux => "flux",
            Family::Prometheus => "prometheus",
        }
    }

    /// The module whose go.mod the wrapper's is derived from, with its version.
    pub fn main_module(self) -> (&'static str, String) {
        match self {
            Family::Kubernetes => ("k8s.io/kubernetes", format!("v{KUBERNETES}")),
            Family::KubernetesBefore => ("k8s.io/kubernetes", format!("v{KUBERNETES_BEFORE}")),
            Family::Etcd => ("go.etcd.io/etcd/server/v3", format!("v{ETCD}")),
            Family::ClusterApi => (CLUSTER_API_MODULE, format!("v{CLUSTER_API}")),
            Family::Capc => (CAPC_MODULE, format!("v{CAPC}")),
            Family::Capo => (CAPO_MODULE, format!("v{CAPO}")),
            Family::CloudProviderOpenStack => {
                (CLOUD_PROVIDER_OPENSTACK_MODULE, format!("v{CLOUD_PROVIDER_OPENSTACK}"))
            }
            Family::Containerd => (CONTAINERD_MODULE, format!("v{CONTAINERD}")),
            Family::Runc => (RUNC_MODULE, format!("v{RUNC}")),
            Family::CniPlugins => (CNI_PLUGINS_MODULE, format!("v{CNI_PLUGINS}")),
            Family::CoreDns => (COREDNS_MODULE, format!("v{COREDNS}")),
            Family::Helm => (HELM_MODULE, format!("v{HELM}")),
            Family::Flux => (KUSTOMIZE_CONTROLLER_MODULE, format!("v{FLUX}")),
            Family::Prometheus => (PROMETHEUS_MODULE, format!("v{PROMETHEUS_MODULE_VERSION}")),
        }
    }

    /// The wrapper's go.mod, derived from the main module's.
    pub fn go_mod(self, upstream: &str) -> String {
        let mut out = format!("module {OWN_MODULES}{}\n\ngo 1.26.0\n\n", self.name());
        let mut line = |text: String| writeln!(out, "{text}").unwrap_or_default();
        let (main, version) = self.main_module();
        line(format!("require {main} {version}"));
        match self {
            Family::Kubernetes | Family::KubernetesBefore => {
                // Staging modules are published one by one as v0.<minor>.<patch>.
                let staged = version.replacen('1', "0", 1);
                for module in staging_modules(upstream) {
                    line(format!("replace {module} => {module} {staged}"));
                }
            }
            Family::Etcd => line(format!("require go.etcd.io/etcd/etcdctl/v3 {version}")),
            Family::ClusterApi => {
                for module in ["sigs.k8s.io/cluster-api/api", CLUSTER_API_TEST_MODULE] {
                    line(format!("require {module} {version}"));
                }
                // The `test` module replaces these two with folders of its own repository.
                for module in [CLUSTER_API_MODULE, "sigs.k8s.io/cluster-api/api"] {
                    line(format!("replace {module} => {module} {version}"));
                }
            }
            Family::Capc => {
                line("replace github.com/dgrijalva/jwt-go => github.com/golang-jwt/jwt/v4 v4.0.0".into());
            }
            Family::CloudProviderOpenStack => {
                // Modules of k8s.io/kubernetes that nothing here imports; their versions are found by this only.
                for (module, replacement) in published_replaces(upstream) {
                    line(format!("replace {module} => {replacement}"));
                }
            }
            Family::Flux => {
                line(format!("require {SOURCE_CONTROLLER_MODULE} {version}"));
                let digest = "github.com/opencontainers/go-digest";
                for replaced in
                    upstream.lines().filter(|line| line.starts_with(&format!("replace {digest} ")))
                {
                    line(replaced.to_owned());
                }
            }
            Family::Capo
            | Family::Containerd
            | Family::Runc
            | Family::CniPlugins
            | Family::CoreDns
            | Family::Helm
            | Family::Prometheus => {}
        }
        out
    }

    /// Modules whose go.sum is trusted too: Go's checksum database does not answer for every version in it, and the file
    /// itself was verified with its module.
    pub fn verified(self) -> &'static [&'static str] {
        match self {
            Family::Flux => &[SOURCE_CONTROLLER_MODULE, KUSTOMIZE_CONTROLLER_MODULE],
            _ => &[],
        }
    }

    /// A Go file that imports every program of the family, so that `go mod tidy` keeps their dependencies.
    pub fn tools_go(self) -> String {
        let mut out = "//go:build tools\n\npackage tools\n\nimport (\n".to_owned();
        let foreign = |peer: &&Peer| peer.family == self && !peer.package.starts_with(OWN_MODULES);
        for peer in PEERS.iter().filter(foreign) {
            writeln!(out, "\t_ \"{}\"", peer.package).unwrap_or_default();
        }
        out.push_str(")\n");
        out
    }

    /// A program of ours in the wrapper module: its folder and its source.
    pub fn own_program(self) -> Option<(&'static str, &'static str)> {
        (self == Family::CoreDns).then_some(("coredns", COREDNS_MAIN))
    }

    /// Build time in seconds of the packages that its programs share, on two idle cores.
    pub fn shared_seconds(self) -> u64 {
        match self {
            Family::Kubernetes | Family::KubernetesBefore => 90,
            Family::ClusterApi => 150,
            Family::Capc | Family::Capo | Family::Helm => 100,
            Family::Flux => 300,
            Family::Containerd | Family::CoreDns => 60,
            Family::Etcd => 45,
            Family::Runc | Family::CniPlugins => 15,
            Family::CloudProviderOpenStack | Family::Prometheus => 100,
        }
    }

    pub fn tidy_arguments(self) -> &'static [&'static str] {
        match self {
            // `-e`: a generated package of CAPC's tests is not in the module, and the proxy does not serve the module that
            // CAPO's and Flux's tests import.
            Family::Capc | Family::Capo | Family::Flux => &["mod", "tidy", "-e"],
            _ => &["mod", "tidy"],
        }
    }

    /// Linker flags. They set the version that each program prints.
    pub fn linker_flags(self) -> String {
        let stamped = |package: &str, version: &str| {
            let mut parts = version.split('.');
            let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            format!(
                "-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
            )
        };
        match self {
            Family::Kubernetes => stamped("k8s.io/component-base/version", KUBERNETES),
            Family::KubernetesBefore => stamped("k8s.io/component-base/version", KUBERNETES_BEFORE),
            Family::ClusterApi => stamped("sigs.k8s.io/cluster-api/version", CLUSTER_API),
            Family::Containerd => format!("-s -w -X {CONTAINERD_MODULE}/version.Version={CONTAINERD}"),
            Family::Runc => "-s -w -extldflags -static".to_owned(),
            Family::Helm => format!("-s -w -X {HELM_MODULE}/internal/version.version=v{HELM}"),
            Family::CloudProviderOpenStack => {
                let (package, version) = (CLOUD_PROVIDER_OPENSTACK_MODULE, CLOUD_PROVIDER_OPENSTACK);
                format!("-s -w -X {package}/pkg/version.Version=v{version}")
            }
            Family::Etcd
            | Family::Capc
            | Family::Capo
            | Family::CniPlugins
            | Family::CoreDns
            | Family::Flux => "-s -w".to_owned(),
            Family::Prometheus => {
                format!("-s -w -X github.com/prometheus/common/version.Version={PROMETHEUS}")
            }
        }
    }

    /// Build tags that turn off optional dependencies.
    pub fn tags(self) -> &'static str {
        match self {
            Family::Containerd => "no_btrfs no_zfs no_devmapper",
            Family::Runc => "seccomp netgo osusergo urfave_cli_no_docs",
            // Clients of clouds in which it finds targets.
            Family::Prometheus => "remove_all_sd",
            _ => "",
        }
    }

    /// The Debian package of the C library that a family links with, if any. runc needs C to enter namespaces before
    /// Go's runtime starts, and libseccomp to filter system calls.
    pub fn c_library(self) -> Option<&'static str> {
        (self == Family::Runc).then_some("libseccomp-dev")
    }
}

fn staging_modules(go_mod: &str) -> Vec<&str> {
    go_mod
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("replace ").split_once(" => ./staging/src/"))
        .map(|(module, _)| module.trim())
        .collect()
}

/// Modules that are replaced by a published version of themselves.
fn published_replaces(go_mod: &str) -> Vec<(&str, &str)> {
    go_mod
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("replace ").split_once(" => "))
        .filter(|(module, with)| with.split(' ').next() == Some(*module))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_by_published_versions_are_kept() {
        let upstream = "replace (\n\tk8s.io/a => k8s.io/a v0.36.0\n\tk8s.io/b => ../b\n)\nreplace c.io/c => d.io/c v1.0.0\n";
        let ours = Family::CloudProviderOpenStack.go_mod(upstream);
        let replaces: Vec<&str> = ours.lines().filter(|line| line.starts_with("replace")).collect();
        assert_eq!(replaces, ["replace k8s.io/a => k8s.io/a v0.36.0"]);
    }

    #[test]
    fn staging_replaces_become_published_versions() {
        let upstream = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/client-go => ./staging/src/k8s.io/client-go\n)\n";
        let ours = Family::Kubernetes.go_mod(upstream);
        assert!(ours.contains("replace k8s.io/api => k8s.io/api v0.36.3"), "{ours}");
        assert!(ours.contains("replace k8s.io/client-go => k8s.io/client-go v0.36.3"), "{ours}");
        let before = Family::KubernetesBefore.go_mod(upstream);
        assert!(before.contains("replace k8s.io/api => k8s.io/api v0.35.4"), "{before}");
    }

    #[test]
    fn coredns_is_ours_and_its_plugins_are_not_imported_twice() {
        assert!(!Family::CoreDns.tools_go().contains("_ \""));
        assert!(COREDNS_MAIN.contains("plugin/kubernetes\""));
    }

    #[test]
    fn an_unknown_peer_is_refused_by_name() {
        assert!(select(&["dockerd".into()]).unwrap_err().to_string().starts_with("dockerd: no such peer"));
    }
}
