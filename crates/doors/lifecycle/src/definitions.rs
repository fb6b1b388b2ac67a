//! The CustomResourceDefinitions of the kinds.

use capstan_capi_types::definitions::{Definition, Version, age, boolean, text};
use serde_json::Value;

use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};
use capstan_object::Object;
use capstan_object::kstatus::condition::READY;
use schemars::JsonSchema;

const LABELS: &[(&str, &str)] = &[("capstan.dev/door", "lifecycle")];

fn definition<T: Object + JsonSchema>(columns: Vec<capstan_capi_types::definitions::Column>) -> Value {
    let versions = vec![Version::of::<T>(columns).with_status().pending(READY, "Unknown")];
    let mut value = Definition { kind: T::KIND, short_names: &[], labels: LABELS, versions }.to_value();
    // `kubectl get cluster-api` lists Cluster API's own kinds.
    value["spec"]["names"]["categories"] = Value::Array(Vec::new());
    value
}

/// The CustomResourceDefinition objects, in order of their names.
pub fn definitions() -> Vec<Value> {
    let ready = || text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#);
    let valid = || boolean("Valid", ".status.specValid");
    let failure = || text("Failure", ".status.failureMessage").wide();
    vec![
        definition::<CloudStackDatacenterConfig>(vec![valid(), failure(), age()]),
        definition::<CloudStackMachineConfig>(vec![
            text("Template", ".spec.template.name"),
            text("Offering", ".spec.computeOffering.name"),
            ready(),
            age(),
        ]),
        definition::<Cluster>(vec![
            ready(),
            text("Version", ".spec.kubernetesVersion"),
            text("Endpoint", ".spec.controlPlaneConfiguration.endpoint.host"),
            text("Reason", r#".status.conditions[?(@.type=="Ready")].reason"#),
            failure(),
            age(),
        ]),
    ]
}
