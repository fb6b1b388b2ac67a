//! Fields of kubeadm's kinds in the supported versions.

use jiff::Timestamp;
use serde_json::Value;

use super::go_duration;
use crate::machine::screen::is_token;
use Shape::{Any, Bool, Duration, Fields, List, Map, Number, Text, Time, Token};

/// Removed versions, and the last kubeadm that read them.
pub(super) const OLD: [(&str, &str); 5] = [
    ("kubeadm.k8s.io/v1alpha1", "v1.11"),
    ("kubeadm.k8s.io/v1alpha2", "v1.12"),
    ("kubeadm.k8s.io/v1alpha3", "v1.14"),
    ("kubeadm.k8s.io/v1beta1", "v1.15"),
    ("kubeadm.k8s.io/v1beta2", "v1.22"),
];

/// The type of a value.
pub(super) enum Shape {
    Text,
    Bool,
    Number,
    Duration,
    Time,
    Token,
    Any,
    List(&'static Shape),
    Map(&'static Shape),
    Fields(&'static [Field]),
}

type Field = (&'static str, Shape);

const ARGS3: Shape = Map(&Text);
const ARGS4: Shape = List(&Fields(&[("name", Text), ("value", Text)]));
const ENVS: Shape = List(&Fields(&[("name", Text), ("value", Text), ("valueFrom", Any)]));
const VOLUMES: Shape = List(&Fields(&[
    ("name", Text),
    ("hostPath", Text),
    ("mountPath", Text),
    ("readOnly", Bool),
    ("pathType", Text),
]));
const TEXTS: Shape = List(&Text);
const TAINTS: Shape = List(&Fields(&[("key", Text), ("value", Text), ("effect", Text), ("timeAdded", Any)]));
const TOKENS: Shape = List(&Fields(&[
    ("token", Token),
    ("description", Text),
    ("ttl", Duration),
    ("expires", Time),
    ("usages", TEXTS),
    ("groups", TEXTS),
]));
const ENDPOINT: Shape = Fields(&[("advertiseAddress", Text), ("bindPort", Number)]);
const PATCHES: Shape = Fields(&[("directory", Text)]);
const TIMEOUTS: Shape = Fields(&[
    ("controlPlaneComponentHealthCheck", Duration),
    ("kubeletHealthCheck", Duration),
    ("kubernetesAPICall", Duration),
    ("etcdAPICall", Duration),
    ("tlsBootstrap", Duration),
    ("discovery", Duration),
    ("upgradeManifests", Duration),
]);
const NODE3: Shape = Fields(&[
    ("name", Text),
    ("criSocket", Text),
    ("taints", TAINTS),
    ("kubeletExtraArgs", ARGS3),
    ("ignorePreflightErrors", TEXTS),
    ("imagePullPolicy", Text),
]);
const NODE4: Shape = Fields(&[
    ("name", Text),
    ("criSocket", Text),
    ("taints", TAINTS),
    ("kubeletExtraArgs", ARGS4),
    ("ignorePreflightErrors", TEXTS),
    ("imagePullPolicy", Text),
    ("imagePullSerial", Bool),
]);
const NETWORKING: Shape = Fields(&[("serviceSubnet", Text), ("podSubnet", Text), ("dnsDomain", Text)]);
const TOKEN_DISCOVERY: Shape = Fields(&[
    ("token", Text),
    ("apiServerEndpoint", Text),
    ("caCertHashes", TEXTS),
    ("unsafeSkipCAVerification", Bool),
]);
const FILE_DISCOVERY: Shape = Fields(&[("kubeConfigPath", Text)]);
const JOIN_CONTROL_PLANE: Shape = Fields(&[("localAPIEndpoint", ENDPOINT), ("certificateKey", Text)]);

const INIT3: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("bootstrapTokens", TOKENS),
    ("nodeRegistration", NODE3),
    ("localAPIEndpoint", ENDPOINT),
    ("certificateKey", Text),
    ("skipPhases", TEXTS),
    ("patches", PATCHES),
];
const INIT4: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("bootstrapTokens", TOKENS),
    ("dryRun", Bool),
    ("nodeRegistration", NODE4),
    ("localAPIEndpoint", ENDPOINT),
    ("certificateKey", Text),
    ("skipPhases", TEXTS),
    ("patches", PATCHES),
    ("timeouts", TIMEOUTS),
];
const JOIN3: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("nodeRegistration", NODE3),
    ("caCertPath", Text),
    (
        "discovery",
        Fields(&[
            ("bootstrapToken", TOKEN_DISCOVERY),
            ("file", FILE_DISCOVERY),
            ("tlsBootstrapToken", Text),
            ("timeout", Duration),
        ]),
    ),
    ("controlPlane", JOIN_CONTROL_PLANE),
    ("skipPhases", TEXTS),
    ("patches", PATCHES),
];
const JOIN4: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("dryRun", Bool),
    ("nodeRegistration", NODE4),
    ("caCertPath", Text),
    (
        "discovery",
        Fields(&[("bootstrapToken", TOKEN_DISCOVERY), ("file", FILE_DISCOVERY), ("tlsBootstrapToken", Text)]),
    ),
    ("controlPlane", JOIN_CONTROL_PLANE),
    ("skipPhases", TEXTS),
    ("patches", PATCHES),
    ("timeouts", TIMEOUTS),
];
const CLUSTER3: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    (
        "etcd",
        Fields(&[
            (
                "local",
                Fields(&[
                    ("imageRepository", Text),
                    ("imageTag", Text),
                    ("dataDir", Text),
                    ("extraArgs", ARGS3),
                    ("serverCertSANs", TEXTS),
                    ("peerCertSANs", TEXTS),
                ]),
            ),
            (
                "external",
                Fields(&[("endpoints", TEXTS), ("caFile", Text), ("certFile", Text), ("keyFile", Text)]),
            ),
        ]),
    ),
    ("networking", NETWORKING),
    ("kubernetesVersion", Text),
    ("controlPlaneEndpoint", Text),
    (
        "apiServer",
        Fields(&[
            ("extraArgs", ARGS3),
            ("extraVolumes", VOLUMES),
            ("certSANs", TEXTS),
            ("timeoutForControlPlane", Duration),
        ]),
    ),
    ("controllerManager", Fields(&[("extraArgs", ARGS3), ("extraVolumes", VOLUMES)])),
    ("scheduler", Fields(&[("extraArgs", ARGS3), ("extraVolumes", VOLUMES)])),
    ("dns", Fields(&[("imageRepository", Text), ("imageTag", Text)])),
    ("certificatesDir", Text),
    ("imageRepository", Text),
    ("featureGates", Map(&Bool)),
    ("clusterName", Text),
];
const COMPONENT4: Shape = Fields(&[("extraArgs", ARGS4), ("extraVolumes", VOLUMES), ("extraEnvs", ENVS)]);
const CLUSTER4: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    (
        "etcd",
        Fields(&[
            (
                "local",
                Fields(&[
                    ("imageRepository", Text),
                    ("imageTag", Text),
                    ("dataDir", Text),
                    ("extraArgs", ARGS4),
                    ("extraEnvs", ENVS),
                    ("serverCertSANs", TEXTS),
                    ("peerCertSANs", TEXTS),
                ]),
            ),
            (
                "external",
                Fields(&[
                    ("endpoints", TEXTS),
                    ("httpEndpoints", TEXTS),
                    ("caFile", Text),
                    ("certFile", Text),
                    ("keyFile", Text),
                ]),
            ),
        ]),
    ),
    ("networking", NETWORKING),
    ("kubernetesVersion", Text),
    ("controlPlaneEndpoint", Text),
    (
        "apiServer",
        Fields(&[("extraArgs", ARGS4), ("extraVolumes", VOLUMES), ("extraEnvs", ENVS), ("certSANs", TEXTS)]),
    ),
    ("controllerManager", COMPONENT4),
    ("scheduler", COMPONENT4),
    ("dns", Fields(&[("imageRepository", Text), ("imageTag", Text), ("disabled", Bool)])),
    ("proxy", Fields(&[("disabled", Bool)])),
    ("certificatesDir", Text),
    ("imageRepository", Text),
    ("featureGates", Map(&Bool)),
    ("clusterName", Text),
    ("encryptionAlgorithm", Text),
    ("certificateValidityPeriod", Duration),
    ("caCertificateValidityPeriod", Duration),
];

