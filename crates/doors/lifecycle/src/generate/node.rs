//! What machines of all roles have in common: registration of the node, commands, users, disks.

use std::collections::BTreeMap;

use capstan_capi_types::bootstrap::{
    Arg, DiskSetup, Filesystem, Format, KubeadmConfigSpec, NodeRegistrationOptions, Partition,
    PartitionTableType, Patches, User,
};
use serde_json::Value;

use super::files::{PATCHES, kubelet_patch};
use super::{CIPHER_SUITE, Manifests, arg, cluster_name, mirror, proxy};
use crate::types::CloudStackMachineConfig;

/// What cloud-init puts there on CloudStack.
const HOSTNAME: &str = "{{ ds.meta_data.hostname }}";
const CRI_SOCKET: &str = "/var/run/containerd/containerd.sock";

pub(super) struct Role<'a> {
    pub labels: &'a BTreeMap<String, String>,
    pub kubelet: Option<&'a Value>,
    pub config: &'a CloudStackMachineConfig,
}

/// How the node registers; taints are the role's.
pub(super) fn registration(manifests: &Manifests<'_>, role: &Role<'_>) -> NodeRegistrationOptions {
    let mut args: Vec<Arg> = vec![arg("provider-id", "cloudstack:///'{{ ds.meta_data.instance_id }}'")];
    if role.kubelet.is_none() {
        args.push(arg("read-only-port", "0"));
        args.push(arg("anonymous-auth", "false"));
        let resolver = manifests.cluster.spec.cluster_network.dns.resolv_conf.as_ref();
        if let Some(resolver) = resolver.filter(|resolver| !resolver.path.is_empty()) {
            args.push(arg("resolv-conf", resolver.path.as_str()));
        }
        args.push(arg("tls-cipher-suites", CIPHER_SUITE));
    }
    if !role.labels.is_empty() {
        let mut labels: Vec<String> =
            role.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        // By the whole text, as EKS Anywhere does: another order would replace the machines of its clusters.
        labels.sort();
        args.push(arg("node-labels", labels.join(",")));
    }
    NodeRegistrationOptions {
        name: HOSTNAME.to_owned(),
        cri_socket: CRI_SOCKET.to_owned(),
        kubelet_extra_args: args,
        ..NodeRegistrationOptions::default()
    }
}

/// The folder of patches, if there are any.
pub(super) fn patches(role: &Role<'_>) -> Patches {
    let directory = role.kubelet.map(|_| PATCHES.to_owned()).unwrap_or_default();
    Patches { directory }
}

/// Adds files, commands, disks and users that do not depend on the role. Files of the role are there already.
pub(super) fn complete(
    manifests: &Manifests<'_>,
    role: &Role<'_>,
    spec: &mut KubeadmConfigSpec,
) -> Result<(), String> {
    let cluster = manifests.cluster;
    if let Some(fields) = role.kubelet {
        let resolver = cluster.spec.cluster_network.dns.resolv_conf.as_ref();
        spec.files.insert(0, kubelet_patch(fields, resolver.map(|it| it.path.as_str()))?);
    }
    let proxy = cluster.spec.proxy_configuration.as_ref();
    let mirror = cluster.spec.registry_mirror_configuration.as_ref();
    if let Some(proxy) = proxy {
        spec.files.push(proxy::file_of(manifests, proxy)?);
    }
    let mut commands = vec!["swapoff -a".to_owned()];
    if let Some(mirror) = mirror {
        spec.files.extend(mirror::files(mirror, cluster_name(cluster)));
        commands.push(mirror::RELOAD.to_owned());
        if mirror.authenticate {
            commands.push(mirror::PROTECT.to_owned());
        }
    }
    if proxy.is_some() || mirror.is_some() {
        commands.push("sudo systemctl daemon-reload".to_owned());
        commands.push("sudo systemctl restart containerd".to_owned());
    }
    commands.extend([
        format!("hostname \"{HOSTNAME}\""),
        "echo \"::1         ipv6-localhost ipv6-loopback\" >/etc/hosts".to_owned(),
        "echo \"127.0.0.1   localhost\" >>/etc/hosts".to_owned(),
        format!("echo \"127.0.0.1   {HOSTNAME}\" >>/etc/hosts"),
        format!("echo \"{HOSTNAME}\" >/etc/hostname"),
    ]);
    commands.extend(role.config.spec.symlinks.iter().map(|(from, to)| symlink(from, to)));
    spec.pre_kubeadm_commands = commands;
    disk(role.config, spec);
    if let Some(user) = role.config.spec.users.first() {
        let key = user.ssh_authorized_keys.first().map(|key| without_comment(key));
        spec.users = vec![User {
            name: user.name.clone(),
            ssh_authorized_keys: key.into_iter().collect(),
            sudo: "ALL=(ALL) NOPASSWD:ALL".to_owned(),
            ..User::default()
        }];
    }
    spec.format = Some(Format::CloudConfig);
    Ok(())
}

/// Moves a folder away once, and puts a link in its place. Admission checked the characters of both paths.
fn symlink(from: &str, to: &str) -> String {
    format!(
        "if [ ! -L {from} ]; then if [ -e {from} ]; then mv {from} {from}-before-symlink; fi; mkdir -p {to} && ln -s {to} {from}; fi"
    )
}

fn disk(config: &CloudStackMachineConfig, spec: &mut KubeadmConfigSpec) {
    let Some(disk) = config.spec.disk_offering.as_ref().filter(|disk| disk.is_named()) else { return };
    let options = ["-E", "lazy_itable_init=1,lazy_journal_init=1"];
    spec.disk_setup = DiskSetup {
        filesystems: vec![Filesystem {
            device: format!("{}1", disk.device),
            overwrite: Some(false),
            extra_opts: options.map(str::to_owned).to_vec(),
            filesystem: disk.filesystem.clone(),
            label: disk.label.clone(),
            ..Filesystem::default()
        }],
        partitions: vec![Partition {
            device: disk.device.clone(),
            layout: Some(true),
            overwrite: Some(false),
            table_type: Some(PartitionTableType::Gpt),
            ..Partition::default()
        }],
    };
    spec.mounts = vec![vec![format!("LABEL={}", disk.label), disk.mount_path.clone()]];
}

/// A public key without its comment, which is about a person.
fn without_comment(key: &str) -> String {
    key.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}
