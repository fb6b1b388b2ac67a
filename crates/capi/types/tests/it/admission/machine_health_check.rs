//! MachineHealthChecks and MachineDrainRules.

use super::*;

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
