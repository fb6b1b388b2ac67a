//! KubeadmControlPlanes and their templates.

use super::*;

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
                    "dns.imageTag: Invalid value: \"v1.11.3&\": failed to parse CoreDNS version: v1.11.3& is not a version",
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
        errors_of(CONTROL_PLANE, "KubeadmControlPlaneTemplate", &template, None, &Features::UPSTREAM),
        ["spec: Forbidden: can be set only if the ClusterTopology feature flag is enabled"]
    );
}
