//! Bad input: every rule with a case it lets pass and one it refuses, in the words a user sees.

use capstan_capi_types::admission::{Features, pool_differs_from_claim, rules, validate_scale};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use serde_json::{Value, json};

/// Applies a merge patch.
fn patched(base: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut fields = base.as_object().cloned().unwrap_or_default();
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            let value = patched(fields.get(key).unwrap_or(&Value::Null), change);
            fields.insert(key.clone(), value);
        }
    }
    Value::Object(fields)
}

fn said(group: &str, kind: &str, new: &Value, old: Option<&Value>, features: &Features) -> Vec<String> {
    let rules = rules(group, kind).expect("rules");
    let errors = (rules.validate)(new, old, features).expect("an object of the kind");
    errors.iter().map(ToString::to_string).collect()
}

/// Each case: a patch, and what is said of the patched object; nothing is said of the object itself.
fn created(group: &str, kind: &str, base: &Value, cases: &[(Value, &[&str])]) {
    let features = Features::ALL;
    assert_eq!(said(group, kind, base, None, &features), Vec::<String>::new(), "{kind}");
    for (patch, expected) in cases {
        assert_eq!(said(group, kind, &patched(base, patch), None, &features), *expected, "{kind} {patch}");
    }
}

/// Each case: a patch of the stored object, and what is said of the change.
fn updated(group: &str, kind: &str, old: &Value, cases: &[(Value, &[&str])]) {
    let features = Features::ALL;
    for (patch, expected) in cases {
        let new = patched(old, patch);
        assert_eq!(said(group, kind, &new, Some(old), &features), *expected, "{kind} {patch}");
    }
}

fn defaulted(group: &str, kind: &str, object: Value, old: Option<&Value>) -> Value {
    let mut object = object;
    (rules(group, kind).expect("rules").default)(&mut object, old).expect("defaults");
    object
}

const CORE: &str = "cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const ADDONS: &str = "addons.cluster.x-k8s.io";
const IPAM: &str = "ipam.cluster.x-k8s.io";

fn reference(kind: &str) -> Value {
    json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "one" })
}

fn cluster() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": { "infrastructureRef": reference("SimCluster"), "controlPlaneRef": reference("Sim") },
    })
}

fn with_topology() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": { "topology": { "classRef": { "name": "small" }, "version": "v1.30.0" } },
    })
}

fn machine() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "clusterName": "one",
            "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": reference("SimMachine"),
        },
    })
}

fn machines(kind: &str) -> Value {
    let mut object = json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "clusterName": "one",
            "replicas": 1,
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": machine()["spec"] },
        },
    });
    object["kind"] = kind.into();
    object
}

fn control_plane() -> Value {
    json!({
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "replicas": 3,
            "version": "v1.30.0",
            "machineTemplate": { "spec": { "infrastructureRef": reference("SimMachineTemplate") } },
            "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } },
        },
    })
}

const LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
    for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

#[test]
fn clusters() {
    let name = format!("metadata.name: Invalid value: \"-one\": must be a valid label value {LABEL}");
    created(
        CORE,
        "Cluster",
        &cluster(),
        &[
            (json!({ "metadata": { "name": "-one" } }), &[&name]),
            (
                json!({ "spec": { "infrastructureRef": null, "controlPlaneRef": null } }),
                &[
                    "spec: Forbidden: one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set",
                ],
            ),
            (json!({ "spec": { "controlPlaneRef": null } }), &[]),
            (
                json!({ "spec": { "clusterNetwork": { "pods": { "cidrBlocks": ["10.0.0.0/16", "fd00::/64"] } } } }),
                &[],
            ),
            (
                json!({ "spec": { "clusterNetwork": { "pods": { "cidrBlocks": ["10.0.0.0/99"] } } } }),
                &[
                    "spec.clusterNetwork.pods.cidrBlocks[0]: Invalid value: \"10.0.0.0/99\": invalid CIDR address: 10.0.0.0/99",
                ],
            ),
            (
                json!({ "spec": { "clusterNetwork": { "pods": { "cidrBlocks": ["10.0.0.0/016", "010.0.0.0/16"] } } } }),
                &[
                    "spec.clusterNetwork.pods.cidrBlocks[1]: Invalid value: \"010.0.0.0/16\": invalid CIDR address: 010.0.0.0/16",
                ],
            ),
            (
                json!({ "spec": { "clusterNetwork": { "services": { "cidrBlocks": ["10.0.0.1"] } } } }),
                &[
                    "spec.clusterNetwork.services.cidrBlocks[0]: Invalid value: \"10.0.0.1\": invalid CIDR address: 10.0.0.1",
                ],
            ),
        ],
    );
    updated(
        CORE,
        "Cluster",
        &cluster(),
        &[
            (json!({ "spec": { "paused": true } }), &[]),
            (
                json!({ "spec": { "infrastructureRef": null } }),
                &["spec.infrastructureRef: Forbidden: cannot be removed"],
            ),
            (
                json!({ "spec": { "controlPlaneRef": null } }),
                &["spec.controlPlaneRef: Forbidden: cannot be removed"],
            ),
        ],
    );
}

