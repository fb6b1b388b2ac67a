//! Load balancers and their children as the API shows them.

use serde_json::{Value, json};

use super::Kind;
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, shown};

fn ids<'a>(rows: impl Iterator<Item = &'a Object>) -> Value {
    rows.map(|it| json!({"id": it["id"]})).collect()
}

fn reference(id: &str) -> Value {
    if id.is_empty() { json!([]) } else { json!([{"id": id}]) }
}

pub(super) fn detail(cloud: &Cloud, kind: &Kind, row: &Object) -> Value {
    let mut it = shown(row);
    let id = row.text("id");
    it.insert("tenant_id".to_owned(), row["project_id"].clone());
    let mut set = |name: &str, value: Value| drop(it.insert(name.to_owned(), value));
    match kind.0 {
        "loadbalancer" => {
            set("listeners", ids(cloud.all("listeners").filter(|it| it.text("_balancer") == id)));
            set("pools", ids(cloud.all("pools").filter(|it| it.text("_balancer") == id)));
        }
        "listener" => {
            set("loadbalancers", reference(row.text("_balancer")));
            set("l7policies", ids(cloud.all("l7policies").filter(|it| it.text("listener_id") == id)));
            it.remove("loadbalancer_id");
            it.remove("default_pool");
        }
        "pool" => {
            set("loadbalancers", reference(row.text("_balancer")));
            set("listeners", ids(cloud.all("listeners").filter(|it| it.text("default_pool_id") == id)));
            set("members", ids(cloud.all("members").filter(|it| it.text("_pool") == id)));
            let monitor = cloud.all("healthmonitors").find(|it| it.text("_pool") == id);
            match monitor {
                Some(monitor) => set("healthmonitor_id", monitor["id"].clone()),
                None => drop(it.remove("healthmonitor_id")),
            }
            it.remove("healthmonitor");
            it.remove("loadbalancer_id");
            it.remove("listener_id");
        }
        "member" => drop(it.remove("request_sriov")),
        "healthmonitor" => {
            set("pools", reference(row.text("_pool")));
            it.remove("pool_id");
        }
        _ => {}
    }
    Value::Object(it)
}

/// A load balancer with everything in it, as a create answers.
pub(super) fn whole(cloud: &Cloud, row: &Object) -> Value {
    let id = row.text("id");
    let mut tree = detail(cloud, super::kind("loadbalancer"), row);
    let listeners: Vec<Value> = cloud
        .all("listeners")
        .filter(|it| it.text("_balancer") == id)
        .map(|it| {
            let mut shown = detail(cloud, super::kind("listener"), it);
            if let Some(shown) = shown.as_object_mut() {
                shown.remove("loadbalancers");
            }
            shown
        })
        .collect();
    let pools: Vec<Value> = cloud
        .all("pools")
        .filter(|it| it.text("_balancer") == id)
        .map(|pool| {
            let mut shown = detail(cloud, super::kind("pool"), pool);
            let members: Vec<Value> = cloud
                .all("members")
                .filter(|it| it.text("_pool") == pool.text("id"))
                .map(|it| detail(cloud, super::kind("member"), it))
                .collect();
            let monitor = cloud.all("healthmonitors").find(|it| it.text("_pool") == pool.text("id"));
            let monitor = monitor.map(|it| {
                let mut shown = detail(cloud, super::kind("healthmonitor"), it);
                if let Some(shown) = shown.as_object_mut() {
                    shown.remove("pools");
                }
                shown
            });
            if let Some(shown) = shown.as_object_mut() {
                for name in ["loadbalancers", "healthmonitor_id"] {
                    shown.remove(name);
                }
                shown.insert("members".to_owned(), Value::Array(members));
                shown.insert("healthmonitor".to_owned(), monitor.unwrap_or_default());
            }
            shown
        })
        .collect();
    tree["listeners"] = Value::Array(listeners);
    tree["pools"] = Value::Array(pools);
    tree
}

fn states(row: &Object) -> Value {
    json!({
        "id": row["id"], "name": row["name"], "operating_status": row["operating_status"],
        "provisioning_status": row["provisioning_status"],
    })
}

/// Statuses of a load balancer and all that belongs to it.
pub(super) fn status_tree(cloud: &Cloud, row: &Object) -> Value {
    let pool_tree = |pool: &Object| {
        let id = pool.text("id");
        let mut shown = states(pool);
        if let Some(monitor) = cloud.all("healthmonitors").find(|it| it.text("_pool") == id) {
            let mut state = states(monitor);
            state["type"] = monitor["type"].clone();
            shown["health_monitor"] = state;
        }
        let members: Vec<Value> = cloud
            .all("members")
            .filter(|it| it.text("_pool") == id)
            .map(|it| {
                let mut state = states(it);
                state["address"] = it["address"].clone();
                state["protocol_port"] = it["protocol_port"].clone();
                state
            })
            .collect();
        shown["members"] = Value::Array(members);
        shown
    };
    let listeners: Vec<Value> = cloud
        .all("listeners")
        .filter(|it| it.text("_balancer") == row.text("id"))
        .map(|listener| {
            let mut shown = states(listener);
            let pools: Vec<Value> =
                cloud.get("pools", listener.text("default_pool_id")).map(pool_tree).into_iter().collect();
            shown["pools"] = Value::Array(pools);
            shown
        })
        .collect();
    let mut shown = states(row);
    shown["listeners"] = Value::Array(listeners);
    shown
}
