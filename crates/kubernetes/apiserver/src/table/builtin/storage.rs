//! Volumes, claims, classes, attachments, CSI.

use serde_json::Value;

use super::{Kind, age, deleting, name};
use crate::table::column::{AGE, NAME, boolean, integer, text as column};
use crate::table::read::{at, flag, list, scalar, text, texts};

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    Some(match (group, kind) {
        ("", "PersistentVolume") => &VOLUME,
        ("", "PersistentVolumeClaim") => &CLAIM,
        ("storage.k8s.io", "StorageClass") => &STORAGE_CLASS,
        ("storage.k8s.io", "VolumeAttachment") => &ATTACHMENT,
        ("storage.k8s.io", "VolumeAttributesClass") => &ATTRIBUTES_CLASS,
        ("storage.k8s.io", "CSINode") => &CSI_NODE,
        ("storage.k8s.io", "CSIDriver") => &CSI_DRIVER,
        _ => return None,
    })
}

static VOLUME: Kind = Kind::new(
    &[
        NAME,
        column("Capacity", "size"),
        column("Access Modes", "access modes"),
        column("Reclaim Policy", "reclaim policy of the volume"),
        column("Status", "phase"),
        column("Claim", "claim that holds it"),
        column("StorageClass", "class of the volume"),
        column("VolumeAttributesClass", "class of its attributes"),
        column("Reason", "reason of the phase"),
        AGE,
        column("VolumeMode", "file system or block device").wide(),
    ],
    |object, now| {
        let claim = at(object, &["spec", "claimRef"]);
        let claim = match claim {
            Value::Null => String::new(),
            claim => format!("{}/{}", text(claim, &["namespace"]), text(claim, &["name"])),
        };
        vec![
            name(object).into(),
            quantity(at(object, &["spec", "capacity", "storage"])).into(),
            access_modes(list(object, &["spec", "accessModes"])).into(),
            text(object, &["spec", "persistentVolumeReclaimPolicy"]).into(),
            phase(object).into(),
            claim.into(),
            storage_class(object).into(),
            unset(at(object, &["spec", "volumeAttributesClassName"])).into(),
            text(object, &["status", "reason"]).into(),
            age(object, now),
            unset(at(object, &["spec", "volumeMode"])).into(),
        ]
    },
);

static CLAIM: Kind = Kind::new(
    &[
        NAME,
        column("Status", "phase"),
        column("Volume", "volume it is bound to"),
        column("Capacity", "size of the volume"),
        column("Access Modes", "access modes"),
        column("StorageClass", "class that provisions it"),
        column("VolumeAttributesClass", "class of its attributes"),
        AGE,
        column("VolumeMode", "file system or block device").wide(),
    ],
    |object, now| {
        let volume = text(object, &["spec", "volumeName"]);
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (
                quantity(at(object, &["status", "capacity", "storage"])),
                access_modes(list(object, &["status", "accessModes"])),
            ),
        };
        vec![
            name(object).into(),
            phase(object).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            storage_class(object).into(),
            unset(at(object, &["spec", "volumeAttributesClassName"])).into(),
            age(object, now),
            unset(at(object, &["spec", "volumeMode"])).into(),
        ]
    },
);

static STORAGE_CLASS: Kind = Kind::new(
    &[
        NAME,
        column("Provisioner", "provisioner of the volumes"),
        column("ReclaimPolicy", "reclaim policy of the volumes"),
        column("VolumeBindingMode", "when volumes are provisioned and bound"),
        column("AllowVolumeExpansion", "whether volumes can be expanded"),
        AGE,
    ],
    |object, now| {
        let annotations = at(object, &["metadata", "annotations"]);
        let default = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ]
        .iter()
        .any(|key| annotations[*key] == "true");
        vec![
            format!("{}{}", name(object), if default { " (default)" } else { "" }).into(),
            text(object, &["provisioner"]).into(),
            object["reclaimPolicy"].as_str().unwrap_or("Delete").into(),
            object["volumeBindingMode"].as_str().unwrap_or("Immediate").into(),
            flag(object, &["allowVolumeExpansion"]).into(),
            age(object, now),
        ]
    },
);

static ATTACHMENT: Kind = Kind::new(
    &[
        NAME,
        column("Attacher", "driver that attaches the volume").named(),
        column("PV", "the volume"),
        column("Node", "node it is attached to"),
        boolean("Attached", "whether it is attached"),
        AGE,
    ],
    |object, now| {
        vec![
            name(object).into(),
            text(object, &["spec", "attacher"]).into(),
            text(object, &["spec", "source", "persistentVolumeName"]).into(),
            text(object, &["spec", "nodeName"]).into(),
            flag(object, &["status", "attached"]).into(),
            age(object, now),
        ]
    },
);

static ATTRIBUTES_CLASS: Kind =
    Kind::new(&[NAME, column("DriverName", "driver of the volumes"), AGE], |object, now| {
        vec![name(object).into(), text(object, &["driverName"]).into(), age(object, now)]
    });

static CSI_NODE: Kind = Kind::new(&[NAME, integer("Drivers", "drivers on the node"), AGE], |object, now| {
    vec![name(object).into(), list(object, &["spec", "drivers"]).len().into(), age(object, now)]
});

static CSI_DRIVER: Kind = Kind::new(
    &[
        NAME,
        boolean("AttachRequired", "whether volumes are attached before use"),
        boolean("PodInfoOnMount", "whether the driver receives information about the pod"),
        boolean("StorageCapacity", "whether the driver reports capacity"),
        column("TokenRequests", "audiences of the tokens that the driver receives"),
        boolean("RequiresRepublish", "whether volumes are published again periodically"),
        column("Modes", "volume lifecycle modes"),
        AGE,
    ],
    |object, now| {
        let audiences = match at(object, &["spec", "tokenRequests"]).as_array() {
            Some(requests) => {
                let audiences: Vec<&str> = requests.iter().map(|r| text(r, &["audience"])).collect();
                audiences.join(",")
            }
            None => "<unset>".into(),
        };
        let modes = texts(object, &["spec", "volumeLifecycleModes"]);
        vec![
            name(object).into(),
            at(object, &["spec", "attachRequired"]).as_bool().unwrap_or(true).into(),
            flag(object, &["spec", "podInfoOnMount"]).into(),
            flag(object, &["spec", "storageCapacity"]).into(),
            audiences.into(),
            flag(object, &["spec", "requiresRepublish"]).into(),
            if modes.is_empty() { "<none>".into() } else { modes.join(",").into() },
            age(object, now),
        ]
    },
);

fn phase(object: &Value) -> &str {
    if deleting(object) { "Terminating" } else { text(object, &["status", "phase"]) }
}

/// The class in the old annotation, else in the spec.
fn storage_class(object: &Value) -> &str {
    let annotated = &at(object, &["metadata", "annotations"])["volume.beta.kubernetes.io/storage-class"];
    annotated.as_str().unwrap_or_else(|| text(object, &["spec", "storageClassName"]))
}

fn unset(value: &Value) -> &str {
    value.as_str().unwrap_or("<unset>")
}

fn quantity(value: &Value) -> String {
    if value.is_null() { "0".into() } else { scalar(value) }
}

fn access_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<&str> =
        short.iter().filter(|(mode, _)| modes.iter().any(|m| m == mode)).map(|(_, short)| *short).collect();
    shown.join(",")
}