#[test]
fn clusters_made_from_a_class() {
    let annotation = "topology.cluster.x-k8s.io/upgrade-concurrency";
    created(
        CORE,
        "Cluster",
        &with_topology(),
        &[
            (
                json!({ "spec": { "topology": { "version": "1.30" } } }),
                &[
                    "spec.topology.version: Invalid value: \"1.30\": must start with v",
                    "spec.topology.version: Invalid value: \"1.30\": version must be a valid semantic version",
                ],
            ),
            (
                json!({ "spec": { "topology": { "classRef": null } } }),
                &["spec.topology.class: Required value: classRef.name cannot be empty"],
            ),
            (json!({ "metadata": { "annotations": { annotation: "2" } } }), &[]),
            (
                json!({ "metadata": { "annotations": { annotation: "0" } } }),
                &[
                    "metadata.annotations.topology.cluster.x-k8s.io/upgrade-concurrency: Invalid value: \"0\": value cannot be less than 1",
                ],
            ),
            (
                json!({ "metadata": { "annotations": { annotation: "x" } } }),
                &[
                    "metadata.annotations.topology.cluster.x-k8s.io/upgrade-concurrency: Invalid value: \"x\": could not parse the value of the annotation: strconv.Atoi: parsing \"x\": invalid syntax",
                ],
            ),
            (
                json!({ "spec": { "topology": { "workers": { "machineDeployments": [{
                    "class": "a", "name": "md", "replicas": 1,
                    "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 0 } } },
                    "metadata": { "annotations": { "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "1" } },
                }] } } } }),
                &[
                    "spec.topology.workers.machineDeployments[md].rollout.strategy.rollingUpdate: Invalid value: \"0\": maxUnavailable and maxSurge cannot both be 0",
                    "spec.topology.workers.machineDeployments[md].replicas: Invalid value: 1: cannot be set for cluster \"one\" in namespace \"default\" if the same MachineDeploymentTopology has autoscaler annotations",
                ],
            ),
        ],
    );
    updated(
        CORE,
        "Cluster",
        &with_topology(),
        &[
            (json!({ "spec": { "topology": { "version": "v1.31.4" } } }), &[]),
            (
                json!({ "spec": { "topology": { "version": "v1.29.9" } } }),
                &[
                    "spec.topology.version: Invalid value: \"v1.29.9\": version cannot be decreased from \"1.30.0\" to \"1.29.9\"",
                ],
            ),
            (
                json!({ "spec": { "topology": { "version": "v1.32.0" } } }),
                &[
                    "spec.topology.version: Invalid value: \"v1.32.0\": version cannot be increased from \"1.30.0\" to \"1.32.0\"",
                ],
            ),
            (
                json!({
                    "metadata": { "annotations": { "unsafe.topology.cluster.x-k8s.io/disable-update-version-check": "" } },
                    "spec": { "topology": { "version": "v1.32.0" } },
                }),
                &[],
            ),
            (
                json!({ "spec": { "topology": null, "infrastructureRef": reference("SimCluster") } }),
                &["spec.topology: Forbidden: cannot be removed from an existing Cluster"],
            ),
        ],
    );
    updated(
        CORE,
        "Cluster",
        &cluster(),
        &[(
            json!({ "spec": with_topology()["spec"] }),
            &["spec.topology.class: Forbidden: classRef cannot be set on an existing Cluster"],
        )],
    );
    assert_eq!(
        said(CORE, "Cluster", &with_topology(), None, &Features::default()),
        [
            "spec.topology: Forbidden: nothing here makes clusters of a ClusterClass; set spec.infrastructureRef and spec.controlPlaneRef instead"
        ]
    );
    assert_eq!(
        defaulted(
            CORE,
            "Cluster",
            patched(&with_topology(), &json!({ "spec": { "topology": { "version": "1.30.0" } } })),
            None
        ),
        with_topology()
    );
}

#[test]
fn machines_by_themselves() {
    let taint = |key: &str| json!({ "spec": { "taints": [{ "key": key, "effect": "NoSchedule", "propagation": "Always" }] } });
    created(
        CORE,
        "Machine",
        &machine(),
        &[
            (json!({ "spec": { "version": "v1.30.0" } }), &[]),
            (
                json!({ "spec": { "version": "1.30" } }),
                &[
                    "spec.version: Invalid value: \"1.30\": must start with v",
                    "spec.version: Invalid value: \"1.30\": must be a valid semantic version",
                ],
            ),
            (
                json!({ "spec": { "bootstrap": null } }),
                &[
                    "spec.bootstrap: Required value: expected either spec.bootstrap.dataSecretName or spec.bootstrap.configRef to be populated",
                ],
            ),
            (
                json!({ "metadata": { "labels": { "cluster.x-k8s.io/pool-name": "a" } }, "spec": { "bootstrap": null } }),
                &[],
            ),
            (taint("example.com/dedicated"), &[]),
            (taint("node.kubernetes.io/out-of-service"), &[]),
            (
                taint("node.cluster.x-k8s.io/uninitialized"),
                &[
                    "spec.taints[0].key: Invalid value: \"node.cluster.x-k8s.io/uninitialized\": taint key is not allowed",
                ],
            ),
            (
                taint("node.kubernetes.io/not-ready"),
                &[
                    "spec.taints[0].key: Invalid value: \"node.kubernetes.io/not-ready\": taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service",
                ],
            ),
            (
                taint("node.cloudprovider.kubernetes.io/a"),
                &[
                    "spec.taints[0].key: Invalid value: \"node.cloudprovider.kubernetes.io/a\": taint key must not have the prefix node.cloudprovider.kubernetes.io/",
                ],
            ),
            (
                taint("node-role.kubernetes.io/master"),
                &[
                    "spec.taints[0].key: Invalid value: \"node-role.kubernetes.io/master\": taint is deprecated since 1.24 and should not be used anymore",
                ],
            ),
            (
                taint("node-role.kubernetes.io/control-plane"),
                &[
                    "spec.taints[0].key: Invalid value: \"node-role.kubernetes.io/control-plane\": taint is not allowed for worker Machines",
                ],
            ),
            (
                patched(
                    &taint("node-role.kubernetes.io/control-plane"),
                    &json!({ "metadata": { "labels": { "cluster.x-k8s.io/control-plane": "" } } }),
                ),
                &[],
            ),
        ],
    );
    updated(
        CORE,
        "Machine",
        &machine(),
        &[
            (json!({ "spec": { "providerID": "sim://one" } }), &[]),
            (
                json!({ "spec": { "clusterName": "two" } }),
                &["spec.clusterName: Forbidden: field is immutable"],
            ),
        ],
    );
    assert_eq!(
        said(CORE, "Machine", &patched(&machine(), &taint("a")), None, &Features::UPSTREAM),
        [
            "spec.taints: Forbidden: taints are not allowed to be set when the feature gate MachineTaintPropagation is disabled"
        ]
    );
}

#[test]
fn sets_and_deployments_of_machines() {
    for kind in ["MachineSet", "MachineDeployment"] {
        let mismatch = if kind == "MachineSet" {
            "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: must match spec.selector \"a=b\""
        } else {
            "spec.template.metadata.labels: Forbidden: must match spec.selector \"a=b\""
        };
        let naming = |template: &str| json!({ "spec": { "machineNaming": { "template": template } } });
        let skip = |checks: &str| json!({ "metadata": { "annotations": { "machineset.cluster.x-k8s.io/skip-preflight-checks": checks } } });
        created(
            CORE,
            kind,
            &machines(kind),
            &[
                (
                    json!({ "spec": { "template": { "spec": { "bootstrap": null } } } }),
                    &[
                        "spec.template.spec.bootstrap: Required value: expected either spec.template.spec.bootstrap.dataSecretName or spec.template.spec.bootstrap.configRef to be populated",
                    ],
                ),
                (json!({ "spec": { "template": { "metadata": { "labels": { "a": "c" } } } } }), &[mismatch]),
                (
                    json!({ "spec": { "selector": { "matchExpressions": [{ "key": "a", "operator": "Near" }] } } }),
                    &[
                        "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Near\"}],\"matchLabels\":{\"a\":\"b\"}}: \"Near\" is not a valid label selector operator",
                    ],
                ),
                (
                    json!({ "spec": { "template": { "spec": { "clusterName": "two" } } } }),
                    &[
                        "spec.clusterName: Invalid value: \"one\": spec.clusterName and spec.template.spec.clusterName must be set to the same value",
                    ],
                ),
                (
                    json!({ "spec": { "template": { "spec": { "version": "1.2" } } } }),
                    &[
                        "spec.template.spec.version: Invalid value: \"1.2\": must start with v",
                        "spec.template.spec.version: Invalid value: \"1.2\": must be a valid semantic version",
                    ],
                ),
                (skip("All"), &[]),
                (skip("KubeadmVersionSkew, ControlPlaneIsStable"), &[]),
                (
                    skip("All,Nothing"),
                    &[
                        "metadata.annotations.machineset.cluster.x-k8s.io/skip-preflight-checks: Invalid value: [\"Nothing\"]: skipped preflight check(s) must be among: [All ControlPlaneIsStable ControlPlaneVersionSkew KubeadmVersionSkew KubernetesVersionSkew]",
                    ],
                ),
                (naming("{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}"), &[]),
                (
                    naming("{{ .cluster.name }}"),
                    &[
                        "spec.machineNaming.template: Invalid value: \"{{ .cluster.name }}\": invalid template, {{ .random }} is missing",
                    ],
                ),
                (
                    naming("{{ .nope }}{{ .random }}"),
                    &[
                        "spec.machineNaming.template: Invalid value: \"{{ .nope }}{{ .random }}\": invalid template: map has no entry for key \"nope\"",
                    ],
                ),
                (
                    naming("-{{ .random }}"),
                    &[
                        "spec.machineNaming.template: Invalid value: \"-{{ .random }}\": invalid template, generated names would not be valid Kubernetes object names: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    ],
                ),
            ],
        );
        updated(
            CORE,
            kind,
            &machines(kind),
            &[
                (json!({ "spec": { "replicas": 5 } }), &[]),
                (
                    json!({ "spec": { "clusterName": "two", "template": { "spec": { "clusterName": "two" } } } }),
                    &["spec.clusterName: Forbidden: field is immutable"],
                ),
            ],
        );
    }
}

#[test]
fn roll_outs_of_deployments() {
    let rolling = |surge: Value, unavailable: Value| json!({ "spec": { "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable } } } } });
    let name = format!("metadata.name: Invalid value: \"a_\": must be a valid label value: {LABEL}");
    created(
        CORE,
        "MachineDeployment",
        &machines("MachineDeployment"),
        &[
            (rolling(json!("25%"), json!(1)), &[]),
            (
                rolling(json!(0), json!(0)),
                &[
                    "spec.rollout.strategy.rollingUpdate: Invalid value: \"0\": maxUnavailable and maxSurge cannot both be 0",
                ],
            ),
            (
                rolling(json!("1"), json!("x%")),
                &[
                    "spec.rollout.strategy.rollingUpdate.maxUnavailable: Invalid value: \"x%\": must be either an int or a percentage: invalid value for IntOrString: invalid value \"x%\": strconv.Atoi: parsing \"x\": invalid syntax",
                    "spec.rollout.strategy.rollingUpdate.maxSurge: Invalid value: \"1\": must be either an int or a percentage: invalid value for IntOrString: invalid type: string is not a percentage",
                ],
            ),
            (json!({ "spec": { "remediation": { "maxInFlight": "20%" } } }), &[]),
            (
                json!({ "spec": { "remediation": { "maxInFlight": "many" } } }),
                &[
                    "spec.remediation.maxInFlight: Invalid value: \"many\": must be either an int or a percentage: invalid value for IntOrString: invalid type: string is not a percentage",
                ],
            ),
            (json!({ "metadata": { "name": "a_" } }), &[&name]),
        ],
    );
}

#[test]
fn defaults_of_sets_and_deployments() {
    let bare = json!({
        "metadata": { "name": "md" },
        "spec": { "clusterName": "one", "template": { "spec": { "version": "1.30.0" } } },
    });
    assert_eq!(
        defaulted(CORE, "MachineDeployment", bare.clone(), None),
        json!({
            "metadata": { "name": "md", "labels": { "cluster.x-k8s.io/cluster-name": "one" } },
            "spec": {
                "clusterName": "one",
                "replicas": 1,
                "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } } },
                "selector": { "matchLabels": { "cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/deployment-name": "md" } },
                "template": {
                    "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/deployment-name": "md" } },
                    "spec": { "version": "v1.30.0" },
                },
            },
        })
    );
    let set = defaulted(CORE, "MachineSet", bare.clone(), None);
    assert_eq!(set["spec"]["selector"], json!({ "matchLabels": { "cluster.x-k8s.io/set-name": "md" } }));
    let long = patched(&bare, &json!({ "metadata": { "name": "a".repeat(64) } }));
    let set = defaulted(CORE, "MachineSet", long, None);
    assert_eq!(set["spec"]["selector"]["matchLabels"]["cluster.x-k8s.io/set-name"], "hash_2W8PhQ_z");

    let scaled = patched(
        &bare,
        &json!({ "metadata": { "annotations": {
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "2",
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "5",
        } } }),
    );
    for (old, replicas) in [(None, 2), (Some(1), 2), (Some(3), 3), (Some(9), 5)] {
        let old = old.map(|replicas| json!({ "spec": { "replicas": replicas } }));
        let set = defaulted(CORE, "MachineSet", scaled.clone(), old.as_ref());
        assert_eq!(set["spec"]["replicas"], replicas, "{old:?}");
    }
    let wrong = patched(
        &scaled,
        &json!({ "metadata": { "annotations": {
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "few",
    } } }),
    );
    let error =
        (rules(CORE, "MachineSet").expect("rules").default)(&mut wrong.clone(), None).expect_err("few");
    assert_eq!(
        error.to_string(),
        "metadata.annotations.cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: Invalid value: \"few\": must be a number of machines"
    );
}

#[test]
fn pools_of_machines() {
    let pool = patched(&machines("MachinePool"), &json!({ "spec": { "selector": null } }));
    created(
        CORE,
        "MachinePool",
        &pool,
        &[
            (
                json!({ "spec": { "template": { "spec": { "bootstrap": null } } } }),
                &[
                    "spec.template.spec.bootstrap: Required value: expected either spec.template.spec.bootstrap.dataSecretName or spec.template.spec.bootstrap.configRef to be populated",
                ],
            ),
            (
                json!({ "spec": { "template": { "spec": { "clusterName": "two" } } } }),
                &[
                    "spec.clusterName: Invalid value: \"one\": spec.clusterName and spec.template.spec.clusterName must be set to the same value",
                ],
            ),
            (
                json!({ "spec": { "template": { "spec": { "version": "v1.2" } } } }),
                &["spec.template.spec.version: Invalid value: \"v1.2\": must be a valid semantic version"],
            ),
            (
                json!({ "spec": { "template": { "spec": { "taints": [{ "key": "a", "effect": "NoSchedule", "propagation": "Always" }] } } } }),
                &["spec.taints: Forbidden: taints feature for MachinePools is not yet implemented"],
            ),
        ],
    );
    let other = json!({ "spec": { "clusterName": "two", "template": { "spec": { "clusterName": "two" } } } });
    updated(CORE, "MachinePool", &pool, &[(other, &["spec.clusterName: Forbidden: field is immutable"])]);
    let bare = json!({ "metadata": {}, "spec": { "clusterName": "one", "template": { "spec": { "version": "1.2.3" } } } });
    assert_eq!(
        defaulted(CORE, "MachinePool", bare, None),
        json!({
            "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "one" } },
            "spec": { "clusterName": "one", "replicas": 1, "template": { "spec": {
                "version": "v1.2.3", "deletion": { "nodeDeletionTimeoutSeconds": 10 },
            } } },
        })
    );
}

#[test]
fn health_checks() {
    let check = json!({
        "metadata": { "name": "one" },
        "spec": { "clusterName": "one", "selector": { "matchLabels": { "a": "b" } } },
    });
    created(
        CORE,
        "MachineHealthCheck",
        &check,
        &[
            (
                json!({ "spec": { "selector": { "matchLabels": null } } }),
                &["spec.selector: Required value: selector must not be empty"],
            ),
            (
                json!({ "spec": { "selector": { "matchLabels": { "cluster.x-k8s.io/cluster-name": "two" } } } }),
                &[
                    "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"cluster.x-k8s.io/cluster-name\":\"two\"}}: cannot specify a cluster selector other than the one specified by ClusterName",
                ],
            ),
            (json!({ "spec": { "checks": { "nodeStartupTimeoutSeconds": 0 } } }), &[]),
            (json!({ "spec": { "checks": { "nodeStartupTimeoutSeconds": 30 } } }), &[]),
            (
                json!({ "spec": { "checks": { "nodeStartupTimeoutSeconds": 29 } } }),
                &["spec.checks.nodeStartupTimeoutSeconds: Invalid value: 29: must be at least 30s"],
            ),
            (
                json!({ "spec": { "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": "40%" } } } }),
                &[],
            ),
            (
                json!({ "spec": { "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": "some" } } } }),
                &[
                    "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: Invalid value: \"some\": must be either an int or a percentage: invalid value for IntOrString: invalid type: string is not a percentage",
                ],
            ),
        ],
    );
    updated(
        CORE,
        "MachineHealthCheck",
        &check,
        &[(
            json!({ "spec": { "clusterName": "two" } }),
            &["spec.clusterName: Forbidden: field is immutable"],
        )],
    );
    let check = defaulted(CORE, "MachineHealthCheck", check, None);
    assert_eq!(check["spec"]["checks"]["nodeStartupTimeoutSeconds"], 600);
    assert_eq!(check["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "one");
}

#[test]
fn drain_rules() {
    let rule =
        json!({ "metadata": { "name": "one" }, "spec": { "drain": { "behavior": "Drain", "order": 5 } } });
    let near = json!([{ "selector": { "matchExpressions": [{ "key": "a", "operator": "Near" }] } }]);
    created(
        CORE,
        "MachineDrainRule",
        &rule,
        &[
            (json!({ "spec": { "drain": { "behavior": "Skip", "order": null } } }), &[]),
            (
                json!({ "spec": { "drain": { "behavior": "Skip" } } }),
                &[
                    "spec.drain.order: Invalid value: 5: order must not be set if drain behavior is \"Skip\" or \"WaitCompleted\"",
                ],
            ),
            (
                json!({ "spec": { "machines": near, "pods": near } }),
                &[
                    "spec.machines[0].selector: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Near\"}]}: \"Near\" is not a valid label selector operator",
                    "spec.pods[0].selector: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Near\"}]}: \"Near\" is not a valid label selector operator",
                ],
            ),
        ],
    );
}

#[test]
fn resource_sets() {
    let set = json!({
        "metadata": { "name": "one" },
        "spec": { "clusterSelector": { "matchLabels": { "a": "b" } }, "strategy": "ApplyOnce", "resources": [] },
    });
    created(
        ADDONS,
        "ClusterResourceSet",
        &set,
        &[(
            json!({ "spec": { "clusterSelector": { "matchLabels": null } } }),
            &["spec.clusterSelector: Invalid value: {}: selector must not be empty"],
        )],
    );
    updated(
        ADDONS,
        "ClusterResourceSet",
        &set,
        &[
            (json!({ "spec": { "resources": [{ "kind": "Secret", "name": "a" }] } }), &[]),
            (
                json!({ "spec": { "strategy": "Reconcile" } }),
                &["spec.strategy: Invalid value: \"Reconcile\": field is immutable"],
            ),
            (
                json!({ "spec": { "clusterSelector": { "matchLabels": { "a": "c" } } } }),
                &["spec.clusterSelector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable"],
            ),
        ],
    );
    assert_eq!(
        defaulted(ADDONS, "ClusterResourceSet", json!({ "spec": {} }), None)["spec"]["strategy"],
        "ApplyOnce"
    );
    updated(
        ADDONS,
        "ClusterResourceSetBinding",
        &json!({ "spec": { "clusterName": "one" } }),
        &[
            (json!({ "spec": { "bindings": [] } }), &[]),
            (
                json!({ "spec": { "clusterName": "two" } }),
                &["spec.clusterName: Invalid value: \"two\": field is immutable"],
            ),
        ],
    );
}

#[test]
fn addresses() {
    let pool = json!({ "apiGroup": "ipam.example", "kind": "Pool", "name": "one" });
    let address = json!({
        "metadata": { "name": "one" },
        "spec": { "claimRef": { "name": "one" }, "poolRef": pool, "address": "10.0.0.4", "prefix": 24, "gateway": "10.0.0.1" },
    });
    created(
        IPAM,
        "IPAddress",
        &address,
        &[
            (json!({ "spec": { "address": "fd00::4", "prefix": 64 } }), &[]),
            (
                json!({ "spec": { "address": "10.0.0" } }),
                &["spec.address: Invalid value: \"10.0.0\": not a valid IP address"],
            ),
            (
                json!({ "spec": { "prefix": -1 } }),
                &["spec.prefix: Invalid value: -1: prefix cannot be negative"],
            ),
            (
                json!({ "spec": { "prefix": 33 } }),
                &["spec.prefix: Invalid value: 33: prefix is too large for an IPv4 address"],
            ),
            (
                json!({ "spec": { "address": "fd00::4", "prefix": 129 } }),
                &["spec.prefix: Invalid value: 129: prefix is too large for an IPv6 address"],
            ),
            (
                json!({ "spec": { "gateway": "none" } }),
                &["spec.gateway: Invalid value: \"none\": not a valid IP address"],
            ),
        ],
    );
    updated(
        IPAM,
        "IPAddress",
        &address,
        &[
            (json!({ "metadata": { "labels": { "a": "b" } } }), &[]),
            (json!({ "spec": { "prefix": 25 } }), &["spec: Forbidden: IPAddress spec is immutable."]),
        ],
    );
    let claim = json!({ "metadata": { "name": "one" }, "spec": { "poolRef": pool } });
    created(IPAM, "IPAddressClaim", &claim, &[]);
    updated(
        IPAM,
        "IPAddressClaim",
        &claim,
        &[(
            json!({ "spec": { "poolRef": { "name": "two" } } }),
            &["spec: Forbidden: IPAddressClaim spec is immutable."],
        )],
    );
    let address: IPAddress = serde_json::from_value(address).expect("an address");
    let mut claim: IPAddressClaim = serde_json::from_value(claim).expect("a claim");
    assert_eq!(pool_differs_from_claim(&address, &claim), None);
    claim.spec.pool_ref.name = "two".to_owned();
    assert_eq!(
        pool_differs_from_claim(&address, &claim).map(|error| error.to_string()).as_deref(),
        Some(
            "spec.poolRef: Invalid value: {\"apiGroup\":\"ipam.example\",\"kind\":\"Pool\",\"name\":\"one\"}: the referenced pool is different from the pool referenced by the claim this address should fulfill"
        )
    );
}

#[test]
fn kubeadm_configurations() {
    let file = |path: &str| json!({ "path": path, "content": "a" });
    let secret = |name: &str, key: &str| json!({ "secret": { "name": name, "key": key } });
    for (kind, prefix) in [("KubeadmConfig", "spec"), ("KubeadmConfigTemplate", "spec.template.spec")] {
        let within = |spec: Value| {
            if kind == "KubeadmConfig" {
                json!({ "spec": spec })
            } else {
                json!({ "spec": { "template": { "spec": spec } } })
            }
        };
        let at = |message: &str| format!("{prefix}.{message}");
        let cases = [
            (json!({ "files": [file("/a"), file("/b")] }), vec![]),
            (json!({ "files": [{ "path": "/a", "contentFrom": secret("a", "b") }] }), vec![]),
            (
                json!({ "files": [{ "path": "/a", "content": "a", "contentFrom": secret("a", "b") }] }),
                vec![at(
                    "files[0]: Invalid value: {\"content\":\"a\",\"contentFrom\":{\"secret\":{\"key\":\"b\",\"name\":\"a\"}},\"path\":\"/a\"}: only one of content or contentFrom may be specified for a single file",
                )],
            ),
            (
                json!({ "files": [{ "path": "/a", "contentFrom": secret("", "b") }] }),
                vec![at(
                    "files[0].contentFrom.secret.name: Required value: secret file source must specify non-empty secret name",
                )],
            ),
            (
                json!({ "files": [{ "path": "/a", "contentFrom": secret("a", "") }] }),
                vec![at(
                    "files[0].contentFrom.secret.key: Required value: secret file source must specify non-empty secret key",
                )],
            ),
            (
                json!({ "files": [file("/a"), file("/a")] }),
                vec![at(
                    "files[1].path: Invalid value: {\"content\":\"a\",\"path\":\"/a\"}: path property must be unique among all files",
                )],
            ),
            (json!({ "users": [{ "name": "a", "passwdFrom": secret("a", "b") }] }), vec![]),
            (
                json!({ "users": [{ "name": "a", "passwd": "x", "passwdFrom": secret("a", "") }] }),
                vec![
                    at(
                        "users[0]: Invalid value: {\"name\":\"a\",\"passwd\":\"x\",\"passwdFrom\":{\"secret\":{\"name\":\"a\"}}}: only one of passwd or passwdFrom may be specified for a single user",
                    ),
                    at(
                        "users[0].passwdFrom.secret.key: Required value: secret file source must specify non-empty secret key",
                    ),
                ],
            ),
            (
                json!({ "diskSetup": { "partitions": [{ "device": "a", "diskLayout": [{ "percentage": 60 }, { "percentage": 40 }] }] } }),
                vec![],
            ),
            (
                json!({ "diskSetup": { "partitions": [{ "device": "a", "diskLayout": [{ "percentage": 60 }, { "percentage": 41 }] }] } }),
                vec![at(
                    "diskSetup.partitions[0].diskLayout: Invalid value: 101: the sum of all partition percentages must not be greater than 100",
                )],
            ),
            (
                json!({ "joinConfiguration": { "discovery": { "file": { "kubeConfig": { "user": {
                    "authProvider": { "name": "a" }, "exec": { "command": "b" },
                } } } } } }),
                vec![at(
                    "joinConfiguration.discovery.file.kubeconfig.user: Invalid value: {\"authProvider\":{\"name\":\"a\"},\"exec\":{\"command\":\"b\"}}: only one of authProvider or exec must be defined",
                )],
            ),
            (
                json!({ "format": "ignition", "ignition": { "containerLinuxConfig": { "strict": true } } }),
                vec![],
            ),
            (
                json!({ "ignition": { "containerLinuxConfig": { "strict": true } } }),
                vec![at("format: Invalid value: \"\": must be set to \"ignition\" if spec.ignition is set")],
            ),
            (
                json!({
                    "format": "ignition",
                    "users": [{ "name": "a", "inactive": true }],
                    "files": [{ "path": "/a", "encoding": "gzip" }],
                    "bootCommands": ["a"],
                    "diskSetup": {
                        "filesystems": [{ "device": "a", "filesystem": "ext4", "replaceFS": "ntfs", "partition": "auto" }],
                        "partitions": [{ "device": "a", "layout": true, "tableType": "mbr" }],
                    },
                }),
                vec![
                    at(
                        "users[0].inactive: Forbidden: not supported when spec.format is set to: \"ignition\"",
                    ),
                    at(
                        "files[0].encoding: Forbidden: not supported when spec.format is set to: \"ignition\"",
                    ),
                    at("bootCommands: Forbidden: not supported when spec.format is set to: \"ignition\""),
                    at(
                        "diskSetup.filesystems[0].replaceFS: Forbidden: not supported when spec.format is set to: \"ignition\"",
                    ),
                    at(
                        "diskSetup.filesystems[0].partition: Forbidden: not supported when spec.format is set to: \"ignition\"",
                    ),
                    at(
                        "diskSetup.partitions[0].tableType: Invalid value: \"mbr\": only partition type \"gpt\" is supported when spec.format is set to \"ignition\"",
                    ),
                ],
            ),
        ];
        for (spec, expected) in cases {
            let object = within(spec);
            assert_eq!(said(BOOTSTRAP, kind, &object, None, &Features::default()), expected, "{object}");
        }
        let ignition = within(
            json!({ "format": "ignition", "ignition": { "containerLinuxConfig": { "strict": true } } }),
        );
        assert_eq!(
            said(BOOTSTRAP, kind, &ignition, None, &Features::UPSTREAM),
            [
                at(
                    "format: Forbidden: can be set only if the KubeadmBootstrapFormatIgnition feature gate is enabled"
                ),
                at(
                    "ignition: Forbidden: can be set only if the KubeadmBootstrapFormatIgnition feature gate is enabled"
                ),
            ]
        );
    }
}

#[test]
fn control_planes() {
    let configured = |configuration: Value| json!({ "spec": { "kubeadmConfigSpec": { "clusterConfiguration": configuration } } });
    let external =
        json!({ "external": { "endpoints": ["a"], "caFile": "a", "certFile": "b", "keyFile": "c" } });
    created(
        CONTROL_PLANE,
        "KubeadmControlPlane",
        &control_plane(),
        &[
            (json!({ "spec": { "replicas": null } }), &["spec.replicas: Required value: is required"]),
            (
                json!({ "spec": { "replicas": -1 } }),
                &["spec.replicas: Forbidden: cannot be less than or equal to 0"],
            ),
            (
                json!({ "spec": { "replicas": 2 } }),
                &["spec.replicas: Forbidden: cannot be an even number when etcd is stacked"],
            ),
            (patched(&configured(json!({ "etcd": external })), &json!({ "spec": { "replicas": 2 } })), &[]),
            (
                json!({ "spec": { "machineTemplate": { "spec": { "infrastructureRef": null } } } }),
                &[
                    "spec.machineTemplate.infrastructure.apiGroup: Invalid value: \"\": cannot be empty",
                    "spec.machineTemplate.infrastructure.kind: Invalid value: \"\": cannot be empty",
                    "spec.machineTemplate.infrastructure.name: Invalid value: \"\": cannot be empty",
                ],
            ),
            (
                json!({ "spec": { "version": "1" } }),
                &[
                    "spec.version: Invalid value: \"1\": must start with v",
                    "spec.version: Invalid value: \"1\": must be a valid semantic version",
                ],
            ),
            (json!({ "spec": { "rollout": { "strategy": { "rollingUpdate": { "maxSurge": 0 } } } } }), &[]),
            (
                json!({ "spec": { "replicas": 1, "rollout": { "strategy": { "rollingUpdate": { "maxSurge": 0 } } } } }),
                &[
                    "spec.rollout.strategy.rollingUpdate: Required value: when KubeadmControlPlane is configured to scale-in, replica count needs to be at least 3",
                ],
            ),
            (
                json!({ "spec": { "rollout": { "strategy": { "rollingUpdate": { "maxSurge": 2 } } } } }),
                &["spec.rollout.strategy.rollingUpdate.maxSurge: Required value: value must be 1 or 0"],
            ),
            (
                json!({ "spec": { "rollout": { "strategy": { "type": null } } } }),
                &["spec.rollout.strategy.type: Required value: only RollingUpdate is supported"],
            ),
            (
                configured(
                    json!({ "certificateValidityPeriodDays": 200, "caCertificateValidityPeriodDays": 100 }),
                ),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays: Invalid value: 200: must be less than or equal to caCertificateValidityPeriodDays (100)",
                ],
            ),
            (
                configured(json!({ "certificateValidityPeriodDays": 3651 })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays: Invalid value: 3651: must be less than or equal to the default value of caCertificateValidityPeriodDays (3650)",
                ],
            ),
            (
                patched(
                    &configured(json!({ "certificateValidityPeriodDays": 100 })),
                    &json!({ "spec": { "rollout": { "before": { "certificatesExpiryDays": 100 } } } }),
                ),
                &[
                    "spec.rollout.before.certificatesExpiryDays: Invalid value: 100: must be less than certificateValidityPeriodDays (100)",
                ],
            ),
            (configured(json!({ "dns": { "imageTag": "v1.11.3_custom.1" } })), &[]),
            (
                configured(json!({ "dns": { "imageTag": "v1.11.3&" } })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag: Forbidden: tag v1.11.3& is invalid",
                    "dns.imageTag: Invalid value: \"v1.11.3&\": failed to parse CoreDNS version: v1.11.3& is no version",
                ],
            ),
            (
                configured(json!({ "etcd": { "local": { "imageTag": "3.5/1" } } })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag: Forbidden: tag 3.5/1 is invalid",
                ],
            ),
            (
                configured(json!({ "etcd": patched(&external, &json!({ "local": { "dataDir": "/a" } })) })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local: Forbidden: cannot have both external and local etcd",
                ],
            ),
            (
                json!({ "spec": { "machineNaming": { "template": "{{ .kubeadmControlPlane.name }}-{{ .random }}" } } }),
                &[],
            ),
            (
                json!({ "spec": { "machineNaming": { "template": "a" } } }),
                &[
                    "spec.machineNaming.template: Invalid value: \"a\": invalid template, {{ .random }} is missing",
                ],
            ),
            (
                json!({ "spec": { "kubeadmConfigSpec": { "initConfiguration": { "timeouts": { "controlPlaneComponentHealthCheckSeconds": 5 } } } } }),
                &[
                    "spec.kubeadmConfigSpec.initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds: Invalid value: \"5\": controlPlaneComponentHealthCheckSeconds must be set to the same value both in initConfiguration.timeouts (5) and in joinConfiguration.timeouts (unset)",
                    "spec.kubeadmConfigSpec.joinConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds: Invalid value: \"unset\": controlPlaneComponentHealthCheckSeconds must be set to the same value both in initConfiguration.timeouts (5) and in joinConfiguration.timeouts (unset)",
                ],
            ),
        ],
    );
}

#[test]
fn changes_of_control_planes() {
    let configured = |configuration: Value| json!({ "spec": { "kubeadmConfigSpec": { "clusterConfiguration": configuration } } });
    let stored = patched(
        &control_plane(),
        &configured(json!({ "certificatesDir": "/a", "dns": { "imageTag": "v1.11.3" } })),
    );
    let external =
        json!({ "external": { "endpoints": ["a"], "caFile": "a", "certFile": "b", "keyFile": "c" } });
    updated(
        CONTROL_PLANE,
        "KubeadmControlPlane",
        &stored,
        &[
            (json!({ "spec": { "replicas": 5, "version": "v1.31.2" } }), &[]),
            (
                json!({ "spec": { "kubeadmConfigSpec": { "files": [{ "path": "/a" }], "ntp": { "enabled": true } } } }),
                &[],
            ),
            (json!({ "spec": { "machineTemplate": { "metadata": { "labels": { "a": "b" } } } } }), &[]),
            (json!({ "metadata": { "labels": { "a": "b" } } }), &[]),
            (
                json!({ "spec": { "version": "v1.32.0" } }),
                &["spec.version: Forbidden: cannot update Kubernetes version from v1.30.0 to v1.32.0"],
            ),
            (
                configured(json!({ "certificatesDir": "/b" })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir: Forbidden: cannot be modified",
                ],
            ),
            (
                configured(json!({ "controlPlaneEndpoint": "a:1" })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.controlPlaneEndpoint: Forbidden: cannot be modified",
                ],
            ),
            (
                configured(json!({ "etcd": external })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external: Forbidden: cannot change between external and local etcd",
                ],
            ),
            (configured(json!({ "dns": { "imageTag": "v1.12.0" } })), &[]),
            (
                configured(json!({ "dns": { "imageTag": "v1.10.0" } })),
                &[
                    "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag: Forbidden: cannot migrate CoreDNS up to '1.10.0' from '1.11.3': cannot migrate up to '1.10.0' from '1.11.3'",
                ],
            ),
            (
                patched(
                    &configured(json!({ "dns": { "imageTag": "v1.10.0" } })),
                    &json!({ "metadata": { "annotations": { "controlplane.cluster.x-k8s.io/skip-coredns": "" } } }),
                ),
                &[],
            ),
        ],
    );
    let control_plane: KubeadmControlPlane = serde_json::from_value(stored).expect("a control plane");
    for (replicas, problem) in [
        (3, None),
        (0, Some("replicas should be greater than zero")),
        (2, Some("replicas cannot be an even number when etcd is stacked")),
    ] {
        assert_eq!(validate_scale(&control_plane, replicas), problem);
    }
    let bare = json!({ "spec": { "version": "1.30.0" } });
    assert_eq!(
        defaulted(CONTROL_PLANE, "KubeadmControlPlane", bare, None)["spec"],
        json!({
            "version": "v1.30.0",
            "replicas": 1,
            "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } },
        })
    );
}

#[test]
fn templates_of_control_planes() {
    let template = json!({
        "metadata": { "name": "one" },
        "spec": { "template": { "spec": { "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } } } } },
    });
    created(
        CONTROL_PLANE,
        "KubeadmControlPlaneTemplate",
        &template,
        &[(
            json!({ "spec": { "template": { "spec": { "machineNaming": { "template": "a" } } } } }),
            &[
                "spec.template.spec.machineNaming.template: Invalid value: \"a\": invalid template, {{ .random }} is missing",
            ],
        )],
    );
    updated(
        CONTROL_PLANE,
        "KubeadmControlPlaneTemplate",
        &template,
        &[
            (
                json!({ "spec": { "template": { "spec": { "kubeadmConfigSpec": { "format": "cloud-config" } } } } }),
                &[],
            ),
            (json!({ "spec": { "template": { "spec": { "rollout": null } } } }), &[]),
            (
                json!({ "spec": { "template": { "spec": { "remediation": { "maxRetry": 1 } } } } }),
                &[
                    "spec.template.spec: Invalid value: {\"remediation\":{\"maxRetry\":1},\"rollout\":{\"strategy\":{\"rollingUpdate\":{\"maxSurge\":1},\"type\":\"RollingUpdate\"}}}: KubeadmControlPlaneTemplate spec.template.spec field is immutable. Please create new resource instead.",
                ],
            ),
        ],
    );
    assert_eq!(
        said(CONTROL_PLANE, "KubeadmControlPlaneTemplate", &template, None, &Features::UPSTREAM),
        ["spec: Forbidden: can be set only if the ClusterTopology feature flag is enabled"]
    );
}
