//! Device classes, claims and slices.

use serde_json::Value;

use super::{Kind, age, deleting, name};
use crate::table::column::{AGE, NAME, text as column};
use crate::table::read::{at, list, text};

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    if group != "resource.k8s.io" {
        return None;
    }
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => &NAMED,
        "ResourceClaim" => &CLAIM,
        "ResourceSlice" => &SLICE,
        _ => return None,
    })
}

static NAMED: Kind = Kind::new(&[NAME, AGE], |object, now| vec![name(object).into(), age(object, now)]);

static CLAIM: Kind = Kind::new(&[NAME, column("State", "how far its allocation is"), AGE], |object, now| {
    vec![name(object).into(), state(object).into(), age(object, now)]
});

static SLICE: Kind = Kind::new(
    &[
        NAME,
        column("Node", "node with the devices"),
        column("Driver", "driver of the devices"),
        column("Pool", "pool that the slice is part of"),
        AGE,
    ],
    |object, now| {
        vec![
            name(object).into(),
            text(object, &["spec", "nodeName"]).into(),
            text(object, &["spec", "driver"]).into(),
            text(object, &["spec", "pool", "name"]).into(),
            age(object, now),
        ]
    },
);

fn state(object: &Value) -> String {
    let mut states = Vec::new();
    if deleting(object) {
        states.push("deleted");
    }
    if !at(object, &["status", "allocation"]).is_null() {
        states.push("allocated");
        if !list(object, &["status", "reservedFor"]).is_empty() {
            states.push("reserved");
        }
    } else if !deleting(object) {
        states.push("pending");
    }
    states.join(",")
}
