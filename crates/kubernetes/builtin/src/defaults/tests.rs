use super::*;

fn defaulted(mut object: Value) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap().to_owned();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = object["kind"].as_str().unwrap().to_owned();
    crate::decode::settle(group, version, &kind, &mut object).unwrap();
    apply(group, "v1", &kind, &mut object);
    let once = object.clone();
    apply(group, "v1", &kind, &mut object);
    assert_eq!(object, once, "defaulting twice changes nothing");
    object
}

#[test]
fn objects_get_upstreams_defaults() {
    for (given, wanted) in [
        (
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
            json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
                "spec": {}, "status": {"phase": "Active"}}),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": {"a": "b"}, "data": {"a": "", "c": "ZA=="}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "type": "Opaque", "data": {"a": "Yg==", "c": "ZA=="}}),
        ),
        (
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {},
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {},
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]}),
        ),
        (
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {},
                "webhooks": [{"name": "w", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                    "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}]}),
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {},
                "webhooks": [{"name": "w", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 443}},
                    "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "*"}],
                    "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                    "timeoutSeconds": 10, "reinvocationPolicy": "Never"}]}),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {"ports": [{"port": 80}]}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {},
                "spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                    "sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"},
                "status": {"loadBalancer": {}}}),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {
                "serviceAccount": "sa",
                "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1}],
                    "resources": {"limits": {"cpu": "1u"}},
                    "livenessProbe": {"httpGet": {"port": "http"}}}],
                "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {
                "serviceAccount": "sa", "serviceAccountName": "sa",
                "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always",
                    "ports": [{"containerPort": 1, "protocol": "TCP"}],
                    "resources": {"limits": {"cpu": "1m"}, "requests": {"cpu": "1m"}},
                    "livenessProbe": {"httpGet": {"path": "/", "port": "http", "scheme": "HTTP"},
                        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}}],
                "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30
            }, "status": {}}),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {}, "spec": {"podCIDR": "10.0.0.0/24"}, "status": {"capacity": {"cpu": "2"}}}),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {}, "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]},
                "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"},
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                    "nodeInfo": {"architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                        "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""}}}),
        ),
    ] {
        assert_eq!(defaulted(given), wanted);
    }
}

#[test]
fn a_pod_template_gets_the_defaults_of_its_spec_only() {
    let deployment = defaulted(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {
        "selector": {}, "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}}}}),
    );
    let template = &deployment["spec"]["template"]["spec"];
    assert_eq!(template["restartPolicy"], "Always");
    assert!(template.get("enableServiceLinks").is_none());
    assert!(template["containers"][0]["resources"].get("requests").is_none());
    assert_eq!(
        deployment["spec"]["strategy"]["rollingUpdate"],
        json!({"maxSurge": "25%", "maxUnavailable": "25%"})
    );
    assert_eq!(deployment["spec"]["progressDeadlineSeconds"], 600);
}
