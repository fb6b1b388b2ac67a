//! KubeadmConfigs and their templates.

use super::*;

/// Each case: a spec, and the errors below the spec's path. Both kinds have the same rules.
fn checked(cases: &[(Value, Vec<&str>)], features: &Features) {
    for (kind, prefix) in [("KubeadmConfig", "spec"), ("KubeadmConfigTemplate", "spec.template.spec")] {
        for (spec, expected) in cases {
            let object = if kind == "KubeadmConfig" {
                json!({ "spec": spec })
            } else {
                json!({ "spec": { "template": { "spec": spec } } })
            };
            let expected: Vec<String> =
                expected.iter().map(|message| format!("{prefix}.{message}")).collect();
            assert_eq!(errors_of(BOOTSTRAP, kind, &object, None, features), expected, "{object}");
        }
    }
}

fn secret(name: &str, key: &str) -> Value {
    json!({ "secret": { "name": name, "key": key } })
}

#[test]
fn files_and_users_have_one_source_of_their_content() {
    let file = |path: &str| json!({ "path": path, "content": "a" });
    let cases = [
        (json!({ "files": [file("/a"), file("/b")] }), vec![]),
        (json!({ "files": [{ "path": "/a", "contentFrom": secret("a", "b") }] }), vec![]),
        (
            json!({ "files": [{ "path": "/a", "content": "a", "contentFrom": secret("a", "b") }] }),
            vec![
                "files[0]: Invalid value: {\"content\":\"a\",\"contentFrom\":{\"secret\":{\"key\":\"b\",\"name\":\"a\"}},\"path\":\"/a\"}: only one of content or contentFrom may be specified for a single file",
            ],
        ),
        (
            json!({ "files": [{ "path": "/a", "contentFrom": secret("", "b") }] }),
            vec![
                "files[0].contentFrom.secret.name: Required value: secret file source must specify non-empty secret name",
            ],
        ),
        (
            json!({ "files": [{ "path": "/a", "contentFrom": secret("a", "") }] }),
            vec![
                "files[0].contentFrom.secret.key: Required value: secret file source must specify non-empty secret key",
            ],
        ),
        (
            json!({ "files": [file("/a"), file("/a")] }),
            vec![
                "files[1].path: Invalid value: {\"content\":\"a\",\"path\":\"/a\"}: path property must be unique among all files",
            ],
        ),
        (json!({ "users": [{ "name": "a", "passwdFrom": secret("a", "b") }] }), vec![]),
        (
            json!({ "users": [{ "name": "a", "passwd": "x", "passwdFrom": secret("a", "") }] }),
            vec![
                "users[0]: Invalid value: {\"name\":\"a\",\"passwd\":\"x\",\"passwdFrom\":{\"secret\":{\"name\":\"a\"}}}: only one of passwd or passwdFrom may be specified for a single user",
                "users[0].passwdFrom.secret.key: Required value: secret file source must specify non-empty secret key",
            ],
        ),
    ];
    checked(&cases, &Features::default());
}

#[test]
fn partitions_fit_on_their_disk_and_a_user_has_one_way_to_authenticate() {
    let cases = [
        (
            json!({ "diskSetup": { "partitions": [{ "device": "a", "diskLayout": [{ "percentage": 60 }, { "percentage": 40 }] }] } }),
            vec![],
        ),
        (
            json!({ "diskSetup": { "partitions": [{ "device": "a", "diskLayout": [{ "percentage": 60 }, { "percentage": 41 }] }] } }),
            vec![
                "diskSetup.partitions[0].diskLayout: Invalid value: 101: the sum of all partition percentages must not be greater than 100",
            ],
        ),
        (
            json!({ "joinConfiguration": { "discovery": { "file": { "kubeConfig": { "user": {
                "authProvider": { "name": "a" }, "exec": { "command": "b" },
            } } } } } }),
            vec![
                "joinConfiguration.discovery.file.kubeconfig.user: Invalid value: {\"authProvider\":{\"name\":\"a\"},\"exec\":{\"command\":\"b\"}}: only one of authProvider or exec must be defined",
            ],
        ),
    ];
    checked(&cases, &Features::default());
}

#[test]
fn ignition_is_explicit_and_rejects_unsupported_options() {
    let cases = [
        (json!({ "format": "ignition", "ignition": { "containerLinuxConfig": { "strict": true } } }), vec![]),
        (
            json!({ "ignition": { "containerLinuxConfig": { "strict": true } } }),
            vec!["format: Invalid value: \"\": must be set to \"ignition\" if spec.ignition is set"],
        ),
        (
            json!({
                "format": "ignition",
                "users": [{ "name": "a", "inactive": true }],
                "files": [{ "path": "/a", "encoding": "gzip" }],
                "bootCommands": ["a"],
                "diskSetup": {
                    "filesystems": [{ "device": "a", "filesystem": "ext4", "replaceFS": "ntfs", "partition": "auto" }],
                    "partitions": [{ "device": "a", "layout": true, "tableType": "mbr" }],
                },
            }),
            vec![
                "users[0].inactive: Forbidden: not supported when spec.format is set to: \"ignition\"",
                "files[0].encoding: Forbidden: not supported when spec.format is set to: \"ignition\"",
                "bootCommands: Forbidden: not supported when spec.format is set to: \"ignition\"",
                "diskSetup.filesystems[0].replaceFS: Forbidden: not supported when spec.format is set to: \"ignition\"",
                "diskSetup.filesystems[0].partition: Forbidden: not supported when spec.format is set to: \"ignition\"",
                "diskSetup.partitions[0].tableType: Invalid value: \"mbr\": only partition type \"gpt\" is supported when spec.format is set to \"ignition\"",
            ],
        ),
    ];
    checked(&cases, &Features::default());
}

#[test]
fn ignition_is_rejected_without_its_feature_gate() {
    let spec = json!({ "format": "ignition", "ignition": { "containerLinuxConfig": { "strict": true } } });
    let gate = "Forbidden: can be set only if the KubeadmBootstrapFormatIgnition feature gate is enabled";
    let (format, ignition) = (format!("format: {gate}"), format!("ignition: {gate}"));
    checked(&[(spec, vec![&format, &ignition])], &Features::UPSTREAM);
}
