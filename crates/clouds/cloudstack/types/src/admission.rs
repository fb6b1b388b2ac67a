//! What a user may say about the kinds, and what may not change: CAPC's rules in CAPC's words, because people search for
//! them. Nothing is filled in.

use std::collections::BTreeMap;

use capstan_capi_types::admission::{
    Admission, Features, FieldError, Rules, SecretUse, validate_template_meta,
};
use capstan_object::Key;
use capstan_schema::meta::dns1123_subdomain;

use crate::v1beta3::{
    CloudStackAffinityGroup, CloudStackCluster, CloudStackClusterSpec, CloudStackClusterTemplate,
    CloudStackFailureDomain, CloudStackFailureDomainSpec, CloudStackIsolatedNetwork, CloudStackMachine,
    CloudStackMachineSpec, CloudStackMachineTemplate, Identifier,
};

/// Rules of every kind of this provider in its stored version.
pub fn all() -> [Rules; 7] {
    [
        Rules::of::<CloudStackCluster>(),
        Rules::of::<CloudStackClusterTemplate>(),
        Rules::of::<CloudStackMachine>(),
        Rules::of::<CloudStackMachineTemplate>(),
        Rules::of::<CloudStackFailureDomain>(),
        Rules::of::<CloudStackIsolatedNetwork>(),
        Rules::of::<CloudStackAffinityGroup>(),
    ]
}

/// Rules of a kind of this provider in its stored version; `None` for kinds of others.
pub fn rules(group: &str, kind: &str) -> Option<Rules> {
    all().into_iter().find(|rules| (rules.kind.group, rules.kind.kind) == (group, kind))
}

impl Admission for CloudStackFailureDomain {
    fn secrets(&self) -> Vec<SecretUse> {
        vec![credentials(&self.spec, "spec.acsEndpoint".to_owned())]
    }
}
impl Admission for CloudStackIsolatedNetwork {}
impl Admission for CloudStackAffinityGroup {}

/// The Secret with the credentials of a failure domain, which may be in any namespace.
fn credentials(domain: &CloudStackFailureDomainSpec, path: String) -> SecretUse {
    let endpoint = &domain.acs_endpoint;
    SecretUse { path, secret: Key::new(endpoint.namespace.as_str(), endpoint.name.as_str()) }
}

/// The Secrets of the failure domains of a cluster, whose spec is at a path.
fn secrets_of(spec: &CloudStackClusterSpec, path: &str) -> Vec<SecretUse> {
    let domains = spec.failure_domains.iter().enumerate();
    let path = |at: usize| format!("{path}.failureDomains[{at}].acsEndpoint");
    domains.map(|(at, domain)| credentials(domain, path(at))).collect()
}

impl Admission for CloudStackClusterTemplate {
    /// What is in the spec is checked in the clusters: patches of a class may complete it.
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let template = &self.spec.template;
        validate_template_meta(&template.metadata, "spec.template.metadata", &mut errors);
        if old.is_some_and(|old| old.spec.template.spec != template.spec) {
            let what = "CloudStackClusterTemplate spec.template.spec field is immutable. Please create a new resource \
                        instead.";
            errors.push(FieldError::forbidden("spec.template.spec", what));
        }
        errors
    }

    fn secrets(&self) -> Vec<SecretUse> {
        secrets_of(&self.spec.template.spec, "spec.template.spec")
    }
}

impl Admission for CloudStackCluster {
    fn secrets(&self) -> Vec<SecretUse> {
        secrets_of(&self.spec, "spec")
    }

    /// A manifest that left the choice of the endpoint to the provider can be applied again after it was made: CAPC
    /// refuses that, because a required field that is left empty would empty it.
    fn default(&mut self, old: Option<&Self>) -> Result<(), FieldError> {
        let endpoint = &mut self.spec.control_plane_endpoint;
        if let Some(old) = old.filter(|old| endpoint.host.is_empty() && is_provisioned(old)) {
            endpoint.host.clone_from(&old.spec.control_plane_endpoint.host);
        }
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let Some(old) = old else {
            validate_failure_domains(&self.spec.failure_domains, &mut errors);
            return errors;
        };
        // Nothing is in use yet. CAPC refuses corrections of a typo, too, and leaves only deletion.
        if !is_provisioned(old) {
            validate_failure_domains(&self.spec.failure_domains, &mut errors);
            return errors;
        }
        errors.extend(changed_failure_domains(&old.spec.failure_domains, &self.spec.failure_domains));
        let (endpoint, before) = (&self.spec.control_plane_endpoint, &old.spec.control_plane_endpoint);
        // Whoever chooses the endpoint writes it once.
        if !before.host.is_empty() {
            unchanged(&endpoint.host, &before.host, "controlplaneendpoint.host", &mut errors);
            unchanged(&endpoint.port, &before.port, "controlplaneendpoint.port", &mut errors);
        }
        errors
    }
}

/// Whether machines may be in its failure domains, and clients know its endpoint.
fn is_provisioned(cluster: &CloudStackCluster) -> bool {
    cluster.status.ready || cluster.status.initialization.provisioned == Some(true)
}

