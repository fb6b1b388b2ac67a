//! Trunks: a parent port with subports on VLANs.

use serde_json::{Value, json};

use super::{Fail, kind_of, store, touch};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, shown};
use crate::wire::{Call, Handled, Reply};

pub(super) fn create(cloud: &mut Cloud, mut row: Object) -> Result<String, Fail> {
    let port = row.text("port_id").to_owned();
    cloud.get("ports", &port).ok_or_else(|| kind_of("port").absent(&port))?;
    if cloud.find("trunks", "port_id", &port).is_some() {
        let text = format!("Port {port} is currently in use and is not eligible for use as a parent port.");
        return Err(Fail::new(409, "ParentPortInUse", text));
    }
    let subs = row.list("sub_ports").to_vec();
    row.insert("sub_ports".to_owned(), json!([]));
    check(cloud, &row, &subs)?;
    row.insert("sub_ports".to_owned(), Value::Array(subs));
    row.insert("status".to_owned(), json!("ACTIVE"));
    Ok(store(cloud, "trunk", row))
}

fn check(cloud: &Cloud, trunk: &Object, subs: &[Value]) -> Result<(), Fail> {
    let id = trunk.text("id");
    for sub in subs {
        let port = sub["port_id"].as_str().unwrap_or_default();
        cloud.get("ports", port).ok_or_else(|| kind_of("port").absent(port))?;
        let vlan =
            trunk.list("sub_ports").iter().any(|held| held["segmentation_id"] == sub["segmentation_id"]);
        if vlan {
            let text = format!(
                "segmentation_type {} and segmentation_id {} already in use on trunk {id}.",
                sub["segmentation_type"].as_str().unwrap_or("vlan"),
                sub["segmentation_id"]
            );
            return Err(Fail::new(409, "DuplicateSubPort", text));
        }
        let parent = cloud.find("trunks", "port_id", port).is_some();
        let other =
            cloud.all("trunks").any(|it| it.list("sub_ports").iter().any(|held| held["port_id"] == port));
        if parent || other {
            let text = format!("Port {port} is currently in use and is not eligible for use as a subport.");
            return Err(Fail::new(409, "PortInUse", text));
        }
    }
    Ok(())
}

pub(super) fn delete(cloud: &mut Cloud, held: &Object) -> Result<(), Fail> {
    let port = cloud.get("ports", held.text("port_id"));
    if port.is_some_and(|it| !it.text("device_id").is_empty()) {
        let text = format!("Trunk {} is currently in use.", held.text("id"));
        return Err(Fail::new(409, "TrunkInUse", text));
    }
    Ok(())
}

pub(super) fn act(cloud: &mut Cloud, call: &Call, id: &str, action: &str) -> Handled {
    if action == "get_subports" {
        let trunk = kind_of("trunk").visible(cloud, call, id)?;
        return Ok(Reply::ok(json!({"sub_ports": trunk["sub_ports"]})));
    }
    let trunk = kind_of("trunk").own(cloud, call, id, action)?;
    let body = super::attributes::read(call)?;
    let given = body.list("sub_ports");
    let mut subs = trunk.list("sub_ports").to_vec();
    match action {
        "add_subports" => {
            check(cloud, &trunk, given)?;
            subs.extend(given.iter().cloned());
        }
        "remove_subports" => {
            for sub in given {
                let port = sub["port_id"].as_str().unwrap_or_default();
                if !subs.iter().any(|held| held["port_id"] == port) {
                    let text = format!("SubPort {port} on trunk {id} could not be found.");
                    return Err(Fail::new(404, "SubPortNotFound", text));
                }
                subs.retain(|held| held["port_id"] != port);
            }
        }
        _ => return Err(super::not_found()),
    }
    cloud.set("trunks", id, "sub_ports", subs);
    touch(cloud, "trunks", id);
    let row = cloud.get("trunks", id).map(shown).unwrap_or_default();
    Ok(Reply::ok(Value::Object(row)))
}

/// What a parent port shows of its trunk.
pub(super) fn details(cloud: &Cloud, trunk: &Object) -> Value {
    let subs: Vec<Value> = trunk
        .list("sub_ports")
        .iter()
        .map(|sub| {
            let mut sub = sub.clone();
            let port = sub["port_id"].as_str().and_then(|port| cloud.get("ports", port));
            sub["mac_address"] = port.map(|it| it["mac_address"].clone()).unwrap_or_default();
            sub
        })
        .collect();
    json!({"trunk_id": trunk["id"], "sub_ports": subs})
}
