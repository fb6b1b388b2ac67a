//! Machines and MachinePools.

use super::*;

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
        errors_of(CORE, "Machine", &patched(&machine(), &taint("a")), None, &Features::UPSTREAM),
        [
            "spec.taints: Forbidden: taints are not allowed to be set when the feature gate MachineTaintPropagation is disabled"
        ]
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