fn validate_failure_domains(domains: &[CloudStackFailureDomainSpec], errors: &mut Vec<FieldError>) {
    if domains.is_empty() {
        errors.push(FieldError::required("spec.FailureDomains", "FailureDomains"));
    }
    for domain in domains {
        for message in dns1123_subdomain(&domain.name) {
            errors.push(FieldError::invalid("spec.failureDomains.name", domain.name.as_str(), message));
        }
        let network = &domain.zone.network;
        if network.name.is_empty() && network.id.is_empty() {
            errors.push(FieldError::required(
                "spec.failureDomains.Zone.Network",
                "each Zone requires a Network specification",
            ));
        }
        if domain.acs_endpoint.name.is_empty() || domain.acs_endpoint.namespace.is_empty() {
            errors.push(FieldError::required(
                "spec.failureDomains.ACSEndpoint",
                "Name and Namespace are required",
            ));
        }
    }
}

/// Failure domains come and go, but do not change, and one stays.
fn changed_failure_domains(
    old: &[CloudStackFailureDomainSpec],
    new: &[CloudStackFailureDomainSpec],
) -> Option<FieldError> {
    let path = "spec.FailureDomains";
    // The last of several with one name counts.
    let new: BTreeMap<&str, _> = new.iter().map(|domain| (domain.name.as_str(), domain)).collect();
    let mut remains = false;
    for before in old {
        if let Some(after) = new.get(before.name.as_str()) {
            remains = true;
            if identity(before) != identity(after) {
                let what = format!("Cannot change FailureDomain {}", before.name);
                return Some(FieldError::forbidden(path, what));
            }
        }
    }
    (!remains).then(|| FieldError::forbidden(path, "At least one FailureDomain must be unchanged on update."))
}

/// Identity of a failure domain. Project, offering and the like may be added later.
fn identity(domain: &CloudStackFailureDomainSpec) -> impl PartialEq + '_ {
    let zone = &domain.zone;
    (
        &domain.acs_endpoint,
        (&domain.account, &domain.domain),
        (&zone.name, &zone.id),
        (&zone.network.name, &zone.network.id, &zone.network.kind),
    )
}

impl Admission for CloudStackMachine {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (spec, disk) = (&self.spec, &self.spec.disk_offering);
        let Some(old) = old else {
            named(&spec.offering, "Offering", &mut errors);
            named(&spec.template, "Template", &mut errors);
            if !disk.id.is_empty() || !disk.name.is_empty() {
                not_negative(disk.custom_size_in_gb, "customSizeInGB", &mut errors);
            }
            return errors;
        };
        validate_machine_update(spec, &old.spec, &mut errors);
        not_negative(disk.custom_size_in_gb, "customSizeInGB", &mut errors);
        let before = &old.spec.disk_offering;
        unchanged(&disk.mount_path, &before.mount_path, "mountPath", &mut errors);
        unchanged(&disk.device, &before.device, "device", &mut errors);
        unchanged(&disk.filesystem, &before.filesystem, "filesystem", &mut errors);
        unchanged(&disk.label, &before.label, "label", &mut errors);
        errors
    }
}

impl Admission for CloudStackMachineTemplate {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec.template.spec;
        if let Some(old) = old {
            validate_machine_update(spec, &old.spec.template.spec, &mut errors);
            return errors;
        }
        let affinity = spec.affinity.to_lowercase();
        if !matches!(affinity.as_str(), "" | "no" | "pro" | "anti") {
            let what = r#"Affinity must be "no", "pro", "anti", or unspecified."#;
            errors.push(FieldError::invalid("spec.Affinity", spec.affinity.as_str(), what));
        }
        if !matches!(affinity.as_str(), "" | "no") && !spec.affinity_group_ids.is_empty() {
            let what = "AffinityGroupIDs cannot be specified when Affinity is specified as anything but `no`";
            errors.push(FieldError::forbidden("spec.AffinityGroupIDs", what));
        }
        named(&spec.offering, "Offering", &mut errors);
        named(&spec.template, "Template", &mut errors);
        errors
    }
}

/// Fields that are immutable in machines and templates.
fn validate_machine_update(
    new: &CloudStackMachineSpec,
    old: &CloudStackMachineSpec,
    errors: &mut Vec<FieldError>,
) {
    unchanged(&new.offering.id, &old.offering.id, "offering", errors);
    unchanged(&new.offering.name, &old.offering.name, "offering", errors);
    unchanged(&new.disk_offering.id, &old.disk_offering.id, "diskOffering", errors);
    unchanged(&new.disk_offering.name, &old.disk_offering.name, "diskOffering", errors);
    unchanged(&new.ssh_key, &old.ssh_key, "sshkey", errors);
    unchanged(&new.template.id, &old.template.id, "template", errors);
    unchanged(&new.template.name, &old.template.name, "template", errors);
    unchanged(&new.details, &old.details, "details", errors);
    unchanged(&new.affinity, &old.affinity, "affinity", errors);
    unchanged(&new.affinity_group_ids, &old.affinity_group_ids, "AffinityGroupIDs", errors);
}

fn named(thing: &Identifier, name: &str, errors: &mut Vec<FieldError>) {
    if thing.is_empty() {
        errors.push(FieldError::required(format!("spec.{name}"), name));
    }
}

fn unchanged<T: PartialEq>(new: &T, old: &T, name: &str, errors: &mut Vec<FieldError>) {
    if new != old {
        errors.push(FieldError::forbidden(format!("spec.{name}"), name));
    }
}

fn not_negative(number: i64, name: &str, errors: &mut Vec<FieldError>) {
    if number < 0 {
        errors.push(FieldError::forbidden(format!("spec.{name}"), name));
    }
}
