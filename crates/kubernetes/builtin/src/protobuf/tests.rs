use capstan_schema::memory::TooLarge;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn samples() -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "s", "namespace": "ns", "uid": "u", "creationTimestamp": "2024-02-29T12:00:00Z",
                "labels": {"a": "b", "c": ""},
                "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "y", "controller": true}],
                "managedFields": [{
                    "manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2024-02-29T12:00:01Z",
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:k": {}}}
                }]
            },
            "type": "Opaque",
            "data": {"k": "dmFsdWU=", "empty": ""}
        }),
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "l"},
            "spec": {
                "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "renewTime": "2024-02-29T12:00:00.123456Z"
            }
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "x"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                "template": {
                    "metadata": {},
                    "spec": {
                        "containers": [{
                            "name": "c", "image": "i",
                            "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
                            "ports": [{"containerPort": 80, "protocol": "TCP"}]
                        }],
                        "volumes": [{"name": "v", "emptyDir": {}}],
                        "securityContext": {"fsGroup": -1}
                    }
                }
            },
            "status": {}
        }),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "c"},
            "spec": {
                "group": "g", "scope": "Namespaced",
                "names": {"plural": "p", "kind": "K"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "a": {"type": "array", "items": {"type": "string"}, "default": ["x"]},
                            "b": {"type": "object", "additionalProperties": true},
                            "c": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0.5}},
                            "d": {"enum": [null, 1, "x"], "nullable": true}
                        }
                    }}
                }]
            },
            "status": {"acceptedNames": {"plural": "", "kind": ""}, "conditions": null, "storedVersions": null}
        }),
        json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "propagationPolicy": "Foreground"
        }),
        json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": "t"},
            "status": {"user": {"extra": {"k": ["a", "b"]}}}
        }),
        json!({
            "apiVersion": "v1", "kind": "NamespaceList", "metadata": {"resourceVersion": "5"},
            "items": [{"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}]
        }),
    ]
}

#[test]
fn an_encoded_object_decodes_to_itself() {
    for sample in samples() {
        let body = encode(&sample).unwrap();
        assert_eq!(decode(&body).unwrap(), sample);
    }
}

#[test]
fn zero_values_are_dropped_except_of_pointers() {
    let body = encode(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "generation": 0},
        "spec": {"containers": null, "hostNetwork": false, "terminationGracePeriodSeconds": 0}
    }))
    .unwrap();
    assert_eq!(
        decode(&body).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": null, "terminationGracePeriodSeconds": 0},
            "status": {}
        })
    );
}

#[test]
fn a_body_without_the_prefix_is_rejected() {
    assert_eq!(decode(b"{}"), Err(Error::Prefix));
}

#[test]
fn a_kind_that_is_not_built_in_is_rejected() {
    let mut body = envelope_start("example.com/v1", "Foo", 0);
    body.extend(ENVELOPE_END);
    assert!(matches!(decode(&body), Err(Error::UnknownKind { .. })));
}

#[test]
fn nesting_is_limited() {
    // CRD schemas nest through `not` (28): each level is one more message.
    let mut raw = Vec::new();
    for _ in 0..1000 {
        let mut outer = Vec::new();
        wire::put_bytes(&mut outer, 28, &raw);
        raw = outer;
    }
    let id = table().find("apiextensions/v1.JSONSchemaProps").unwrap();
    assert_eq!(decode_message(id, &raw), Err(Error::TooDeep));
}

#[test]
fn many_small_messages_are_limited_by_memory() {
    let mut spec = Vec::new();
    for _ in 0..1_000_000 {
        wire::put_bytes(&mut spec, 2, b"");
    }
    let id = table().find("core/v1.PodSpec").unwrap();
    assert_eq!(decode_message(id, &spec), Err(Error::TooLarge(TooLarge)));
}

#[test]
fn embedded_json_counts_by_its_decoded_size() {
    let json = format!("[{}]", vec![r#"{"":0}"#; 400_000].join(","));
    let mut raw = Vec::new();
    wire::put_bytes(&mut raw, 1, json.as_bytes());
    let mut revision = Vec::new();
    wire::put_bytes(&mut revision, 2, &raw);
    let id = table().find("apps/v1.ControllerRevision").unwrap();
    assert_eq!(decode_message(id, &revision), Err(Error::TooLarge(TooLarge)));
}

/// `cargo xtask fuzz` runs these for longer, with random seeds.
mod fuzz {
    use super::*;

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), pick in 0usize..7) {
            let mut body = MAGIC.to_vec();
            body.extend_from_slice(&bytes);
            let _ = decode(&body);
            let sample = &samples()[pick];
            let (api_version, kind) = (sample["apiVersion"].as_str().unwrap(), sample["kind"].as_str().unwrap());
            let mut body = envelope_start(api_version, kind, bytes.len());
            body.extend_from_slice(&bytes);
            body.extend(ENVELOPE_END);
            let _ = decode(&body);
        }

        #[test]
        fn mutated_messages_never_panic(
            pick in 0usize..7,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut body = encode(&samples()[pick]).unwrap();
            for (at, byte) in edits {
                let at = at.index(body.len());
                body[at] = byte;
            }
            let _ = decode(&body);
            body.truncate(cut.index(body.len()));
            let _ = decode(&body);
        }
    }
}

/// Objects that kube-apiserver 1.36.3 returned in both formats.
fn recorded() -> Vec<(Value, Vec<u8>)> {
    use base64::Engine;
    let pairs: Vec<Value> = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let bytes =
        |text: &Value| base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap();
    pairs.into_iter().map(|pair| (pair["json"].clone(), bytes(&pair["protobuf"]))).collect()
}

#[test]
fn upstreams_protobuf_decodes_to_upstreams_json() {
    for (json, bytes) in recorded() {
        assert_eq!(decode(&bytes).unwrap(), json);
    }
}

#[test]
fn objects_are_encoded_byte_for_byte_as_upstream() {
    for (json, bytes) in recorded() {
        let ours = encode(&json).unwrap();
        let at = ours.iter().zip(&bytes).position(|(a, b)| a != b);
        assert!(ours == bytes, "{}: differs at {at:?} of {} and {}", json["kind"], ours.len(), bytes.len());
    }
}
