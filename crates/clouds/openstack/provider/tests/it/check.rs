//! What must hold of servers in the cloud at every moment.

use std::collections::BTreeSet;

use capstan_controller::KindName;
use capstan_guest::vm::Phase;
use capstan_harness::{
    Acknowledged, Checker, FollowsOwnWrites, History, IntentsFirst, NothingWhilePaused, Objects, Step,
};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachine};

use crate::cloud::{Cloud, PASSWORD};

/// S1: no two things of one name and kind, so none was created twice.
struct NoneTwice(Cloud);

impl Checker for NoneTwice {
    fn name(&self) -> &'static str {
        "S1"
    }

    fn after(&mut self, _: &Step<'_>, _: &Objects) -> Result<(), String> {
        for kind in ["servers", "networks", "routers", "security_groups", "loadbalancers"] {
            let names = self.0.names(kind);
            let different: BTreeSet<&String> = names.iter().collect();
            if different.len() != names.len() {
                return Err(format!("{kind} exist twice: {names:?}"));
            }
        }
        Ok(())
    }
}

/// S4: a server that runs has an object that holds it by a finalizer.
struct NoOrphans(Cloud);

impl Checker for NoOrphans {
    fn name(&self) -> &'static str {
        "S4"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let known = objects.list(&KindName::of::<OpenStackServer>());
        for vm in self.0.site.vms().into_iter().filter(|vm| vm.phase != Phase::Off) {
            let has = |object: &serde_json::Value| {
                object["metadata"]["name"] == vm.name.as_str()
                    && object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
            };
            if !known.iter().any(has) {
                return Err(format!("server {} runs and no object holds it", vm.name));
            }
        }
        Ok(())
    }
}

/// S13: the password is in no object but its Secret.
struct KeepsSecrets;

impl Checker for KeepsSecrets {
    fn name(&self) -> &'static str {
        "S13"
    }

    fn idle(&mut self, objects: &Objects) -> Result<(), String> {
        let events = KindName::namespaced("", "v1", "Event", "events");
        let own = [
            KindName::of::<OpenStackCluster>(),
            KindName::of::<OpenStackMachine>(),
            KindName::of::<OpenStackServer>(),
            events,
        ];
        for kind in own {
            for object in objects.list(&kind) {
                if object.to_string().contains(PASSWORD) {
                    return Err(format!("{kind} {} shows the password", object["metadata"]["name"]));
                }
            }
        }
        Ok(())
    }
}

/// Every checker.
pub fn all(cloud: &Cloud) -> Vec<Box<dyn Checker>> {
    let creates_or_destroys = |summary: &str| {
        let verb = summary.split(' ').next().unwrap_or_default();
        ["create-", "delete-", "add-", "remove-"].iter().any(|prefix| verb.starts_with(prefix))
    };
    vec![
        Box::new(NoneTwice(cloud.clone())),
        Box::new(NoOrphans(cloud.clone())),
        Box::new(KeepsSecrets),
        Box::new(IntentsFirst::new(creates_or_destroys)),
        Box::new(NothingWhilePaused::new("cluster.x-k8s.io/paused")),
        Box::new(FollowsOwnWrites::default()),
        Box::new(Acknowledged::default()),
        Box::new(History::default()),
    ]
}
