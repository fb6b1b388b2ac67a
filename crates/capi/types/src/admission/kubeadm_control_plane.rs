//! `KubeadmControlPlane` and `KubeadmControlPlaneTemplate`.

use capstan_object::IntOrString;
use serde_json::Value;

use super::common::{shown, validate_naming, validate_taints, validate_template_meta};
use super::{Admission, Features, FieldError, kubeadm_config};
use crate::bootstrap::{ClusterConfiguration, Etcd, ExternalEtcd, LocalEtcd};
use crate::controlplane::kubeadm_control_plane::annotation;
use crate::controlplane::{
    KubeadmControlPlane, KubeadmControlPlaneRolloutSpec, KubeadmControlPlaneRolloutStrategy,
    KubeadmControlPlaneRolloutStrategyType, KubeadmControlPlaneTemplate,
};
use crate::version;

/// Default validity of CA certificates in days.
const CA_VALIDITY_DAYS: i32 = 3650;

/// Mutable fields of a control plane; `*` matches everything below. Other changes need a new cluster.
const MUTABLE: &[&str] = &[
    "metadata.*",
    "spec.kubeadmConfigSpec.clusterConfiguration.etcd",
    "spec.kubeadmConfigSpec.clusterConfiguration.etcd.*",
    "spec.kubeadmConfigSpec.clusterConfiguration.dns",
    "spec.kubeadmConfigSpec.clusterConfiguration.dns.*",
    "spec.kubeadmConfigSpec.clusterConfiguration.imageRepository",
    "spec.kubeadmConfigSpec.clusterConfiguration.featureGates",
    "spec.kubeadmConfigSpec.clusterConfiguration.featureGates.*",
    "spec.kubeadmConfigSpec.clusterConfiguration.apiServer",
    "spec.kubeadmConfigSpec.clusterConfiguration.apiServer.*",
    "spec.kubeadmConfigSpec.clusterConfiguration.controllerManager",
    "spec.kubeadmConfigSpec.clusterConfiguration.controllerManager.*",
    "spec.kubeadmConfigSpec.clusterConfiguration.scheduler",
    "spec.kubeadmConfigSpec.clusterConfiguration.scheduler.*",
    "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays",
    "spec.kubeadmConfigSpec.clusterConfiguration.encryptionAlgorithm",
    "spec.kubeadmConfigSpec.initConfiguration.nodeRegistration",
    "spec.kubeadmConfigSpec.initConfiguration.nodeRegistration.*",
    "spec.kubeadmConfigSpec.initConfiguration.patches.directory",
    "spec.kubeadmConfigSpec.initConfiguration.patches",
    "spec.kubeadmConfigSpec.initConfiguration.skipPhases",
    "spec.kubeadmConfigSpec.initConfiguration.bootstrapTokens",
    "spec.kubeadmConfigSpec.initConfiguration.localAPIEndpoint",
    "spec.kubeadmConfigSpec.initConfiguration.localAPIEndpoint.*",
    "spec.kubeadmConfigSpec.initConfiguration.timeouts",
    "spec.kubeadmConfigSpec.initConfiguration.timeouts.*",
    "spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration",
    "spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration.*",
    "spec.kubeadmConfigSpec.joinConfiguration.patches.directory",
    "spec.kubeadmConfigSpec.joinConfiguration.patches",
    "spec.kubeadmConfigSpec.joinConfiguration.skipPhases",
    "spec.kubeadmConfigSpec.joinConfiguration.caCertPath",
    "spec.kubeadmConfigSpec.joinConfiguration.controlPlane",
    "spec.kubeadmConfigSpec.joinConfiguration.controlPlane.*",
    "spec.kubeadmConfigSpec.joinConfiguration.discovery",
    "spec.kubeadmConfigSpec.joinConfiguration.discovery.*",
    "spec.kubeadmConfigSpec.joinConfiguration.timeouts",
    "spec.kubeadmConfigSpec.joinConfiguration.timeouts.*",
    "spec.kubeadmConfigSpec.bootCommands",
    "spec.kubeadmConfigSpec.preKubeadmCommands",
    "spec.kubeadmConfigSpec.postKubeadmCommands",
    "spec.kubeadmConfigSpec.files",
    "spec.kubeadmConfigSpec.verbosity",
    "spec.kubeadmConfigSpec.users",
    "spec.kubeadmConfigSpec.ntp",
    "spec.kubeadmConfigSpec.ntp.*",
    "spec.kubeadmConfigSpec.ignition",
    "spec.kubeadmConfigSpec.ignition.*",
    "spec.kubeadmConfigSpec.diskSetup",
    "spec.kubeadmConfigSpec.diskSetup.*",
    "spec.kubeadmConfigSpec.format",
    "spec.kubeadmConfigSpec.mounts",
    "spec.machineTemplate.metadata",
    "spec.machineTemplate.metadata.*",
    "spec.machineTemplate.spec",
    "spec.machineTemplate.spec.*",
    "spec.replicas",
    "spec.version",
    "spec.remediation",
    "spec.remediation.*",
    "spec.machineNaming",
    "spec.machineNaming.*",
    "spec.rollout",
    "spec.rollout.*",
];

