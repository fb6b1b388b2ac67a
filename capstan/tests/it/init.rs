//! The first cluster on a cloud: `init`, `up`, `kubeconfig`; and templates without clusterctl.

use std::path::Path;
use std::process::{Command, Output};

use capstan_test_support::ports::free_port;
use serde_json::Value;

use crate::demo::Demo;
use crate::output::Transcript;
use crate::program::succeeded;
use crate::terminal::Terminal;
use crate::verbs::on_dir;

/// Runs `capstan init first --yes` with the keys of a demo's cloud.
fn init(transcript: &mut Transcript, data: &Path, arguments: &[&str]) -> Output {
    let cloud: Value = serde_json::from_slice(&std::fs::read(data.join("cloud.json")).unwrap()).unwrap();
    let key = |field: &str| cloud["credentials"][field].as_str().unwrap().to_owned();
    let arguments = [&["init", "first", "--yes"], arguments].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(&arguments)
        .env_remove("OS_CLIENT_CONFIG_FILE")
        .env("CLOUDSTACK_API_URL", key("api-url"))
        .env("CLOUDSTACK_API_KEY", key("api-key"))
        .env("CLOUDSTACK_SECRET_KEY", key("secret-key"))
        .output()
        .unwrap();
    transcript.add(&arguments, output)
}

#[test]
fn a_first_cluster_takes_three_commands() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let port = free_port().unwrap();
    let mut demo = Demo::start(&data, port);
    demo.until("cluster demo is ready");
    let (to, endpoint) = (dir.path().to_str().unwrap(), format!("CLUSTER_ENDPOINT_PORT={port}"));

    let mut transcript = Transcript::new(dir.path());
    init(&mut transcript, &data, &["--to", to, "--set", "CLOUDSTACK_ZONE_NAME=zone-9"]);
    init(&mut transcript, &data, &["--to", to, "--worker-machine-count", "500", "--set", &endpoint]);
    init(&mut transcript, &data, &["--to", to, "--force", "--set", &endpoint]);
    let (secret, manifest) = (dir.path().join("first-credentials.yaml"), dir.path().join("first.yaml"));
    transcript.add_file(&manifest);
    init(&mut transcript, &data, &["--to", to]);
    transcript.assert("init");

    let files = ["-f", secret.to_str().unwrap(), "-f", manifest.to_str().unwrap()];
    // The demo has a CNI for clusters with the template's label.
    let up = succeeded(on_dir(&data, &[&["up", "--lines", "--timeout", "5m"], &files[..]].concat()));
    assert!(up.contains("cluster first is ready"), "{up}");
    assert!(succeeded(on_dir(&data, &["kubeconfig", "first"])).contains("current-context"), "a kubeconfig");
    drop(demo);
    // The cloud exits with its directory.
    std::fs::remove_dir_all(&data).unwrap();
}

#[test]
fn init_without_credentials_says_what_to_set() {
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["init", "first", "--provider", "cloudstack", "--yes", "--to", dir.path().to_str().unwrap()];
    let output = Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(arguments)
        .env_remove("CLOUDSTACK_API_URL")
        .output()
        .unwrap();
    let mut transcript = Transcript::new(dir.path());
    transcript.add(&arguments, output);
    for wrong in [
        &["--set", "CLOUDSTACK_ZONE=zone-1"][..],
        &["--set", "CLOUDSTACK_FD1_SECRET_NAME=My Keys"],
        &["--kubernetes-version", "v1.35"],
        &["--control-plane-machine-count", "2"],
    ] {
        transcript.run(&[&arguments[..], wrong].concat());
    }
    transcript.assert("init-without-credentials");
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is written");
}