/// The fields of a kind, if the version has it.
pub(super) fn of(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    Some(match (api_version, kind) {
        ("kubeadm.k8s.io/v1beta3", "InitConfiguration") => INIT3,
        ("kubeadm.k8s.io/v1beta3", "JoinConfiguration") => JOIN3,
        ("kubeadm.k8s.io/v1beta3", "ClusterConfiguration") => CLUSTER3,
        ("kubeadm.k8s.io/v1beta4", "InitConfiguration") => INIT4,
        ("kubeadm.k8s.io/v1beta4", "JoinConfiguration") => JOIN4,
        ("kubeadm.k8s.io/v1beta4", "ClusterConfiguration") => CLUSTER4,
        _ => return None,
    })
}

/// Checks a document: returns it without unknown fields, and their names. The first value of a wrong type is an error
/// as Go's decoder prints it.
pub(super) fn check(
    value: &Value,
    fields: &'static [Field],
    kind: &str,
) -> Result<(Value, Vec<String>), String> {
    let mut unknown = Vec::new();
    walk(value, &Fields(fields), kind, "", &mut unknown)?;
    Ok((pruned(value, &Fields(fields)), unknown))
}

/// Drops unknown fields.
fn pruned(value: &Value, shape: &Shape) -> Value {
    match (shape, value) {
        (List(item), Value::Array(items)) => items.iter().map(|value| pruned(value, item)).collect(),
        (Fields(fields), Value::Object(entries)) => {
            let known = entries.iter().filter_map(|(key, value)| {
                let (_, shape) = fields.iter().find(|(name, _)| name == key)?;
                Some((key.clone(), pruned(value, shape)))
            });
            Value::Object(known.collect())
        }
        (_, other) => other.clone(),
    }
}

