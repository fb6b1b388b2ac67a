//! Rules of clusters.

use capstan_capi_types::admission::{Admission, Features, FieldError, SecretUse};
use capstan_object::Key;

use super::{Errors, control_plane, network, unsupported, update, workers};
use crate::names::{REGISTRY_CREDENTIALS, SYSTEM_NAMESPACE, annotation, is_set};
use crate::types::{Cluster, MachineHealthCheckConfiguration, Ref, RegistryMirrorConfiguration};
use crate::version;

/// Port of a registry mirror without another.
const MIRROR_PORT: &str = "443";
/// Name of a worker group without another.
const FIRST_GROUP: &str = "md-0";
/// Names of machines begin with the cluster's, and host names have 63 characters.
const LONGEST_NAME: usize = 35;

impl Admission for Cluster {
    fn default(&mut self, _: Option<&Self>) -> Result<(), FieldError> {
        let spec = &mut self.spec;
        if let Some(mirror) = &mut spec.registry_mirror_configuration
            && mirror.port.is_empty()
        {
            mirror.port = MIRROR_PORT.to_owned();
        }
        if let Some(first) = spec.worker_node_group_configurations.first_mut()
            && first.name.is_empty()
        {
            first.name = FIRST_GROUP.to_owned();
        }
        for group in &mut spec.worker_node_group_configurations {
            if group.count.is_none() {
                group.count = Some(group.autoscaling_configuration.as_ref().map_or(1, |it| it.min_count));
            }
        }
        Ok(())
    }

    /// The machines get the credentials, and with them whoever owns the cluster.
    fn secrets(&self) -> Vec<SecretUse> {
        let mirror = self.spec.registry_mirror_configuration.iter().filter(|mirror| mirror.authenticate);
        let used = |_| SecretUse {
            path: "spec.registryMirrorConfiguration.authenticate".to_owned(),
            secret: Key::new(SYSTEM_NAMESPACE, REGISTRY_CREDENTIALS),
        };
        mirror.map(used).collect()
    }

    fn validate(&self, old: Option<&Self>, _: &Features) -> Errors {
        let mut errors = Vec::new();
        // What is being deleted only loses its finalizer.
        if self.metadata.is_deleting() {
            return errors;
        }
        match old {
            None => create(self, &mut errors),
            Some(old) => update::validate(self, old, &mut errors),
        }
        name(&self.metadata.name, &mut errors);
        unsupported::validate(self, &mut errors);
        if let Err(why) = version::minor(&self.spec.kubernetes_version) {
            let value = self.spec.kubernetes_version.as_str();
            errors.push(FieldError::invalid("spec.kubernetesVersion", value, why));
        }
        reference(&self.spec.datacenter_ref, "spec.datacenterRef", "CloudStackDatacenterConfig", &mut errors);
        control_plane::validate(self, &mut errors);
        workers::validate(self, &mut errors);
        network::validate(self, &mut errors);
        if let Some(mirror) = &self.spec.registry_mirror_configuration {
            registry_mirror(mirror, &mut errors);
        }
        if let Some(check) = &self.spec.machine_health_check {
            health_check(check, "spec.machineHealthCheck", &mut errors);
        }
        etcd_encryption(self, &mut errors);
        releases(self, &mut errors);
        errors
    }
}

/// What is checked when a cluster is created only.
fn create(cluster: &Cluster, errors: &mut Errors) {
    // Clusters that are taken over arrive paused, and are judged when they are unpaused.
    if is_set(&cluster.metadata, annotation::PAUSED) {
        return;
    }
    if cluster.is_self_managed() {
        errors.push(FieldError::forbidden(
            "spec.managementCluster.name",
            "self-managed clusters are not supported: this server is the management cluster; name it here, by any name other \
             than the cluster's own",
        ));
    }
    if !cluster.spec.etcd_encryption.is_empty() {
        errors.push(FieldError::forbidden(
            "spec.etcdEncryption",
            "etcdEncryption is not supported during cluster creation: install the KMS plug-in in the cluster, then set it",
        ));
    }
}

fn name(name: &str, errors: &mut Errors) {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !letters || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        let what = "cluster names start with a letter and contain letters, digits and dashes only";
        errors.push(FieldError::invalid("metadata.name", name, what));
    }
    if name.len() > LONGEST_NAME {
        let what = format!("cluster names have at most {LONGEST_NAME} characters");
        errors.push(FieldError::invalid("metadata.name", name, what));
    }
}

/// A reference to an object of a kind.
pub(super) fn reference(reference: &Ref, path: &str, kind: &str, errors: &mut Errors) {
    if reference.kind != kind {
        errors.push(FieldError::not_supported(format!("{path}.kind"), reference.kind.as_str(), &[kind]));
    }
    if reference.name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), format!("name a {kind}")));
    }
}

