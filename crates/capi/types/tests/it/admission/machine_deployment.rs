//! MachineSets and MachineDeployments.

use super::*;

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
fn rollouts_of_deployments() {
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
    let bounded = |min: &str, max: &str| {
        let bounds = json!({
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": min,
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": max,
        });
        patched(&bare, &json!({ "metadata": { "annotations": bounds } }))
    };
    let half = json!({ "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "2" });
    let half = patched(&bare, &json!({ "metadata": { "annotations": half } }));
    for kind in ["MachineDeployment", "MachineSet", "MachinePool"] {
        for (object, old, replicas) in [
            (&scaled, None, 2),
            (&scaled, Some(1), 2),
            (&scaled, Some(3), 3),
            (&scaled, Some(9), 5),
            (&bounded("0", "3"), None, 0),
            // The lower bound is compared first.
            (&bounded("5", "3"), Some(4), 5),
            (&bounded("5", "3"), Some(9), 3),
            // One bound alone is none.
            (&half, None, 1),
            (&half, Some(4), 1),
        ] {
            let old = old.map(|replicas| json!({ "spec": { "replicas": replicas } }));
            let made = defaulted(CORE, kind, object.clone(), old.as_ref());
            assert_eq!(made["spec"]["replicas"], replicas, "{kind} {old:?} {}", object["metadata"]);
        }
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
