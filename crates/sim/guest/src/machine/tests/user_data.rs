use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn files_are_written_as_they_are_described() {
    let booted = cloud_config(
        r#"
write_files:
- path: /etc/motd
  owner: root:root
  permissions: '0640'
  content: |
    welcome to {{ ds.meta_data.local_hostname }}
- {path: /etc/motd, append: yes, content: "and more\n"}
- {path: /opt/deep/blob, encoding: b64, content: aGVsbG8=, permissions: 0755}
- {path: /opt/zipped, encoding: gz+b64, content: H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA==}
- {path: relative, content: x}
- {path: /late, content: x, defer: true}
"#,
    )
    .await;
    assert_eq!(booted.outcome, Ok(None), "{}", booted.console);
    assert_eq!(booted.text("/etc/motd"), "welcome to Node-1\nand more\n");
    assert_eq!(booted.text("/opt/deep/blob"), "hello");
    assert_eq!(booted.text("/opt/zipped"), "hello");
    assert_eq!(booted.text("/relative"), "x");
    assert_eq!(booted.text("/late"), "x");
    let mode = |path: &str| booted.files.get(path).map(|node| node.mode);
    assert_eq!((mode("/etc/motd"), mode("/opt/zipped")), (Some(0o644), Some(0o644)));
    assert_eq!(mode("/opt/deep/blob"), Some(0o755), "a number with a zero in front is octal to Python");
    assert_eq!(booted.files.get("/opt/deep/blob").map(|node| node.owner.as_str()), Some("root:root"));
}

