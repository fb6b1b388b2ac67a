//! What tools that wait by the rules of kstatus see of a cluster, at every step.

use std::collections::BTreeMap;

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{self, Machine, MachineDeployment, MachineSet, annotation, label};
use capstan_controller::KindName;
use capstan_harness::{Checker, Objects, Step};
use capstan_lifecycle::names;
use capstan_lifecycle::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};
use capstan_object::Key;
use capstan_object::kstatus::Progress;
use serde_json::Value;

use crate::manifests;

/// K1: what was applied is current only when it is done, and stays so until somebody changes it.
#[derive(Default)]
pub struct Waiting {
    /// By kind and name: the generations with which an object was current.
    current: BTreeMap<String, i64>,
    /// What changed clusters beside their manifests last.
    outside: i64,
    /// That changed, and nothing is in progress because of it yet.
    unnoticed: bool,
}

fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

fn sum(objects: &[&[Value]]) -> i64 {
    objects.iter().copied().flatten().map(generation).sum()
}

fn is_current(object: &Value) -> bool {
    Progress::of(object) == Progress::Current
}

/// What changes clusters beside their manifests: the keys, and the number of machines that an autoscaler sets.
fn outside(objects: &Objects) -> i64 {
    let keys = objects.get(&manifests::secrets(), &Key::new(manifests::SYSTEM, "global")).unwrap_or_default();
    let keys = keys["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
    let deployments = objects.list(&KindName::of::<MachineDeployment>());
    let scaled = |it: &&Value| it["metadata"]["annotations"].get(annotation::AUTOSCALER_MIN_SIZE).is_some();
    deployments.iter().filter(scaled).map(generation).sum::<i64>() + keys
}

impl Waiting {
    /// `generations` are those of everything that may send it on its way again. `settled` says that this has taken
    /// place: until then an object that is current may not know of the change yet, and what changed is in progress.
    fn stays(
        &mut self,
        kind: &KindName,
        object: &Value,
        generations: i64,
        settled: bool,
    ) -> Result<(), String> {
        let meta = &object["metadata"];
        let name = format!("{kind} {} {}", meta["name"], meta["uid"]);
        match Progress::of(object) {
            Progress::Current => {
                if settled {
                    self.current.insert(name, generations);
                }
                Ok(())
            }
            Progress::InProgress(why) if self.current.get(&name) == Some(&generations) => {
                Err(format!("{name} was current, and is in progress without a change: {why}"))
            }
            _ => {
                self.current.remove(&name);
                Ok(())
            }
        }
    }
}

impl Checker for Waiting {
    fn name(&self) -> &'static str {
        "K1"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let of = |kind: &KindName| objects.list(kind);
        let kinds = [
            KindName::of::<Cluster>(),
            KindName::of::<CloudStackMachineConfig>(),
            KindName::of::<CloudStackDatacenterConfig>(),
        ];
        let [clusters, configs, datacenters] = kinds.each_ref().map(of);
        let applied = [clusters.as_slice(), configs.as_slice(), datacenters.as_slice()];
        let generations = sum(&applied);
        let is_done = applied.iter().copied().flatten().all(is_current);
        let outside = outside(objects);
        let changed = self.outside != outside;
        self.unnoticed = is_done && (self.unnoticed || changed);
        self.outside = outside;
        if changed {
            self.current.clear();
        }
        let settled = is_done && !self.unnoticed;
        for (kind, objects) in kinds.iter().zip(applied) {
            for object in objects {
                self.stays(kind, object, generations, settled)?;
            }
        }
        let parts = [
            KindName::of::<KubeadmControlPlane>(),
            KindName::of::<MachineDeployment>(),
            KindName::of::<MachineSet>(),
        ];
        let seen = parts.each_ref().map(of);
        for (kind, objects) in parts.iter().zip(&seen) {
            for object in objects {
                self.stays(kind, object, generation(object), true)?;
            }
        }
        let kind = KindName::of::<core::Cluster>();
        let own = of(&kind);
        let [planes, deployments, _] = &seen;
        let parts = [own.as_slice(), planes.as_slice(), deployments.as_slice()];
        let parts_settled = parts.iter().copied().flatten().all(is_current);
        for object in &own {
            self.stays(&kind, object, sum(&parts), parts_settled)?;
        }
        match clusters.is_empty() || !is_done {
            true => Ok(()),
            false => clusters.iter().try_for_each(|cluster| done(cluster, &configs, objects)),
        }
    }
}

/// The machines are those that the cluster and its configs ask for.
fn done(cluster: &Value, configs: &[Value], objects: &Objects) -> Result<(), String> {
    let spec = &cluster["spec"];
    let groups = spec["workerNodeGroupConfigurations"].as_array().cloned().unwrap_or_default();
    let machines = objects.list(&KindName::of::<Machine>());
    let count = |of: &Value| of["count"].as_u64().unwrap_or(1);
    // An autoscaler counts on its own.
    let workers = |group: &Value| {
        let name = names::deployment(
            cluster["metadata"]["name"].as_str().unwrap_or_default(),
            group["name"].as_str().unwrap_or_default(),
        );
        let is_own = |machine: &&Value| machine["metadata"]["labels"][label::DEPLOYMENT_NAME] == *name;
        match group.get("autoscalingConfiguration") {
            Some(_) => machines.iter().filter(is_own).count() as u64,
            None => count(group),
        }
    };
    let wanted = count(&spec["controlPlaneConfiguration"]) + groups.iter().map(workers).sum::<u64>();
    if machines.len() as u64 != wanted {
        return Err(format!("all is current with {} machines of {wanted}", machines.len()));
    }
    let version = format!("v{}.", spec["kubernetesVersion"].as_str().unwrap_or_default());
    let old =
        |machine: &&Value| !machine["spec"]["version"].as_str().is_some_and(|it| it.starts_with(&version));
    if let Some(machine) = machines.iter().find(old) {
        return Err(format!("all is current with a machine of {}", machine["spec"]["version"]));
    }
    let kind = KindName::of::<capstan_cloudstack_types::v1beta3::CloudStackMachine>();
    let offerings: Vec<&Value> =
        configs.iter().map(|config| &config["spec"]["computeOffering"]["name"]).collect();
    for machine in objects.list(&kind) {
        let offering = &machine["spec"]["offering"]["name"];
        if !offerings.contains(&offering) {
            return Err(format!("all is current with a machine of {offering}"));
        }
    }
    Ok(())
}