#[test]
fn manifests_are_generated_from_flavors() {
    let values = [
        "CLOUDSTACK_ZONE_NAME=zone-1",
        "CLOUDSTACK_NETWORK_NAME=first",
        "CLOUDSTACK_TEMPLATE_NAME=ubuntu-2404-kube-v1.36.0",
        "CLOUDSTACK_CONTROL_PLANE_MACHINE_OFFERING=Small Instance",
        "CLOUDSTACK_WORKER_MACHINE_OFFERING=Small Instance",
    ];
    let set: Vec<&str> = values.iter().flat_map(|value| ["--set", *value]).collect();
    let plain =
        ["generate", "cluster", "first", "--provider", "cloudstack", "--kubernetes-version", "v1.36.0"];
    let dir = tempfile::tempdir().unwrap();
    let mut transcript = Transcript::new(dir.path());
    transcript.run(&plain);
    transcript.run(&[&plain[..], &["--worker-machine-count", "2"], &set].concat());
    transcript.run(&[&plain[..], &["--flavor", "affinity"], &set].concat());
    transcript.run(&[&plain[..], &["--flavor", "purple"]].concat());
    transcript.run(&[&plain[..], &["--set", "TYPO=1"]].concat());
    let short = ["--kubernetes-version", "1.36"];
    transcript
        .run(&[&["generate", "cluster", "first", "--provider", "cloudstack"], &short[..], &set].concat());
    transcript.run(&["generate", "cluster", "first"]);
    transcript.assert("generate");
    let mut transcript = Transcript::new(dir.path());
    for provider in ["cloudstack", "openstack"] {
        transcript.run(&["generate", "cluster", "first", "--list-variables", "--provider", provider]);
    }
    transcript.assert("generate-variables");
}

/// A simulated OpenStack; killed when dropped.
struct OpenStack(std::process::Child);

