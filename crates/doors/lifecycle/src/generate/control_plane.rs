//! The KubeadmControlPlane.

use std::collections::BTreeMap;

use capstan_capi_types::bootstrap::{Arg, ClusterConfiguration, HostPathMount, KubeadmConfigSpec};
use capstan_capi_types::controlplane::{
    KubeadmControlPlane, KubeadmControlPlaneRolloutStrategyRollingUpdate,
    KubeadmControlPlaneRolloutStrategyType,
};
use capstan_cloudstack_types::v1beta3::CloudStackMachineTemplate;
use capstan_object::IntOrString;

use super::infrastructure::reference;
use super::node::{self, Role};
use super::{CIPHER_SUITE, Manifests, arg, cluster_name, files, metadata};
use crate::endpoint::DEFAULT_PORT;
use crate::names::label;
use crate::release::Release;
use crate::types::CloudStackMachineConfig;
use crate::version;

/// From this version on the first node's administrator is in another file.
const SUPER_ADMIN: u32 = 29;
/// From this version on plug-ins of the first protocol need a feature gate.
const KMS_V1_GATE: u32 = 29;
const KMS_V1: &str = "KMSv1=true";
/// Before this version API servers know the flag.
const WITHOUT_CLOUD_PROVIDER: u32 = 33;

pub(super) fn generate(
    manifests: &Manifests<'_>,
    config: &CloudStackMachineConfig,
    machines: &CloudStackMachineTemplate,
) -> Result<KubeadmControlPlane, String> {
    let cluster = manifests.cluster;
    let wanted = &cluster.spec.control_plane_configuration;
    let minor = version::minor(&cluster.spec.kubernetes_version)?;
    let release = manifests.release(&cluster.spec.kubernetes_version, "spec.kubernetesVersion")?;
    let (host, port) = manifests.endpoint()?;
    let role = Role { labels: &wanted.labels, kubelet: wanted.kubelet_configuration.as_ref(), config };

    let mut spec = KubeadmConfigSpec {
        cluster_configuration: configuration(manifests, release, minor),
        ..KubeadmConfigSpec::default()
    };
    spec.files.extend(files::encryption(&cluster.spec.etcd_encryption)?);
    let vip = &manifests.releases.kube_vip_image;
    if !vip.is_empty() {
        spec.files.push(files::kube_vip(host, port, vip)?);
    }
    spec.files.push(files::audit_policy(cluster)?);
    node::complete(manifests, &role, &mut spec)?;
    if minor >= SUPER_ADMIN && !vip.is_empty() {
        // The first node has no rights by admin.conf until kubeadm is done; the others never have the other file.
        spec.pre_kubeadm_commands.push(format!(
            "if [ -f /run/kubeadm/kubeadm.yaml ]; then sed -i 's#path: /etc/kubernetes/admin.conf#path: /etc/kubernetes/super-admin.conf#' {}; fi",
            files::KUBE_VIP
        ));
    }
    let mut registration = node::registration(manifests, &role);
    if !wanted.taints.is_empty() {
        registration.taints = Some(wanted.taints.clone());
    }
    spec.init_configuration.node_registration = registration.clone();
    spec.join_configuration.node_registration = registration;
    spec.init_configuration.patches = node::patches(&role);
    spec.join_configuration.patches = node::patches(&role);
    if port != DEFAULT_PORT {
        // Nothing translates ports between the address and the API servers.
        spec.init_configuration.local_api_endpoint.bind_port = port.into();
        spec.join_configuration.control_plane.get_or_insert_default().local_api_endpoint.bind_port =
            port.into();
    }

    let mut plane = KubeadmControlPlane {
        metadata: metadata(cluster, cluster_name(cluster)),
        ..KubeadmControlPlane::default()
    };
    plane.spec.replicas = Some(wanted.count);
    plane.spec.version.clone_from(&release.version);
    plane.spec.machine_template.metadata.labels.insert(label::CONTROL_PLANE_ROLE.to_owned(), String::new());
    plane.spec.machine_template.spec.infrastructure_ref =
        reference::<CloudStackMachineTemplate>(&machines.metadata.name);
    plane.spec.kubeadm_config_spec = spec;
    let update = wanted.upgrade_rollout_strategy.as_ref().and_then(|it| it.rolling_update.as_ref());
    plane.spec.rollout.strategy.kind = Some(KubeadmControlPlaneRolloutStrategyType::RollingUpdate);
    plane.spec.rollout.strategy.rolling_update = KubeadmControlPlaneRolloutStrategyRollingUpdate {
        max_surge: Some(IntOrString::Int(update.map_or(1, |update| update.max_surge))),
    };
    Ok(plane)
}

