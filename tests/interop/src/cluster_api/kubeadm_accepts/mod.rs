//! `cargo xtask kubeadm-accepts`: real kubeadm must accept our boot data and certificates.
//!
//! Each spec of a table is rendered as a machine gets it, as cloud-config or Ignition. The files are written to a
//! scratch root, and kubeadm, confined to it, validates its configuration and runs the phases of `init` that need no
//! node: certificates, kubeconfigs, control plane, etcd. Invalid specs must be rejected. A second table has
//! configurations that the simulated kubeadm validates as well: both must agree.

mod machine;
mod scratch;
mod verdicts;

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use capstan_capi_types::bootstrap::KubeadmConfigSpec;
use capstan_capi_types::core::Cluster;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::bed::Workdir;
use crate::peers::Cache;
use crate::text::human_duration;
use machine::{Certificates, Role};
use scratch::Scratch;

#[derive(Debug, Args)]
pub struct Options {
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    version: String,
    #[serde(default)]
    cluster: Value,
    #[serde(default)]
    spec: KubeadmConfigSpec,
    /// A part of kubeadm's error message.
    #[serde(default)]
    error: String,
}

/// Kubernetes version for kubeadm v1beta3 documents. The pinned kubeadm supports no version as old as the ones they
/// are rendered for.
const STAND_IN: &str = "v1.36.3";

pub fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let kubeadm = Cache::locate()?.built("kubeadm")?;
    let mut workdir = Workdir::new("kubeadm-accepts")?;
    let (mut accepted, mut refused) = (0, 0);
    let mut failures = Vec::new();
    for case in table::<Vec<Case>>("accepted.yaml")?.iter().filter(|case| case.name.contains(&options.only)) {
        let certificates = Certificates::make(&case.spec)?;
        for role in Role::ALL {
            let folder = workdir.folder(&format!("{accepted:03}-{role:?}"))?;
            match accepts(case, role, &certificates, &Scratch::new(folder, kubeadm.clone())) {
                Ok(()) => accepted += 1,
                Err(error) => failures.push(format!("{} as {role:?}: {error:#}", case.name)),
            }
        }
        println!("accepted: {}", case.name);
    }
    for case in table::<Vec<Case>>("refused.yaml")?.iter().filter(|case| case.name.contains(&options.only)) {
        let folder = workdir.folder(&format!("refused-{refused:03}"))?;
        match is_refused(case, &Scratch::new(folder, kubeadm.clone())) {
            Ok(()) => refused += 1,
            Err(error) => failures.push(format!("{}: {error:#}", case.name)),
        }
        println!("refused: {}", case.name);
    }
    for (name, check) in [
        ("a foreign key beside our certificate", foreign_key as fn(&Scratch) -> Result<()>),
        ("an unknown field", unknown_field),
    ] {
        let scratch = Scratch::new(workdir.folder(&format!("refused-{refused:03}"))?, kubeadm.clone());
        match check(&scratch) {
            Ok(()) => refused += 1,
            Err(error) => failures.push(format!("{name}: {error:#}")),
        }
        println!("refused: {name}");
    }
    let (judged, wrong) = verdicts::ask(&mut workdir, &kubeadm, &options.only)?;
    failures.extend(wrong);
    for failure in &failures {
        println!("\nFAILED {failure}");
    }
    ensure!(
        failures.is_empty(),
        "{} of {} cases failed",
        failures.len(),
        failures.len() + accepted + refused + judged
    );
    ensure!(accepted + judged > 0, "no case was run");
    workdir.passed();
    println!(
        "kubeadm accepts {accepted} machines, rejects {refused} invalid ones and validates {judged} configurations as expected, in {}",
        human_duration(begin.elapsed())
    );
    Ok(())
}

fn table<T: serde::de::DeserializeOwned>(file: &str) -> Result<T> {
    let path = crate::cargo::root().join("tests/kubeadm-accepts").join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let value: Value = serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
    serde_json::from_value(value).with_context(|| path.display().to_string())
}

/// The cluster of a case: defaults, overlaid with the case's own values.
fn cluster(case: &Case) -> Result<Cluster> {
    let mut cluster = serde_json::json!({
        "metadata": {"name": "blue", "namespace": "fleet"},
        "spec": {
            "controlPlaneEndpoint": {"host": "10.0.0.10", "port": 6443},
            "clusterNetwork": {
                "serviceDomain": "cluster.local",
                "services": {"cidrBlocks": ["10.96.0.0/12"]},
                "pods": {"cidrBlocks": ["192.168.0.0/16"]},
            },
        },
    });
    overlay(&mut cluster, &case.cluster);
    Ok(serde_json::from_value(cluster)?)
}

