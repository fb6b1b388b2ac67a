use capstan_pki::Credential;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;
use crate::request::{Discovery, ExternalCloud};

/// Cloud-config that writes a configuration and runs kubeadm with it.
pub(super) fn runs(verb: &str, config: &str) -> String {
    let indented: String = config.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "## template: jinja\n#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm.yaml\n  permissions: '0640'\n  content: |\n\
         {indented}\nruncmd:\n- kubeadm {verb} --config /run/kubeadm/kubeadm.yaml && echo success > \
         /run/cluster-api/bootstrap-success.complete\n- mkdir -p /run/cluster-api\n"
    )
}

pub(super) const CLUSTER: &str = "apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: blue
controlPlaneEndpoint: api.blue.example:6443
kubernetesVersion: v1.34.1
networking: {podSubnet: 192.168.0.0/16, serviceSubnet: 10.128.0.0/12}
apiServer:
  certSANs: [API.Blue.example, 10.0.0.10]
  extraArgs: [{name: profiling, value: 'false'}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: '{{ ds.meta_data.local_hostname | lower }}'
  kubeletExtraArgs:
  - {name: provider-id, value: \"cloudstack:///'{{ ds.meta_data.instance_id }}'\"}
  - {name: node-labels, value: 'zone=a,example.com/b=c'}
skipPhases: [addon/kube-proxy]
";

pub(super) const WORKER: &str = "apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 10.0.0.10:6443
    token: abcdef.0123456789abcdef
    caCertHashes: ['sha256:7173b809ca12ec5dee4506cd86be934c4596dd234ee82c0662eac04a8c2c71dc']
nodeRegistration:
  taints: [{key: gpu, effect: NoExecute}]
  kubeletExtraArgs: [{name: register-with-taints, value: 'a=b:NoSchedule'}]
";

fn names(certificate: &[u8]) -> Vec<String> {
    let der = CertificateDer::from_pem_slice(certificate).expect("PEM");
    let (_, parsed) = X509Certificate::from_der(&der).expect("a certificate");
    let mut names = Vec::new();
    for extension in parsed.extensions() {
        if let ParsedExtension::SubjectAlternativeName(held) = extension.parsed_extension() {
            names.extend(held.general_names.iter().map(|name| match name {
                GeneralName::DNSName(name) => (*name).to_owned(),
                GeneralName::IPAddress(bytes) => {
                    bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(".")
                }
                other => format!("{other:?}"),
            }));
        }
    }
    names
}

#[tokio::test(start_paused = true)]
async fn init_generates_what_is_missing_and_requests_a_cluster() {
    let booted = boot(vm(runs("init", CLUSTER))).await;
    assert_eq!(booted.outcome, Ok(Some("node-1".to_owned())), "{}", booted.console);
    let request = booted.init();
    let node = &request.node;
    assert_eq!(
        (node.name.as_str(), node.kubelet_version.as_str(), node.address),
        ("node-1", "v1.34.1", ADDRESS)
    );
    assert_eq!(node.provider_id.as_deref(), Some("cloudstack:///i-1"), "systemd takes the quotes");
    assert_eq!(node.labels.get("example.com/b").map(String::as_str), Some("c"));
    assert_eq!(node.taints, None);
    assert_eq!(request.skipped_phases, ["addon/kube-proxy"]);
    let files: Vec<&str> = request.pki.keys().map(String::as_str).collect();
    assert_eq!(
        files,
        [
            "apiserver-etcd-client.crt",
            "apiserver-etcd-client.key",
            "apiserver-kubelet-client.crt",
            "apiserver-kubelet-client.key",
            "apiserver.crt",
            "apiserver.key",
            "ca.crt",
            "ca.key",
            "etcd/ca.crt",
            "etcd/ca.key",
            "etcd/healthcheck-client.crt",
            "etcd/healthcheck-client.key",
            "etcd/peer.crt",
            "etcd/peer.key",
            "etcd/server.crt",
            "etcd/server.key",
            "front-proxy-ca.crt",
            "front-proxy-ca.key",
            "front-proxy-client.crt",
            "front-proxy-client.key",
            "sa.key",
            "sa.pub",
        ]
    );
    assert_eq!(
        names(&request.pki["apiserver.crt"]),
        [
            "node-1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "10.128.0.1",
            "172.16.0.7",
            "api.blue.example",
            "10.0.0.10",
        ]
    );
    let pem = |name: &str| String::from_utf8_lossy(&request.pki[name]).into_owned();
    for pair in ["ca", "apiserver", "etcd/server", "front-proxy-client"] {
        Credential::from_pem(&pem(&format!("{pair}.crt")), &pem(&format!("{pair}.key"))).expect("a pair");
    }
    let config = &request.cluster_configuration;
    assert_eq!(config["encryptionAlgorithm"], "RSA-2048", "the default of kubeadm");
    assert_eq!(config["etcd"], json!({"local": {"dataDir": "/var/lib/etcd"}}));
    assert_eq!(config["networking"]["dnsDomain"], "cluster.local");
    let token = &request.bootstrap_tokens[0];
    assert!(crate::machine::screen::is_token(token["token"].as_str().expect("a token")), "{token}");
    assert_eq!(token["ttl"], "24h0m0s");
    for file in
        ["admin.conf", "super-admin.conf", "kubelet.conf", "controller-manager.conf", "scheduler.conf"]
    {
        let config: Value =
            serde_saphyr::from_str(&booted.text(&format!("/etc/kubernetes/{file}"))).expect(file);
        assert_eq!(config["kind"], "Config");
    }
    assert!(booted.text("/etc/kubernetes/manifests/kube-apiserver.yaml").contains("--profiling=false"));
    assert!(booted.text("/etc/kubernetes/manifests/etcd.yaml").contains("--name=node-1"));
    booted.prints("[init] Using Kubernetes version: v1.34.1");
    booted.prints("Your Kubernetes control-plane has initialized successfully!");
    assert!(!booted.console.contains("kube-proxy\n"), "it was skipped");
    assert!(!booted.console.contains("PRIVATE KEY"));
}

#[tokio::test(start_paused = true)]
async fn the_sentinel_is_written_by_the_user_data() {
    let mkdir = runs("init", CLUSTER).replace("runcmd:\n", "runcmd:\n- mkdir -p /run/cluster-api\n");
    let booted = boot(vm(mkdir)).await;
    assert_eq!(booted.text("/run/cluster-api/bootstrap-success.complete"), "success\n");
    let without = boot(vm(runs("init", CLUSTER))).await;
    assert!(!without.files.exists("/run/cluster-api/bootstrap-success.complete"));
    without.prints("/run/cluster-api/bootstrap-success.complete: No such file or directory");
}

#[tokio::test(start_paused = true)]
async fn a_worker_requests_to_join() {
    let booted = boot(vm(runs("join", WORKER))).await;
    assert_eq!(booted.outcome, Ok(Some("node-1".to_owned())), "{}", booted.console);
    let request = booted.join();
    assert_eq!(request.control_plane, None);
    assert_eq!(request.tls_bootstrap_token.as_deref(), Some("abcdef.0123456789abcdef"));
    assert_eq!(request.node.provider_id.as_deref(), Some("sim://i-1"), "the cloud's by default");
    assert_eq!(
        request.node.taints,
        Some(vec![
            json!({"key": "gpu", "effect": "NoExecute"}),
            json!({"key": "a", "value": "b", "effect": "NoSchedule"}),
        ])
    );
    let Discovery::Token { endpoint, unsafe_skip_ca_verification: false, .. } = &request.discovery else {
        panic!("{:?}", request.discovery)
    };
    assert_eq!(endpoint, "10.0.0.10:6443");
    booted.prints("This node has joined the cluster:");
    assert!(!booted.console.contains("0123456789abcdef"));
    assert!(booted.files.exists("/etc/kubernetes/kubelet.conf"));
}

#[tokio::test(start_paused = true)]
async fn with_an_external_cloud_provider_only_the_flag_sets_a_provider_id() {
    for (arguments, provider_id, node_ip) in [
        ("{name: cloud-provider, value: external}", None, None),
        (
            "{name: cloud-provider, value: external}, {name: provider-id, value: 'a:///b'}, {name: node-ip, value: 10.0.0.7}",
            Some("a:///b"),
            Some(Ipv4Addr::new(10, 0, 0, 7)),
        ),
    ] {
        let worker = WORKER.replace("{name: register-with-taints, value: 'a=b:NoSchedule'}", arguments);
        let node = boot(vm(runs("join", &worker))).await.join().node;
        assert_eq!(node.provider_id.as_deref(), provider_id, "{arguments}");
        assert_eq!(node.external, Some(ExternalCloud { node_ip }), "{arguments}");
    }
}

#[tokio::test(start_paused = true)]
async fn join_works_with_flags_or_a_discovery_file() {
    let flags = "#cloud-config\nruncmd:\n- kubeadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef \
                 --discovery-token-unsafe-skip-ca-verification --node-name other -v5\n";
    let booted = boot(vm(flags)).await;
    assert_eq!(booted.outcome, Ok(Some("other".to_owned())), "{}", booted.console);
    let file = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  file: {kubeConfigPath: /etc/discovery.conf}\n";
    let file = runs("join", file).replace(
        "write_files:\n",
        "write_files:\n- {path: /etc/discovery.conf, content: '{clusters: [{cluster: {server: \"https://10.0.0.10:6443\"}}]}'}\n",
    );
    let booted = boot(vm(file)).await;
    let Discovery::File { kubeconfig } = booted.join().discovery else { panic!("no file") };
    assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], "https://10.0.0.10:6443");
}

