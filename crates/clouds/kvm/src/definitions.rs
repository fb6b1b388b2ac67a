//! The CustomResourceDefinitions of the kinds.

use capstan_capi_types::definitions::text;
use capstan_provider_kit::definitions::{
    cluster_version, definition, labels, machine_version, template_version,
};
use serde_json::Value;

use crate::types::{KVMCluster, KVMClusterTemplate, KVMMachine, KVMMachineTemplate};

const LABELS: [(&str, &str); 3] = labels("infrastructure-kvm", "v1beta1");

/// The CustomResourceDefinitions of the provider's kinds, ordered by name.
pub fn definitions() -> Vec<Value> {
    let network = vec![text("Network", ".status.cidr").wide()];
    vec![
        definition::<KVMCluster>(&LABELS, cluster_version::<KVMCluster>(network)),
        definition::<KVMClusterTemplate>(&LABELS, template_version::<KVMClusterTemplate>()),
        definition::<KVMMachine>(&LABELS, machine_version::<KVMMachine>()),
        definition::<KVMMachineTemplate>(&LABELS, template_version::<KVMMachineTemplate>().with_status()),
    ]
}

#[cfg(test)]
mod tests {
    use capstan_provider_kit::testing::assert_follow_the_contract;

    #[test]
    fn definitions_follow_the_contract() {
        let plurals = ["kvmclusters", "kvmclustertemplates", "kvmmachines", "kvmmachinetemplates"];
        assert_follow_the_contract(&super::definitions(), "v1beta1", &plurals);
    }
}