impl Admission for KubeadmControlPlane {
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        self.spec.replicas.get_or_insert(1);
        if !self.spec.version.starts_with('v') {
            self.spec.version.insert(0, 'v');
        }
        let strategy = &mut self.spec.rollout.strategy;
        strategy.kind = Some(KubeadmControlPlaneRolloutStrategyType::RollingUpdate);
        strategy.rolling_update.max_surge.get_or_insert(IntOrString::Int(1));
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate_spec(self, features, &mut errors);
        let configuration = &self.spec.kubeadm_config_spec.cluster_configuration;
        let path = "spec.kubeadmConfigSpec.clusterConfiguration";
        if let Some(old) = old {
            let mut changed = Vec::new();
            changes(&shown(old), &shown(self), String::new(), &mut changed);
            for path in changed {
                if !MUTABLE.iter().any(|allowed| covers(allowed, &path)) {
                    errors.push(FieldError::forbidden(path, "cannot be modified"));
                }
            }
            validate_upgrade(self, old, &mut errors);
            let old = &old.spec.kubeadm_config_spec.cluster_configuration;
            validate_cluster_configuration(configuration, Some(old), path, &mut errors);
            validate_coredns(self, old, &mut errors);
        } else {
            validate_cluster_configuration(configuration, None, path, &mut errors);
        }
        let path = "spec.kubeadmConfigSpec";
        kubeadm_config::validate_spec(&self.spec.kubeadm_config_spec, path, features, &mut errors);
        kubeadm_config::validate_equal_timeouts(&self.spec.kubeadm_config_spec, path, &mut errors);
        errors
    }
}

impl Admission for KubeadmControlPlaneTemplate {
    fn validate(&self, old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let path = "spec.template.spec";
        let resource = &self.spec.template.spec;
        if let Some(old) = old {
            return if unchanged_template(old, self) {
                Vec::new()
            } else {
                vec![FieldError::invalid(
                    path,
                    shown(resource),
                    "KubeadmControlPlaneTemplate spec.template.spec field is immutable. Please create new resource instead.",
                )]
            };
        }
        if !features.control_plane_templates {
            return vec![FieldError::forbidden(
                "spec",
                "can be set only if the ClusterTopology feature flag is enabled",
            )];
        }
        let mut errors = Vec::new();
        let config = &resource.kubeadm_config_spec;
        validate_rollout(&resource.rollout, &config.cluster_configuration, None, path, &mut errors);
        validate_naming(
            &resource.machine_naming,
            "kubeadmControlPlane",
            &format!("{path}.machineNaming"),
            &mut errors,
        );
        let machines = &resource.machine_template;
        let taints = &machines.spec.taints;
        validate_taints(taints, &format!("{path}.machineTemplate.spec.taints"), features, &mut errors);
        validate_template_meta(&machines.metadata, &format!("{path}.machineTemplate.metadata"), &mut errors);
        let path = format!("{path}.kubeadmConfigSpec");
        let configuration_path = format!("{path}.clusterConfiguration");
        validate_cluster_configuration(&config.cluster_configuration, None, &configuration_path, &mut errors);
        kubeadm_config::validate_spec(config, &path, features, &mut errors);
        kubeadm_config::validate_equal_timeouts(config, &path, &mut errors);
        validate_template_meta(&self.spec.template.metadata, "spec.template.metadata", &mut errors);
        errors
    }
}

/// Validates the new replicas of a control plane.
pub fn validate_scale(control_plane: &KubeadmControlPlane, replicas: i32) -> Option<&'static str> {
    if replicas <= 0 {
        Some("replicas should be greater than zero")
    } else if replicas % 2 == 0 && !has_external_etcd(control_plane) {
        Some("replicas cannot be an even number when etcd is stacked")
    } else {
        None
    }
}

fn has_external_etcd(control_plane: &KubeadmControlPlane) -> bool {
    is_external(&control_plane.spec.kubeadm_config_spec.cluster_configuration.etcd)
}

