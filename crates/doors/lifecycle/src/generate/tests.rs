use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_object::Object as _;
use serde_json::{Value, json};

use super::mirror::{self, Login};
use super::{Generated, Manifests, generate};
use crate::release::Releases;
use crate::types::{
    CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster, RegistryMirrorConfiguration,
};

fn cluster(change: Value) -> Cluster {
    let mut spec = json!({
        "kubernetesVersion": "1.33",
        "controlPlaneConfiguration": {
            "count": 3, "endpoint": {"host": "10.0.0.10"},
            "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "cp"},
        },
        "workerNodeGroupConfigurations": [
            {"name": "md-0", "count": 2, "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "md"}},
        ],
        "clusterNetwork": {
            "cniConfig": {"cilium": {}},
            "pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]},
        },
    });
    for (field, value) in change.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let object = json!({"metadata": {"name": "one", "namespace": "default"}, "spec": spec});
    serde_json::from_value(object).expect("a cluster")
}

fn generated_with(cluster: &Cluster, config: Value) -> Result<Generated, String> {
    let datacenter: CloudStackDatacenterConfig = serde_json::from_value(json!({"spec": {
        "zones": [{"name": "z", "network": {"name": "n"}}], "account": "a", "domain": "d",
        "managementApiEndpoint": "https://cloud.example/client/api",
    }}))
    .expect("a datacenter");
    let mut spec = json!({
        "template": {"name": "kube-1.33"}, "computeOffering": {"name": "small"},
        "users": [{"name": "capc", "sshAuthorizedKeys": ["ssh-ed25519 AAAA me@example.org"]}],
    });
    for (field, value) in config.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let config: CloudStackMachineConfig = serde_json::from_value(json!({"spec": spec})).expect("a config");
    let configs: BTreeMap<_, _> =
        ["cp", "md"].map(|name| (name.to_owned(), Arc::new(config.clone()))).into_iter().collect();
    let releases = Releases::default();
    generate(&Manifests { cluster, datacenter: &datacenter, machine_configs: &configs, releases: &releases })
}

fn generated(change: Value) -> Generated {
    generated_with(&cluster(change), json!({})).expect("objects")
}

#[test]
fn objects_have_the_names_of_eks_anywhere() {
    let all = generated(json!({}));
    let names = [
        all.cluster.key().to_string(),
        all.infrastructure.key().to_string(),
        all.control_plane.key().to_string(),
        all.control_plane_machines.key().to_string(),
        all.control_plane_health_check.key().to_string(),
        all.groups[0].deployment.key().to_string(),
        all.groups[0].bootstrap.key().to_string(),
        all.groups[0].machines.key().to_string(),
        all.groups[0].health_check.key().to_string(),
    ];
    let expected = [
        "one",
        "one",
        "one",
        "one-control-plane-1",
        "one-kcp-unhealthy",
        "one-md-0",
        "one-md-0-1",
        "one-md-0-1",
        "one-md-0-worker-unhealthy",
    ];
    assert_eq!(names, expected.map(|name| format!("eksa-system/{name}")));
    let domain = &all.infrastructure.spec.failure_domains[0];
    assert_eq!(
        (domain.name.as_str(), domain.acs_endpoint.name.as_str(), domain.acs_endpoint.namespace.as_str()),
        ("default-az-0", "global", "eksa-system")
    );
    assert_eq!(all.control_plane.spec.version, "v1.33.0");
    let users = &all.control_plane.spec.kubeadm_config_spec.users;
    assert_eq!(users[0].ssh_authorized_keys, ["ssh-ed25519 AAAA"]);
}

#[test]
fn an_endpoint_with_another_port_is_served_there() {
    let mut own = cluster(json!({}));
    own.spec.control_plane_configuration.endpoint.as_mut().expect("an endpoint").host =
        "10.0.0.10:8443".to_owned();
    let all = generated_with(&own, json!({})).expect("objects");
    assert_eq!(all.infrastructure.spec.control_plane_endpoint.host, "10.0.0.10");
    assert_eq!(all.infrastructure.spec.control_plane_endpoint.port, 8443);
    assert_eq!(all.cluster.spec.control_plane_endpoint.port, 8443);
    let spec = &all.control_plane.spec.kubeadm_config_spec;
    assert_eq!(spec.init_configuration.local_api_endpoint.bind_port, 8443);
}

#[test]
fn mirrors_and_proxies_are_files_of_every_machine() {
    let all = generated(json!({
        "registryMirrorConfiguration": {
            "endpoint": "mirror.example", "port": "5000", "insecureSkipVerify": true,
            "ociNamespaces": [{"registry": "public.ecr.aws", "namespace": "eks"}],
        },
        "proxyConfiguration": {"httpProxy": "p:1", "httpsProxy": "p:2", "noProxy": ["10.1.0.0/16"]},
    }));
    let specs = [&all.control_plane.spec.kubeadm_config_spec, &all.groups[0].bootstrap.spec.template.spec];
    for spec in specs {
        let content = |path: &str| {
            let file = spec.files.iter().find(|file| file.path == path);
            file.map(|file| file.content.clone()).unwrap_or_default()
        };
        let hosts = content("/etc/containerd/certs.d/public.ecr.aws/hosts.toml");
        assert!(hosts.contains("[host.\"https://mirror.example:5000/v2/eks\"]"), "{hosts}");
        assert!(hosts.contains("skip_verify = true"), "{hosts}");
        let proxy = content("/etc/systemd/system/containerd.service.d/http-proxy.conf");
        let direct = "NO_PROXY=192.168.0.0/16,10.96.0.0/12,10.1.0.0/16,localhost,127.0.0.1,.svc,cloud.example,10.0.0.10:6443";
        assert!(proxy.contains(direct), "{proxy}");
        assert!(spec.pre_kubeadm_commands.iter().any(|it| it == "sudo systemctl restart containerd"));
    }
}

#[test]
fn of_a_registry_that_is_there_twice_the_last_mirror_counts() {
    let twice = json!([{"registry": "r", "namespace": "b"}, {"registry": "r", "namespace": "/a/"}]);
    let all = generated(json!({
        "registryMirrorConfiguration": {"endpoint": "fd00::1", "port": "443", "ociNamespaces": twice},
    }));
    let files = &all.groups[0].bootstrap.spec.template.spec.files;
    let hosts: Vec<_> = files.iter().filter(|file| file.path.ends_with("/r/hosts.toml")).collect();
    assert_eq!(hosts.len(), 1);
    assert!(hosts[0].content.contains("[host.\"https://[fd00::1]:443/v2/a\"]"), "{}", hosts[0].content);
}

#[test]
fn encryption_by_a_plug_in_needs_a_file_and_a_feature_gate() {
    let mut own = cluster(json!({
        "kubernetesVersion": "1.29",
        "etcdEncryption": [{"resources": ["secrets"], "providers": [
            {"kms": {"name": "k", "socketListenAddress": "unix:///var/run/kmsplugin/k.sock"}},
        ]}],
    }));
    own.spec.control_plane_configuration.api_server_extra_args = BTreeMap::from(
        [("feature-gates", "A=true"), ("v", "")].map(|(name, value)| (name.into(), value.into())),
    );
    let all = generated_with(&own, json!({})).expect("objects");
    let spec = &all.control_plane.spec.kubeadm_config_spec;
    let file = spec.files.iter().find(|file| file.path.ends_with("/encryption-config.yaml")).expect("a file");
    let content: Value = serde_saphyr::from_str(&file.content).expect("YAML");
    let kms = json!({
        "apiVersion": "v1", "name": "k", "endpoint": "unix:///var/run/kmsplugin/k.sock", "cachesize": 1000,
        "timeout": "3s",
    });
    assert_eq!(content["resources"][0]["providers"], json!([{"kms": kms}, {"identity": {}}]));
    let args = &spec.cluster_configuration.api_server.extra_args;
    let value = |name: &str| {
        let mut found = args.iter().filter(|arg| arg.name == name).map(|arg| arg.value.as_deref());
        (found.next().flatten(), found.count())
    };
    assert_eq!(value("feature-gates"), (Some("KMSv1=true,A=true"), 0));
    // A flag without a value is none.
    assert_eq!(value("v"), (None, 0));
}

#[test]
fn disks_symlinks_labels_and_kubelet_settings_reach_the_machines() {
    let own = cluster(json!({"workerNodeGroupConfigurations": [{
        "name": "md-0", "labels": {"b": "2", "a": "1", "a-b": "3"}, "kubeletConfiguration": {"maxPods": 20},
        "autoscalingConfiguration": {"minCount": 1, "maxCount": 5},
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
        "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "md"},
    }]}));
    let config = json!({
        "diskOffering": {"name": "d", "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data"},
        "symlinks": {"/var/log": "/data/log", "/var/log-pods": "/data/pods"},
    });
    let all = generated_with(&own, config).expect("objects");
    let group = &all.groups[0];
    let spec = &group.bootstrap.spec.template.spec;
    let node = &spec.join_configuration.node_registration;
    let labels = node.kubelet_extra_args.iter().find(|arg| arg.name == "node-labels");
    assert_eq!(labels.and_then(|arg| arg.value.as_deref()), Some("a-b=3,a=1,b=2"));
    assert_eq!(node.taints.as_ref().map(Vec::len), Some(1));
    assert_eq!(spec.join_configuration.patches.directory, "/etc/kubernetes/patches");
    assert!(spec.files[0].content.contains("maxPods: 20"), "{}", spec.files[0].content);
    assert_eq!(spec.disk_setup.filesystems[0].device, "/dev/vdb1");
    assert_eq!(spec.mounts, [["LABEL=data".to_owned(), "/data".to_owned()]]);
    let annotations = &group.machines.metadata.annotations;
    assert_eq!(
        annotations["symlinks.cloudstack.anywhere.eks.amazonaws.com/v1alpha1"],
        "/var/log-pods:/data/pods,/var/log:/data/log"
    );
    // The autoscaler sets the replicas.
    assert_eq!(group.deployment.spec.replicas, None);
}

#[test]
fn health_checks_have_the_settings_of_the_group_else_of_the_cluster_else_the_defaults() {
    let spec = |own: Value, group: Value, all: Value| {
        let reference = |name: &str| json!({"kind": "CloudStackMachineConfig", "name": name});
        json!({
            "controlPlaneConfiguration": {
                "count": 3, "endpoint": {"host": "10.0.0.10"}, "machineGroupRef": reference("cp"),
                "machineHealthCheck": own,
            },
            "workerNodeGroupConfigurations": [
                {"name": "md-0", "machineGroupRef": reference("md"), "machineHealthCheck": group},
            ],
            "machineHealthCheck": all,
        })
    };
    let none = || Value::Null;
    for (own, group, all, expected) in [
        (none(), none(), none(), ["100% 600 300", "40% 600 300"]),
        (none(), none(), json!({"nodeStartupTimeout": "20m0s"}), ["100% 1200 300", "40% 1200 300"]),
        (none(), none(), json!({"maxUnhealthy": "60%"}), ["60% 600 300", "60% 600 300"]),
        (json!({"maxUnhealthy": 1}), json!({"maxUnhealthy": "50%"}), none(), ["1 600 300", "50% 600 300"]),
        (
            none(),
            json!({"unhealthyMachineTimeout": "2m30s"}),
            json!({"maxUnhealthy": "80%", "unhealthyMachineTimeout": "1m0s"}),
            ["80% 600 60", "80% 600 150"],
        ),
    ] {
        let all = generated(spec(own, group, all));
        let found = [&all.control_plane_health_check, &all.groups[0].health_check].map(|check| {
            let most = check.spec.remediation.trigger_if.unhealthy_less_than_or_equal_to.as_ref();
            let most = most.map(|most| json!(most).to_string().replace('"', "")).unwrap_or_default();
            let checks = &check.spec.checks;
            let unhealthy = checks.unhealthy_node_conditions[0].timeout_seconds.unwrap_or_default();
            format!("{most} {} {unhealthy}", checks.node_startup_timeout_seconds.unwrap_or_default())
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn a_version_outside_of_the_window_names_the_field() {
    let own = cluster(json!({"kubernetesVersion": "1.99"}));
    let error = generated_with(&own, json!({})).expect_err("unknown");
    assert!(error.starts_with("spec.kubernetesVersion: Kubernetes 1.99 is not supported"), "{error}");
}

#[test]
fn workers_may_be_as_far_behind_as_the_server_allows() {
    let group = |version: &str| {
        let own = cluster(json!({"workerNodeGroupConfigurations": [{
            "name": "md-0", "kubernetesVersion": version,
            "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "md"},
        }]}));
        generated_with(&own, json!({})).map(|all| all.groups[0].deployment.spec.template.spec.version.clone())
    };
    assert_eq!(group("1.31").as_deref(), Ok("v1.31.0"));
    let error = group("1.30").expect_err("too old");
    assert_eq!(
        error,
        "spec.workerNodeGroupConfigurations[0].kubernetesVersion: 1.30 is 3 minor versions behind 1.33 of the control plane, and at most 2 are allowed: upgrade the group first"
    );
}

#[test]
fn credentials_of_a_mirror_are_in_a_secret_only() {
    let all = generated(json!({
        "registryMirrorConfiguration": {"endpoint": "mirror.example", "port": "5000", "authenticate": true},
    }));
    for spec in [&all.control_plane.spec.kubeadm_config_spec, &all.groups[0].bootstrap.spec.template.spec] {
        let file = spec.files.iter().find(|file| file.path.ends_with("/config_append.toml")).expect("a file");
        assert_eq!((file.content.as_str(), file.permissions.as_str()), ("", "0600"));
        let source = &file.content_from.secret;
        assert_eq!((source.name.as_str(), source.key.as_str()), ("one-registry", "config_append.toml"));
        assert!(spec.pre_kubeadm_commands.iter().any(|it| it == "chmod 600 /etc/containerd/config.toml"));
    }
    let mirror: RegistryMirrorConfiguration =
        serde_json::from_value(json!({"endpoint": "fd00::1", "port": "5000"})).expect("a mirror");
    let login = Login { username: "u".to_owned(), password: "p\"\\".to_owned() };
    let expected = [
        r#"[plugins."io.containerd.grpc.v1.cri".registry]"#,
        r#"  config_path = "/etc/containerd/certs.d""#,
        r#"  [plugins."io.containerd.grpc.v1.cri".registry.configs."[fd00::1]:5000".auth]"#,
        r#"    username = "u""#,
        r#"    password = "p\"\\""#,
        "",
    ];
    assert_eq!(mirror::configuration(&mirror, Some(&login)), expected.join("\n"));
    assert!(!format!("{login:?}").contains('p'), "{login:?}");
}
