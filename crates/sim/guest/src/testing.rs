//! A site whose machines need no user data: tests call kubeadm directly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_controller::{Access, Client, KindName, Remote};
use capstan_env::Env;
use capstan_object::{Key, Scope};
use capstan_pki::{Authority, Leaf, PrivateKey};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::cluster::GuestCluster;
use crate::request::{Control, Discovery, Files, InitRequest, JoinRequest, KubeadmError, NodeRequest};
use crate::site::{Site, SiteOptions, Timings};
use crate::vm::{Image, VmSpec};

pub(crate) const TOKEN: &str = "abcdef.0123456789abcdef";
const DOMAIN: &str = "cluster.local";

/// A site with one load balancer.
pub(crate) struct TestSite {
    pub(crate) env: Env,
    pub(crate) site: Site,
    pub(crate) endpoint: SocketAddrV4,
    pub(crate) authorities: Authorities,
    pub(crate) members: BTreeSet<Ipv4Addr>,
    machines: usize,
}

pub(crate) struct Authorities {
    pub(crate) ca: Authority,
    pub(crate) etcd: Authority,
    front_proxy: Authority,
    token_key: PrivateKey,
}

impl TestSite {
    pub(crate) fn new() -> Self {
        Self::with(SiteOptions {
            endpoint_port: 6443,
            timings: Timings { pod: Duration::from_secs(2), ..Timings::none() },
            heartbeat: None,
            assume_addons: false,
        })
    }

    pub(crate) fn with(options: SiteOptions) -> Self {
        let begun = Instant::now();
        let clock = move || {
            let since = SignedDuration::try_from(begun.elapsed()).expect("a short test");
            Timestamp::from_second(1_767_225_600).expect("a time") + since
        };
        let env = Env::simulated(clock, 7);
        let site = Site::new(env.clone(), options);
        let endpoint = site.endpoint("default/test");
        let authority =
            || Authority::create(&env, PrivateKey::generate().expect("a key")).expect("an authority");
        let authorities = Authorities {
            ca: authority(),
            etcd: authority(),
            front_proxy: authority(),
            token_key: PrivateKey::generate().expect("a key"),
        };
        Self { env, site, endpoint, authorities, members: BTreeSet::new(), machines: 0 }
    }

    /// Creates a machine; the ids are `vm-1`, `vm-2` and so on.
    pub(crate) async fn machine(&mut self, name: &str) -> NodeRequest {
        self.machines += 1;
        let id = format!("vm-{}", self.machines);
        let vm = self.site.create(VmSpec {
            id: id.clone(),
            name: name.to_owned(),
            user_data: Vec::new(),
            image: Image { kubernetes: Some("v1.36.0".to_owned()) },
            address: None,
            provider_id: Some(format!("sim://{id}")),
            cpus: 2,
            memory_mib: 4096,
            tags: BTreeMap::new(),
            faults: Vec::new(),
        });
        let address = vm.expect("created").address;
        tokio::time::sleep(Duration::from_millis(1)).await;
        NodeRequest {
            vm: id.clone(),
            name: name.to_owned(),
            address,
            kubelet_version: "v1.36.0".to_owned(),
            provider_id: Some(format!("sim://{id}")),
            external: None,
            labels: BTreeMap::new(),
            taints: None,
        }
    }

    /// Certificates that control plane machines have in common.
    pub(crate) fn shared_files(&self) -> Files {
        let mut files = Files::new();
        for (path, authority) in [
            ("ca", &self.authorities.ca),
            ("etcd/ca", &self.authorities.etcd),
            ("front-proxy-ca", &self.authorities.front_proxy),
        ] {
            let credential = authority.credential();
            files.insert(format!("{path}.crt"), credential.certificate_pem().into_bytes());
            files.insert(format!("{path}.key"), credential.key.to_pem().into_bytes());
        }
        let key = &self.authorities.token_key;
        files.insert("sa.key".to_owned(), key.to_pem().into_bytes());
        files.insert("sa.pub".to_owned(), b"public".to_vec());
        files
    }

    fn all_files(&self, node: &NodeRequest) -> Files {
        let mut files = self.shared_files();
        let names = [node.name.clone(), node.address.to_string(), self.endpoint.ip().to_string()];
        for (path, authority) in
            [("apiserver", &self.authorities.ca), ("etcd/server", &self.authorities.etcd)]
        {
            let leaf =
                Leaf::Server { names: names.iter().cloned().chain(["localhost".to_owned()]).collect() };
            let credential = authority.issue(&self.env, &leaf).expect("issued");
            files.insert(format!("{path}.crt"), credential.certificate_pem().into_bytes());
            files.insert(format!("{path}.key"), credential.key.to_pem().into_bytes());
        }
        files
    }

