use std::collections::BTreeMap;

use capstan_capi_types::bootstrap::{File, KubeadmConfigSpec};
use serde_json::{Value, json};

use crate::bootstrap_data::{BootstrapData, KubeadmCommand, resolve_files, resolve_users};
use crate::certificates::{KeyPair, locations_for_control_plane};
use crate::config;
use crate::testing::{cluster, full_spec};

fn init(spec: &KubeadmConfigSpec) -> BootstrapData<'_> {
    let run = KubeadmCommand::Init {
        cluster_configuration: config::cluster_configuration(spec, &cluster(), "v1.34.1")
            .expect("a document"),
        init_configuration: config::init_configuration(&spec.init_configuration, "v1.34.1")
            .expect("a document"),
    };
    let pair =
        |name: &str| KeyPair { certificate: format!("{name} certificate\n"), key: format!("{name} key\n") };
    let certificates = locations_for_control_plane(&spec.cluster_configuration)
        .iter()
        .flat_map(|place| place.files(&pair(place.purpose.suffix())))
        .collect();
    BootstrapData { run, certificates, ..worker(spec) }
}

fn worker(spec: &KubeadmConfigSpec) -> BootstrapData<'_> {
    BootstrapData {
        run: KubeadmCommand::JoinWorker {
            join_configuration: config::join_configuration(&spec.join_configuration, "v1.34.1")
                .expect("a document"),
        },
        certificates: Vec::new(),
        files: resolve_files(&spec.files, &BTreeMap::new(), None).expect("files"),
        users: resolve_users(&spec.users, &BTreeMap::new()).expect("users"),
        spec,
    }
}

fn text(data: &BootstrapData<'_>) -> String {
    String::from_utf8(data.render().expect("boot data")).expect("text")
}

fn read(data: &BootstrapData<'_>) -> Value {
    let text = text(data);
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_first_node_gets_everything_in_order() {
    insta::assert_snapshot!("init", text(&init(&full_spec())));
}

#[test]
fn a_worker_gets_no_private_key() {
    let spec = full_spec();
    let text = text(&worker(&spec));
    assert!(!text.contains("/etc/kubernetes/pki"));
    insta::assert_snapshot!("worker", text);
}

#[test]
fn a_plain_control_plane_node_joins() {
    let spec = KubeadmConfigSpec::default();
    let mut data = init(&spec);
    data.run =
        KubeadmCommand::JoinControlPlane { join_configuration: "kind: JoinConfiguration\n".to_owned() };
    insta::assert_snapshot!("join-control-plane", text(&data));
}

#[test]
fn cloud_init_reads_what_is_rendered() {
    let spec = full_spec();
    let read = read(&init(&spec));
    let files = read["write_files"].as_array().expect("files");
    let paths: Vec<&str> = files.iter().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(
        paths,
        [
            "/etc/kubernetes/pki/ca.crt",
            "/etc/kubernetes/pki/ca.key",
            "/etc/kubernetes/pki/etcd/ca.crt",
            "/etc/kubernetes/pki/etcd/ca.key",
            "/etc/kubernetes/pki/front-proxy-ca.crt",
            "/etc/kubernetes/pki/front-proxy-ca.key",
            "/etc/kubernetes/pki/sa.pub",
            "/etc/kubernetes/pki/sa.key",
            "/etc/kubernetes/patches/kubeletconfiguration+merge.yaml",
            "/etc/motd",
            "/opt/blob",
            "/run/kubeadm/kubeadm.yaml",
            "/run/cluster-api/placeholder",
        ]
    );
    let modes: Vec<&str> = files.iter().map(|file| file["permissions"].as_str().unwrap_or("")).collect();
    assert_eq!(
        modes,
        ["0640", "0600", "0640", "0600", "0640", "0600", "0640", "0600", "0600", "", "0755", "0640", "0640"]
    );
    assert_eq!(files[9]["content"], "  welcome: \"you\"\n\n# not a comment\n");
    assert_eq!((&files[9]["append"], &files[10]["encoding"]), (&json!(true), &json!("base64")));
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(files[11]["content"].as_str().expect("text")).expect("YAML");
    let kinds: Vec<&Value> = documents.iter().map(|document| &document["kind"]).collect();
    assert_eq!(kinds, ["ClusterConfiguration", "InitConfiguration"]);

    assert_eq!(
        read["runcmd"],
        json!([
            "hostnamectl set-hostname \"$(cat /etc/name)\"",
            "kubeadm init --config /run/kubeadm/kubeadm.yaml --v 5 && echo success > /run/cluster-api/bootstrap-success.complete",
            "echo 'done: {{ ds.meta_data.instance_id }}'",
        ])
    );
    assert_eq!(read["ntp"], json!({"enabled": true, "servers": ["0.pool.example", "1.pool.example"]}));
    assert_eq!(read["users"][0]["sudo"], "ALL=(ALL) NOPASSWD:ALL");
    assert_eq!(read["users"][0]["lock_passwd"], false);
    assert_eq!(
        read["disk_setup"],
        json!({"/dev/vdb": {"table_type": "gpt", "layout": true, "overwrite": false}})
    );
    assert_eq!(read["fs_setup"][0]["extra_opts"], json!(["-E", "lazy_itable_init=1"]));
    assert_eq!(read["mounts"], json!([["etcd_disk", "/var/lib/etcddisk", "defaults", "noatime"]]));
}

#[test]
fn jinja_is_not_escaped() {
    let spec = full_spec();
    assert!(text(&init(&spec)).contains("name: '{{ ds.meta_data[\"local_hostname\"] }}'"));
}

#[test]
fn partitions_by_percentage_have_their_type_codes() {
    let mut spec = KubeadmConfigSpec::default();
    spec.disk_setup.partitions = vec![crate::testing::object(
        "{device: /dev/vdb, tableType: mbr, diskLayout: [{percentage: 30, partitionType: Linux}, {percentage: 20},
          {percentage: 50, partitionType: NTFS}]}",
    )];
    assert_eq!(read(&worker(&spec))["disk_setup"]["/dev/vdb"]["layout"], json!([[30, 83], 20, [50, "07"]]));
}

#[test]
fn no_value_can_change_the_document() {
    let evil = "x\nruncmd:\n  - rm -rf /";
    let spec = KubeadmConfigSpec {
        users: vec![crate::testing::object("{name: a}")],
        ..KubeadmConfigSpec::default()
    };
    let mut data = worker(&spec);
    data.users[0].name = evil.to_owned();
    data.users[0].gecos = "a: b #c".to_owned();
    data.files = vec![
        File {
            path: evil.to_owned(),
            content: "a\r\nb\u{0}".to_owned(),
            owner: evil.to_owned(),
            ..File::default()
        },
        File { path: "/empty".to_owned(), ..File::default() },
    ];
    let read = read(&data);
    assert_eq!(read["users"][0], json!({"name": evil, "gecos": "a: b #c"}));
    assert_eq!(read["write_files"][0], json!({"path": evil, "owner": evil, "content": "a\r\nb\u{0}"}));
    assert_eq!(read["write_files"][1], json!({"path": "/empty", "content": ""}));
    assert_eq!(read["runcmd"].as_array().map(Vec::len), Some(1));
}
