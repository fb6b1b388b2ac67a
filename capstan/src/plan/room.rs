//! Whether the clouds have what a plan takes: what they would say to its orders, and how much is left of their limits.
//! CloudStack alone is asked, with the keys that its failure domains name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_kubeadm::secret::Secret;
use capstan_cloudstack_provider::{
    Amount, Clouds, Ordered, Outlook, OverNetwork, Prospect, Quota, Trouble, code,
};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomainSpec, CloudStackMachineSpec,
};
use capstan_controller::Client;
use capstan_object::Key;
use capstan_rehearsal::{Course, Load, MachineOf, Size, What};
use serde::Serialize;
use serde_json::Value;

/// How long a cloud may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the clouds say.
#[derive(Debug, Default)]
pub struct Answers {
    /// What is left beside what is needed.
    pub rooms: Vec<Room>,
    /// Why orders would fail.
    pub warnings: Vec<String>,
    /// Sizes of machines, by what is ordered.
    sizes: BTreeMap<String, Size>,
}

/// What one account or project of a cloud has left.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Room {
    /// Whose limits these are.
    pub place: String,
    /// What is needed beyond what is there, at most.
    pub needs: Load,
    /// What is left, as the cloud says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// What is left of limits; absent where nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Left {
    machines: Option<Amount>,
    cpus: Option<Amount>,
    #[serde(rename = "memoryMiB")]
    memory_mib: Option<Amount>,
}

/// Whose limits: the Secret with the keys, and for whom they are used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Tenancy {
    secret: Key,
    account: String,
    domain: String,
    project: String,
}

/// A failure domain of a cluster that gets machines.
struct Place {
    cluster: Key,
    spec: CloudStackFailureDomainSpec,
}

/// Asks the clouds that new machines of a course are ordered from.
pub async fn ask(client: &Client, manifest: &[Value], course: &Course) -> Answers {
    let clouds = Clouds::new(Arc::new(OverNetwork));
    let mut answers = Answers::default();
    for (tenancy, places) in tenancies(course) {
        let keys = match keys(client, manifest, &tenancy.secret).await {
            Ok(keys) => keys,
            Err(why) => {
                answers.warnings.push(why.clone());
                answers.rooms.push(Room::unknown(&tenancy, why));
                continue;
            }
        };
        let mut left = Err("nobody was asked".to_owned());
        for place in &places {
            let orders = orders(course, place);
            let prospects: Vec<Prospect> = orders.iter().map(|order| order.prospect.clone()).collect();
            let asked = clouds.outlook(&place.spec, &keys, &prospects);
            match tokio::time::timeout(PATIENCE, asked).await {
                Ok(Ok(outlook)) => {
                    answers.hear(&orders, &outlook);
                    left = outlook.left;
                }
                Ok(Err(trouble)) => {
                    // From here it may not be reachable, and yet be from where the plane runs.
                    if trouble.code != code::UNREACHABLE {
                        answers.warnings.push(said(&trouble));
                    }
                    left = Err(said(&trouble));
                }
                Err(_) => left = Err(format!("it did not answer within {} s", PATIENCE.as_secs())),
            }
        }
        let mine = |machine: &MachineOf| places.iter().any(|place| place.takes(machine));
        let (now, peak) = course.loads(mine, |machine| answers.size(machine));
        let room = Room::of(&tenancy, more(now, peak), left);
        answers.warnings.extend(room.exceeded());
        answers.rooms.push(room);
    }
    answers.warnings.dedup();
    answers
}

/// An order of the course, and for whom.
struct Order {
    prospect: Prospect,
    key: String,
    /// What the machine is a replica of, if it is yet to be made.
    of: Option<String>,
}

impl Answers {
    /// How large a machine is: by its own words, or its cloud's.
    pub fn size(&self, machine: &MachineOf) -> Option<Size> {
        let object = machine.infrastructure.as_deref()?;
        super::size(object).or_else(|| self.sizes.get(&Order::of(machine)?.key).copied())
    }

    fn hear(&mut self, orders: &[Order], outlook: &Outlook) {
        for (order, verdict) in orders.iter().zip(&outlook.verdicts) {
            if let Some(Ordered { cpus, memory_mib }) = verdict.size {
                self.sizes.insert(order.key.clone(), Size { cpus, memory_mib });
            }
            if let (Some(of), Some(trouble)) = (&order.of, &verdict.trouble) {
                self.warnings.push(format!("{of}: {}", said(trouble)));
            }
        }
    }
}

impl Order {
    /// What is ordered for a machine, if CloudStack shall make it.
    fn of(machine: &MachineOf) -> Option<Self> {
        let object = machine.infrastructure.as_deref().filter(|object| is_of(object, "CloudStackMachine"))?;
        let spec: CloudStackMachineSpec = serde_json::from_value(object["spec"].clone()).ok()?;
        let asked = ["offering", "template", "details"].map(|field| object["spec"][field].to_string());
        let key = format!("{} {}", machine.version, asked.join(" "));
        Some(Self { prospect: Prospect { spec, version: machine.version.clone() }, key, of: None })
    }
}