#[tokio::test(start_paused = true)]
async fn v1beta3_is_converted_to_the_version_that_kubeadm_writes() {
    let config = "apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
kubernetesVersion: v1.30.4
apiServer: {timeoutForControlPlane: 5m0s, extraArgs: {profiling: 'false'}}
---
apiVersion: kubeadm.k8s.io/v1beta3
kind: InitConfiguration
nodeRegistration: {kubeletExtraArgs: {node-labels: a=b}, taints: []}
";
    let mut old = vm(runs("init", config));
    old.image.kubernetes = Some("v1.30.4".to_owned());
    let request = boot(old).await.init();
    assert_eq!(request.cluster_configuration["apiVersion"], "kubeadm.k8s.io/v1beta3");
    assert_eq!(request.cluster_configuration["apiServer"]["extraArgs"], json!({"profiling": "false"}));
    assert_eq!((request.node.taints, request.node.labels["a"].as_str()), (Some(Vec::new()), "b"));
    let newer = boot(vm(runs("init", &config.replace("v1.30.4", "v1.34.1")))).await;
    newer.prints("your configuration file uses a deprecated API spec: \"kubeadm.k8s.io/v1beta3\"");
    let config = newer.init().cluster_configuration;
    assert_eq!(config["apiVersion"], "kubeadm.k8s.io/v1beta4");
    assert_eq!(config["apiServer"]["extraArgs"], json!([{"name": "profiling", "value": "false"}]));
    assert_eq!(config["apiServer"].get("timeoutForControlPlane"), None);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_dropped_with_a_warning() {
    let booted =
        boot(vm(runs("init", &CLUSTER.replace("clusterName: blue", "clusterName: blue\nfoo: {bar: 1}"))))
            .await;
    booted.prints(
        "error unmarshaling configuration schema.GroupVersionKind{Group:\"kubeadm.k8s.io\", Version:\"v1beta4\", \
         Kind:\"ClusterConfiguration\"}: strict decoding error: unknown field \"foo\"",
    );
    assert_eq!(booted.init().cluster_configuration.get("foo"), None);
}

#[tokio::test(start_paused = true)]
async fn keys_have_the_configured_algorithm() {
    let config = CLUSTER.replace("clusterName: blue", "clusterName: blue\nencryptionAlgorithm: ECDSA-P384");
    let request = boot(vm(runs("init", &config))).await.init();
    let key = String::from_utf8_lossy(&request.pki["apiserver.key"]).into_owned();
    let key = capstan_pki::PrivateKey::from_pem(&key).expect("a key");
    assert_eq!(key.token_algorithm(), "ES384");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_console() {
    let (one, other) = (boot(vm(runs("init", CLUSTER))).await, boot(vm(runs("init", CLUSTER))).await);
    assert_eq!(one.console, other.console);
    assert_eq!(one.init().bootstrap_tokens, other.init().bootstrap_tokens);
}

#[tokio::test(start_paused = true)]
async fn init_works_with_flags() {
    let flags = "#cloud-config\nruncmd:\n- kubeadm init --control-plane-endpoint 10.0.0.10 --pod-network-cidr 10.244.0.0/16 \
                 --apiserver-cert-extra-sans a.example,b.example --token abcdef.0123456789abcdef\n";
    let booted = boot(vm(flags)).await;
    assert_eq!(booted.outcome, Ok(Some("node-1".to_owned())), "{}", booted.console);
    let request = booted.init();
    assert_eq!(request.cluster_configuration["networking"]["podSubnet"], "10.244.0.0/16");
    assert_eq!(
        request.cluster_configuration["kubernetesVersion"], "v1.34.1",
        "the image's without internet access"
    );
    assert_eq!(request.bootstrap_tokens[0]["token"], "abcdef.0123456789abcdef");
    assert!(names(&request.pki["apiserver.crt"]).contains(&"b.example".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn patches_change_what_kubeadm_writes() {
    let patched = |file: &str, content: &str| {
        let data = runs("init", &format!("{CLUSTER}patches: {{directory: /etc/patches}}\n"));
        data.replace(
            "write_files:\n",
            &format!("write_files:\n- {{path: /etc/patches/{file}, content: '{content}'}}\n"),
        )
    };
    for (file, content, expected) in [
        (
            "kube-apiserver.yaml",
            r#"{"spec": {"containers": [{"name": "kube-apiserver", "imagePullPolicy": "Never"}]}}"#,
            "imagePullPolicy: Never",
        ),
        (
            "kube-apiserver+json.json",
            r#"[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]"#,
            "a: b",
        ),
        ("kube-apiserver1+merge.yaml", r#"{"metadata": {"labels": {"c": "d"}}}"#, "c: d"),
    ] {
        let booted = boot(vm(patched(file, content))).await;
        let manifest = booted.text("/etc/kubernetes/manifests/kube-apiserver.yaml");
        assert!(manifest.contains(expected) && manifest.contains("--secure-port=6443"), "{manifest}");
        booted.prints("to target \"kube-apiserver\"");
    }
    let broken = boot(vm(patched("etcd.yaml", "a: ["))).await;
    assert!(broken.outcome.expect_err("broken").contains("could not parse patches for file \"etcd.yaml\""));
    let missing = boot(vm(runs("init", &format!("{CLUSTER}patches: {{directory: /nowhere}}\n")))).await;
    assert!(
        missing.outcome.expect_err("missing").contains("could not list patch files for path \"/nowhere\"")
    );
}

/// As in examples/kvm-cluster.yaml, whose machines run real kubeadm.
#[tokio::test]
async fn a_configuration_of_kube_proxy_may_be_appended_before_kubeadm_runs() {
    let proxy = "- path: /etc/kubernetes/kube-proxy.yaml\n  content: |\n    ---\n    apiVersion: kubeproxy.config.k8s.io/v1alpha1\n    \
                 kind: KubeProxyConfiguration\n    conntrack:\n      maxPerCore: 0\n";
    let append = "- if [ -f /run/kubeadm/kubeadm.yaml ]; then cat /etc/kubernetes/kube-proxy.yaml >> \
                  /run/kubeadm/kubeadm.yaml; fi\n";
    let data = runs("init", CLUSTER)
        .replace("write_files:\n", &format!("write_files:\n{proxy}"))
        .replace("runcmd:\n", &format!("runcmd:\n{append}"));
    let booted = boot(vm(data)).await;
    assert_eq!(booted.outcome, Ok(Some("node-1".to_owned())), "{}", booted.console);
    assert!(booted.text("/run/kubeadm/kubeadm.yaml").ends_with("maxPerCore: 0\n"));
}
