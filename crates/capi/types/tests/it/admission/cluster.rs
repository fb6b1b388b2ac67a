//! Clusters.

use super::*;

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
fn clusters_with_a_class() {
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
        errors_of(CORE, "Cluster", &with_topology(), None, &Features::UPSTREAM),
        [
            "spec.topology: Forbidden: clusters of a ClusterClass are not supported by this server; set spec.infrastructureRef and spec.controlPlaneRef instead"
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
