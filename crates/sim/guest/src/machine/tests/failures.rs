use std::time::Duration;

use super::kubeadm::{CLUSTER, WORKER, runs};
use super::*;

/// The failure of the boot.
fn why(booted: &Booted) -> &str {
    booted.outcome.as_ref().expect_err(&booted.console)
}

#[tokio::test(start_paused = true)]
async fn user_data_that_cannot_be_used_fails_with_a_line_of_cloud_init() {
    for (text, expected) in [
        (
            "#cloud-config\nwrite_files: [",
            "util.py[WARNING]: Failed loading yaml blob. Invalid format at line 2",
        ),
        ("hello", "__init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata"),
        (
            "#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: '!!'}\n",
            "util.py[WARNING]: Running module write_files (cc_write_files.py) failed: Incorrect padding (binascii.Error)",
        ),
        (
            "#cloud-config\nwrite_files:\n- {path: /a, encoding: gzip, content: 'plain'}\n",
            "failed: Not a gzipped file (gzip.BadGzipFile)",
        ),
        (
            "#cloud-config\nwrite_files:\n- {path: /a, owner: 'nobody-such:x', content: x}\n",
            "failed: Unknown user or group: \"getpwnam(): name not found: 'nobody-such'\"",
        ),
        ("#cloud-config\nwrite_files: text\n", "failed: 'str' object is not a list of files"),
        ("#cloud-config\nruncmd: 7\n", "Running module runcmd (cc_runcmd.py) failed"),
        ("#cloud-config\nusers: [{}]\n", "Running module users_groups (cc_users_groups.py) failed"),
        (
            "#cloud-config\nbootcmd: ['exit 4']\n",
            "Running module bootcmd (cc_bootcmd.py) failed: Unexpected error",
        ),
        (
            "{\"ignition\": {\"version\": \"1.0.0\"}}",
            "CRITICAL : Ignition failed: failed to parse config: unsupported config version",
        ),
        (
            "{\"ignition\"",
            "CRITICAL : Ignition failed: failed to parse config: config is not valid JSON at line 1",
        ),
        (
            "{\"ignition\":{\"version\":\"3.4.0\"},\"storage\":{\"files\":[{\"path\":\"/a\",\"contents\":{\"source\":\"https://x.invalid/f\"}}]}}",
            "failed to create files: writing file \"/a\": GET error: dial tcp: lookup x.invalid: no such host",
        ),
        (
            "{\"ignition\":{\"version\":\"3.4.0\"},\"storage\":{\"files\":[{\"path\":\"/a\",\"contents\":{\"source\":\"data:,x\",\"verification\":{\"hash\":\"sha512-00\"}}}]}}",
            "hash verification failed",
        ),
        (
            "{\"ignition\":{\"version\":\"2.3.0\"},\"storage\":{\"files\":[{\"path\":\"/a\",\"filesystem\":\"data\"}]}}",
            "filesystem \"data\" of \"/a\" is not defined",
        ),
    ] {
        let booted = boot(vm(text)).await;
        assert!(why(&booted).contains(expected), "{text}\n{}", why(&booted));
        booted.prints(expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_configuration_fails_with_kubeadms_message() {
    for (verb, config, expected) in [
        ("init", "kind: [".to_owned(), "error: error converting YAML to JSON: yaml: line"),
        ("init", "kind: ClusterConfiguration\n".to_owned(), "kind and apiVersion is mandatory information"),
        (
            "init",
            WORKER.to_owned(),
            "error: no InitConfiguration or ClusterConfiguration kind was found in the configuration file",
        ),
        ("join", CLUSTER.to_owned(), "error: no JoinConfiguration found in the supplied config"),
        (
            "init",
            CLUSTER.replace("v1beta4", "v1beta2"),
            "error: your configuration file uses an old API spec: \"kubeadm.k8s.io/v1beta2\" (kind: \"ClusterConfiguration\")",
        ),
        (
            "init",
            CLUSTER.replace("v1beta4", "v9"),
            "error: no kind \"ClusterConfiguration\" is registered for version \"kubeadm.k8s.io/v9\"",
        ),
        (
            "init",
            CLUSTER.replace("kubernetesVersion: v1.34.1", "kubernetesVersion: 1.34"),
            "error: json: cannot unmarshal number into Go struct field ClusterConfiguration.kubernetesVersion of type string",
        ),
        (
            "init",
            CLUSTER.replace("v1.34.1", "one"),
            "error: version \"one\" doesn't match patterns for neither semantic version nor labels",
        ),
        (
            "init",
            CLUSTER.replace("clusterName: blue", "encryptionAlgorithm: DSA"),
            "error: encryptionAlgorithm: Invalid value: \"DSA\": Invalid encryption algorithm",
        ),
        (
            "init",
            CLUSTER.replace("192.168.0.0/16", "everything"),
            "error: networking.podSubnet: Invalid value: \"everything\": couldn't parse subnet",
        ),
        (
            "init",
            CLUSTER.replace("'{{ ds.meta_data.local_hostname | lower }}'", "node_1"),
            "error: nodeRegistration.name: Invalid value: \"node_1\": a lowercase RFC 1123 subdomain",
        ),
        ("init", CLUSTER.replace("[addon/kube-proxy]", "[dinner]"), "error: invalid phase name: dinner"),
        (
            "join",
            WORKER.replace("abcdef.0123456789abcdef", "short"),
            "discovery.bootstrapToken.token: Invalid value: \"<redacted>\": the bootstrap token is invalid",
        ),
        (
            "join",
            WORKER.replace("caCertHashes", "other"),
            "using token-based discovery without caCertHashes can be unsafe",
        ),
    ] {
        let booted = boot(vm(runs(verb, &config))).await;
        assert!(why(&booted).contains(expected), "{expected}\n{}", why(&booted));
        booted.prints("To see the stack trace of this error execute with --v=5 or higher");
        assert!(booted.control.inits.lock().is_empty() && booted.control.joins.lock().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_image_must_fit_the_configuration() {
    let on = |kubernetes: Option<&str>, verb: &str, config: &str| {
        let mut vm = vm(runs(verb, config));
        vm.image.kubernetes = kubernetes.map(str::to_owned);
        boot(vm)
    };
    let none = on(None, "join", WORKER).await;
    assert_eq!(why(&none), "/var/lib/cloud/instance/scripts/runcmd: line 2: kubeadm: command not found");
    none.prints("/var/lib/cloud/instance/scripts/runcmd: line 2: kubeadm: command not found");

    let newer = on(Some("v1.35.0"), "init", CLUSTER).await;
    assert!(
        why(&newer)
            .contains("[ERROR KubeletVersion]: the kubelet version is higher than the control plane version"),
        "{}",
        why(&newer)
    );
    newer.prints("error: error execution phase preflight: preflight checks failed");

    let much_newer = on(Some("v1.36.0"), "init", CLUSTER).await;
    assert!(why(&much_newer).contains(
        "only supports deploying clusters with the control plane version >= 1.35.0. Current version: v1.34.1"
    ));

    let older = on(Some("v1.33.2"), "init", CLUSTER).await;
    assert!(older.outcome.is_ok(), "kubeadm warns, and goes on\n{}", older.console);
    older.prints("[WARNING KubernetesVersion]: Kubernetes version is greater than kubeadm version.");

    let ancient = on(Some("v1.30.0"), "join", WORKER).await;
    assert!(
        why(&ancient)
            .contains("no kind \"JoinConfiguration\" is registered for version \"kubeadm.k8s.io/v1beta4\"")
    );
}

#[tokio::test(start_paused = true)]
async fn preflight_checks_look_at_the_machine() {
    let mut small = vm(runs("init", CLUSTER));
    small.cpus = 1;
    small.memory_mib = 1024;
    let booted = boot(small.clone()).await;
    booted.prints("[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2");
    booted.prints("[ERROR Mem]: the system RAM (1024 MB) is less than the minimum 1700 MB");
    assert!(why(&booted).contains("[ERROR NumCPU]"));
    small.user_data = runs("init --ignore-preflight-errors=NumCPU,Mem", CLUSTER).into_bytes();
    assert!(boot(small).await.outcome.is_ok());

    let twice = runs("init", CLUSTER)
        .replace("runcmd:\n", "runcmd:\n- kubeadm init --config /run/kubeadm/kubeadm.yaml\n");
    let booted = boot(vm(twice)).await;
    booted.prints("[ERROR FileAvailable--etc-kubernetes-manifests-kube-apiserver-yaml]: /etc/kubernetes/manifests/kube-apiserver.yaml already exists");
    booted.prints("[ERROR DirAvailable--var-lib-etcd]: /var/lib/etcd is not empty");
    assert_eq!(booted.outcome, Ok(Some("node-1".to_owned())), "it is a node all the same");
}

#[tokio::test(start_paused = true)]
async fn authorities_must_be_authorities_and_fit_their_keys() {
    let first = boot(vm(runs("init", CLUSTER))).await.init().pki;
    let second = boot(vm(runs("init", CLUSTER))).await.init().pki;
    let written = |certificate: &[u8], key: &[u8]| {
        let block = |path: &str, content: &[u8]| {
            let indented: String =
                String::from_utf8_lossy(content).lines().map(|line| format!("    {line}\n")).collect();
            format!("- path: /etc/kubernetes/pki/{path}\n  permissions: '0600'\n  content: |\n{indented}")
        };
        let files = format!("write_files:\n{}{}", block("ca.crt", certificate), block("ca.key", key));
        runs("init", CLUSTER).replace("write_files:\n", &files)
    };
    let given = boot(vm(written(&first["ca.crt"], &first["ca.key"]))).await;
    assert!(given.outcome.is_ok(), "{}", given.console);
    given.prints("[certs] Using existing ca certificate authority");
    for (certificate, key, expected) in [
        (&first["ca.crt"], &second["ca.key"], "certificate and key do not belong together"),
        (&first["apiserver.crt"], &first["apiserver.key"], "certificate ca is not a CA"),
        (
            &b"nonsense".to_vec(),
            &first["ca.key"],
            "failure loading ca certificate: certificate: no certificate in the PEM text",
        ),
        (
            &first["ca.crt"],
            &b"nonsense".to_vec(),
            "failure loading ca certificate: private key: no private key in the PEM text",
        ),
    ] {
        let booted = boot(vm(written(certificate, key))).await;
        assert!(why(&booted).contains("error execution phase certs/ca: "), "{}", why(&booted));
        assert!(why(&booted).contains(expected), "{}", why(&booted));
    }
    let join = format!("{WORKER}controlPlane: {{}}\n");
    let booted = boot(vm(runs("join", &join))).await;
    assert!(why(&booted).contains("failure loading certificate for CA: couldn't load the certificate file /etc/kubernetes/pki/ca.crt"), "{}", why(&booted));
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_stops_what_is_written_to_it() {
    let writes = "#cloud-config\nwrite_files:\n- {path: /etc/kubernetes/pki/ca.crt, content: x}\nruncmd: [kubeadm init]\n";
    let booted = boot(with_fault(vm(writes), GuestFault::DiskFull)).await;
    assert!(why(&booted).contains("Running module write_files (cc_write_files.py) failed: [Errno 28] No space left on device: '/etc/kubernetes/pki"), "{}", why(&booted));
    booted.prints("Running module runcmd (cc_runcmd.py) failed: [Errno 28] No space left on device");
    let ignition = r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/a","contents":{"source":"data:,x"}}]}}"#;
    let booted = boot(with_fault(vm(ignition), GuestFault::DiskFull)).await;
    assert!(why(&booted).contains("writing file \"/etc/a\": no space left on device"), "{}", why(&booted));
}

#[tokio::test(start_paused = true)]
async fn without_a_network_clusters_are_not_reached() {
    let before = Instant::now();
    let booted = boot(with_fault(vm(runs("join", WORKER)), GuestFault::NoNetwork)).await;
    assert!(why(&booted).contains("couldn't validate the identity of the API Server"), "{}", why(&booted));
    assert!(why(&booted).contains("dial tcp 10.0.0.10:6443: connect: no route to host"));
    assert_eq!(before.elapsed(), Duration::from_secs(300));
    let booted = boot(with_fault(vm(runs("init", CLUSTER)), GuestFault::NoNetwork)).await;
    assert!(why(&booted).contains("error execution phase upload-config/kubeadm"), "{}", why(&booted));
    assert!(booted.control.inits.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_cluster_are_printed_as_kubeadm_does() {
    let refusal = KubeadmError { phase: "etcd-join", why: "etcdserver: unhealthy cluster".to_owned() };
    let control = Recorder { refusal: Some(refusal), ..Recorder::default() };
    let booted = boot_with(vm(runs("join", WORKER)), control).await;
    assert_eq!(why(&booted), "error: error execution phase etcd-join: etcdserver: unhealthy cluster");
    booted.prints("error: error execution phase etcd-join: etcdserver: unhealthy cluster");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_with_labels_that_are_not_its_own_never_starts() {
    let config = WORKER.replace(
        "{name: register-with-taints, value: 'a=b:NoSchedule'}",
        "{name: node-labels, value: node-role.kubernetes.io/gpu=}",
    );
    let booted = boot(vm(runs("join", &config))).await;
    assert!(why(&booted).contains("failed while waiting for the kubelet to start"), "{}", why(&booted));
    booted.prints("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [node-role.kubernetes.io/gpu]");
    assert!(booted.control.joins.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_user_data_panics_a_machine() {
    let mut seed = 7u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let headers: [&[u8]; 6] = [
        b"",
        b"#cloud-config\n",
        b"## template: jinja\n#cloud-config\n",
        b"{\"ignition\":",
        b"#!/bin/sh\n",
        &[0x1f, 0x8b],
    ];
    for _ in 0..500 {
        let mut data = headers[next() % headers.len()].to_vec();
        for _ in 0..next() % 60 {
            data.push((next() % 256) as u8);
        }
        boot(vm(data)).await;
    }
    // Valid user data with a few bytes changed reaches further.
    let good = runs("init", CLUSTER).into_bytes();
    for _ in 0..60 {
        let mut data = good.clone();
        for _ in 0..4 {
            let at = next() % data.len();
            data[at] = (next() % 128) as u8;
        }
        boot(vm(data)).await;
    }
    for deep in ["[".repeat(100_000), "{a: ".repeat(20_000), "- ".repeat(50_000)] {
        boot(vm(format!("#cloud-config\n{deep}"))).await;
        boot(vm(runs("init", &deep))).await;
    }
    boot(vm(format!("{{\"ignition\":{}", "[".repeat(100_000)))).await;
}