fn walk(
    value: &Value,
    shape: &Shape,
    kind: &str,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let go = |path: &str| {
        // Go's decoder names fields without list indexes.
        let plain: Vec<&str> = path.split('.').map(|part| part.split('[').next().unwrap_or(part)).collect();
        plain.join(".")
    };
    let wrong = |wanted: &str| {
        let held = match value {
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Null => "null",
        };
        Err(format!(
            "json: cannot unmarshal {held} into Go struct field {kind}.{} of type {wanted}",
            go(path)
        ))
    };
    match (shape, value) {
        (Any, _) | (_, Value::Null) => Ok(()),
        (Text, Value::String(_)) | (Bool, Value::Bool(_)) => Ok(()),
        (Number, Value::Number(number)) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
            Ok(())
        }
        (Duration, Value::String(text)) if go_duration(text).is_some() => Ok(()),
        (Duration, Value::String(text)) => Err(format!("time: invalid duration {text:?}")),
        (Token, Value::String(text)) if is_token(text) => Ok(()),
        (Token, Value::String(_)) => Err(
            r#"the bootstrap token "<redacted>" was not of the form "\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z""#
                .to_owned(),
        ),
        (Time, Value::String(text)) if text.parse::<Timestamp>().is_ok() => Ok(()),
        (Time, Value::String(text)) => Err(format!(
            r#"parsing time {text:?} as "2006-01-02T15:04:05Z07:00": cannot parse {text:?} as "2006""#
        )),
        (List(item), Value::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                walk(value, item, kind, &format!("{path}[{index}]"), unknown)?;
            }
            Ok(())
        }
        (Map(item), Value::Object(entries)) => {
            for (key, value) in entries {
                walk(value, item, kind, &format!("{path}.{key}"), unknown)?;
            }
            Ok(())
        }
        (Fields(fields), Value::Object(entries)) => {
            for (key, value) in entries {
                let place = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match fields.iter().find(|(name, _)| name == key) {
                    Some((_, shape)) => walk(value, shape, kind, &place, unknown)?,
                    None => unknown.push(place),
                }
            }
            Ok(())
        }
        (Text | Token, _) => wrong("string"),
        (Time, _) => wrong("v1.Time"),
        (Bool, _) => wrong("bool"),
        (Number, _) => wrong("int32"),
        (Duration, _) => wrong("v1.Duration"),
        (List(_), _) => wrong("[]"),
        (Map(_), _) => wrong("map[string]string"),
        (Fields(_), _) => wrong("struct"),
    }
}