fn is_external(etcd: &Etcd) -> bool {
    etcd.external != ExternalEtcd::default()
}

fn validate_spec(control_plane: &KubeadmControlPlane, features: &Features, errors: &mut Vec<FieldError>) {
    let spec = &control_plane.spec;
    let mut forbid = |problem| errors.push(FieldError::forbidden("spec.replicas", problem));
    match spec.replicas {
        None => errors.push(FieldError::required("spec.replicas", "is required")),
        Some(replicas) => {
            if replicas <= 0 {
                forbid("cannot be less than or equal to 0");
            }
            if replicas % 2 == 0 && !has_external_etcd(control_plane) {
                forbid("cannot be an even number when etcd is stacked");
            }
        }
    }
    let infrastructure = &spec.machine_template.spec.infrastructure_ref;
    for (field, value) in [
        ("apiGroup", &infrastructure.api_group),
        ("kind", &infrastructure.kind),
        ("name", &infrastructure.name),
    ] {
        if value.is_empty() {
            let path = format!("spec.machineTemplate.infrastructure.{field}");
            errors.push(FieldError::invalid(path, "", "cannot be empty"));
        }
    }
    let taints = &spec.machine_template.spec.taints;
    validate_taints(taints, "spec.machineTemplate.spec.taints", features, errors);
    validate_template_meta(&spec.machine_template.metadata, "spec.machineTemplate.metadata", errors);
    if !spec.version.starts_with('v') {
        errors.push(FieldError::invalid("spec.version", &*spec.version, "must start with v"));
    }
    if !version::is_semantic(&spec.version) {
        errors.push(FieldError::invalid("spec.version", &*spec.version, "must be a valid semantic version"));
    }
    let configuration = &spec.kubeadm_config_spec.cluster_configuration;
    validate_rollout(&spec.rollout, configuration, spec.replicas, "spec", errors);
    validate_naming(&spec.machine_naming, "kubeadmControlPlane", "spec.machineNaming", errors);
}

/// Validates surge, and that certificates expire before their CA and are renewed in time.
fn validate_rollout(
    rollout: &KubeadmControlPlaneRolloutSpec,
    configuration: &ClusterConfiguration,
    replicas: Option<i32>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let strategy = &rollout.strategy;
    if *strategy == KubeadmControlPlaneRolloutStrategy::default() {
        return;
    }
    if strategy.kind.is_none() {
        let path = format!("{path}.rollout.strategy.type");
        errors.push(FieldError::required(path, "only RollingUpdate is supported"));
    }
    let surge = match &strategy.rolling_update.max_surge {
        None => None,
        Some(IntOrString::Int(count)) => Some(*count),
        // Upstream parses the number in a text, and uses zero if there is none.
        Some(IntOrString::String(text)) => Some(text.parse().unwrap_or_default()),
    };
    if surge == Some(0) && replicas.is_some_and(|replicas| replicas < 3) {
        errors.push(FieldError::required(
            format!("{path}.rollout.strategy.rollingUpdate"),
            "when KubeadmControlPlane is configured to scale-in, replica count needs to be at least 3",
        ));
    }
    if surge.is_some_and(|surge| surge != 0 && surge != 1) {
        errors.push(FieldError::required(
            format!("{path}.rollout.strategy.rollingUpdate.maxSurge"),
            "value must be 1 or 0",
        ));
    }
    let (days, authority) =
        (configuration.certificate_validity_period_days, configuration.ca_certificate_validity_period_days);
    if days == 0 {
        return;
    }
    let validity_path =
        format!("{path}.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays");
    if authority != 0 && days > authority {
        errors.push(FieldError::invalid(
            validity_path,
            days,
            format!("must be less than or equal to caCertificateValidityPeriodDays ({authority})"),
        ));
    } else if authority == 0 && days > CA_VALIDITY_DAYS {
        errors.push(FieldError::invalid(
            validity_path,
            days,
            format!(
                "must be less than or equal to the default value of caCertificateValidityPeriodDays ({CA_VALIDITY_DAYS})"
            ),
        ));
    }
    let expiry = rollout.before.certificates_expiry_days;
    if expiry != 0 && expiry >= days {
        errors.push(FieldError::invalid(
            format!("{path}.rollout.before.certificatesExpiryDays"),
            expiry,
            format!("must be less than certificateValidityPeriodDays ({days})"),
        ));
    }
}

