use serde_json::json;

use crate::model::{
    Account, AffinityGroup, Amount, FirewallRule, LoadBalancerRule, MachineState, Network, ResourceLimit,
    Template, VirtualMachine,
};
use crate::{Endpoint, Limits, Transport, TransportError, UserData};

#[test]
fn ports_may_come_as_text_or_as_numbers() {
    for port in [json!("6443"), json!(6443), json!(6443.0)] {
        let rule: LoadBalancerRule =
            serde_json::from_value(json!({ "id": "r", "publicport": port })).unwrap();
        assert_eq!(rule.publicport, Some(6443));
    }
    for wrong in [json!("70000"), json!(-1), json!("six"), json!(1.5)] {
        let rule = serde_json::from_value::<LoadBalancerRule>(json!({ "id": "r", "publicport": wrong }));
        assert!(rule.is_err(), "{wrong}");
    }
    let rule: FirewallRule = serde_json::from_value(json!({ "id": "r", "icmptype": -1 })).unwrap();
    assert_eq!((rule.icmptype, rule.startport), (Some(-1), None));
}

#[test]
fn truths_may_be_quoted_and_absent_ones_are_false() {
    for (value, truth) in
        [(json!(true), true), (json!("TRUE"), true), (json!("false"), false), (json!(null), false)]
    {
        let template = json!({ "id": "t", "name": "n", "isready": value, "crossZones": value });
        let template: Template = serde_json::from_value(template).unwrap();
        assert_eq!((template.isready, template.cross_zones, template.ispublic), (truth, truth, false));
    }
    let network: Network = serde_json::from_value(json!({ "id": "n" })).unwrap();
    assert_eq!(network.egressdefaultpolicy, None);
}

#[test]
fn words_of_later_releases_are_kept() {
    let machine: VirtualMachine = serde_json::from_value(json!({ "id": "v", "state": "Dreaming" })).unwrap();
    assert_eq!(machine.state, Some(MachineState::Other("Dreaming".into())));
    let machine: VirtualMachine =
        serde_json::from_value(json!({ "id": "v", "state": "Running", "fieldOfTomorrow": {} })).unwrap();
    assert_eq!(machine.state, Some(MachineState::Running));
}

#[test]
fn limits_are_numbers_or_unlimited() {
    let account = json!({ "id": "a", "name": "alice", "vmavailable": "Unlimited", "cpuavailable": "38", "memoryavailable": "-5" });
    let account: Account = serde_json::from_value(account).unwrap();
    assert_eq!(account.quota.vmavailable, Some(Amount::Unlimited));
    assert!(
        account.quota.cpuavailable.unwrap().allows(38) && !account.quota.cpuavailable.unwrap().allows(39)
    );
    assert!(!account.quota.memoryavailable.unwrap().allows(0));
    assert_eq!(account.quota.ipavailable, None);
    let limit: ResourceLimit = serde_json::from_value(json!({ "resourcetype": "0", "max": -1 })).unwrap();
    assert_eq!((limit.resourcetype, limit.max), (Some(0), Some(Amount::Unlimited)));
}

#[test]
fn times_and_camel_case_leftovers_are_read() {
    let machine = json!({ "id": "v", "created": "2026-11-15T02:24:40+0000" });
    let machine: VirtualMachine = serde_json::from_value(machine).unwrap();
    assert_eq!(machine.created.unwrap().to_string(), "2026-11-15T02:24:40Z");
    assert_eq!(serde_json::to_value(&machine).unwrap()["created"], "2026-11-15T02:24:40+0000");
    let group: AffinityGroup =
        serde_json::from_value(json!({ "id": "g", "name": "n", "virtualmachineIds": ["a"] })).unwrap();
    assert_eq!(group.virtual_machine_ids, ["a".into()]);
}

#[test]
fn the_same_user_data_gives_the_same_text_and_too_much_is_refused() {
    let one = UserData::gzip(&[b'x'; 100_000]).unwrap();
    assert_eq!(one, UserData::gzip(&[b'x'; 100_000]).unwrap());
    assert!(one.encoded_len() < UserData::DEFAULT_LIMIT);
    let error = UserData::plain(&vec![b'x'; 800_000]).unwrap_err();
    assert!(error.to_string().contains("1066668 characters"), "{error}");
}

#[test]
fn urls_that_are_no_api_are_refused_without_showing_what_was_pasted_into_them() {
    let nowhere = |_| {
        let error = TransportError { message: String::new(), never_sent: true };
        Box::pin(async { Err(error) }) as futures::future::BoxFuture<'static, _>
    };
    let transport: std::sync::Arc<dyn Transport> = std::sync::Arc::new(nowhere);
    for good in ["http://10.0.0.1:8080/client/api", " https://cloud.example/client/api "] {
        Endpoint::new(good, transport.clone(), Limits::default()).unwrap();
    }
    for bad in [
        "",
        "cloud.example/client/api",
        "ftp://cloud/x",
        "https://u:secret@cloud/x",
        "https://cloud/x?apiKey=secret",
    ] {
        let error = Endpoint::new(bad, transport.clone(), Limits::default()).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
