//! The CustomResourceDefinitions of the kinds.

use capstan_provider_kit::definitions::{
    cluster_version, definition, labels, machine_version, pool_version, template_version,
};
use serde_json::Value;

use crate::types::{
    SimCluster, SimClusterTemplate, SimMachine, SimMachinePool, SimMachinePoolTemplate, SimMachineTemplate,
};

const LABELS: [(&str, &str); 3] = labels("infrastructure-sim", "v1beta1");

/// The CustomResourceDefinitions of the provider's kinds, ordered by name.
pub fn definitions() -> Vec<Value> {
    vec![
        definition::<SimCluster>(&LABELS, cluster_version::<SimCluster>(Vec::new())),
        definition::<SimClusterTemplate>(&LABELS, template_version::<SimClusterTemplate>()),
        definition::<SimMachinePool>(&LABELS, pool_version::<SimMachinePool>()),
        definition::<SimMachinePoolTemplate>(&LABELS, template_version::<SimMachinePoolTemplate>()),
        definition::<SimMachine>(&LABELS, machine_version::<SimMachine>()),
        definition::<SimMachineTemplate>(&LABELS, template_version::<SimMachineTemplate>().with_status()),
    ]
}

#[cfg(test)]
mod tests {
    use capstan_provider_kit::testing::assert_follow_the_contract;

    #[test]
    fn definitions_follow_the_contract() {
        let plurals = [
            "simclusters",
            "simclustertemplates",
            "simmachinepools",
            "simmachinepooltemplates",
            "simmachines",
            "simmachinetemplates",
        ];
        assert_follow_the_contract(&super::definitions(), "v1beta1", &plurals);
    }
}