pub(super) fn machine_group(group: Option<&Ref>, path: &str, errors: &mut Errors) {
    match group {
        Some(group) => reference(group, path, "CloudStackMachineConfig", errors),
        None => errors.push(FieldError::required(path, "name a CloudStackMachineConfig")),
    }
}

pub(super) fn health_check(check: &MachineHealthCheckConfiguration, path: &str, errors: &mut Errors) {
    for (field, text) in [
        ("nodeStartupTimeout", &check.node_startup_timeout),
        ("unhealthyMachineTimeout", &check.unhealthy_machine_timeout),
    ] {
        let Some(text) = text else { continue };
        let seconds = capstan_capi_types::conversion::duration::to_seconds(text);
        // Cluster API refuses less.
        let least = if field == "nodeStartupTimeout" { 30 } else { 1 };
        if seconds.is_none_or(|seconds| seconds < least) {
            let what = format!("use a duration of at least {least}s, such as 10m0s");
            errors.push(FieldError::invalid(format!("{path}.{field}"), text.as_str(), what));
        }
    }
}

fn registry_mirror(mirror: &RegistryMirrorConfiguration, errors: &mut Errors) {
    let path = "spec.registryMirrorConfiguration";
    if mirror.endpoint.is_empty() {
        errors.push(FieldError::required(format!("{path}.endpoint"), "name the host of the registry mirror"));
    } else if !crate::endpoint::is_address(&mirror.endpoint) && !crate::endpoint::is_name(&mirror.endpoint) {
        let what = "use an address or a domain name, without a scheme and a port";
        errors.push(FieldError::invalid(format!("{path}.endpoint"), mirror.endpoint.as_str(), what));
    }
    if !mirror.port.is_empty() && mirror.port.parse::<u16>().ok().is_none_or(|port| port == 0) {
        let what = "use a number from 1 to 65535";
        errors.push(FieldError::invalid(format!("{path}.port"), mirror.port.as_str(), what));
    }
    for (at, namespace) in mirror.oci_namespaces.iter().enumerate() {
        let path = format!("{path}.ociNamespaces[{at}]");
        if namespace.registry.is_empty() {
            errors
                .push(FieldError::required(format!("{path}.registry"), "name the registry that is mirrored"));
        }
        // Both end up in paths and in TOML on the machines.
        for (field, text) in [("registry", &namespace.registry), ("namespace", &namespace.namespace)] {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:".contains(&byte);
            if !text.bytes().all(plain) || text.contains("..") {
                let what = "only letters, digits and the characters - . _ / : are allowed";
                errors.push(FieldError::invalid(format!("{path}.{field}"), text.as_str(), what));
            }
        }
    }
    let certificate = mirror.ca_cert_content.trim();
    if !certificate.is_empty() && !certificate.starts_with("-----BEGIN CERTIFICATE-----") {
        let what = "use a certificate in PEM form: -----BEGIN CERTIFICATE----- …";
        errors.push(FieldError::forbidden(format!("{path}.caCertContent"), what));
    }
}

fn etcd_encryption(cluster: &Cluster, errors: &mut Errors) {
    let path = "spec.etcdEncryption";
    if cluster.spec.etcd_encryption.len() > 1 {
        errors.push(FieldError::forbidden(path, "only one entry is supported: list all resources in it"));
    }
    for (at, entry) in cluster.spec.etcd_encryption.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if entry.resources.is_empty() {
            errors.push(FieldError::required(
                format!("{path}.resources"),
                "name what is encrypted: secrets, …",
            ));
        }
        if entry.providers.len() != 1 {
            errors.push(FieldError::forbidden(
                format!("{path}.providers"),
                "exactly one provider is supported",
            ));
        }
        for (at, provider) in entry.providers.iter().enumerate() {
            let path = format!("{path}.providers[{at}].kms");
            let Some(kms) = &provider.kms else {
                errors.push(FieldError::required(path, "only KMS plug-ins are supported"));
                continue;
            };
            if kms.name.is_empty() {
                errors.push(FieldError::required(format!("{path}.name"), "name the KMS plug-in"));
            }
            if !kms.socket_listen_address.starts_with("unix:///var/run/kmsplugin/") {
                errors.push(FieldError::invalid(
                    format!("{path}.socketListenAddress"),
                    kms.socket_listen_address.as_str(),
                    "use a socket below unix:///var/run/kmsplugin/, the folder that the API server sees",
                ));
            }
        }
    }
}

/// Releases of EKS Anywhere are kept as they are; what they contained is configured at the server.
fn releases(cluster: &Cluster, errors: &mut Errors) {
    if cluster.spec.bundles_ref.is_some() && cluster.spec.eksa_version.is_some() {
        let what = "bundlesRef and eksaVersion exclude each other: remove bundlesRef";
        errors.push(FieldError::forbidden("spec.bundlesRef", what));
    }
}
