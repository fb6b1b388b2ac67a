use std::collections::BTreeMap;

use capstan_capi_types::bootstrap::{File, Format, KubeadmConfigSpec};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::bootstrap_data::{BootstrapData, KubeadmCommand, resolve_files, resolve_users};
use crate::testing::full_spec;

fn ignition(mut spec: KubeadmConfigSpec) -> KubeadmConfigSpec {
    spec.format = Some(Format::Ignition);
    spec
}

fn data(spec: &KubeadmConfigSpec) -> BootstrapData<'_> {
    BootstrapData {
        run: KubeadmCommand::JoinWorker { join_configuration: "kind: JoinConfiguration\n".to_owned() },
        certificates: Vec::new(),
        files: resolve_files(&spec.files, &BTreeMap::new(), None).expect("files"),
        users: resolve_users(&spec.users, &BTreeMap::new()).expect("users"),
        spec,
    }
}

fn read(spec: &KubeadmConfigSpec) -> Value {
    serde_json::from_slice(&data(spec).render().expect("boot data")).expect("JSON")
}

fn refused(spec: &KubeadmConfigSpec) -> String {
    data(spec).render().expect_err("refused").to_string()
}

fn content(config: &Value, path: &str) -> Vec<u8> {
    let files = config["storage"]["files"].as_array().expect("files");
    let file = files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("no {path}"));
    let source = file["contents"]["source"].as_str().expect("a source");
    percent_decode_str(source.strip_prefix("data:,").expect("data")).collect()
}

#[test]
fn a_machine_gets_everything() {
    insta::assert_json_snapshot!("worker", read(&ignition(full_spec())));
}

#[test]
fn the_script_runs_kubeadm_once_and_writes_the_sentinel() {
    let config = read(&ignition(full_spec()));
    insta::assert_snapshot!(String::from_utf8(content(&config, "/etc/kubeadm.sh")).expect("text"), @r#"
    #!/bin/bash
    set -e

    hostnamectl set-hostname "$(cat /etc/name)"

    kubeadm join --config /etc/kubeadm.yml --v 5
    mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete
    mv /etc/kubeadm.yml /tmp/

    echo 'done: {{ ds.meta_data.instance_id }}'
    "#);
    assert_eq!(content(&config, "/etc/kubeadm.yml"), b"---\nkind: JoinConfiguration\n");
    assert_eq!(content(&config, "/opt/blob"), b"\xff\x00\x01\x02");
}

#[test]
fn options_without_an_ignition_equivalent_are_rejected() {
    let with_file = |file: File| {
        let mut spec = ignition(KubeadmConfigSpec::default());
        spec.files = vec![file];
        spec
    };
    let file = |yaml: &str| crate::testing::object::<File>(yaml);
    for (yaml, message) in [
        ("{path: /a, encoding: gzip}", "file /a: Ignition takes no compressed content"),
        ("{path: /a, encoding: base64, content: '!'}", "file /a: the content is not base64"),
        ("{path: /a, permissions: '9'}", "file /a: the permissions are no octal number"),
    ] {
        assert_eq!(refused(&with_file(file(yaml))), message);
    }
    let mut spec = ignition(KubeadmConfigSpec::default());
    spec.mounts = vec![vec!["nowhere".to_owned(), "/a".to_owned()]];
    assert_eq!(refused(&spec), "mounts: no file system of diskSetup has the label \"nowhere\"");
}

fn with_additional(additional: &str, strict: bool) -> KubeadmConfigSpec {
    let mut spec = ignition(KubeadmConfigSpec::default());
    spec.ignition.container_linux_config.additional_config = additional.to_owned();
    spec.ignition.container_linux_config.strict = Some(strict);
    spec
}

#[test]
fn a_container_linux_config_is_appended() {
    let additional = "
passwd:
  users: [{name: core, ssh_authorized_keys: [ssh-ed25519 AAAA], no_create_home: true}]
systemd:
  units:
  - name: kubeadm.service
    dropins: [{name: 10-flatcar.conf, contents: \"[Unit]\\nAfter=containerd.service\\n\"}]
storage:
  disks:
  - device: /dev/vdc
    wipe_table: true
    partitions: [{label: data, number: 1, size: 10GiB, type_guid: linux_filesystem_data}]
  files:
  - {path: /etc/a, mode: 0600, contents: {inline: \"a b\\n\"}}
  - {path: /etc/b, contents: {remote: {url: 'https://x/y', verification: {hash: {function: sha512, sum: ab}}}}}
  links: [{path: /etc/l, target: /etc/a}]
networkd:
  units: [{name: 00-eth.network, contents: x}]
ignition:
  timeouts: {http_total: 30}
  config: {append: [{source: 'https://x/z'}]}
";
    let config = read(&with_additional(additional, true));
    let units = config["systemd"]["units"].as_array().expect("units");
    assert_eq!(units.len(), 2, "ours and the user's");
    assert_eq!(units[1]["dropins"][0]["name"], "10-flatcar.conf");
    assert_eq!(
        config["passwd"]["users"],
        json!([{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"], "noCreateHome": true}])
    );
    assert_eq!(
        config["storage"]["disks"][0],
        json!({"device": "/dev/vdc", "wipeTable": true, "partitions": [
            {"label": "data", "number": 1, "sizeMiB": 10240, "typeGuid": "0fc63daf-8483-4772-8e79-3d69d8477de4"},
        ]})
    );
    let files = config["storage"]["files"].as_array().expect("files");
    assert_eq!(files[2]["mode"], 0o600);
    assert_eq!(content(&config, "/etc/a"), b"a b\n");
    assert_eq!(files[3]["mode"], 0o644);
    assert_eq!(files[3]["contents"], json!({"source": "https://x/y", "verification": {"hash": "sha512-ab"}}));
    assert_eq!(config["storage"]["links"][0]["filesystem"], "root");
    assert_eq!(config["networkd"]["units"][0]["name"], "00-eth.network");
    assert_eq!(config["ignition"]["timeouts"], json!({"httpTotal": 30}));
    assert_eq!(config["ignition"]["config"]["append"][0]["source"], "https://x/z");
    assert_eq!(config["ignition"]["version"], "2.3.0");
}

#[test]
fn an_invalid_container_linux_config_is_rejected() {
    for (additional, strict, message) in [
        (": [", false, "is not valid YAML"),
        ("[]", false, "is not a mapping"),
        ("etcd: {name: x}", false, "section etcd is not supported: write its units and files instead"),
        ("storage: {files: [{path: /a, colour: red}]}", true, "/storage/files/0/colour is unknown"),
        (
            "storage: {files: [{path: /a, contents: {local: x}}]}",
            false,
            "/storage/files/0: local files cannot be read here",
        ),
        (
            "storage: {disks: [{device: /d, partitions: [{size: 1KiB}]}]}",
            false,
            "/storage/disks/0: 1KiB is not a whole number of mebibytes",
        ),
    ] {
        let expected = format!("ignition.containerLinuxConfig.additionalConfig: {message}");
        assert_eq!(refused(&with_additional(additional, strict)), expected, "{additional}");
    }
    assert!(read(&with_additional("storage: {files: [{path: /a, colour: red}]}", false)).is_object());
}
