//! A table of manifests: what is wrong with each, where, in which words; and that the manifest is accepted without it.

use capstan_capi_types::admission::{Admission, Features, FieldError, SecretUse};
use capstan_object::{Key, Object};
use serde_json::{Value, json};

use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};

fn cluster() -> Value {
    json!({
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {
            "kubernetesVersion": "1.33",
            "managementCluster": {"name": "capstan"},
            "controlPlaneConfiguration": {
                "count": 3, "endpoint": {"host": "10.0.0.10"},
                "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "cp"},
            },
            "workerNodeGroupConfigurations": [
                {"name": "md-0", "count": 2, "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "md"}},
            ],
            "datacenterRef": {"kind": "CloudStackDatacenterConfig", "name": "dc"},
            "clusterNetwork": {
                "cniConfig": {"cilium": {}},
                "pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]},
            },
        },
    })
}

fn datacenter() -> Value {
    json!({"metadata": {"name": "dc", "namespace": "default"}, "spec": {"availabilityZones": [{
        "name": "az-1", "credentialsRef": "global", "managementApiEndpoint": "https://cloud.example/client/api",
        "account": "a", "domain": "d1/d2", "zone": {"name": "z", "network": {"name": "n"}},
    }]}})
}

fn machine_config() -> Value {
    json!({"metadata": {"name": "md", "namespace": "default"}, "spec": {
        "template": {"name": "kube-1.33"}, "computeOffering": {"name": "small"},
        "users": [{"name": "capc", "sshAuthorizedKeys": ["ssh-ed25519 AAAA me"]}],
        "diskOffering": {"name": "disk", "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data"},
    }})
}

/// Puts a value at a path of field names and numbers; null removes.
fn with(mut object: Value, path: &str, value: Value) -> Value {
    let mut at = &mut object;
    let parts: Vec<&str> = path.split('.').collect();
    let (last, front) = parts.split_last().expect("a path");
    for part in front {
        at = match part.parse::<usize>() {
            Ok(number) => &mut at[number],
            Err(_) => &mut at[*part],
        };
    }
    match (value, at.as_object_mut()) {
        (Value::Null, Some(fields)) => drop(fields.remove(*last)),
        (value, _) => match last.parse::<usize>() {
            Ok(number) => at[number] = value,
            Err(_) => at[*last] = value,
        },
    }
    object
}

fn admitted<T: Admission>(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let typed = |value: &Value| {
        let mut object = T::deserialize(value).expect("an object");
        Admission::default(&mut object, None).expect("defaults");
        object
    };
    typed(new).validate(old.map(typed).as_ref(), &Features::ALL)
}

/// Checks that each change is refused with one error at a place in these words, and that the manifest is fine without it.
fn refused<T: Admission>(valid: &Value, table: &[(&str, Value, &str)]) {
    assert_eq!(admitted::<T>(valid, None), [], "{} without changes", T::KIND.kind);
    for (path, value, expected) in table {
        let errors = admitted::<T>(&with(valid.clone(), path, value.clone()), None);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, [*expected], "{path} = {value}");
    }
}