impl Drop for OpenStack {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl OpenStack {
    /// Starts one and writes its clouds.yaml.
    fn start(config: &Path) -> Self {
        use std::io::{BufRead as _, BufReader};
        let mut process = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args([
                "sim",
                "openstack",
                "--listen",
                "127.0.0.1:0",
                "--endpoint-port",
                &free_port().unwrap().to_string(),
            ])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let cloud = Self(process);
        let mut clouds = String::new();
        // The file ends with the administrator's second region.
        while clouds.matches("region_name: ").count() < 4 {
            clouds.push_str(&lines.next().unwrap().unwrap());
            clouds.push('\n');
        }
        std::fs::write(config, clouds).unwrap();
        cloud
    }
}

#[test]
fn a_wrong_answer_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("clouds.yaml");
    let _cloud = OpenStack::start(&config);
    let (config, to) = (config.to_str().unwrap(), dir.path().to_str().unwrap());
    let arguments = [
        &["init", "first", "--provider", "openstack", "--to", to][..],
        &["--set", "OPENSTACK_CLOUD=capstan"],
    ]
    .concat();
    let mut terminal = Terminal::start(&[], &["OS_CLIENT_CONFIG_FILE"], &arguments);
    for path in ["", "/nonexistent", config] {
        terminal.answer("path of clouds.yaml: ", &format!("{path}\n"));
    }
    // Network, image, version, two flavors, zone, and the numbers of machines.
    for answer in ["9", "", "", "v1.36", "", "", "", "", "2", "3", "two", "2"] {
        terminal.answer("]: ", &format!("{answer}\n"));
    }
    let (code, screen) = terminal.end();
    let screen = screen.replace(to, "[DIR]");
    insta::with_settings!({filters => vec![(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[ID]")]}, {
        insta::assert_snapshot!(format!("{screen}[exit {code}]"), @r#"
    path of clouds.yaml: 
    clouds.yaml is empty
    path of clouds.yaml: /nonexistent
    clouds.yaml: cannot read /nonexistent: No such file or directory (os error 2)
    path of clouds.yaml: [DIR]/clouds.yaml
    external network:
      1. [ID]  (public)
    number or name [[ID]]: 9
    "9" is not one of them
    number or name [[ID]]: 
    image:
      1. ubuntu-2404-kube-v1.36.0  (Kubernetes v1.36.0)
      2. ubuntu-2404-kube-v1.35.0  (Kubernetes v1.35.0)
    number or name [ubuntu-2404-kube-v1.36.0]: 
    Kubernetes version of the image:
      1. v1.36.0  (by the image's name)
    number or name [v1.36.0]: v1.36
    "v1.36" is not a Kubernetes version such as v1.36.0
    number or name [v1.36.0]: 
    flavor of control plane machines:
      1. m1.medium  (2 CPUs, 4096 MiB)
      2. m1.large  (4 CPUs, 8192 MiB)
    number or name [m1.medium]: 
    flavor of workers:
      1. m1.medium  (2 CPUs, 4096 MiB)
      2. m1.large  (4 CPUs, 8192 MiB)
    number or name [m1.medium]: 
    availability zone of workers:
      1. az1
      2. az2
    number or name [az1]: 
    control plane machines:
      1. 1  (no redundancy)
      2. 3  (one may fail)
    number or name [1]: 2
    2 is even: a control plane has an odd number of machines
    number or name [1]: 3
    workers:
      1. 1
      2. 3
    number or name [1]: two
    "two" is not a number of machines
    number or name [1]: 2
    ok: the project may have load balancers
    ok: the quota is sufficient
    wrote [DIR]/first-credentials.yaml and [DIR]/first.yaml
    next: capstan up -f [DIR]/first-credentials.yaml -f [DIR]/first.yaml -n default
    nodes are NotReady until a CNI is installed: use --cni FILE, or apply a ClusterResourceSet that selects the label cni=example
    [exit 0]
    "#);
    });
}

#[test]
fn the_cloud_is_that_of_the_environment_or_the_first_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("clouds.yaml");
    let _cloud = OpenStack::start(&config);
    for (variable, expected) in [("", "capstan"), ("admin", "admin")] {
        let output = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["init", "first", "--provider", "openstack", "--yes", "--force", "--to"])
            .arg(dir.path())
            .env("OS_CLIENT_CONFIG_FILE", &config)
            .env("OS_CLOUD", variable)
            .output()
            .unwrap();
        succeeded(output);
        let manifest = std::fs::read_to_string(dir.path().join("first.yaml")).unwrap();
        assert!(manifest.contains(&format!("cloudName: {expected}\n")), "OS_CLOUD={variable}: {manifest}");
    }
}

#[test]
fn the_provider_is_the_one_whose_credentials_are_in_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("clouds.yaml");
    let _cloud = OpenStack::start(&config);
    let to = dir.path().to_str().unwrap();
    let mut transcript = Transcript::new(dir.path());
    let mut init = |arguments: &[&str]| {
        let arguments = [&["init", "first", "--yes", "--force", "--to", to], arguments].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(&arguments)
            .env_remove("CLOUDSTACK_API_URL")
            .env("OS_CLIENT_CONFIG_FILE", &config)
            .output()
            .unwrap();
        transcript.add(&arguments, output)
    };
    let cloud = ["--set", "OPENSTACK_CLOUD=capstan"];
    succeeded(init(&cloud));
    let manifest = std::fs::read_to_string(dir.path().join("first.yaml")).unwrap();
    assert!(manifest.contains("#   image: ubuntu-2404-kube-v1.36.0"), "{manifest}");
    let secret = std::fs::read_to_string(dir.path().join("first-credentials.yaml")).unwrap();
    assert!(secret.contains("clouds.yaml: "), "the Secret has the file's content");
    succeeded(init(&[&cloud[..], &["--set", "OPENSTACK_SECRET_NAME=mykeys"]].concat()));
    for (file, expected) in [("first-credentials.yaml", "  name: mykeys\n"), ("first.yaml", "name: mykeys\n")]
    {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(text.contains(expected), "{file}: {text}");
    }
    init(&[&cloud[..], &["--worker-machine-count", "500"]].concat());
    init(&[&cloud[..], &["--set", "OPENSTACK_IMAGE_NAME=nothing"]].concat());
    transcript.assert("init-openstack");
}
