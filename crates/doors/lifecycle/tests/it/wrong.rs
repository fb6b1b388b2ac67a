//! What manifests may name that there is not: each is reported by reason and message, no machine is touched, and the report
//! goes when it is mended.

use std::time::Duration;

use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};
use capstan_object::{Key, Object};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::lifecycles::{machines, nothing_is_left, ready_with};
use crate::manifests::{self, NAME, NAMESPACE, SYSTEM};
use crate::story::{self, Play, Played, Script, cluster, failed};

/// What is broken: a field of an object, which is null if it is removed.
enum Break {
    Cluster(&'static str, Value),
    /// Of the workers' config.
    Machines(&'static str, Value),
    /// Of the only availability zone.
    Zone(&'static str, Value),
    /// Of the Secret with the keys.
    Keys(&'static str, Value),
    NoKeys,
    NoMachineConfig,
}

use Break::{Cluster as InCluster, Keys, Machines, NoKeys, NoMachineConfig, Zone};

/// The break, the reason and the message; one that ends with an ellipsis goes on with CloudStack's words.
type Row = (Break, &'static str, &'static str);

const NOWHERE: &str = "6d1fc8ae-11a8-4d9c-a6d1-4c32bd0cb4a3";
const INVALID: &str = "MachineConfigInvalid";

fn of_machines() -> Vec<Row> {
    let disk = |name: &str, size: i64| json!({"name": name, "customSizeInGB": size, "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data"});
    vec![
        (
            Machines("/template", json!({"name": "kube-1.35"})),
            INVALID,
            r#"E-CS-NOTFOUND: CloudStackMachineConfig anywhere-md in zone az-1: template "kube-1.35" does not exist, or is not visible to the account"#,
        ),
        (
            Machines("/template", json!({"id": NOWHERE})),
            INVALID,
            "E-CS-NOTFOUND: CloudStackMachineConfig anywhere-md in zone az-1: template 6d1fc8ae-11a8-4d9c-a6d1-4c32bd0cb4a3 does not exist, or is not visible to the account",
        ),
        (
            Machines("/template", json!({"name": "ubuntu-2404-kube-v1.36.0"})),
            INVALID,
            r#"E-CS-TEMPLATE: CloudStackMachineConfig anywhere-md in zone az-1: template "ubuntu-2404-kube-v1.36.0" is not for Kubernetes 1.35: its name must contain 1.35, 1-35, 1_35 or 135"#,
        ),
        (
            Machines("/computeOffering", json!({"name": "Large Instance"})),
            INVALID,
            r#"E-CS-NOTFOUND: CloudStackMachineConfig anywhere-md in zone az-1: compute offering "Large Instance" does not exist, or is not visible to the account"#,
        ),
        (
            Machines("/computeOffering", json!({"id": NOWHERE})),
            INVALID,
            "E-CS-NOTFOUND: CloudStackMachineConfig anywhere-md in zone az-1: compute offering 6d1fc8ae-11a8-4d9c-a6d1-4c32bd0cb4a3 does not exist, or is not visible to the account",
        ),
        (
            Machines("/diskOffering", disk("Huge", 0)),
            INVALID,
            r#"E-CS-NOTFOUND: CloudStackMachineConfig anywhere-md in zone az-1: disk offering "Huge" does not exist, or is not visible to the account"#,
        ),
        (
            Machines("/diskOffering", disk("Custom", 0)),
            INVALID,
            r#"E-CS-REFUSED: CloudStackMachineConfig anywhere-md in zone az-1: disk offering "Custom" leaves the size open: set customSizeInGB"#,
        ),
        (
            Machines("/diskOffering", disk("Small", 7)),
            INVALID,
            r#"E-CS-REFUSED: CloudStackMachineConfig anywhere-md in zone az-1: disk offering "Small" has a fixed size: remove customSizeInGB"#,
        ),
        (
            NoMachineConfig,
            "MissingDependentObjects",
            "dependent cluster objects don't exist: CloudStackMachineConfig default/anywhere-md",
        ),
    ]
}

fn of_clusters() -> Vec<Row> {
    vec![
        (
            InCluster("/datacenter", Value::Null),
            "MissingDependentObjects",
            "dependent cluster objects don't exist: CloudStackDatacenterConfig default/anywhere",
        ),
        (
            InCluster("/controlPlaneConfiguration/machineGroupRef/name", json!("none")),
            "MissingDependentObjects",
            "dependent cluster objects don't exist: CloudStackMachineConfig default/none",
        ),
        (
            InCluster("/workerNodeGroupConfigurations/0/machineGroupRef/name", json!("none")),
            "MissingDependentObjects",
            "dependent cluster objects don't exist: CloudStackMachineConfig default/none",
        ),
        (
            InCluster("/clusterNetwork/cniConfig/cilium/policyEnforcementMode", json!("always")),
            "ClusterInvalid",
            "spec.clusterNetwork.cniConfig.cilium: the built-in CNI cannot follow policyEnforcementMode: remove it, give a chart of Cilium to --lifecycle-cni, or set skipUpgrade: true and configure Cilium yourself",
        ),
    ]
}

fn of_datacenters() -> Vec<Row> {
    let reason = "DatacenterConfigInvalid";
    vec![
        (
            Zone("/zone/name", json!("zone-9")),
            reason,
            r#"Invalid anywhere CloudStackDatacenterConfig: E-CS-NOTFOUND: availabilityZones[0] (az-1): zone "zone-9" does not exist, or is not visible to the account"#,
        ),
        (
            Zone("/zone/id", json!(NOWHERE)),
            reason,
            "Invalid anywhere CloudStackDatacenterConfig: E-CS-NOTFOUND: availabilityZones[0] (az-1): zone 6d1fc8ae-11a8-4d9c-a6d1-4c32bd0cb4a3 does not exist, or is not visible to the account",
        ),
        (
            Zone("/zone/network/name", json!("none")),
            reason,
            r#"Invalid anywhere CloudStackDatacenterConfig: E-CS-NOTFOUND: availabilityZones[0] (az-1): network "none" does not exist, or is not visible to the account"#,
        ),
        (
            Zone("/zone/network", json!({"id": NOWHERE})),
            reason,
            "Invalid anywhere CloudStackDatacenterConfig: E-CS-NOTFOUND: availabilityZones[0] (az-1): network 6d1fc8ae-11a8-4d9c-a6d1-4c32bd0cb4a3 does not exist, or is not visible to the account",
        ),
        (
            Zone("/zone/network/name", json!("twin")),
            reason,
            r#"Invalid anywhere CloudStackDatacenterConfig: E-CS-AMBIGUOUS: availabilityZones[0] (az-1): there are 2 networks "twin": use the id"#,
        ),
        (
            Zone("/account", json!("nobody")),
            reason,
            r#"Invalid anywhere CloudStackDatacenterConfig: E-CS-NOTFOUND: availabilityZones[0] (az-1): could not find account "nobody" with the keys of Secret eksa-system/global: correct account and domain of the failure domain"#,
        ),
        // The keys are those of a user with the stock role.
        (
            Zone("/domain", json!("elsewhere")),
            reason,
            "Invalid anywhere CloudStackDatacenterConfig: E-CS-PERMISSION: availabilityZones[0] (az-1): listDomains: command not available to this role (432/9999): …",
        ),
        (
            Zone("/managementApiEndpoint", json!("http://other.example/client/api")),
            reason,
            r#"Invalid anywhere CloudStackDatacenterConfig: E-CS-SECRET: availabilityZones[0] (az-1): managementApiEndpoint "http://other.example/client/api" differs from api-url "http://cloud.example:8080/client/api" of Secret eksa-system/global: correct one of them"#,
        ),
        (
            Zone("/credentialsRef", json!("other")),
            reason,
            "Invalid anywhere CloudStackDatacenterConfig: E-CS-SECRET: availabilityZones[0] (az-1): there is no Secret eksa-system/other: make it with the fields api-url, api-key and secret-key, or correct acsEndpoint",
        ),
        (
            NoKeys,
            reason,
            "Invalid anywhere CloudStackDatacenterConfig: E-CS-SECRET: availabilityZones[0] (az-1): there is no Secret eksa-system/global: make it with the fields api-url, api-key and secret-key, or correct acsEndpoint",
        ),
        (
            Keys("/api-key", Value::Null),
            reason,
            "Invalid anywhere CloudStackDatacenterConfig: E-CS-SECRET: availabilityZones[0] (az-1): Secret eksa-system/global has no text in its field api-key: fill it in",
        ),
        (
            Keys("/secret-key", json!("wrong")),
            reason,
            "Invalid anywhere CloudStackDatacenterConfig: E-CS-CREDENTIALS: availabilityZones[0] (az-1): CloudStack refuses the keys in Secret eksa-system/global: put those of an enabled user into its fields api-key and secret-key",
        ),
    ]
}

/// Puts a value at a path, or removes what is there.
fn set(object: &mut Value, path: &str, value: &Value) {
    let (parent, field) = path.rsplit_once('/').unwrap_or_default();
    match (object.pointer_mut(parent), value) {
        (Some(Value::Object(fields)), Value::Null) => drop(fields.remove(field)),
        (Some(parent), value) => parent[field] = value.clone(),
        (None, _) => {}
    }
}

async fn replaced<T: Object>(
    world: &World<'_>,
    name: &str,
    change: impl Fn(&mut Value),
) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, name);
    let mut object = world.objects()?.get(&KindName::of::<T>(), &key).unwrap_or_default();
    change(&mut object["spec"]);
    let done = world.user()?.replace(&KindName::of::<T>(), &key, None, &object).await;
    done.map(drop).map_err(failed)
}

/// Deletes an object and, with a body, makes it again.
async fn remade(
    world: &mut World<'_>,
    kind: KindName,
    key: &Key,
    body: Option<&Value>,
) -> Result<(), Violation> {
    // What is already gone is made all the same.
    drop(world.user()?.delete(&kind, key, &Deletion::default()).await);
    world.pass(Duration::from_secs(5)).await?;
    if let Some(body) = body {
        world.user()?.create(&kind, &key.namespace, body).await.map_err(failed)?;
    }
    Ok(())
}

fn example(kind: &str, name: &str) -> Value {
    let all = manifests::example().into_iter();
    all.filter(|body| body["kind"] == kind).find(|body| body["metadata"]["name"] == name).unwrap_or_default()
}

/// Breaks what a row breaks, or mends it.
async fn change(world: &mut World<'_>, cloud: &Cloud, row: &Break, is_broken: bool) -> Result<(), Violation> {
    let keys = Key::new(SYSTEM, "global");
    let mut secret = manifests::keys(&cloud.simulator.credentials("capstan").map_err(failed)?);
    let datacenter = (KindName::of::<CloudStackDatacenterConfig>(), Key::new(NAMESPACE, NAME));
    let mut zones = example("CloudStackDatacenterConfig", NAME);
    match row {
        InCluster("/datacenter", _) => {
            remade(world, datacenter.0, &datacenter.1, (!is_broken).then_some(&zones)).await
        }
        InCluster(path, value) => {
            let example = example("Cluster", NAME);
            let before = example["spec"].pointer(path).cloned().unwrap_or_default();
            replaced::<Cluster>(world, NAME, |spec| match path.contains("/0/") {
                // A field of an array.
                true => {
                    if let Some(field) = spec.pointer_mut(path) {
                        *field = if is_broken { value.clone() } else { before.clone() };
                    }
                }
                false => set(spec, path, if is_broken { value } else { &before }),
            })
            .await
        }
        Machines(path, value) => {
            let before = example("CloudStackMachineConfig", "anywhere-md");
            let before = before["spec"].pointer(path).cloned().unwrap_or_default();
            let value = if is_broken { value } else { &before };
            replaced::<CloudStackMachineConfig>(world, "anywhere-md", |spec| set(spec, path, value)).await
        }
        Zone(path, value) => {
            if is_broken {
                set(&mut zones["spec"]["availabilityZones"][0], path, value);
            }
            remade(world, datacenter.0, &datacenter.1, Some(&zones)).await
        }
        Keys(path, value) => {
            if is_broken {
                set(&mut secret["stringData"], path, value);
            }
            remade(world, manifests::secrets(), &keys, Some(&secret)).await
        }
        NoKeys => remade(world, manifests::secrets(), &keys, (!is_broken).then_some(&secret)).await,
        NoMachineConfig => {
            let body = example("CloudStackMachineConfig", "anywhere-md");
            let key = Key::new(NAMESPACE, "anywhere-md");
            let kind = KindName::of::<CloudStackMachineConfig>();
            remade(world, kind, &key, (!is_broken).then_some(&body)).await
        }
    }
}

fn is_message(found: &Value, expected: &str) -> bool {
    let found = found.as_str().unwrap_or_default();
    expected.strip_suffix('…').map_or(found == expected, |front| found.starts_with(front))
}

async fn are_reported(world: &mut World<'_>, cloud: &Cloud, rows: Vec<Row>) -> Result<(), Violation> {
    story::create(world, cloud, |_| ()).await?;
    cloud.share_network("twin").await;
    cloud.share_network("twin").await;
    world.run_until_idle().await?;
    ready_with(world, 1, 1)?;
    let before = machines(world)?;
    let mut wrong = Vec::new();
    for (row, reason, message) in rows {
        change(world, cloud, &row, true).await?;
        world.pass(Duration::from_secs(60)).await?;
        let status = cluster(world)?["status"].clone();
        let ready = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
        let ready = ready.cloned().unwrap_or_default();
        let is_reported = status["failureReason"] == reason && is_message(&status["failureMessage"], message);
        if !is_reported || ready["reason"] != reason || ready["status"] != "False" {
            wrong.push(format!(
                "{}: {}\n  instead of {reason}: {message}",
                status["failureReason"], status["failureMessage"]
            ));
        }
        change(world, cloud, &row, false).await?;
        world.run_until_idle().await?;
        ready_with(world, 1, 1)?;
        let status = cluster(world)?["status"].clone();
        if status.get("failureReason").is_some() || machines(world)? != before {
            return Err(Violation::new("L1", format!("not mended after {message}: {status}")));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Violation::new("L1", wrong.join("\n"))),
    }
}

fn goes_well(play: Play) {
    let report = run(&Script { play, most: 2, settings: Settings::default }, 1, &[]);
    let found = report.violation.as_ref().map(ToString::to_string);
    assert!(found.is_none(), "{found:?}\n{}", report.transcript());
}

#[test]
fn what_machine_configs_name_and_there_is_not() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            are_reported(world, cloud, of_machines()).await?;
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}

#[test]
fn what_clusters_name_and_there_is_not() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move { are_reported(world, cloud, of_clusters()).await })
    }
    goes_well(play);
}

#[test]
fn what_datacenters_name_and_there_is_not() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            are_reported(world, cloud, of_datacenters()).await?;
            // A user with the stock role may name the domain of its own account.
            change(world, cloud, &Zone("/domain", json!("tenants")), true).await?;
            world.pass(Duration::from_secs(5)).await?;
            let kind = KindName::of::<CloudStackDatacenterConfig>();
            let found = world.objects()?.get(&kind, &Key::new(NAMESPACE, NAME)).unwrap_or_default();
            match found["status"]["specValid"] == true {
                true => Ok(()),
                false => Err(Violation::new("L1", format!("the own domain is refused: {}", found["status"]))),
            }
        })
    }
    goes_well(play);
}
