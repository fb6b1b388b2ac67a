//! What must hold of machines in the cloud at every moment.

use std::collections::BTreeSet;

use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::KindName;
use capstan_guest::vm::Phase;
use capstan_harness::{
    Acknowledged, Checker, FollowsOwnWrites, History, IntentsFirst, NothingWhilePaused, Objects, Step,
};

use crate::cloud::Cloud;

/// S1: no two machines of one name, so none was ordered twice.
struct NoneTwice(Cloud);

impl Checker for NoneTwice {
    fn name(&self) -> &'static str {
        "S1"
    }

    fn after(&mut self, _: &Step<'_>, _: &Objects) -> Result<(), String> {
        let names = self.0.names("virtualmachine");
        let different: BTreeSet<&String> = names.iter().collect();
        if different.len() == names.len() {
            Ok(())
        } else {
            Err(format!("a machine exists twice: {names:?}"))
        }
    }
}

/// A virtual machine has a name that an object gave: its own, or with the number of a later attempt.
fn is_named_by(object: &str, vm: &str) -> bool {
    let attempt = vm.strip_prefix(object).map(|rest| rest.strip_prefix("-r").unwrap_or(rest));
    attempt.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// S4: a machine that is switched on has an object that knows of it or is about to.
struct NoOrphans(Cloud);

impl Checker for NoOrphans {
    fn name(&self) -> &'static str {
        "S4"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let known = objects.list(&KindName::of::<CloudStackMachine>());
        for vm in self.0.site.vms().into_iter().filter(|vm| vm.phase != Phase::Off) {
            let has = |object: &serde_json::Value| {
                is_named_by(object["metadata"]["name"].as_str().unwrap_or_default(), &vm.name)
                    && object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
            };
            if !known.iter().any(has) {
                return Err(format!("machine {} runs and nobody holds it", vm.name));
            }
        }
        Ok(())
    }
}

/// Secrets stay where they belong: neither key is in any object but its Secret.
struct KeepsKeys(Cloud);

impl Checker for KeepsKeys {
    fn name(&self) -> &'static str {
        "S13"
    }

    fn idle(&mut self, objects: &Objects) -> Result<(), String> {
        let keys = self.0.simulator.credentials("capstan").expect("keys");
        let events = KindName::namespaced("", "v1", "Event", "events");
        for kind in [KindName::of::<CloudStackMachine>(), events] {
            for object in objects.list(&kind) {
                let text = object.to_string();
                if text.contains(&keys.api_key) || text.contains(&keys.secret_key) {
                    return Err(format!("{kind} {} shows a key", object["metadata"]["name"]));
                }
            }
        }
        Ok(())
    }
}

/// Every checker.
pub fn all(cloud: &Cloud) -> Vec<Box<dyn Checker>> {
    let makes_or_destroys = |summary: &str| {
        let verb = summary.split(' ').next().unwrap_or_default();
        matches!(
            verb,
            "deploy-vm"
                | "destroy-vm"
                | "delete-disk"
                | "create-network"
                | "delete-network"
                | "create-vpc"
                | "delete-vpc"
                | "create-mirror"
                | "delete-mirror"
                | "take-address"
                | "release-address"
                | "create-rule"
                | "delete-rule"
                | "let-in"
                | "delete-opening"
                | "let-out"
                | "delete-exit"
                | "create-group"
                | "delete-group"
        )
    };
    vec![
        Box::new(NoneTwice(cloud.clone())),
        Box::new(NoOrphans(cloud.clone())),
        Box::new(KeepsKeys(cloud.clone())),
        Box::new(IntentsFirst::new(makes_or_destroys)),
        Box::new(NothingWhilePaused::new("cluster.x-k8s.io/paused")),
        Box::new(FollowsOwnWrites::default()),
        Box::new(Acknowledged::default()),
        Box::new(History::default()),
    ]
}