fn is_tag(tag: &str) -> bool {
    tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn validate_cluster_configuration(
    new: &ClusterConfiguration,
    old: Option<&ClusterConfiguration>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let tag = new.dns.image_tag.as_str();
    if !is_tag(tag) {
        errors.push(FieldError::forbidden(format!("{path}.dns.imageTag"), format!("tag {tag} is invalid")));
    }
    if !tag.is_empty() && version::of_image_tag(tag).is_none() {
        // Upstream omits the path of the configuration here.
        errors.push(FieldError::invalid(
            "dns.imageTag",
            tag,
            format!("failed to parse CoreDNS version: {tag} is not a version"),
        ));
    }
    let local = new.etcd.local != LocalEtcd::default();
    let tag = new.etcd.local.image_tag.as_str();
    if local && !is_tag(tag) {
        let path = format!("{path}.etcd.local.imageTag");
        errors.push(FieldError::forbidden(path, format!("tag {tag} is invalid")));
    }
    if local && is_external(&new.etcd) {
        errors.push(FieldError::forbidden(
            format!("{path}.etcd.local"),
            "cannot have both external and local etcd",
        ));
    }
    if old.is_some_and(|old| is_external(&old.etcd) != is_external(&new.etcd)) {
        errors.push(FieldError::forbidden(
            format!("{path}.etcd.external"),
            "cannot change between external and local etcd",
        ));
    }
}

/// One minor version at a time.
fn validate_upgrade(new: &KubeadmControlPlane, old: &KubeadmControlPlane, errors: &mut Vec<FieldError>) {
    let (from, to) = (old.spec.version.as_str(), new.spec.version.as_str());
    match (version::tolerant(from), version::tolerant(to)) {
        (None, _) => errors.push(FieldError::internal(
            "spec.version",
            format!("failed to parse current kubeadmcontrolplane version: {from}"),
        )),
        (_, None) => errors.push(FieldError::internal(
            "spec.version",
            format!("failed to parse updated kubeadmcontrolplane version: {to}"),
        )),
        (Some(old), Some(new)) if version::skips_a_minor(&old, &new) => errors.push(FieldError::forbidden(
            "spec.version",
            format!("cannot update Kubernetes version from {from} to {to}"),
        )),
        _ => {}
    }
}

/// CoreDNS can only be upgraded to versions with a Corefile migration.
fn validate_coredns(new: &KubeadmControlPlane, old: &ClusterConfiguration, errors: &mut Vec<FieldError>) {
    let new_tag = &new.spec.kubeadm_config_spec.cluster_configuration.dns.image_tag;
    let (Some(from), Some(to)) = (version::of_image_tag(&old.dns.image_tag), version::of_image_tag(new_tag))
    else {
        return;
    };
    if version::plain(&from) == version::plain(&to)
        || new.metadata.annotations.contains_key(annotation::SKIP_COREDNS)
    {
        return;
    }
    if let Err(problem) = version::coredns_upgrade(&from, &to) {
        errors.push(FieldError::forbidden(
            "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag",
            format!("cannot migrate CoreDNS up to '{to}' from '{from}': {problem}"),
        ));
    }
}

/// Paths at which two objects differ; lists are compared as a whole.
fn changes(old: &Value, new: &Value, path: String, changed: &mut Vec<String>) {
    if old == new {
        return;
    }
    let (Value::Object(old_fields), Value::Object(new_fields)) = (old, new) else {
        if let (None | Some(Value::Null), Value::Object(fields)) = (Some(old), new)
            && !fields.is_empty()
        {
            for (key, value) in fields {
                changes(&Value::Null, value, join(&path, key), changed);
            }
            return;
        }
        changed.push(path);
        return;
    };
    for key in old_fields.keys().chain(new_fields.keys().filter(|key| !old_fields.contains_key(*key))) {
        changes(&old[key], &new[key], join(&path, key), changed);
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn covers(allowed: &str, path: &str) -> bool {
    match allowed.strip_suffix(".*") {
        Some(above) => path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.')),
        None => allowed == path,
    }
}

/// A template is immutable, except for defaults that earlier releases wrote.
fn unchanged_template(old: &KubeadmControlPlaneTemplate, new: &KubeadmControlPlaneTemplate) -> bool {
    let (mut old, mut new) = (old.spec.template.spec.clone(), new.spec.template.spec.clone());
    old.kubeadm_config_spec.set_earlier_defaults();
    new.kubeadm_config_spec.set_earlier_defaults();
    if new.rollout.strategy == KubeadmControlPlaneRolloutStrategy::default()
        && old.rollout.strategy.kind == Some(KubeadmControlPlaneRolloutStrategyType::RollingUpdate)
        && old.rollout.strategy.rolling_update.max_surge == Some(IntOrString::Int(1))
    {
        new.rollout.strategy = old.rollout.strategy.clone();
    }
    old == new
}
