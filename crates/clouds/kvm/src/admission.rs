//! Validation of the kinds, and immutable fields.

use capstan_capi_types::admission::{Admission, Features, FieldError, IMMUTABLE, Rules};
use capstan_provider_kit::admission::{
    validate_endpoint, validate_machine_immutable, validate_template, validate_template_without_id,
};

use crate::backend::Subnet;
use crate::types::{KVMCluster, KVMClusterTemplate, KVMMachine, KVMMachineSpec, KVMMachineTemplate};

/// Defaults and rules of the provider's kinds.
pub fn rules() -> [Rules; 4] {
    [
        Rules::of::<KVMCluster>(),
        Rules::of::<KVMClusterTemplate>(),
        Rules::of::<KVMMachine>(),
        Rules::of::<KVMMachineTemplate>(),
    ]
}

impl Admission for KVMCluster {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (spec, before) = (&self.spec, old.map(|old| &old.spec));
        let endpoint_before = before.map(|before| &before.control_plane_endpoint);
        validate_endpoint(&spec.control_plane_endpoint, endpoint_before, &mut errors);
        if before.is_some_and(|before| before.backend.is_some() && before.backend != spec.backend) {
            errors.push(FieldError::forbidden("spec.backend", IMMUTABLE));
        }
        if before.is_some_and(|before| before.network != spec.network) {
            errors.push(FieldError::forbidden("spec.network", IMMUTABLE));
        }
        let cidr = &spec.network.cidr;
        if !cidr.is_empty()
            && let Err(error) = cidr.parse::<Subnet>()
        {
            errors.push(FieldError::invalid("spec.network.cidr", cidr.as_str(), error.to_string()));
        }
        errors
    }
}

impl Admission for KVMClusterTemplate {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let template = &self.spec.template;
        let changed = old.is_some_and(|old| old.spec.template.spec != template.spec);
        validate_template::<Self>(&template.metadata, changed, &mut errors);
        errors
    }
}

impl Admission for KVMMachine {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate_machine(&self.spec, "spec", &mut errors);
        let before = old.map(|old| &old.spec);
        validate_machine_immutable(&self.spec, before, |spec| &mut spec.provider_id, &mut errors);
        errors
    }
}

impl Admission for KVMMachineTemplate {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let template = &self.spec.template;
        validate_machine(&template.spec, "spec.template.spec", &mut errors);
        validate_template_without_id(&template.spec.provider_id, &mut errors);
        let changed = old.is_some_and(|old| old.spec.template.spec != template.spec);
        validate_template::<Self>(&template.metadata, changed, &mut errors);
        errors
    }
}

/// An absolute path without `..`.
fn is_plain_path(path: &str) -> bool {
    path.starts_with('/') && !path.chars().any(char::is_control) && !path.split('/').any(|part| part == "..")
}

fn validate_machine(spec: &KVMMachineSpec, path: &str, errors: &mut Vec<FieldError>) {
    let image = &spec.image.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    if !image.chars().all(plain) || image.starts_with('.') {
        errors.push(FieldError::invalid(
            format!("{path}.image.name"),
            image.as_str(),
            "must be letters, digits, '.', '-', '_' and '+', and not begin with '.'",
        ));
    }
    for (at, volume) in spec.host_volumes.iter().enumerate() {
        for (field, value) in [("hostPath", &volume.host_path), ("guestPath", &volume.guest_path)] {
            if !is_plain_path(value) {
                let field = format!("{path}.hostVolumes[{at}].{field}");
                errors.push(FieldError::invalid(
                    field,
                    value.as_str(),
                    "must be an absolute path without '..'",
                ));
            }
        }
    }
    for (at, server) in spec.dns_servers.iter().enumerate() {
        if server.parse::<std::net::IpAddr>().is_err() {
            let field = format!("{path}.dnsServers[{at}]");
            errors.push(FieldError::invalid(field, server.as_str(), "must be an IP address"));
        }
    }
    // They become command line arguments.
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    for (key, value) in &spec.node_labels {
        if !key.chars().chain(value.chars()).all(word) {
            errors.push(FieldError::invalid(format!("{path}.nodeLabels"), key.as_str(), "is not a label"));
        }
    }
    for (at, taint) in spec.node_taints.iter().enumerate() {
        if !taint.key.chars().chain(taint.value.chars()).all(word) {
            errors.push(FieldError::invalid(
                format!("{path}.nodeTaints[{at}]"),
                taint.key.as_str(),
                "is not a taint",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
        let rules = rules().into_iter().find(|rules| rules.kind.kind == kind).expect("rules");
        let errors = (rules.validate)(new, old, &Features::default()).expect("an object");
        errors.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn immutable_fields_and_host_paths_are_validated() {
        let spec = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
        let template = |spec: Value| json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}});
        let here = json!({"controlPlaneEndpoint": {"host": "10.89.0.1", "port": 6443}});
        let there = json!({"controlPlaneEndpoint": {"host": "10.89.1.1", "port": 6443}});
        let id = |id: &str| json!({"providerID": id});
        for (kind, old, new, expected) in [
            ("KVMCluster", Some(spec(json!({}))), spec(here.clone()), None),
            ("KVMCluster", Some(spec(here)), spec(there), Some("spec.controlPlaneEndpoint")),
            ("KVMCluster", None, spec(json!({"backend": "namespace"})), None),
            ("KVMCluster", None, spec(json!({"network": {"cidr": "10.0.0.0/24"}})), None),
            (
                "KVMCluster",
                None,
                spec(json!({"network": {"cidr": "10.0.0.0/31"}})),
                Some("spec.network.cidr"),
            ),
            (
                "KVMCluster",
                Some(spec(json!({}))),
                spec(json!({"network": {"cidr": "10.0.0.0/24"}})),
                Some("spec.network"),
            ),
            ("KVMMachine", Some(spec(json!({}))), spec(id("kvm:///a")), None),
            ("KVMMachine", Some(spec(id("kvm:///a"))), spec(id("kvm:///b")), Some("spec.providerID")),
            ("KVMMachine", Some(spec(json!({"cpus": 2}))), spec(json!({"cpus": 4})), Some("spec")),
            ("KVMMachine", None, spec(json!({"image": {"name": "../x"}})), Some("spec.image.name")),
            (
                "KVMMachine",
                None,
                spec(json!({"hostVolumes": [{"hostPath": "/a/../b", "guestPath": "/c"}]})),
                Some("spec.hostVolumes[0].hostPath"),
            ),
            ("KVMMachine", None, spec(json!({"dnsServers": ["x"]})), Some("spec.dnsServers[0]")),
            ("KVMMachine", None, spec(json!({"nodeLabels": {"a": "b; c"}})), Some("spec.nodeLabels")),
            (
                "KVMClusterTemplate",
                Some(template(json!({}))),
                template(json!({"network": {"cidr": "10.0.0.0/24"}})),
                Some("spec.template.spec"),
            ),
            (
                "KVMClusterTemplate",
                Some(template(json!({"backend": "namespace"}))),
                template(json!({"backend": "namespace"})),
                None,
            ),
            ("KVMMachineTemplate", None, template(id("kvm:///a")), Some("spec.template.spec.providerID")),
            (
                "KVMMachineTemplate",
                Some(template(json!({"cpus": 2}))),
                template(json!({"cpus": 4})),
                Some("spec.template.spec"),
            ),
        ] {
            let found = fields(kind, &new, old.as_ref());
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{kind} {old:?} {new}");
        }
    }
}