fn configuration(manifests: &Manifests<'_>, release: &Release, minor: u32) -> ClusterConfiguration {
    let cluster = manifests.cluster;
    let wanted = &cluster.spec.control_plane_configuration;
    let mut configuration = ClusterConfiguration {
        image_repository: release.image_repository.clone(),
        ..ClusterConfiguration::default()
    };
    if (29..33).contains(&minor) {
        // Learners are promoted by kubeadm, which then waits for members that Cluster API has not joined yet.
        configuration.feature_gates.insert("EtcdLearnerMode".to_owned(), false);
    }
    configuration.etcd.local.image_repository.clone_from(&release.etcd.image_repository);
    configuration.etcd.local.image_tag.clone_from(&release.etcd.image_tag);
    configuration.etcd.local.extra_args = vec![arg("cipher-suites", CIPHER_SUITE)];
    configuration.dns.image_repository.clone_from(&release.core_dns.image_repository);
    configuration.dns.image_tag.clone_from(&release.core_dns.image_tag);

    let encrypted = !cluster.spec.etcd_encryption.is_empty();
    let mut args: Vec<Arg> = Vec::new();
    if minor < WITHOUT_CLOUD_PROVIDER {
        args.push(arg("cloud-provider", "external"));
    }
    args.extend([
        arg("audit-policy-file", files::AUDIT_POLICY),
        arg("audit-log-path", "/var/log/kubernetes/api-audit.log"),
        arg("audit-log-maxage", "30"),
        arg("audit-log-maxbackup", "10"),
        arg("audit-log-maxsize", "512"),
        arg("profiling", "false"),
    ]);
    if encrypted {
        args.push(arg("encryption-provider-config", "/etc/kubernetes/enc/encryption-config.yaml"));
    }
    let own = wanted.api_server_extra_args.iter().filter(|(_, value)| !value.is_empty());
    let mut own: BTreeMap<&str, String> = own.map(|(name, value)| (name.as_str(), value.clone())).collect();
    if encrypted && minor >= KMS_V1_GATE {
        let gates = own.entry("feature-gates").or_default();
        if !gates.contains("KMSv1=") {
            *gates = if gates.is_empty() { KMS_V1.to_owned() } else { format!("{KMS_V1},{gates}") };
        }
    }
    args.extend(own.into_iter().map(|(name, value)| arg(name, value)));
    args.push(arg("tls-cipher-suites", CIPHER_SUITE));
    configuration.api_server.extra_args = args;
    configuration.api_server.cert_sans.clone_from(&wanted.cert_sans);
    configuration.api_server.extra_volumes = volumes(encrypted);

    let mut manager = vec![arg("cloud-provider", "external"), arg("profiling", "false")];
    if let Some(mask) = cluster.spec.cluster_network.nodes.as_ref().and_then(|nodes| nodes.cidr_mask_size) {
        manager.push(arg("node-cidr-mask-size", mask.to_string()));
    }
    manager.push(arg("tls-cipher-suites", CIPHER_SUITE));
    configuration.controller_manager.extra_args = manager;
    configuration.scheduler.extra_args =
        vec![arg("profiling", "false"), arg("tls-cipher-suites", CIPHER_SUITE)];
    configuration
}

fn volumes(encrypted: bool) -> Vec<HostPathMount> {
    let mount = |name: &str, host: &str, mount: &str, kind: &str, read_only: bool| HostPathMount {
        name: name.to_owned(),
        host_path: host.to_owned(),
        mount_path: mount.to_owned(),
        read_only: Some(read_only),
        path_type: kind.to_owned(),
    };
    let logs = "/var/log/kubernetes";
    let mut volumes = vec![
        mount("audit-policy", files::AUDIT_POLICY, files::AUDIT_POLICY, "File", true),
        mount("audit-log-dir", logs, logs, "DirectoryOrCreate", false),
    ];
    if encrypted {
        let sockets = "/var/run/kmsplugin/";
        volumes.push(mount(
            "encryption-config",
            files::ENCRYPTION,
            "/etc/kubernetes/enc/encryption-config.yaml",
            "File",
            true,
        ));
        volumes.push(mount("kms-plugin", sockets, sockets, "", false));
    }
    volumes
}