impl Place {
    /// Whether a machine is made here; one that names no failure domain may be.
    fn takes(&self, machine: &MachineOf) -> bool {
        machine.namespace == self.cluster.namespace
            && machine.cluster == self.cluster.name
            && (machine.failure_domain.is_empty() || machine.failure_domain == self.spec.name)
    }
}

/// Every order at a place once: those of machines that are there, for their sizes, and those yet to be made.
fn orders(course: &Course, place: &Place) -> Vec<Order> {
    let created = course.steps.iter().filter(|step| step.what == What::Created).map(|step| &step.machine);
    let new = created.map(|machine| (machine, Some(machine.of.clone())));
    let there = course.present.iter().map(|machine| (machine, None));
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for (machine, of) in new.chain(there).filter(|(machine, _)| place.takes(machine)) {
        let Some(order) = Order::of(machine) else { continue };
        if known.insert(order.key.clone()) {
            all.push(Order { of, ..order });
        }
    }
    all
}

/// The failure domains of clusters that get machines, by whose limits hold there.
fn tenancies(course: &Course) -> BTreeMap<Tenancy, Vec<Place>> {
    let growing: BTreeSet<Key> = course
        .steps
        .iter()
        .filter(|step| step.what == What::Created)
        .map(|step| Key::new(step.machine.namespace.as_str(), step.machine.cluster.as_str()))
        .collect();
    let mut all: BTreeMap<Tenancy, Vec<Place>> = BTreeMap::new();
    for cluster in growing {
        for spec in failure_domains(course, &cluster) {
            let secret = Key::new(spec.acs_endpoint.namespace.as_str(), spec.acs_endpoint.name.as_str());
            let tenancy = Tenancy {
                secret,
                account: spec.account.clone(),
                domain: spec.domain.clone(),
                project: spec.project.clone(),
            };
            all.entry(tenancy).or_default().push(Place { cluster: cluster.clone(), spec });
        }
    }
    all
}

fn failure_domains(course: &Course, cluster: &Key) -> Vec<CloudStackFailureDomainSpec> {
    let find = |kind: &str, name: &str| {
        course.objects.iter().find(|object| {
            let meta = &object["metadata"];
            is_of(object, kind) && meta["namespace"] == cluster.namespace.as_str() && meta["name"] == name
        })
    };
    let reference = find("Cluster", &cluster.name).map(|cluster| &cluster["spec"]["infrastructureRef"]);
    let named = reference.filter(|reference| reference["kind"] == "CloudStackCluster");
    let found = named.and_then(|reference| find("CloudStackCluster", reference["name"].as_str()?));
    let parsed = found.and_then(|object| serde_json::from_value::<CloudStackCluster>(object.clone()).ok());
    parsed.map(|cluster| cluster.spec.failure_domains).unwrap_or_default()
}

fn is_of(object: &Value, kind: &str) -> bool {
    object["kind"] == kind
        && object["apiVersion"].as_str().is_some_and(|api| api.contains("cluster.x-k8s.io/"))
}

/// The keys that a failure domain names: those of the manifest, which will be there, or those that are.
async fn keys(client: &Client, manifest: &[Value], secret: &Key) -> Result<Secret, String> {
    if let Some(keys) = brought(manifest, secret) {
        return Ok(keys);
    }
    match client.get::<Secret>(secret).await {
        Ok(Some(keys)) => Ok(keys),
        Ok(None) => Err(format!(
            "{}: there is no Secret {secret} with the keys of CloudStack: make it, or correct acsEndpoint",
            code::SECRET
        )),
        Err(error) => Err(format!("Secret {secret} cannot be read: {error}")),
    }
}

fn brought(manifest: &[Value], secret: &Key) -> Option<Secret> {
    let object = manifest.iter().find(|object| {
        let meta = &object["metadata"];
        let namespace = meta["namespace"].as_str().unwrap_or("default");
        object["kind"] == "Secret" && namespace == secret.namespace && meta["name"] == secret.name.as_str()
    })?;
    let mut keys: Secret = serde_json::from_value(object.clone()).ok()?;
    for (field, text) in object["stringData"].as_object().into_iter().flatten() {
        keys.data.insert(field.clone(), text.as_str()?.as_bytes().to_vec());
    }
    Some(keys)
}

fn said(trouble: &Trouble) -> String {
    format!("{}: {}", trouble.code, trouble.message)
}

fn more(now: Load, peak: Load) -> Load {
    Load {
        machines: peak.machines.saturating_sub(now.machines),
        size: Size {
            cpus: peak.size.cpus.saturating_sub(now.size.cpus),
            memory_mib: peak.size.memory_mib.saturating_sub(now.size.memory_mib),
        },
        unsized_machines: peak.unsized_machines,
    }
}

