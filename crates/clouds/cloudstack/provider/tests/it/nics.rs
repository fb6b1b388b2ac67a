//! Machines in several networks.

use capstan_cloudstack_client::commands::ListVirtualMachines;
use capstan_cloudstack_client::model::{Nic, VirtualMachine};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::NAME;
use crate::sites::{STORAGE, a_second_network_is_there};
use crate::story::Act::{Check, Create, Delete, ScaleWorkers};
use crate::story::CheckResult;
use crate::story::{Script, failed};

/// The address of the control plane machine in the second network.
const FIXED: &str = "10.50.0.77";

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("NICs", what)
}

fn in_two_networks(body: &mut Value) {
    if body["kind"] == "CloudStackMachineTemplate" {
        let is_worker = body["metadata"]["name"].as_str().is_some_and(|name| name.contains("workers"));
        let mut second = json!({"name": STORAGE});
        if !is_worker {
            second["ip"] = FIXED.into();
        }
        body["spec"]["template"]["spec"]["networks"] = json!([{"name": NAME}, second]);
    }
}

fn of<'a>(vm: &'a VirtualMachine, network: &str) -> Option<&'a Nic> {
    vm.nic.iter().find(|nic| nic.networkname.as_deref() == Some(network))
}

/// The default is in the network of the failure domain, the control plane has the address that it names, and objects show
/// the default address first.
fn all_have_two<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let vms = cloud.client("capstan").list(&ListVirtualMachines::default()).await.map_err(failed)?;
        for machine in world.objects()?.list(&KindName::of::<CloudStackMachine>()) {
            let vm = vms.iter().find(|vm| machine["spec"]["instanceID"] == vm.id.as_str());
            let vm = vm.ok_or_else(|| wrong(format!("no virtual machine of {}", machine["spec"])))?;
            let (Some(first), Some(second), 2) = (of(vm, NAME), of(vm, STORAGE), vm.nic.len()) else {
                return Err(wrong(format!("NICs {:?}", vm.nic)));
            };
            if !first.isdefault || second.isdefault {
                return Err(wrong(format!("the default is another: {:?}", vm.nic)));
            }
            let is_control_plane =
                machine["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_some();
            let is_fixed = second.ipaddress.is_some_and(|ip| ip.to_string() == FIXED);
            if is_control_plane != is_fixed {
                return Err(wrong(format!("the second NIC has {:?}", second.ipaddress)));
            }
            let reported: Vec<_> = machine["status"]["addresses"].as_array().into_iter().flatten().collect();
            let shown = |nic: &Nic| nic.ipaddress.map(|ip| ip.to_string()).unwrap_or_default();
            if reported.len() != 2
                || reported[0]["address"] != shown(first)
                || reported[1]["address"] != shown(second)
            {
                return Err(wrong(format!("status shows {reported:?} for {:?}", vm.nic)));
            }
        }
        Ok(())
    })
}

#[test]
fn machines_have_a_nic_in_each_network_that_they_name_and_the_second_network_stays() {
    let acts = [Check(a_second_network_is_there), Create, ScaleWorkers(2), Check(all_have_two), Delete];
    let story = Script { bare: true, change: Some(in_two_networks), ..Script::of(&acts) };
    let report = run(&story.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