fn overlay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                overlay(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (base, over) => *base = over.clone(),
    }
}

fn lay_out(case: &Case, role: Role, scratch: &Scratch, certificates: &Certificates) -> Result<()> {
    let data = machine::boot_data(role, &cluster(case)?, &case.spec, &case.version, certificates)?;
    scratch.boot(&data, &case.spec)?;
    if case.version.as_str() < "v1.31" {
        scratch.edit_config(|text| text.replace(&case.version, STAND_IN))?;
    }
    Ok(())
}

fn accepts(case: &Case, role: Role, certificates: &Certificates, scratch: &Scratch) -> Result<()> {
    lay_out(case, role, scratch, certificates)?;
    scratch.kubeadm(&["config", "validate", "--allow-deprecated-api"])?.must_succeed()?;
    if role != Role::Init {
        return Ok(());
    }
    let external_etcd = case.spec.cluster_configuration.etcd.external != Default::default();
    let mut phases = vec!["certs", "kubeconfig", "control-plane"];
    if !external_etcd {
        phases.push("etcd");
    }
    for phase in phases {
        let part = if phase == "etcd" { "local" } else { "all" };
        scratch.kubeadm(&["init", "phase", phase, part])?.must_succeed()?;
    }
    let pki = match case.spec.cluster_configuration.certificates_dir.as_str() {
        "" => "/etc/kubernetes/pki",
        directory => directory,
    };
    ensure!(
        scratch.read(&format!("{pki}/ca.crt"))? == certificates.ca(),
        "kubeadm replaced the CA that it was given"
    );
    let mut made = vec![
        format!("{pki}/apiserver.crt"),
        format!("{pki}/front-proxy-client.crt"),
        "/etc/kubernetes/admin.conf".to_owned(),
        "/etc/kubernetes/manifests/kube-apiserver.yaml".to_owned(),
        "/etc/kubernetes/manifests/kube-controller-manager.yaml".to_owned(),
        "/etc/kubernetes/manifests/kube-scheduler.yaml".to_owned(),
    ];
    if !external_etcd {
        made.extend([format!("{pki}/etcd/server.crt"), "/etc/kubernetes/manifests/etcd.yaml".to_owned()]);
    }
    for path in made {
        scratch.read(&path)?;
    }
    // Every setting of the spec must be in the manifests that kubeadm writes.
    let manifest = scratch.read("/etc/kubernetes/manifests/kube-apiserver.yaml")?;
    for flag in &case.spec.cluster_configuration.api_server.extra_args {
        let wanted = format!("--{}={}", flag.name, flag.value.clone().unwrap_or_default());
        ensure!(manifest.contains(&wanted), "the manifest of the API server lacks {wanted}");
    }
    if !case.spec.init_configuration.patches.directory.is_empty() {
        ensure!(manifest.contains("patched:"), "the patches were not applied");
    }
    Ok(())
}

fn is_refused(case: &Case, scratch: &Scratch) -> Result<()> {
    lay_out(case, Role::Init, scratch, &Certificates::make(&case.spec)?)?;
    let verdict = scratch.kubeadm(&["config", "validate"])?;
    verdict.must_fail(&case.error)
}

fn plain() -> Case {
    Case {
        name: String::new(),
        version: STAND_IN.to_owned(),
        cluster: Value::Null,
        spec: KubeadmConfigSpec::default(),
        error: String::new(),
    }
}

fn foreign_key(scratch: &Scratch) -> Result<()> {
    let certificates = Certificates::make(&KubeadmConfigSpec::default())?.with_foreign_ca_key()?;
    lay_out(&plain(), Role::Init, scratch, &certificates)?;
    scratch.kubeadm(&["init", "phase", "certs", "all"])?.must_fail("ca")
}

fn unknown_field(scratch: &Scratch) -> Result<()> {
    lay_out(&plain(), Role::Init, scratch, &Certificates::make(&KubeadmConfigSpec::default())?)?;
    scratch.edit_config(|text| text.replace("clusterName:", "clusterNames:"))?;
    let verdict = scratch.kubeadm(&["config", "validate"])?;
    if verdict.must_fail("clusterNames").is_err() {
        bail!("kubeadm accepted an unknown field");
    }
    Ok(())
}
