//! The CustomResourceDefinitions of the kinds.

use capstan_capi_types::definitions::{CLUSTERCTL, Column, Definition, Version, age, paused, text};
use capstan_object::Object;
use capstan_object::kstatus::condition::READY;
use schemars::JsonSchema;
use serde_json::Value;

use crate::{v1beta1, v1beta2, v1beta3};

/// Labels that map the contract versions to the versions of the kinds.
const LABELS: &[(&str, &str)] = &[
    CLUSTERCTL,
    ("cluster.x-k8s.io/provider", "infrastructure-cloudstack"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1_v1beta2"),
    ("cluster.x-k8s.io/v1beta2", "v1beta3"),
];

/// Kinds that CAPC does not have exist in one version.
const OWN_LABELS: &[(&str, &str)] = &[
    CLUSTERCTL,
    ("cluster.x-k8s.io/provider", "infrastructure-cloudstack"),
    ("cluster.x-k8s.io/v1beta2", "v1beta3"),
];

/// The columns that CAPC shows of machines.
fn machine_columns() -> Vec<Column> {
    vec![
        text("Cluster", r".metadata.labels.cluster\.x-k8s\.io/cluster-name"),
        text("InstanceState", ".status.instanceState"),
        text("Ready", ".status.ready"),
        text("ProviderID", ".spec.providerID"),
        text("Machine", r#".metadata.ownerReferences[?(@.kind=="Machine")].name"#),
    ]
}

fn with_age(mut columns: Vec<Column>) -> Vec<Column> {
    columns.extend([paused(), age()]);
    columns
}

fn version<T: Object + JsonSchema>(columns: Vec<Column>) -> Version {
    Version::of::<T>(columns).with_status()
}

fn definition<T: Object>(short_names: &'static [&'static str], versions: Vec<Version>) -> Value {
    Definition { kind: T::KIND, short_names, labels: LABELS, versions }.to_value()
}

/// The CustomResourceDefinition objects of the provider's kinds, in order of their names.
pub fn definitions() -> Vec<Value> {
    let ready = || vec![text("Ready", ".status.ready")];
    let cluster = vec![
        text("Cluster", r".metadata.labels.cluster\.x-k8s\.io/cluster-name"),
        text("Ready", ".status.ready"),
        text("Endpoint", ".spec.controlPlaneEndpoint.host"),
    ];
    vec![
        definition::<v1beta3::CloudStackAffinityGroup>(
            &[],
            vec![
                version::<v1beta1::CloudStackAffinityGroup>(Vec::new()),
                version::<v1beta2::CloudStackAffinityGroup>(Vec::new()),
                version::<v1beta3::CloudStackAffinityGroup>(with_age(ready())),
            ],
        ),
        definition::<v1beta3::CloudStackCluster>(
            &[],
            vec![
                version::<v1beta1::CloudStackCluster>(Vec::new()),
                version::<v1beta2::CloudStackCluster>(Vec::new()),
                version::<v1beta3::CloudStackCluster>(with_age(cluster)).pending(READY, "Unknown"),
            ],
        ),
        Definition {
            kind: v1beta3::CloudStackClusterTemplate::KIND,
            short_names: &[],
            labels: OWN_LABELS,
            versions: vec![Version::of::<v1beta3::CloudStackClusterTemplate>(vec![age()])],
        }
        .to_value(),
        definition::<v1beta3::CloudStackFailureDomain>(
            &[],
            vec![
                version::<v1beta2::CloudStackFailureDomain>(Vec::new()),
                version::<v1beta3::CloudStackFailureDomain>(with_age(ready())),
            ],
        ),
        definition::<v1beta3::CloudStackIsolatedNetwork>(
            &[],
            vec![
                version::<v1beta1::CloudStackIsolatedNetwork>(Vec::new()),
                version::<v1beta2::CloudStackIsolatedNetwork>(Vec::new()),
                version::<v1beta3::CloudStackIsolatedNetwork>(with_age(ready())),
            ],
        ),
        definition::<v1beta3::CloudStackMachine>(
            &["csm"],
            vec![
                version::<v1beta1::CloudStackMachine>(machine_columns()),
                version::<v1beta2::CloudStackMachine>(machine_columns()),
                version::<v1beta3::CloudStackMachine>(with_age(machine_columns())),
            ],
        ),
        definition::<v1beta3::CloudStackMachineStateChecker>(
            &[],
            vec![
                version::<v1beta1::CloudStackMachineStateChecker>(Vec::new()),
                version::<v1beta2::CloudStackMachineStateChecker>(Vec::new()),
                version::<v1beta3::CloudStackMachineStateChecker>(vec![
                    text("InstanceID", ".spec.instanceID"),
                    text("Ready", ".status.ready"),
                    age(),
                ]),
            ],
        ),
        definition::<v1beta3::CloudStackMachineTemplate>(
            &[],
            vec![
                version::<v1beta1::CloudStackMachineTemplate>(Vec::new()),
                version::<v1beta2::CloudStackMachineTemplate>(Vec::new()),
                version::<v1beta3::CloudStackMachineTemplate>(vec![age()]),
            ],
        ),
    ]
}