    pub(crate) fn init_request(&self, node: NodeRequest) -> InitRequest {
        InitRequest {
            pki: self.all_files(&node),
            node,
            cluster_configuration: json!({
                "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
                "clusterName": "test", "kubernetesVersion": "v1.36.0",
                "controlPlaneEndpoint": self.endpoint.to_string(),
                "networking": {"dnsDomain": DOMAIN, "serviceSubnet": "10.96.0.0/12"},
            }),
            bootstrap_tokens: vec![json!({"token": TOKEN, "ttl": "1h"})],
            skipped_phases: Vec::new(),
        }
    }

    pub(crate) fn join_request(&self, node: NodeRequest) -> JoinRequest {
        JoinRequest {
            node,
            discovery: Discovery::Token {
                endpoint: self.endpoint.to_string(),
                token: TOKEN.to_owned(),
                ca_cert_hashes: vec![self.ca_hash()],
                unsafe_skip_ca_verification: false,
            },
            tls_bootstrap_token: None,
            control_plane: None,
            skipped_phases: Vec::new(),
        }
    }

    pub(crate) fn ca_hash(&self) -> String {
        let hash = Sha256::digest(self.authorities.ca.credential().key.public_key_info());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hash}")
    }

    /// Puts a machine behind the load balancer.
    pub(crate) fn balance(&mut self, node: &NodeRequest) {
        self.members.insert(node.address);
        self.site.balance(self.endpoint, self.members.clone());
    }

    pub(crate) fn control(&self, vm: &str) -> impl Control + use<> {
        self.site.kubeadm(vm)
    }

    /// A cluster of one machine, `cp-1`.
    pub(crate) async fn init(&mut self) -> Arc<GuestCluster> {
        let node = self.machine("cp-1").await;
        self.balance(&node);
        let vm = node.vm.clone();
        let request = self.init_request(node);
        self.control(&vm).init(request).await.expect("a cluster");
        self.site.cluster_of(&vm).expect("a cluster")
    }

    pub(crate) async fn join(&self, request: JoinRequest) -> Result<(), KubeadmError> {
        let vm = request.node.vm.clone();
        self.control(&vm).join(request).await
    }

    /// Adds a worker and returns its id.
    pub(crate) async fn worker(&mut self, name: &str) -> String {
        let node = self.machine(name).await;
        let vm = node.vm.clone();
        self.join(self.join_request(node)).await.expect("joined");
        vm
    }

    /// Adds a control plane machine and returns its id.
    pub(crate) async fn control_plane(&mut self, name: &str) -> String {
        let node = self.machine(name).await;
        let vm = node.vm.clone();
        self.balance(&node);
        let request = JoinRequest { control_plane: Some(self.shared_files()), ..self.join_request(node) };
        self.join(request).await.expect("joined");
        vm
    }

    /// Kubeconfig of an administrator.
    pub(crate) fn kubeconfig(&self) -> Value {
        let leaf = Leaf::Client { name: "admin".to_owned(), groups: vec!["system:masters".to_owned()] };
        let admin = self.authorities.ca.issue(&self.env, &leaf).expect("issued");
        let ca = self.authorities.ca.credential().certificate_pem();
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {
                "server": format!("https://{}", self.endpoint), "certificate-authority-data": STANDARD.encode(ca),
            }}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [{"name": "u", "user": {
                "client-certificate-data": STANDARD.encode(admin.certificate_pem()),
                "client-key-data": STANDARD.encode(admin.key.to_pem()),
            }}],
        })
    }

    pub(crate) fn remote(&self) -> Arc<Remote> {
        let access = Access::from_kubeconfig(self.kubeconfig().to_string().as_bytes()).expect("a kubeconfig");
        Arc::new(Remote::new(access, self.site.dial(), &self.env).expect("a remote"))
    }

    /// An administrator's client through the load balancer.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.remote(), "test")
    }
}

/// A kind of the core group, or of another.
pub(crate) fn kind(group: &str, kind: &str, plural: &str) -> KindName {
    let mut name = KindName::namespaced(group, "v1", kind, plural);
    if matches!(kind, "Node" | "PersistentVolume" | "VolumeAttachment") {
        name.scope = Scope::Cluster;
    }
    name
}

pub(crate) async fn get(client: &Client, of: &KindName, namespace: &str, name: &str) -> Option<Value> {
    let found = client.get_raw(of, &Key::new(namespace, name)).await.expect("an answer");
    found.map(|reply| reply.parse().expect("JSON"))
}

pub(crate) async fn list(client: &Client, of: &KindName, namespace: &str) -> Vec<Value> {
    client.list(of, namespace, &Default::default()).await.expect("an answer").items
}

pub(crate) fn condition<'a>(object: &'a Value, of: &str) -> &'a str {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|c| c["type"] == of).and_then(|c| c["status"].as_str()).unwrap_or("none")
}

/// Lets simulated time pass.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
