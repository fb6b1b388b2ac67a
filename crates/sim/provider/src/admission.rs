//! Validation of the kinds, and immutable fields.

use capstan_capi_types::admission::{Admission, Features, FieldError, Rules};
use capstan_provider_kit::admission::{
    validate_endpoint, validate_machine_immutable, validate_template, validate_template_without_id,
};

use crate::types::{
    SimCluster, SimClusterTemplate, SimMachine, SimMachinePool, SimMachinePoolTemplate, SimMachineSpec,
    SimMachineTemplate,
};

/// Defaults and rules of the provider's kinds.
pub fn rules() -> [Rules; 6] {
    [
        Rules::of::<SimCluster>(),
        Rules::of::<SimClusterTemplate>(),
        Rules::of::<SimMachine>(),
        Rules::of::<SimMachinePool>(),
        Rules::of::<SimMachinePoolTemplate>(),
        Rules::of::<SimMachineTemplate>(),
    ]
}

impl Admission for SimCluster {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let before = old.map(|old| &old.spec.control_plane_endpoint);
        validate_endpoint(&self.spec.control_plane_endpoint, before, &mut errors);
        errors
    }
}

impl Admission for SimMachine {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate_machine(&self.spec, "spec", &mut errors);
        let before = old.map(|old| &old.spec);
        validate_machine_immutable(&self.spec, before, |spec| &mut spec.provider_id, &mut errors);
        errors
    }
}

impl Admission for SimClusterTemplate {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let template = &self.spec.template;
        let changed = old.is_some_and(|old| old.spec.template.spec != template.spec);
        validate_template::<Self>(&template.metadata, changed, &mut errors);
        errors
    }
}

impl Admission for SimMachineTemplate {
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

impl Admission for SimMachinePool {
    fn validate(&self, _: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate_pool(&self.spec.template, "spec.template", &mut errors);
        errors
    }
}

impl Admission for SimMachinePoolTemplate {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let template = &self.spec.template;
        validate_pool(&template.spec.template, "spec.template.spec.template", &mut errors);
        if !template.spec.provider_id_list.is_empty() {
            let message = "cannot be set in templates";
            errors.push(FieldError::forbidden("spec.template.spec.providerIDList", message));
        }
        let changed = old.is_some_and(|old| old.spec.template.spec != template.spec);
        validate_template::<Self>(&template.metadata, changed, &mut errors);
        errors
    }
}

fn validate_pool(spec: &SimMachineSpec, path: &str, errors: &mut Vec<FieldError>) {
    validate_machine(spec, path, errors);
    if !spec.provider_id.is_empty() {
        let message = "cannot be set in templates";
        errors.push(FieldError::forbidden(format!("{path}.providerID"), message));
    }
}

