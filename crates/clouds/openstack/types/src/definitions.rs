//! The CustomResourceDefinitions of the kinds.

use capstan_capi_types::definitions::{CLUSTERCTL, Column, Definition, Version, age, text};
use capstan_object::Object;
use schemars::JsonSchema;
use serde_json::Value;

use crate::{v1alpha1, v1beta1, v1beta2};

const PROVIDER: (&str, &str) = ("cluster.x-k8s.io/provider", "infrastructure-openstack");

/// Each contract has the version that follows it.
const LABELS: &[(&str, &str)] =
    &[CLUSTERCTL, PROVIDER, ("cluster.x-k8s.io/v1beta1", "v1beta1"), ("cluster.x-k8s.io/v1beta2", "v1beta2")];

/// Kinds that the core does not know.
const OWN_LABELS: &[(&str, &str)] = &[CLUSTERCTL, PROVIDER];

const CLUSTER: &str = r".metadata.labels.cluster\.x-k8s\.io/cluster-name";

fn version<T: Object + JsonSchema>(columns: Vec<Column>) -> Version {
    Version::of::<T>(columns)
}

/// The columns that CAPO shows; `ready` went with v1beta1.
fn cluster_columns(ready: bool) -> Vec<Column> {
    let mut columns = vec![text("Cluster", CLUSTER)];
    columns.extend(ready.then(|| text("Ready", ".status.ready")));
    columns.extend([
        text("Network", ".status.network.id"),
        text("Endpoint", ".spec.controlPlaneEndpoint.host").wide(),
        text("Bastion IP", ".status.bastion.floatingIP"),
        age(),
    ]);
    columns
}

fn machine_columns(ready: bool) -> Vec<Column> {
    let mut columns = vec![text("Cluster", CLUSTER)];
    columns.extend(ready.then(|| text("Ready", ".status.ready")));
    columns.extend([
        text("ProviderID", ".spec.providerID"),
        text("Machine", r#".metadata.ownerReferences[?(@.kind=="Machine")].name"#),
        age(),
    ]);
    columns
}

/// The CustomResourceDefinition objects of the provider's kinds, in order of their names.
pub fn definitions() -> Vec<Value> {
    let of =
        |kind, short_names, labels, versions| Definition { kind, short_names, labels, versions }.to_value();
    vec![
        of(
            v1alpha1::OpenStackClusterIdentity::KIND,
            &["osci"][..],
            OWN_LABELS,
            vec![version::<v1alpha1::OpenStackClusterIdentity>(Vec::new())],
        ),
        of(
            v1beta2::OpenStackCluster::KIND,
            &["osc"],
            LABELS,
            vec![
                version::<v1beta1::OpenStackCluster>(cluster_columns(true)).with_status(),
                version::<v1beta2::OpenStackCluster>(cluster_columns(false)).with_status(),
            ],
        ),
        of(
            v1beta2::OpenStackClusterTemplate::KIND,
            &["osct"],
            LABELS,
            vec![
                version::<v1beta1::OpenStackClusterTemplate>(Vec::new()),
                version::<v1beta2::OpenStackClusterTemplate>(Vec::new()),
            ],
        ),
        of(
            v1alpha1::OpenStackFloatingIPPool::KIND,
            &[],
            OWN_LABELS,
            vec![version::<v1alpha1::OpenStackFloatingIPPool>(Vec::new()).with_status()],
        ),
        of(
            v1beta2::OpenStackMachine::KIND,
            &["osm"],
            LABELS,
            vec![
                version::<v1beta1::OpenStackMachine>(machine_columns(true)).with_status(),
                version::<v1beta2::OpenStackMachine>(machine_columns(false)).with_status(),
            ],
        ),
        of(
            v1beta2::OpenStackMachineTemplate::KIND,
            &["osmt"],
            LABELS,
            vec![
                version::<v1beta1::OpenStackMachineTemplate>(Vec::new()).with_status(),
                version::<v1beta2::OpenStackMachineTemplate>(Vec::new()).with_status(),
            ],
        ),
        of(
            v1alpha1::OpenStackServer::KIND,
            &["oss"],
            OWN_LABELS,
            vec![
                version::<v1alpha1::OpenStackServer>(vec![
                    text("InstanceState", ".status.instanceState"),
                    text("Ready", ".status.ready"),
                    text("InstanceID", ".status.instanceID"),
                    age(),
                ])
                .with_status(),
            ],
        ),
    ]
}