impl Room {
    fn of(tenancy: &Tenancy, needs: Load, left: Result<Quota, String>) -> Self {
        let place = tenancy.to_string();
        match left {
            Ok(quota) => {
                let left = Left {
                    machines: quota.vmavailable,
                    cpus: quota.cpuavailable,
                    memory_mib: quota.memoryavailable,
                };
                Self { place, needs, left: Some(left), unknown: None }
            }
            Err(why) => Self { place, needs, left: None, unknown: Some(why) },
        }
    }

    fn unknown(tenancy: &Tenancy, why: String) -> Self {
        Self::of(tenancy, Load::default(), Err(why))
    }

    /// What is needed, what is left of it, and what it is called.
    fn amounts(&self) -> Vec<(u64, Amount, &'static str)> {
        let Some(left) = self.left else { return Vec::new() };
        let mut all = vec![(self.needs.machines, left.machines, "machines")];
        if self.needs.unsized_machines == 0 {
            all.push((self.needs.size.cpus, left.cpus, "CPUs"));
            all.push((self.needs.size.memory_mib, left.memory_mib, "MiB of memory"));
        }
        all.into_iter().filter_map(|(needs, left, what)| Some((needs, left?, what))).collect()
    }

    /// Limits that the plan runs into.
    fn exceeded(&self) -> Vec<String> {
        let beyond = self.amounts().into_iter().filter_map(|(needs, left, what)| match left {
            Amount::Limited(left) if i64::try_from(needs).is_ok_and(|needs| needs > left.max(0)) => {
                Some(format!(
                    "{}: {} has room for {} more {what}, and {needs} more are needed at a time: raise the limit or \
                     delete what is not used",
                    code::QUOTA,
                    self.place,
                    left.max(0)
                ))
            }
            _ => None,
        });
        beyond.collect()
    }

    /// A line for people.
    pub fn line(&self) -> String {
        if let Some(why) = &self.unknown {
            return format!("what {} has left is not known: {why}", self.place);
        }
        let part = |(needs, left, what): (u64, Amount, &str)| match left {
            Amount::Limited(left) => format!("{needs} of {left} {what}"),
            Amount::Unlimited => format!("{needs} {what} (no limit)"),
        };
        let parts: Vec<String> = self.amounts().into_iter().map(part).collect();
        match parts.is_empty() {
            true => format!("{} does not say what it has left", self.place),
            false => format!("of what {} has left: {}", self.place, parts.join(", ")),
        }
    }
}

impl std::fmt::Display for Tenancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.project.as_str(), self.account.as_str()) {
            ("", "") => write!(f, "the CloudStack account of Secret {}", self.secret),
            ("", account) => write!(f, "CloudStack account {account}"),
            (project, _) => write!(f, "CloudStack project {project}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn room(needs: (u64, u64, u64), left: Value) -> Room {
        let tenancy = Tenancy {
            secret: Key::new("default", "keys"),
            account: String::new(),
            domain: String::new(),
            project: String::new(),
        };
        let (machines, cpus, memory_mib) = needs;
        let needs = Load { machines, size: Size { cpus, memory_mib }, unsized_machines: 0 };
        Room::of(&tenancy, needs, Ok(serde_json::from_value(left).expect("a quota")))
    }

    #[test]
    fn what_is_needed_is_told_beside_what_is_left_and_warned_of_where_it_is_more() {
        let left = json!({"vmavailable": "3", "cpuavailable": "Unlimited", "memoryavailable": "4096"});
        let fits = room((3, 6, 4096), left.clone());
        assert_eq!(
            fits.line(),
            "of what the CloudStack account of Secret default/keys has left: 3 of 3 machines, 6 CPUs (no limit), \
             4096 of 4096 MiB of memory"
        );
        assert_eq!(fits.exceeded(), [""; 0]);
        let beyond = room((4, 6, 5000), left).exceeded();
        assert_eq!(beyond.len(), 2, "{beyond:?}");
        assert!(beyond[0].starts_with("E-CS-QUOTA: "), "{beyond:?}");
        assert!(beyond[0].contains("room for 3 more machines, and 4 more are needed"), "{beyond:?}");
        let used_up = room((1, 0, 0), json!({"vmavailable": "-2"})).exceeded();
        assert!(used_up[0].contains("room for 0 more machines"), "{used_up:?}");
    }

    #[test]
    fn keys_of_the_manifest_are_used_before_they_are_there() {
        let manifest = [json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
            "data": {"api-key": "YQ=="}, "stringData": {"secret-key": "s"}})];
        let keys = brought(&manifest, &Key::new("default", "keys")).expect("brought");
        assert_eq!((&keys.data["api-key"][..], &keys.data["secret-key"][..]), (&b"a"[..], &b"s"[..]));
        assert!(brought(&manifest, &Key::new("other", "keys")).is_none());
    }
}