fn validate_machine(spec: &SimMachineSpec, path: &str, errors: &mut Vec<FieldError>) {
    for (at, fault) in spec.faults.iter().enumerate() {
        let Some(kind) = fault.kind else { continue };
        let path = format!("{path}.faults[{at}].seconds");
        match (kind.takes_time(), fault.seconds) {
            (true, None) => errors.push(FieldError::required(path, format!("{kind} needs a duration"))),
            (false, Some(_)) => errors.push(FieldError::forbidden(path, format!("{kind} takes no time"))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The error for the label `-tier`.
    const NO_LABEL: &str = "spec.template.metadata.labels: Invalid value: \"-tier\": name part must consist of \
        alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
        'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

    fn validation_errors(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
        let rules = rules().into_iter().find(|rules| rules.kind.kind == kind).expect("rules");
        let errors = (rules.validate)(new, old, &Features::default()).expect("an object");
        errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect()
    }

    #[test]
    fn immutable_fields_are_rejected_and_the_rest_is_admitted() {
        let spec = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
        let template = |spec: Value| json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}});
        let here = json!({"controlPlaneEndpoint": {"host": "127.1.2.3", "port": 6443}});
        let there = json!({"controlPlaneEndpoint": {"host": "127.3.2.1", "port": 6443}});
        let labelled = |key: &str| json!({"metadata": {"name": "a"}, "spec": {"template": {"metadata": {"labels": {key: "x"}}, "spec": {}}}});
        let stays = |kind: &str| {
            format!(
                "spec.template.spec: Forbidden: {kind} spec.template.spec field is immutable. Please create a new resource instead."
            )
        };
        let immutable = |field: &str| format!("{field}: Forbidden: field is immutable");
        for (kind, old, new, expected) in [
            ("SimCluster", Some(spec(json!({}))), spec(here.clone()), None),
            ("SimCluster", Some(spec(here.clone())), spec(here.clone()), None),
            (
                "SimCluster",
                Some(spec(here.clone())),
                spec(there),
                Some(immutable("spec.controlPlaneEndpoint")),
            ),
            (
                "SimCluster",
                None,
                spec(json!({"controlPlaneEndpoint": {"host": "x"}})),
                Some(
                    "spec.controlPlaneEndpoint: Required value: a host and a port belong together".to_owned(),
                ),
            ),
            (
                "SimMachine",
                Some(spec(json!({"cpus": 2}))),
                spec(json!({"cpus": 2, "providerID": "sim://a"})),
                None,
            ),
            (
                "SimMachine",
                Some(spec(json!({"providerID": "sim://a"}))),
                spec(json!({"providerID": "sim://b"})),
                Some(immutable("spec.providerID")),
            ),
            ("SimMachine", Some(spec(json!({"cpus": 2}))), spec(json!({"cpus": 4})), Some(immutable("spec"))),
            (
                "SimMachine",
                None,
                spec(json!({"faults": [{"type": "DiskFull"}, {"type": "KubeletDies", "seconds": 60}]})),
                None,
            ),
            (
                "SimMachine",
                None,
                spec(json!({"faults": [{"type": "DiskFull", "seconds": 3}]})),
                Some("spec.faults[0].seconds: Forbidden: DiskFull takes no time".to_owned()),
            ),
            (
                "SimMachineTemplate",
                None,
                template(json!({"faults": [{"type": "SlowBoot", "seconds": 9}]})),
                None,
            ),
            (
                "SimMachineTemplate",
                None,
                template(json!({"faults": [{"type": "SlowBoot"}]})),
                Some(
                    "spec.template.spec.faults[0].seconds: Required value: SlowBoot needs a duration"
                        .to_owned(),
                ),
            ),
            (
                "SimMachineTemplate",
                Some(template(json!({"cpus": 2}))),
                template(json!({"cpus": 4})),
                Some(stays("SimMachineTemplate")),
            ),
            (
                "SimMachineTemplate",
                None,
                template(json!({"providerID": "sim://a"})),
                Some("spec.template.spec.providerID: Forbidden: cannot be set in templates".to_owned()),
            ),
            (
                "SimMachinePool",
                Some(spec(json!({"template": {"cpus": 2}}))),
                spec(json!({"template": {"cpus": 4}, "providerIDList": ["sim://a"]})),
                None,
            ),
            (
                "SimMachinePool",
                None,
                spec(json!({"template": {"providerID": "sim://a"}})),
                Some("spec.template.providerID: Forbidden: cannot be set in templates".to_owned()),
            ),
            (
                "SimMachinePoolTemplate",
                None,
                template(json!({"providerIDList": ["sim://a"]})),
                Some("spec.template.spec.providerIDList: Forbidden: cannot be set in templates".to_owned()),
            ),
            (
                "SimMachinePoolTemplate",
                Some(template(json!({"template": {"cpus": 2}}))),
                template(json!({"template": {"cpus": 4}})),
                Some(stays("SimMachinePoolTemplate")),
            ),
            ("SimMachineTemplate", None, labelled("example.org/tier"), None),
            ("SimMachineTemplate", None, labelled("-tier"), Some(NO_LABEL.to_owned())),
            ("SimClusterTemplate", None, labelled("example.org/tier"), None),
            ("SimClusterTemplate", None, labelled("-tier"), Some(NO_LABEL.to_owned())),
            ("SimClusterTemplate", Some(template(json!({}))), template(json!({})), None),
            (
                "SimClusterTemplate",
                Some(template(json!({}))),
                template(here),
                Some(stays("SimClusterTemplate")),
            ),
        ] {
            let errors = validation_errors(kind, &new, old.as_ref());
            assert_eq!(errors, expected.into_iter().collect::<Vec<_>>(), "{kind} {old:?} {new}");
        }
    }
}
