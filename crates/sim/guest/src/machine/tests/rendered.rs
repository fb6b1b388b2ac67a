//! Boot data of our bootstrap provider, on a machine.

use capstan_capi_kubeadm::bootstrap_data::{
    BootstrapData, KubeadmCommand, as_control_plane, as_worker, resolve_files, resolve_users, with_discovery,
};
use capstan_capi_kubeadm::certificates::{
    KeyPair, KeySettings, Keys, Purpose, SeededKeys, locations_for_control_plane,
};
use capstan_capi_kubeadm::config;
use capstan_capi_types::bootstrap::{EncryptionAlgorithmType, File, KubeadmConfigSpec};
use capstan_capi_types::core::Cluster;

use super::*;
use crate::request::Discovery;

const VERSION: &str = "v1.34.1";

fn object<T: for<'de> serde::Deserialize<'de>>(yaml: &str) -> T {
    let value: serde_json::Value = serde_saphyr::from_str(yaml).expect("YAML");
    serde_json::from_value(value).expect("an object")
}

fn cluster() -> Cluster {
    object(
        "metadata: {name: blue, namespace: fleet, uid: u}
spec:
  controlPlaneEndpoint: {host: 10.0.0.10, port: 6443}
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}}",
    )
}

fn spec(format: &str) -> KubeadmConfigSpec {
    object(&format!(
        "format: {format}
clusterConfiguration: {{apiServer: {{certSANs: [api.example]}}}}
files:
- {{path: /etc/kubernetes/manifests/kube-vip.yaml, owner: root:root, permissions: '0644', content: 'kind: Pod'}}
preKubeadmCommands: ['echo before $(hostname)']
postKubeadmCommands: ['echo after']
users: [{{name: admin, sudo: 'ALL=(ALL) NOPASSWD:ALL'}}]
mounts: []
verbosity: 5",
    ))
}

fn pairs() -> Vec<(Purpose, KeyPair)> {
    let settings = KeySettings { algorithm: EncryptionAlgorithmType::EcdsaP256, authority_days: 3650 };
    let seed = SeededKeys::new(1).seed("blue").expect("a seed");
    let now = env().now();
    let pair = |purpose| (purpose, KeyPair::make(purpose, settings, &seed, now).expect("a pair"));
    Purpose::MADE.into_iter().map(pair).collect()
}

fn certificates(spec: &KubeadmConfigSpec) -> Vec<File> {
    let pairs = pairs();
    let locations = locations_for_control_plane(&spec.cluster_configuration);
    let files = locations.iter().flat_map(|location| {
        let pair = pairs.iter().find(|(purpose, _)| *purpose == location.purpose);
        pair.map(|(_, pair)| location.files(pair)).unwrap_or_default()
    });
    files.collect()
}

fn rendered(spec: &KubeadmConfigSpec, run: KubeadmCommand, certificates: Vec<File>) -> VmSpec {
    let data = BootstrapData {
        run,
        certificates,
        files: resolve_files(&spec.files, &Default::default(), None).expect("files"),
        users: resolve_users(&spec.users, &Default::default()).expect("users"),
        spec,
    };
    vm(data.render().expect("boot data"))
}

fn join(spec: &KubeadmConfigSpec, control_plane: bool) -> String {
    let ca = pairs().remove(0).1.certificate;
    let found =
        with_discovery(&spec.join_configuration, &cluster(), &ca).expect("a join").expect("an endpoint");
    let mut found =
        if control_plane { as_control_plane(&found) } else { as_worker(&found).expect("a worker") };
    found.discovery.bootstrap_token.token = "abcdef.0123456789abcdef".to_owned();
    config::join_configuration(&found, VERSION).expect("a document")
}

#[tokio::test(start_paused = true)]
async fn the_first_machine_of_our_provider_initialises_its_cluster() {
    for format in ["cloud-config", "ignition"] {
        let spec = spec(format);
        let run = KubeadmCommand::Init {
            cluster_configuration: config::cluster_configuration(&spec, &cluster(), VERSION)
                .expect("a document"),
            init_configuration: config::init_configuration(&spec.init_configuration, VERSION)
                .expect("a document"),
        };
        let booted = boot(rendered(&spec, run, certificates(&spec))).await;
        assert_eq!(booted.outcome, Ok(Some("node-1".to_owned())), "{format}\n{}", booted.console);
        let request = booted.init();
        assert_eq!(request.cluster_configuration["clusterName"], "blue");
        let ca = String::from_utf8_lossy(&request.pki["ca.crt"]).into_owned();
        assert_eq!(ca.trim(), pairs()[0].1.certificate.trim(), "{format}: the given authority is kept");
        for line in [
            "before Node-1",
            "[certs] Using existing ca certificate authority",
            "[certs] Using the existing \"sa\" key",
            "after",
        ] {
            assert!(booted.lines().contains(&line), "{format}: {line}\n{}", booted.console);
        }
        assert_eq!(booted.text("/run/cluster-api/bootstrap-success.complete"), "success\n", "{format}");
        assert!(booted.files.exists("/etc/kubernetes/manifests/kube-vip.yaml"));
        assert!(!booted.console.contains("PRIVATE KEY"));
    }
}

#[tokio::test(start_paused = true)]
async fn machines_of_our_provider_join() {
    for format in ["cloud-config", "ignition"] {
        for control_plane in [true, false] {
            let spec = spec(format);
            let join_configuration = join(&spec, control_plane);
            let (run, files) = if control_plane {
                (KubeadmCommand::JoinControlPlane { join_configuration }, certificates(&spec))
            } else {
                (KubeadmCommand::JoinWorker { join_configuration }, Vec::new())
            };
            let booted = boot(rendered(&spec, run, files)).await;
            assert_eq!(booted.outcome, Ok(Some("node-1".to_owned())), "{format}\n{}", booted.console);
            let request = booted.join();
            let Discovery::Token { endpoint, token, ca_cert_hashes, .. } = &request.discovery else {
                panic!("no token")
            };
            assert_eq!((endpoint.as_str(), token.as_str()), ("10.0.0.10:6443", "abcdef.0123456789abcdef"));
            assert_eq!(ca_cert_hashes.len(), 1);
            assert_eq!(
                request.control_plane.as_ref().map(|files| files.len()),
                control_plane.then_some(8),
                "{format}"
            );
            let taints = request.node.taints.as_deref().unwrap_or_default();
            assert_eq!(taints.len(), usize::from(!control_plane), "{format}: workers wait for their labels");
            booted.prints("after");
            assert!(!booted.console.contains("0123456789abcdef"), "{format}");
        }
    }
}
