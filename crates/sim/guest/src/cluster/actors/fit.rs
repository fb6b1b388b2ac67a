//! What Pods request and what is free on Nodes.

use std::collections::BTreeMap;

use capstan_builtin::quantity::Quantity;
use serde_json::Value;

/// Amounts by resource: CPU in thousandths, others in whole units.
type Amounts = BTreeMap<String, i64>;

/// What a Pod requests, of all resources that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Requests(Amounts);

/// What is free on a Node.
#[derive(Debug, Clone)]
pub(super) struct Room {
    allocatable: Amounts,
    taken: Amounts,
    pods: usize,
}

/// A resource that a Node has too little of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shortage {
    resource: String,
    /// The empty Node has not enough either.
    pub(super) never_enough: bool,
}

impl Requests {
    /// As kube-scheduler counts: all containers at once, or the largest init container beside the sidecars that run by
    /// then; amounts of the whole Pod take precedence; plus the overhead.
    pub(super) fn of(pod: &Value) -> Self {
        let spec = &pod["spec"];
        let each = |list: &str| spec[list].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut running = Amounts::new();
        for container in each("containers") {
            add(&mut running, &requested(container));
        }
        let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
        for container in each("initContainers") {
            let mut needed = requested(container);
            if container["restartPolicy"] == "Always" {
                add(&mut running, &needed);
                add(&mut sidecars, &needed);
                needed = sidecars.clone();
            } else {
                add(&mut needed, &sidecars);
            }
            raise(&mut starting, needed);
        }
        raise(&mut running, starting);
        for (resource, amount) in requested(spec) {
            if matches!(resource.as_str(), "cpu" | "memory") || resource.starts_with("hugepages-") {
                running.insert(resource, amount);
            }
        }
        add(&mut running, &amounts(&spec["overhead"]));
        Self(running)
    }
}

impl Room {
    /// An empty Node.
    pub(super) fn of(node: &Value) -> Self {
        let allocatable = amounts(&node["status"]["allocatable"]);
        Self { allocatable, taken: Amounts::new(), pods: 0 }
    }

    /// Number of Pods.
    pub(super) fn pods(&self) -> usize {
        self.pods
    }

    /// Adds a Pod.
    pub(super) fn take(&mut self, requests: &Requests) {
        add(&mut self.taken, &requests.0);
        self.pods += 1;
    }

    /// What is missing for one more Pod.
    pub(super) fn short_of(&self, requests: &Requests) -> Vec<Shortage> {
        let of = |amounts: &Amounts, resource: &str| amounts.get(resource).copied().unwrap_or(0);
        let mut short = Vec::new();
        let most = of(&self.allocatable, PODS);
        if i64::try_from(self.pods).is_ok_and(|pods| pods >= most) {
            short.push(Shortage { resource: PODS.to_owned(), never_enough: false });
        }
        for (resource, amount) in &requests.0 {
            let whole = of(&self.allocatable, resource);
            if *amount > 0 && *amount > whole.saturating_sub(of(&self.taken, resource)) {
                short.push(Shortage { resource: resource.clone(), never_enough: *amount > whole });
            }
        }
        short
    }
}

const PODS: &str = "pods";

impl Shortage {
    /// In the words of kube-scheduler.
    pub(super) fn reason(&self) -> String {
        if self.resource == PODS {
            "Too many pods".to_owned()
        } else {
            format!("Insufficient {}", self.resource)
        }
    }
}

/// Requests of a container or of a whole Pod.
fn requested(of: &Value) -> Amounts {
    amounts(&of["resources"]["requests"])
}

fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    let parsed = entries.filter_map(|(resource, amount)| {
        let amount = Quantity::parse(amount.as_str()?).ok()?;
        let amount = if resource == "cpu" { amount.milli() } else { amount.value() };
        Some((resource.clone(), amount))
    });
    parsed.collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        let sum = to.entry(resource.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// Keeps the larger amount of each resource.
fn raise(to: &mut Amounts, others: Amounts) {
    for (resource, amount) in others {
        let held = to.entry(resource).or_default();
        *held = (*held).max(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_counted_as_the_scheduler_does() {
        let with = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar = |cpu: &str| {
            let mut container = with(cpu);
            container["restartPolicy"] = "Always".into();
            container
        };
        for (spec, cpu) in [
            (json!({"containers": [{}]}), None),
            (json!({"containers": [with("100m"), with("0.2")]}), Some(300)),
            (json!({"containers": [with("100m")], "initContainers": [with("1")]}), Some(1000)),
            (json!({"containers": [with("1")], "initContainers": [with("100m")]}), Some(1000)),
            (json!({"containers": [with("1")], "initContainers": [sidecar("100m")]}), Some(1100)),
            (json!({"containers": [with("1")], "initContainers": [sidecar("100m"), with("2")]}), Some(2100)),
            (json!({"containers": [with("1")], "initContainers": [with("2"), sidecar("100m")]}), Some(2000)),
            (json!({"containers": [with("1")], "overhead": {"cpu": "250m"}}), Some(1250)),
            (json!({"containers": [with("1")], "resources": {"requests": {"cpu": "3"}}}), Some(3000)),
        ] {
            assert_eq!(Requests::of(&json!({"spec": spec})).0.get("cpu").copied(), cpu, "{spec}");
        }
    }

    #[test]
    fn a_node_has_room_until_one_resource_is_used_up() {
        let node = json!({"status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3"}}});
        let pod = |requests: Value| {
            Requests::of(&json!({"spec": {"containers": [{"resources": {"requests": requests}}]}}))
        };
        let reasons = |room: &Room, requests: Value| -> Vec<(String, bool)> {
            let short = room.short_of(&pod(requests)).into_iter();
            short.map(|short| (short.reason(), short.never_enough)).collect()
        };
        let said = |text: &str, never: bool| (text.to_owned(), never);
        let mut room = Room::of(&node);
        room.take(&pod(json!({"cpu": "1500m", "memory": "512Mi"})));
        assert_eq!(reasons(&room, json!({"cpu": "500m", "memory": "512Mi"})), []);
        assert_eq!(reasons(&room, json!({"cpu": "501m"})), [said("Insufficient cpu", false)]);
        assert_eq!(
            reasons(&room, json!({"cpu": "3", "memory": "600Mi"})),
            [said("Insufficient cpu", true), said("Insufficient memory", false)]
        );
        assert_eq!(
            reasons(&room, json!({"example.org/gpu": "1"})),
            [said("Insufficient example.org/gpu", true)]
        );
        room.take(&pod(json!({})));
        assert_eq!(reasons(&room, json!({})), []);
        room.take(&pod(json!({})));
        assert_eq!(reasons(&room, json!({})), [said("Too many pods", false)]);
        assert_eq!(reasons(&Room::of(&json!({})), json!({})), [said("Too many pods", false)]);
    }
}