#[tokio::test(start_paused = true)]
async fn modules_run_in_cloud_inits_order() {
    let booted = cloud_config(
        r#"
bootcmd:
- test -e /etc/written || echo bootcmd-first
write_files:
- {path: /etc/written, content: x}
users:
- {name: admin, ssh_authorized_keys: [ssh-ed25519 AAAA], sudo: 'ALL=(ALL) NOPASSWD:ALL'}
- default
hostname: renamed
ntp: {enabled: true, servers: [ntp.example]}
mounts: [[data, /var/lib/data, auto, defaults]]
runcmd:
- [sh, -c, 'echo "argv $0 $1"', "a b", "it's"]
- hostname
- 'false'
- echo after-failure
"#,
    )
    .await;
    assert_eq!(booted.outcome, Ok(None), "{}", booted.console);
    for line in ["bootcmd-first", "argv a b it's", "renamed", "after-failure"] {
        assert!(booted.lines().contains(&line), "{line}\n{}", booted.console);
    }
    assert_eq!(booted.text("/home/admin/.ssh/authorized_keys"), "ssh-ed25519 AAAA\n");
    assert!(booted.text("/etc/fstab").contains("LABEL=data /var/lib/data auto defaults"));
    assert!(booted.files.is_directory("/var/lib/data"));
    assert_eq!(booted.text("/etc/chrony/chrony.conf"), "server ntp.example iburst\n");
    let stages: Vec<&str> =
        booted.lines().into_iter().filter(|line| line.starts_with("Cloud-init v.")).collect();
    assert_eq!(stages.len(), 4);
    assert!(
        stages[0].contains("running 'init' at Sun, 15 Nov 2026 12:00:00 +0000. Up 0.00 seconds."),
        "{stages:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_script_as_user_data_is_run() {
    let booted = boot(vm("#!/bin/bash\nset -e\necho one\nfalse\necho two\n")).await;
    booted.prints("one");
    assert!(!booted.console.contains("two"));
    assert!(
        booted
            .outcome
            .expect_err("a failure")
            .contains("Failed running /var/lib/cloud/instance/scripts/part-001 [1]")
    );
}

#[tokio::test(start_paused = true)]
async fn common_commands_before_kubeadm_work() {
    let booted = cloud_config(
        r#"
write_files:
- path: /etc/kubernetes/manifests/kube-vip.yaml
  content: "path: /etc/kubernetes/admin.conf\n"
runcmd:
- hostnamectl set-hostname '{{ ds.meta_data.hostname | lower }}' && hostname
- 'echo "::1         ipv6-localhost ipv6-loopback localhost6 localhost6.localdomain6" >/etc/hosts'
- echo "127.0.0.1   {{ ds.meta_data.hostname }}" >>/etc/hosts
- "sed -i 's#path: /etc/kubernetes/admin.conf#path: /etc/kubernetes/super-admin.conf#' /etc/kubernetes/manifests/kube-vip.yaml"
- swapoff -a
- modprobe br_netfilter && sysctl -w net.ipv4.ip_forward=1
- systemctl daemon-reload && systemctl enable --now kubelet
- |
  cat <<EOF | tee /etc/sysctl.d/k8s.conf >/dev/null
  net.ipv4.ip_forward = ${FORWARD:-1}
  EOF
- if [ -f /etc/sysctl.d/k8s.conf ]; then sysctl --system; else echo missing; fi
- mkdir -p /etc/containerd/certs.d/docker.io && cp /etc/hosts /etc/containerd/certs.d/docker.io/
- for i in 1 2 3; do [ $i -eq 2 ] && continue; echo "try $i"; sleep 10; done
- update-ca-certificates
- systemctl restart nothing-such
- unknown-tool --flag
"#,
    )
    .await;
    booted.prints("node-1\n");
    assert_eq!(booted.text("/etc/hostname"), "node-1\n");
    assert!(booted.text("/etc/hosts").ends_with("127.0.0.1   Node-1\n"));
    assert_eq!(
        booted.text("/etc/kubernetes/manifests/kube-vip.yaml"),
        "path: /etc/kubernetes/super-admin.conf\n"
    );
    assert_eq!(booted.text("/etc/sysctl.d/k8s.conf"), "net.ipv4.ip_forward = 1\n");
    booted.prints("net.ipv4.ip_forward = 1");
    booted.prints("try 1\n");
    booted.prints("[   10.000000] cloud-init[612]: try 3\n");
    booted.prints("Updating certificates in /etc/ssl/certs...");
    booted.prints("Failed to restart nothing-such.service: Unit nothing-such.service not found.");
    booted.prints("unknown-tool: command not found");
    booted.prints("Failed running /var/lib/cloud/instance/scripts/runcmd [127]");
}

#[tokio::test(start_paused = true)]
async fn secrets_of_user_data_do_not_reach_the_console() {
    let booted = cloud_config(
        r#"
write_files:
- {path: /etc/secret, permissions: '0600', content: "correct horse battery\n"}
- path: /etc/token
  content: "abcdef.0123456789abcdef"
users:
- {name: admin, passwd: "$6$rounds$hashed"}
runcmd:
- cat /etc/secret /etc/token
- echo '$6$rounds$hashed'
- echo --certificate-key aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
"#,
    )
    .await;
    for secret in ["correct horse", "0123456789abcdef", "$6$rounds", "aaaaaaaa"] {
        assert!(!booted.console.contains(secret), "{}", booted.console);
    }
}

#[tokio::test(start_paused = true)]
async fn ignition_writes_files_and_starts_units() {
    let script = "#!/bin/bash\nset -e\necho \"from $COREOS_CUSTOM_HOSTNAME\"\nmv /etc/input /tmp/\n";
    let config = json!({
        "ignition": {"version": "3.4.0", "config": {"merge": [{"source": format!("data:,{}", percent_encoding::utf8_percent_encode(
            &json!({"ignition": {"version": "3.0.0"}, "storage": {"files": [{"path": "/etc/merged", "contents": {"source": "data:,x"}}]}}).to_string(),
            percent_encoding::NON_ALPHANUMERIC))}]}},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}]},
        "storage": {
            "directories": [{"path": "/opt/data", "mode": 448}],
            "files": [
                {"path": "/etc/input", "mode": 384, "contents": {"source": "data:;base64,aGVsbG8="}},
                {"path": "/etc/zipped", "contents": {"source": "data:;base64,H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA==", "compression": "gzip"}},
                {"path": "/usr/local/bin/run.sh", "mode": 493, "contents": {
                    "source": format!("data:,{}", percent_encoding::utf8_percent_encode(script, percent_encoding::NON_ALPHANUMERIC))}},
                {"path": "/etc/hosts", "append": [{"source": "data:,10.0.0.1%20api%0A"}]},
            ],
            "links": [{"path": "/etc/link", "target": "/etc/zipped"}],
        },
        "systemd": {"units": [
            {"name": "second.service", "enabled": true, "contents": "[Unit]\nAfter=first.service\nConditionPathExists=/etc/input\n[Service]\nType=oneshot\nExecStart=/bin/echo never\n"},
            {"name": "first.service", "enabled": true, "contents": "[Service]\nType=oneshot\nEnvironmentFile=/run/metadata/flatcar\nExecStart=/usr/local/bin/run.sh\n"},
            {"name": "off.service", "contents": "[Service]\nExecStart=/bin/echo off\n"},
        ]},
    });
    let booted = boot(vm(config.to_string())).await;
    assert_eq!(booted.outcome, Ok(None), "{}", booted.console);
    assert_eq!(
        (booted.text("/tmp/input"), booted.text("/etc/link")),
        ("hello".to_owned(), "hello".to_owned())
    );
    assert_eq!(booted.text("/etc/merged"), "x");
    assert!(booted.text("/etc/hosts").ends_with("10.0.0.1 api\n"));
    booted.prints("first[1021]: from Node-1\n");
    booted.prints(
        "second.service was skipped because of an unmet condition check (ConditionPathExists=/etc/input).",
    );
    assert!(!booted.console.contains("never") && !booted.console.contains(": off\n"));
    assert_eq!(booted.files.get("/opt/data").map(|node| node.mode), Some(0o700));
}
