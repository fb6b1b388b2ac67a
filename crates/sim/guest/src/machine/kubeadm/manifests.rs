//! Static Pods of a control plane, and the kubelet's configuration.

use serde_json::{Value, json};

use super::config::{Arguments, Cluster, Endpoint};
use super::files::yaml;
use super::{Abort, Kubeadm, MANIFESTS};

/// Images of a control plane of a version.
pub(super) fn images(cluster: &Value, version: &str) -> Vec<String> {
    let repository = cluster["imageRepository"].as_str().unwrap_or("registry.k8s.io");
    let components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"];
    components.iter().map(|component| format!("{repository}/{component}:{version}")).collect()
}

impl Kubeadm<'_, '_> {
    /// Writes the manifest of local etcd.
    pub(super) fn etcd_manifest(
        &mut self,
        cluster: &Cluster,
        node: &str,
        endpoint: &Endpoint,
    ) -> Result<(), Abort> {
        let address = &endpoint.advertise_address;
        let data = match cluster.text("/etcd/local/dataDir") {
            "" => "/var/lib/etcd",
            directory => directory,
        }
        .to_owned();
        let flags = vec![
            format!("--name={node}"),
            format!("--data-dir={data}"),
            format!("--advertise-client-urls=https://{address}:2379"),
            format!("--listen-client-urls=https://127.0.0.1:2379,https://{address}:2379"),
            format!("--initial-advertise-peer-urls=https://{address}:2380"),
            "--client-cert-auth=true".to_owned(),
        ];
        let flags = with_extra(flags, cluster.value.pointer("/etcd/local/extraArgs"));
        self.write_manifest("etcd", "etcd", cluster, flags)?;
        self.guest.files.make_directories(&format!("{data}/member")).map_err(|error| {
            Abort::phase("etcd/local", format!("failed to create etcd directory {data:?}: {}", error.lower()))
        })
    }

    /// Writes the manifests of the API server, the controller manager and the scheduler.
    pub(super) fn component_manifests(
        &mut self,
        cluster: &Cluster,
        endpoint: &Endpoint,
    ) -> Result<(), Abort> {
        self.print(&format!("[control-plane] Using manifest folder {MANIFESTS:?}"));
        let services = cluster.text("/networking/serviceSubnet").to_owned();
        let pods = cluster.text("/networking/podSubnet").to_owned();
        let mut manager = vec![
            "--kubeconfig=/etc/kubernetes/controller-manager.conf".to_owned(),
            format!("--service-cluster-ip-range={services}"),
            "--leader-elect=true".to_owned(),
        ];
        if !pods.is_empty() {
            manager.extend(["--allocate-node-cidrs=true".to_owned(), format!("--cluster-cidr={pods}")]);
        }
        let components = [
            (
                "kube-apiserver",
                "/apiServer/extraArgs",
                vec![
                    format!("--advertise-address={}", endpoint.advertise_address),
                    format!("--secure-port={}", endpoint.bind_port),
                    format!("--service-cluster-ip-range={services}"),
                    "--client-ca-file=/etc/kubernetes/pki/ca.crt".to_owned(),
                    "--etcd-servers=https://127.0.0.1:2379".to_owned(),
                ],
            ),
            ("kube-controller-manager", "/controllerManager/extraArgs", manager),
            (
                "kube-scheduler",
                "/scheduler/extraArgs",
                vec![
                    "--kubeconfig=/etc/kubernetes/scheduler.conf".to_owned(),
                    "--leader-elect=true".to_owned(),
                ],
            ),
        ];
        for (name, extra, flags) in components {
            self.print(&format!("[control-plane] Creating static Pod manifest for {name:?}"));
            let flags = with_extra(flags, cluster.value.pointer(extra));
            self.write_manifest(name, name, cluster, flags)?;
        }
        Ok(())
    }

    fn write_manifest(
        &mut self,
        name: &str,
        program: &str,
        cluster: &Cluster,
        flags: Vec<String>,
    ) -> Result<(), Abort> {
        let repository = match cluster.text("/imageRepository") {
            "" => "registry.k8s.io",
            repository => repository,
        };
        let tag = if name == "etcd" {
            match cluster.text("/etcd/local/imageTag") {
                "" => "3.6.5-0".to_owned(),
                tag => tag.to_owned(),
            }
        } else {
            match cluster.text("/kubernetesVersion") {
                "" => format!("v{}", self.version),
                version => version.to_owned(),
            }
        };
        let command: Vec<String> = std::iter::once(program.to_owned()).chain(flags).collect();
        let manifest = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system", "labels": {"component": name, "tier": "control-plane"}},
            "spec": {
                "hostNetwork": true, "priorityClassName": "system-node-critical",
                "containers": [{"name": name, "image": format!("{repository}/{name}:{tag}"), "command": command}],
            },
        });
        let path = format!("{MANIFESTS}/{name}.yaml");
        let phase = if name == "etcd" { "etcd/local" } else { "control-plane" };
        let manifest = self.patched(name, phase, manifest)?;
        self.put(&path, yaml(&manifest).as_bytes(), 0o600).map_err(|error| {
            Abort::phase(
                phase,
                format!(
                    "failed to write static pod manifest file for {name:?} ({path:?}): {}",
                    error.lower()
                ),
            )
        })
    }

    /// Writes the kubelet's configuration and starts it.
    pub(super) fn start_kubelet(&mut self, flags: &[(String, String)]) -> Result<(), Abort> {
        let environment = "/var/lib/kubelet/kubeadm-flags.env";
        self.print(&format!(
            "[kubelet-start] Writing kubelet environment file with flags to file {environment:?}"
        ));
        let flags: Vec<String> = flags.iter().map(|(name, value)| format!("--{name}={value}")).collect();
        let text = format!("KUBELET_KUBEADM_ARGS=\"{}\"\n", flags.join(" "));
        let failed = |what: &str, error: crate::machine::files::FileError| {
            Abort::phase("kubelet-start", format!("{what}: {}", error.lower()))
        };
        self.put(environment, text.as_bytes(), 0o644)
            .map_err(|error| failed("error writing a dynamic environment file for the kubelet", error))?;
        let config = "/var/lib/kubelet/config.yaml";
        self.print(&format!("[kubelet-start] Writing kubelet configuration to file {config:?}"));
        let kubelet = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "clusterDomain": "cluster.local", "rotateCertificates": true, "staticPodPath": MANIFESTS,
        });
        let kubelet = self.patched("kubeletconfiguration", "kubelet-start", kubelet)?;
        self.put(config, yaml(&kubelet).as_bytes(), 0o644)
            .map_err(|error| failed("error writing kubelet configuration to disk", error))?;
        self.print("[kubelet-start] Starting the kubelet");
        self.guest.services.insert("kubelet.service".to_owned());
        Ok(())
    }
}

/// Flags merged with extra arguments, which take precedence.
fn with_extra(mut flags: Vec<String>, extra: Option<&Value>) -> Vec<String> {
    let extra: Option<Arguments> = extra.and_then(|extra| serde_json::from_value(extra.clone()).ok());
    for (name, value) in extra.iter().flat_map(Arguments::pairs) {
        let prefix = format!("--{name}=");
        flags.retain(|flag| !flag.starts_with(&prefix));
        flags.push(format!("{prefix}{value}"));
    }
    flags
}
