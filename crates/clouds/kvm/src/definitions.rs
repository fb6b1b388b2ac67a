//! The CustomResourceDefinitions of the kinds.

use capstan_capi_types::definitions::{
    CLUSTER_LABEL, CLUSTERCTL, Column, Definition, Version, age, paused, text,
};
use capstan_object::Object;
use serde_json::Value;

use crate::types::{KVMCluster, KVMMachine, KVMMachineTemplate};

const LABELS: &[(&str, &str)] = &[
    CLUSTERCTL,
    ("cluster.x-k8s.io/provider", "infrastructure-kvm"),
    ("cluster.x-k8s.io/v1beta2", "v1beta1"),
];

fn ready() -> Column {
    text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#)
}

fn definition<T: Object>(version: Version) -> Value {
    Definition { kind: T::KIND, short_names: &[], labels: LABELS, versions: vec![version] }.to_value()
}

/// The CustomResourceDefinition objects of the provider's kinds, in order of their names.
pub fn definitions() -> Vec<Value> {
    let cluster = Version::of::<KVMCluster>(vec![
        text("Cluster", CLUSTER_LABEL),
        text("Endpoint", ".spec.controlPlaneEndpoint.host"),
        text("Network", ".status.cidr").wide(),
        ready(),
        text("Provisioned", ".status.initialization.provisioned"),
        paused(),
        age(),
    ]);
    let machine = Version::of::<KVMMachine>(vec![
        text("Cluster", CLUSTER_LABEL),
        text("Machine", r#".metadata.ownerReferences[?(@.kind=="Machine")].name"#),
        text("Provider ID", ".spec.providerID").wide(),
        text("Internal-IP", r#".status.addresses[?(@.type=="InternalIP")].address"#),
        text("State", r#".status.conditions[?(@.type=="Ready")].reason"#),
        ready(),
        text("Provisioned", ".status.initialization.provisioned"),
        paused(),
        age(),
    ]);
    vec![
        definition::<KVMCluster>(cluster.with_status()),
        definition::<KVMMachine>(machine.with_status()),
        definition::<KVMMachineTemplate>(Version::of::<KVMMachineTemplate>(vec![age()])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_follow_the_contract() {
        let definitions = definitions();
        let names: Vec<&str> =
            definitions.iter().filter_map(|definition| definition["metadata"]["name"].as_str()).collect();
        assert_eq!(
            names,
            [
                "kvmclusters.infrastructure.cluster.x-k8s.io",
                "kvmmachines.infrastructure.cluster.x-k8s.io",
                "kvmmachinetemplates.infrastructure.cluster.x-k8s.io",
            ]
        );
        for definition in &definitions {
            assert_eq!(definition["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"], "v1beta1");
            assert_eq!(definition["spec"]["names"]["categories"][0], "cluster-api");
            assert_eq!(definition["spec"]["versions"][0]["storage"], true);
        }
    }
}
