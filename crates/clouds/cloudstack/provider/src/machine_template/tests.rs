//! Decisions about CloudStackMachineTemplates, as a table.

use capstan_cloudstack_types::v1beta3::CloudStackMachineTemplate;
use capstan_provider_kit::testing::look;
use serde_json::{Value, json};

use super::decide::decide;
use super::{Offered, Seen};

#[test]
fn the_capacity_is_the_offerings_or_where_that_leaves_it_open_the_machines() {
    type Row = (&'static str, Value, &'static [(&'static str, &'static str)], Value);
    let rows: [Row; 3] = [
        ("fixed", json!({"cpunumber": 2, "memory": 2048}), &[], json!({"cpu": "2", "memory": "2048Mi"})),
        (
            "open",
            json!({"iscustomized": true}),
            &[("cpuNumber", "6"), ("memory", "4096")],
            json!({"cpu": "6", "memory": "4096Mi"}),
        ),
        ("open and not said", json!({"iscustomized": true}), &[], json!({})),
    ];
    for (says, mut offering, details, capacity) in rows {
        offering["id"] = "o".into();
        offering["name"] = "o".into();
        let mut object = CloudStackMachineTemplate::default();
        object.spec.template.spec.details =
            details.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let template = json!({"id": "t", "name": "t", "arch": "aarch64"});
        let offered = Offered {
            offering: serde_json::from_value(offering).expect("an offering"),
            template: serde_json::from_value(template).expect("a template"),
        };
        let decision = decide(&look(object, Seen { offered: Some(Ok(offered)) }));
        assert_eq!(serde_json::to_value(&decision.object.status.capacity).expect("JSON"), capacity, "{says}");
        assert_eq!(decision.object.status.node_info.architecture, "arm64", "{says}");
    }
}