#[test]
fn clusters_that_are_refused() {
    let group = |name: &str| json!({"name": name, "count": 1, "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "md"}});
    let cp = "spec.controlPlaneConfiguration";
    let md = "spec.workerNodeGroupConfigurations[0]";
    let at = |rest: &str| format!("spec.workerNodeGroupConfigurations.0.{rest}");
    let rows: Vec<(String, Value, String)> = vec![
        ("metadata.name".into(), json!("1a"), r#"metadata.name: Invalid value: "1a": cluster names start with a letter and contain letters, digits and dashes only"#.into()),
        ("spec.kubernetesVersion".into(), json!("1.33.1"), r#"spec.kubernetesVersion: Invalid value: "1.33.1": "1.33.1" is not a Kubernetes version of the form "1.33""#.into()),
        ("spec.managementCluster.name".into(), json!("one"), "spec.managementCluster.name: Forbidden: self-managed clusters are not supported: this server is the management cluster; name it here, by any name other than the cluster's own".into()),
        ("spec.managementCluster".into(), Value::Null, "spec.managementCluster.name: Forbidden: self-managed clusters are not supported: this server is the management cluster; name it here, by any name other than the cluster's own".into()),
        ("spec.externalEtcdConfiguration".into(), json!({"count": 3}), "spec.externalEtcdConfiguration: Forbidden: external etcd is not supported: remove it, and etcd runs on the control plane machines".into()),
        ("spec.identityProviderRefs".into(), json!([{"kind": "OIDCConfig", "name": "o"}]), "spec.identityProviderRefs: Forbidden: identity providers are not supported: set the API server's flags with controlPlaneConfiguration.apiServerExtraArgs".into()),
        ("spec.gitOpsRef".into(), json!({"kind": "FluxConfig", "name": "f"}), "spec.gitOpsRef: Forbidden: gitOpsRef is not supported: point your GitOps tool at this API server".into()),
        ("spec.podIamConfig".into(), json!({"serviceAccountIssuer": "i"}), "spec.podIamConfig: Forbidden: pod IAM is not supported: set service-account-issuer with controlPlaneConfiguration.apiServerExtraArgs".into()),
        ("spec.packages".into(), json!({"disable": false}), "spec.packages: Forbidden: curated packages are not supported: remove it, or set disable: true alone".into()),
        ("spec.etcdEncryption".into(), json!([{"resources": ["secrets"], "providers": [{"kms": {"name": "k", "socketListenAddress": "unix:///var/run/kmsplugin/s"}}]}]), "spec.etcdEncryption: Forbidden: etcdEncryption is not supported during cluster creation: install the KMS plug-in in the cluster, then set it".into()),
        ("spec.datacenterRef.kind".into(), json!("VSphereDatacenterConfig"), r#"spec.datacenterRef.kind: Unsupported value: "VSphereDatacenterConfig": supported values: "CloudStackDatacenterConfig""#.into()),
        ("spec.datacenterRef.name".into(), json!(""), "spec.datacenterRef.name: Required value: name a CloudStackDatacenterConfig".into()),
        (format!("{cp}.count"), json!(0), format!("{cp}.count: Invalid value: 0: control plane node count must be positive")),
        (format!("{cp}.count"), json!(2), format!("{cp}.count: Invalid value: 2: control plane node count cannot be an even number when using stacked etcd topology")),
        (format!("{cp}.endpoint"), Value::Null, format!("{cp}.endpoint.host: Required value: cluster controlPlaneConfiguration.Endpoint.Host is not set or is empty")),
        (format!("{cp}.endpoint.host"), json!("10.0.0"), format!(r#"{cp}.endpoint.host: Invalid value: "10.0.0": use an IPv4 address or a domain name, with an optional port"#)),
        (format!("{cp}.endpoint.host"), json!("10.0.0.1:x"), format!(r#"{cp}.endpoint.host: Invalid value: "10.0.0.1:x": "x" is not a port: use a number from 1 to 65535"#)),
        (format!("{cp}.endpoint.host"), json!("192.168.0.9"), format!(r#"{cp}.endpoint.host: Invalid value: "192.168.0.9": the control plane endpoint is in the pods CIDR block 192.168.0.0/16"#)),
        (format!("{cp}.machineGroupRef"), Value::Null, format!("{cp}.machineGroupRef: Required value: name a CloudStackMachineConfig")),
        (format!("{cp}.taints"), json!([{"key": "a", "effect": "Never"}]), format!(r#"{cp}.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#)),
        (format!("{cp}.certSans"), json!(["a_b"]), format!(r#"{cp}.certSans[0]: Invalid value: "a_b": must be an IP or domain name"#)),
        (format!("{cp}.apiServerExtraArgs"), json!({"audit-log-path": "/x"}), format!("{cp}.apiServerExtraArgs[audit-log-path]: Forbidden: the flag is set by the controller: remove it")),
        (format!("{cp}.kubeletConfiguration"), json!({"providerID": "x"}), format!("{cp}.kubeletConfiguration.providerID: Forbidden: the field is set by the controller: remove it")),
        (format!("{cp}.auditPolicyContent"), json!("kind: Pod"), format!("{cp}.auditPolicyContent: Forbidden: use a Policy of audit.k8s.io/v1 with rules, as YAML")),
        (format!("{cp}.skipLoadBalancerDeployment"), json!(true), format!("{cp}.skipLoadBalancerDeployment: Forbidden: skipLoadBalancerDeployment is supported on bare metal only: remove it")),
        (format!("{cp}.skipAdmissionForSystemResources"), json!(true), format!("{cp}.skipAdmissionForSystemResources: Forbidden: skipAdmissionForSystemResources needs a patched API server and is not supported: remove it")),
        (format!("{cp}.upgradeRolloutStrategy"), json!({"type": "InPlace"}), format!(r#"{cp}.upgradeRolloutStrategy.type: Unsupported value: "InPlace": supported values: "RollingUpdate""#)),
        (format!("{cp}.upgradeRolloutStrategy"), json!({"rollingUpdate": {"maxSurge": 2}}), format!("{cp}.upgradeRolloutStrategy.rollingUpdate.maxSurge: Invalid value: 2: maxSurge for control plane must be 0 or 1")),
        ("spec.machineHealthCheck".into(), json!({"nodeStartupTimeout": "5"}), r#"spec.machineHealthCheck.nodeStartupTimeout: Invalid value: "5": use a duration of at least 30s, such as 10m0s"#.into()),
        (at("machineGroupRef"), Value::Null, format!("{md}.machineGroupRef: Required value: name a CloudStackMachineConfig")),
        (at("count"), json!(-1), format!("{md}.count: Invalid value: -1: worker node count must be zero or greater")),
        (at("name"), json!("A"), format!(r#"{md}.name: Invalid value: "A": {}"#, capstan_schema::meta::dns1123_subdomain("A").join(""))),
        (at("autoscalingConfiguration"), json!({"minCount": 3, "maxCount": 5}), format!("{md}.autoscalingConfiguration.minCount: Invalid value: 3: min count must be less than or equal to count")),
        (at("autoscalingConfiguration"), json!({"minCount": 1, "maxCount": 1}), format!("{md}.autoscalingConfiguration.maxCount: Invalid value: 1: max count must be greater than or equal to count")),
        (at("failureDomains"), json!(["a"]), format!("{md}.failureDomains: Forbidden: failureDomains are not supported on CloudStack: machines are spread over the availability zones")),
        (at("kubernetesVersion"), json!("1.34"), format!(r#"{md}.kubernetesVersion: Invalid value: "1.34": worker nodes cannot be newer than the control plane: upgrade the cluster first"#)),
        (at("kubernetesVersion"), json!("1.29"), format!(r#"{md}.kubernetesVersion: Invalid value: "1.29": worker nodes can be at most 3 minor versions behind the control plane: upgrade the group first"#)),
        (at("upgradeRolloutStrategy"), json!({"type": "RollingUpdate"}), format!("{md}.upgradeRolloutStrategy.rollingUpdate: Required value: set maxSurge and maxUnavailable")),
        (at("upgradeRolloutStrategy"), json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}), format!("{md}.upgradeRolloutStrategy.rollingUpdate: Forbidden: maxSurge and maxUnavailable cannot both be 0")),
        ("spec.workerNodeGroupConfigurations".into(), json!([group("a"), group("a")]), r#"spec.workerNodeGroupConfigurations[1].name: Invalid value: "a": worker node group names must be unique"#.into()),
        ("spec.clusterNetwork.cniConfig".into(), Value::Null, "spec.clusterNetwork.cniConfig: Required value: cni not specified: set cilium".into()),
        ("spec.clusterNetwork.cniConfig".into(), json!({"kindnetd": {}}), "spec.clusterNetwork.cniConfig.kindnetd: Forbidden: kindnetd is supported on Docker only: use cilium".into()),
        ("spec.clusterNetwork.cniConfig".into(), json!({}), "spec.clusterNetwork.cniConfig.cilium: Required value: no cni plugin specified: set cilium".into()),
        ("spec.clusterNetwork.cni".into(), json!("cilium"), "spec.clusterNetwork.cni: Forbidden: both old and new formats used, use only the cniConfig field".into()),
        ("spec.clusterNetwork.cniConfig.cilium.policyEnforcementMode".into(), json!("x"), r#"spec.clusterNetwork.cniConfig.cilium.policyEnforcementMode: Unsupported value: "x": supported values: "default", "always", "never""#.into()),
        ("spec.clusterNetwork.cniConfig.cilium".into(), json!({"skipUpgrade": true, "routingMode": "overlay"}), "spec.clusterNetwork.cniConfig.cilium: Forbidden: when using skipUpgrade for cilium all other fields must be empty".into()),
        ("spec.clusterNetwork.cniConfig.cilium.routingMode".into(), json!("direct"), "spec.clusterNetwork.cniConfig.cilium.ipv4NativeRoutingCIDR: Required value: direct routing mode requires ipv4NativeRoutingCIDR to be set".into()),
        ("spec.clusterNetwork.pods.cidrBlocks".into(), json!([]), "spec.clusterNetwork.pods.cidrBlocks: Required value: pods CIDR block not specified or empty".into()),
        ("spec.clusterNetwork.pods.cidrBlocks".into(), json!(["a"]), r#"spec.clusterNetwork.pods.cidrBlocks: Invalid value: "a": use a CIDR, such as 10.96.0.0/12"#.into()),
        ("spec.clusterNetwork.services.cidrBlocks".into(), json!(["10.96.0.0/12", "10.112.0.0/12"]), "spec.clusterNetwork.services.cidrBlocks: Forbidden: multiple CIDR blocks for services are not yet supported: keep one".into()),
        ("spec.clusterNetwork.services.cidrBlocks".into(), json!(["192.168.1.0/24"]), "spec.clusterNetwork.services.cidrBlocks: Forbidden: the CIDR blocks of pods and services overlap: 192.168.0.0/16, 192.168.1.0/24".into()),
        ("spec.clusterNetwork.nodes".into(), json!({"cidrMaskSize": 16}), "spec.clusterNetwork.nodes.cidrMaskSize: Invalid value: 16: the range of a node must be smaller than the range of pods with mask 16".into()),
        ("spec.proxyConfiguration".into(), json!({"httpProxy": "p:1"}), "spec.proxyConfiguration.httpsProxy: Required value: no value set for httpsProxy: use host:port".into()),
        ("spec.proxyConfiguration".into(), json!({"httpProxy": "p:1", "httpsProxy": "p"}), r#"spec.proxyConfiguration.httpsProxy: Invalid value: "p": use host:port, or a URL with a port"#.into()),
        ("spec.proxyConfiguration".into(), json!({"httpProxy": "p:1", "httpsProxy": "http://p/"}), r#"spec.proxyConfiguration.httpsProxy: Invalid value: "http://p/": use host:port, or a URL with a port"#.into()),
        ("spec.proxyConfiguration".into(), json!({"httpProxy": "http://me:a%40b@p:1", "httpsProxy": "p:1"}), r#"spec.proxyConfiguration.httpProxy: Forbidden: spaces and the characters " \ % are not allowed: they mean something in systemd units"#.into()),
        ("spec.registryMirrorConfiguration".into(), json!({}), "spec.registryMirrorConfiguration.endpoint: Required value: name the host of the registry mirror".into()),
        ("spec.registryMirrorConfiguration".into(), json!({"endpoint": "m", "port": "x"}), r#"spec.registryMirrorConfiguration.port: Invalid value: "x": use a number from 1 to 65535"#.into()),
        ("spec.registryMirrorConfiguration".into(), json!({"endpoint": "https://m"}), r#"spec.registryMirrorConfiguration.endpoint: Invalid value: "https://m": use an address or a domain name, without a scheme and a port"#.into()),
        ("spec.registryMirrorConfiguration".into(), json!({"endpoint": "m", "ociNamespaces": [{"registry": ""}]}), "spec.registryMirrorConfiguration.ociNamespaces[0].registry: Required value: name the registry that is mirrored".into()),
    ];
    let rows: Vec<(&str, Value, &str)> =
        rows.iter().map(|(path, value, text)| (path.as_str(), value.clone(), text.as_str())).collect();
    refused::<Cluster>(&cluster(), &rows);
}

#[test]
fn clusters_that_are_accepted_as_by_eks_anywhere() {
    let both = |proxy: &str| json!({"httpProxy": proxy, "httpsProxy": proxy});
    let at = |rest: &str| format!("spec.workerNodeGroupConfigurations.0.{rest}");
    for (path, value) in [
        // Only clusters that manage themselves need a group without such taints.
        (at("taints"), json!([{"key": "a", "effect": "NoSchedule"}])),
        (at("taints"), json!([{"key": "a", "effect": "NoExecute"}])),
        ("spec.proxyConfiguration".to_owned(), both("proxy.example:3128")),
        ("spec.proxyConfiguration".to_owned(), both("http://proxy.example:3128/")),
        ("spec.proxyConfiguration".to_owned(), both("https://me:secret@proxy.example:3128")),
    ] {
        assert_eq!(admitted::<Cluster>(&with(cluster(), &path, value.clone()), None), [], "{path} = {value}");
    }
}

#[test]
fn datacenters_that_are_refused() {
    let zone = "spec.availabilityZones.0";
    let shown = "spec.availabilityZones[0]";
    let rows: Vec<(String, Value, String)> = vec![
        (
            "spec.availabilityZones".into(),
            json!([]),
            "spec.availabilityZones: Required value: availabilityZones must not be empty".into(),
        ),
        (
            "spec.account".into(),
            json!("a"),
            "spec.account: Forbidden: account must be empty: it is part of availabilityZones".into(),
        ),
        (
            "spec.zones".into(),
            json!([{"name": "z"}]),
            "spec.zones: Forbidden: zones must be empty: it is part of availabilityZones".into(),
        ),
        (
            format!("{zone}.name"),
            json!(""),
            format!("{shown}.name: Required value: an availability zone has a name"),
        ),
        (
            format!("{zone}.credentialsRef"),
            json!(""),
            format!(
                "{shown}.credentialsRef: Required value: name the Secret with the keys, in namespace eksa-system"
            ),
        ),
        (
            format!("{zone}.zone.name"),
            json!(""),
            format!("{shown}.zone: Required value: name the zone, by id or name"),
        ),
        (
            format!("{zone}.zone.network.name"),
            json!(""),
            format!("{shown}.zone.network: Required value: zone network is not set or is empty"),
        ),
        (
            format!("{zone}.managementApiEndpoint"),
            json!("cloud"),
            format!(
                r#"{shown}.managementApiEndpoint: Invalid value: "cloud": use the URL of the API, such as https://cloud.example.org/client/api"#
            ),
        ),
        (
            format!("{zone}.domain"),
            json!("ROOT/a"),
            format!(r#"{shown}.domain: Invalid value: "ROOT/a": write the path without ROOT/"#),
        ),
    ];
    let rows: Vec<(&str, Value, &str)> =
        rows.iter().map(|(path, value, text)| (path.as_str(), value.clone(), text.as_str())).collect();
    refused::<CloudStackDatacenterConfig>(&datacenter(), &rows);
}

#[test]
fn machine_configs_that_are_refused() {
    refused::<CloudStackMachineConfig>(
        &machine_config(),
        &[
            (
                "spec.template.name",
                json!(""),
                "spec.template: Required value: template is not set: provide a name or an id",
            ),
            (
                "spec.computeOffering.name",
                json!(""),
                "spec.computeOffering: Required value: computeOffering is not set: provide a name or an id",
            ),
            (
                "spec.diskOffering.name",
                json!(""),
                "spec.diskOffering: Required value: empty id/name: name the offering, or remove diskOffering",
            ),
            (
                "spec.diskOffering.mountPath",
                json!("/"),
                r#"spec.diskOffering.mountPath: Invalid value: "/": must be non-empty and start with /"#,
            ),
            ("spec.diskOffering.device", json!(""), "spec.diskOffering.device: Required value: empty device"),
            (
                "spec.diskOffering.customSizeInGB",
                json!(-1),
                "spec.diskOffering.customSizeInGB: Invalid value: -1: must not be negative",
            ),
            (
                "spec.symlinks",
                json!({"/a/": "/b"}),
                r#"spec.symlinks: Invalid value: "/a/": must start with / and NOT end with /"#,
            ),
            (
                "spec.symlinks",
                json!({"/a": "/b;c"}),
                r#"spec.symlinks: Invalid value: "/b;c": has char not in portable file name set"#,
            ),
            (
                "spec.userCustomDetails",
                json!({"cpuNumber": "4"}),
                "spec.userCustomDetails[cpuNumber]: Forbidden: restricted key cpuNumber found in custom user details: remove it",
            ),
            (
                "spec.affinity",
                json!("some"),
                r#"spec.affinity: Unsupported value: "some": supported values: "pro", "anti", "no""#,
            ),
            ("spec.users", json!([]), "spec.users: Required value: name a user with an SSH key"),
            (
                "spec.users.0.sshAuthorizedKeys",
                json!([]),
                "spec.users[0].sshAuthorizedKeys: Required value: a user has a public key for SSH",
            ),
            (
                "spec.users.0.sshAuthorizedKeys",
                json!(["x"]),
                "spec.users[0].sshAuthorizedKeys[0]: Forbidden: use a public key as in ~/.ssh/id_ed25519.pub: type and key",
            ),
        ],
    );
}

#[test]
fn what_cannot_change_and_what_can() {
    let old = cluster();
    let texts = |path: &str, value: Value| {
        let errors = admitted::<Cluster>(&with(old.clone(), path, value), Some(&old));
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (path, value, place) in [
        ("spec.managementCluster.name", json!("other"), "spec.managementCluster.name"),
        ("spec.datacenterRef.name", json!("other"), "spec.datacenterRef"),
        (
            "spec.controlPlaneConfiguration.endpoint.host",
            json!("10.0.0.11"),
            "spec.controlPlaneConfiguration.endpoint",
        ),
        ("spec.clusterNetwork.pods.cidrBlocks", json!(["172.16.0.0/16"]), "spec.clusterNetwork.pods"),
        ("spec.clusterNetwork.services.cidrBlocks", json!(["172.16.0.0/16"]), "spec.clusterNetwork.services"),
        ("spec.clusterNetwork.nodes", json!({"cidrMaskSize": 25}), "spec.clusterNetwork.nodes"),
        (
            "spec.proxyConfiguration",
            json!({"httpProxy": "p:1", "httpsProxy": "p:1"}),
            "spec.proxyConfiguration",
        ),
    ] {
        assert_eq!(texts(path, value), [format!("{place}: Forbidden: field is immutable")]);
    }
    let skipped = texts("spec.kubernetesVersion", json!("1.35"));
    assert_eq!(
        skipped,
        [
            r#"spec.kubernetesVersion: Invalid value: "1.35": an upgrade from 1.33 to 1.35 skips a minor version: upgrade to 1.34 first"#
        ]
    );
    assert_eq!(texts("spec.kubernetesVersion", json!("1.32")).len(), 2, "the cluster and its group");
    for (path, value) in [
        ("spec.kubernetesVersion", json!("1.34")),
        ("spec.controlPlaneConfiguration.endpoint.host", json!("10.0.0.10:6443")),
        ("spec.controlPlaneConfiguration.count", json!(5)),
        ("spec.workerNodeGroupConfigurations.0.count", json!(0)),
    ] {
        assert_eq!(texts(path, value), Vec::<String>::new(), "{path}");
    }
    let zones = datacenter();
    let moved = with(zones.clone(), "spec.availabilityZones.0.zone.name", json!("other"));
    assert_eq!(admitted::<CloudStackDatacenterConfig>(&moved, Some(&zones)).len(), 1);
    let config = machine_config();
    let together = with(config.clone(), "spec.affinity", json!("pro"));
    assert_eq!(admitted::<CloudStackMachineConfig>(&together, Some(&config)).len(), 1);
}

/// Names of the fields that cannot change in an object whose annotation had a value before and has one after.
fn fixed<T: Admission>(
    old: &Value,
    path: &str,
    value: &Value,
    before: Option<&str>,
    after: Option<&str>,
) -> Vec<String> {
    let paused = |mut object: Value, value: Option<&str>| {
        if let Some(value) = value {
            object["metadata"]["annotations"] = json!({crate::names::annotation::PAUSED: value});
        }
        object
    };
    let new = paused(with(old.clone(), path, value.clone()), after);
    let errors = admitted::<T>(&new, Some(&paused(old.clone(), before)));
    errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn what_was_paused_can_be_repaired() {
    let host = "spec.controlPlaneConfiguration.endpoint";
    let (pools, own) = ("spec.clusterNetwork.pods", json!({"cidrBlocks": ["172.16.0.0/16"]}));
    let itself = with(cluster(), "spec.managementCluster.name", json!("one"));
    let (manager, other) = ("spec.managementCluster.name", json!("capstan"));
    for (before, after, is_fixed) in [
        (None, None, true),
        (None, Some("true"), true),
        (Some("false"), None, true),
        (Some(""), Some(""), true),
        (Some("true"), Some("true"), false),
        (Some("true"), None, false),
    ] {
        let expected = |path: &str| is_fixed.then(|| path.to_owned()).into_iter().collect::<Vec<_>>();
        let shown = format!("{before:?}, then {after:?}");
        let moved = json!({"host": "10.0.0.11"});
        assert_eq!(fixed::<Cluster>(&cluster(), host, &moved, before, after), expected(host), "{shown}");
        assert_eq!(fixed::<Cluster>(&cluster(), pools, &own, before, after), expected(pools), "{shown}");
        // A cluster that managed itself gets its manager.
        assert_eq!(fixed::<Cluster>(&itself, manager, &other, before, after), expected(manager), "{shown}");
        let found = fixed::<CloudStackMachineConfig>(
            &machine_config(),
            "spec.affinity",
            &json!("pro"),
            before,
            after,
        );
        assert_eq!(found, expected("spec.affinity"), "{shown}");
        let found = fixed::<CloudStackDatacenterConfig>(
            &datacenter(),
            "spec.availabilityZones.0.zone.name",
            &json!("other"),
            before,
            after,
        );
        assert_eq!(found, expected("spec.availabilityZones"), "{shown}");
    }
    let kept =
        fixed::<Cluster>(&itself, "spec.controlPlaneConfiguration.count", &json!(5), Some("true"), None);
    assert_eq!(kept, ["spec.managementCluster.name"], "it still manages itself");
}

#[test]
fn defaults_are_few() {
    let mut given = cluster();
    given["spec"]["workerNodeGroupConfigurations"][0].as_object_mut().expect("a group").remove("name");
    given["spec"]["workerNodeGroupConfigurations"][0].as_object_mut().expect("a group").remove("count");
    given["spec"]["registryMirrorConfiguration"] = json!({"endpoint": "mirror.example"});
    let mut object: Cluster = serde_json::from_value(given).expect("a cluster");
    Admission::default(&mut object, None).expect("defaults");
    let group = &object.spec.worker_node_group_configurations[0];
    assert_eq!((group.name.as_str(), group.count), ("md-0", Some(1)));
    assert_eq!(object.spec.registry_mirror_configuration.map(|it| it.port).as_deref(), Some("443"));
    // The port of the endpoint is part of generation, not of the user's object.
    let host = object.spec.control_plane_configuration.endpoint.map(|it| it.host);
    assert_eq!(host.as_deref(), Some("10.0.0.10"));
    assert_eq!(Cluster::KIND.api_version(), "anywhere.eks.amazonaws.com/v1alpha1");
}

#[test]
fn a_mirror_with_credentials_uses_the_secret_of_the_operators() {
    for (mirror, expected) in [
        (Value::Null, vec![]),
        (json!({"endpoint": "mirror.example"}), vec![]),
        (json!({"endpoint": "mirror.example", "authenticate": false}), vec![]),
        (
            json!({"endpoint": "mirror.example", "authenticate": true}),
            vec![SecretUse {
                path: "spec.registryMirrorConfiguration.authenticate".to_owned(),
                secret: Key::new("eksa-system", "registry-credentials"),
            }],
        ),
    ] {
        let object = with(cluster(), "spec.registryMirrorConfiguration", mirror.clone());
        let object: Cluster = serde_json::from_value(object).expect("a cluster");
        assert_eq!(object.secrets(), expected, "{mirror}");
    }
}
