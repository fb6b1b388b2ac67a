//! Decisions about OpenStackMachineTemplates, as tables.

use capstan_object::Conditions as _;
use capstan_openstack_types::Quantity;
use capstan_openstack_types::v1beta2::OpenStackMachineTemplate;
use capstan_provider_kit::testing::look;
use serde_json::{Value, json};

use super::decide::decide;
use super::{Offered, OpenStackMachineTemplates, Seen};
use crate::code;
use crate::error::CloudError;

type Decision = capstan_controller::Decision<OpenStackMachineTemplates>;

fn offered(flavor: Value, system: &str) -> Offered {
    let flavor = serde_json::from_value(flavor).expect("a flavor");
    Offered { flavor: Ok(flavor), operating_system: Ok(system.to_owned()) }
}

fn decided(object: OpenStackMachineTemplate, offered: Result<Offered, CloudError>) -> Decision {
    decide(&look::<OpenStackMachineTemplates>(object, Seen { offered: Some(offered) }))
}

fn known() -> OpenStackMachineTemplate {
    let mut object = OpenStackMachineTemplate::default();
    object.status.capacity.insert("cpu".to_owned(), Quantity("8".to_owned()));
    object
}

#[test]
fn the_capacity_is_the_flavors_with_the_root_volume_in_place_of_its_disk() {
    let rows = [
        (
            json!({"vcpus": 2, "ram": 4096, "disk": 40}),
            None,
            json!({"cpu": "2", "memory": "4Gi", "storage": "40Gi"}),
        ),
        (
            json!({"vcpus": 1, "ram": 1536, "disk": 2048, "OS-FLV-EXT-DATA:ephemeral": 10}),
            None,
            json!({"cpu": "1", "memory": "1536Mi", "ephemeral-storage": "10Gi", "storage": "2Ti"}),
        ),
        (
            json!({"vcpus": 2, "ram": 4096, "disk": 0}),
            Some(25),
            json!({"cpu": "2", "memory": "4Gi", "storage": "25Gi"}),
        ),
        (json!({"vcpus": 2, "ram": 4096, "disk": 0}), None, json!({"cpu": "2", "memory": "4Gi"})),
    ];
    for (flavor, root, capacity) in rows {
        let mut object = known();
        if let Some(size) = root {
            let root = serde_json::from_value(json!({"sizeGiB": size})).expect("a volume");
            object.spec.template.spec.root_volume = Some(root);
        }
        let decision = decided(object, Ok(offered(flavor.clone(), "linux")));
        let status = &decision.object.status;
        assert_eq!(serde_json::to_value(&status.capacity).expect("JSON"), capacity, "{flavor}");
        assert_eq!(status.node_info.operating_system, "linux");
        assert!(status.conditions.condition("Ready").is_some_and(capstan_object::Condition::is_true));
    }
}

#[test]
fn an_unknown_flavor_has_no_capacity_and_a_silent_cloud_keeps_the_last() {
    let missing = || CloudError::new(code::NOT_FOUND, "OpenStackError", "there is no flavor");
    let system = || Ok(String::new());
    let wrong = decided(known(), Ok(Offered { flavor: Err(missing()), operating_system: system() }));
    assert!(wrong.object.status.capacity.is_empty());
    let condition = wrong.object.status.conditions.condition("Ready").expect("Ready").clone();
    assert_eq!(condition.message, "E-OS-NOTFOUND: there is no flavor");
    assert!(wrong.look_again.is_some(), "the flavor may be created");
    let silent = || CloudError::new(code::UNREACHABLE, "OpenStackError", "no answer");
    for offered in [Err(silent()), Ok(Offered { flavor: Err(silent()), operating_system: system() })] {
        let decision = decided(known(), offered);
        assert_eq!(decision.object.status.capacity.len(), 1);
        assert!(decision.object.status.conditions.condition("CloudReachable").is_some());
        assert!(decision.object.status.conditions.condition("Ready").is_none());
    }
    let new = decided(OpenStackMachineTemplate::default(), Err(silent()));
    assert!(new.object.status.conditions.condition("Ready").is_some());
}

#[test]
fn a_template_of_no_cluster_is_left_alone() {
    let decision = decide(&look::<OpenStackMachineTemplates>(known(), Seen::default()));
    assert_eq!(decision.object, known());
    assert_eq!(decision.look_again, None);
}
