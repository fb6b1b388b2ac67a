//! Preflight checks before a set creates or replaces machines: the control plane is stable, and the versions of control
//! plane and machines are compatible.

use std::collections::BTreeSet;

use capstan_capi_types::core::annotation::TOPOLOGY_UPGRADE_STEP;
use capstan_capi_types::core::{Cluster, ContractVersionedObjectReference, MachineSetPreflightCheck};

use crate::contract::{ControlPlane, External, FieldError};
use crate::machines::parsed;

/// How many minor versions a kubelet may be older than the control plane.
const KUBELET_SKEW: u64 = 3;

/// Inputs of the checks.
pub struct Preflight<'a> {
    pub cluster: &'a Cluster,
    pub control_plane: &'a External,
    /// The version that machines of the set have; empty for none.
    pub version: &'a str,
    /// The bootstrap template of the set.
    pub bootstrap: &'a ContractVersionedObjectReference,
    /// The annotation that skips checks, from the set or its bootstrap template.
    pub skipped: &'a str,
}

/// Failed checks, worded like upstream's conditions.
pub fn failures(preflight: &Preflight<'_>) -> Result<Vec<String>, String> {
    let skipped: BTreeSet<&str> = preflight.skipped.split(',').map(str::trim).collect();
    // Nothing is even read then: a control plane of another provider may have what cannot be checked.
    if skipped.contains(MachineSetPreflightCheck::All.as_str()) {
        return Ok(Vec::new());
    }
    let runs = |check: MachineSetPreflightCheck| !skipped.contains(check.as_str());
    let control_plane = ControlPlane(preflight.control_plane);
    let reported = |error: FieldError| error.to_string();
    // A control plane that has no version cannot be checked.
    let Some(wanted) = control_plane.version().map_err(reported)? else { return Ok(Vec::new()) };
    let wanted_parsed = parsed(&wanted).ok_or_else(|| format!("{wanted:?} is not a version"))?;
    let mut failures = Vec::new();
    if runs(MachineSetPreflightCheck::ControlPlaneIsStable) {
        failures.extend(unstable(preflight, &control_plane, &wanted).map_err(reported)?);
    }
    if preflight.version.is_empty() {
        return Ok(failures);
    }
    let own = parsed(preflight.version).ok_or_else(|| format!("{:?} is not a version", preflight.version))?;
    let pair = format!("MachineSet version ({own}) and ControlPlane version ({wanted_parsed})");
    if runs(MachineSetPreflightCheck::KubernetesVersionSkew) {
        let policy = "do not conform to the kubernetes version skew policy as MachineSet version is";
        let mark = "(\"KubernetesVersionSkew\" preflight check failed)";
        if own.minor > wanted_parsed.minor {
            failures.push(format!("{pair} {policy} higher than ControlPlane version {mark}"));
        } else if own.minor + KUBELET_SKEW < wanted_parsed.minor {
            let older =
                format!("more than {KUBELET_SKEW} minor versions older than the ControlPlane version");
            failures.push(format!("{pair} {policy} {older} {mark}"));
        }
    }
    let is_kubeadm = preflight.bootstrap.kind == "KubeadmConfigTemplate"
        && preflight.bootstrap.api_group == "bootstrap.cluster.x-k8s.io";
    if runs(MachineSetPreflightCheck::KubeadmVersionSkew) && is_kubeadm && own.minor != wanted_parsed.minor {
        failures.push(format!(
            "{pair} do not conform to kubeadm version skew policy as kubeadm only supports joining with the same \
             major+minor version as the control plane (\"KubeadmVersionSkew\" preflight check failed)"
        ));
    }
    let is_topology = !preflight.cluster.spec.topology.version.is_empty();
    if runs(MachineSetPreflightCheck::ControlPlaneVersionSkew) && is_topology && wanted != preflight.version {
        failures.push(format!(
            "MachineSet version ({}) is not yet the same as the ControlPlane version ({wanted}), waiting for version \
             to be propagated to the MachineSet (\"ControlPlaneVersionSkew\" preflight check failed)",
            preflight.version
        ));
    }
    Ok(failures)
}

fn unstable(
    preflight: &Preflight<'_>,
    control_plane: &ControlPlane<'_>,
    wanted: &str,
) -> Result<Option<String>, FieldError> {
    let meta = &preflight.control_plane.metadata;
    let name = format!("{} {}/{}", preflight.control_plane.kind.kind, meta.namespace, meta.name);
    let mark = "(\"ControlPlaneIsStable\" preflight check failed)";
    let topology = &preflight.cluster.spec.topology.version;
    let step =
        preflight.cluster.metadata.annotations.get(TOPOLOGY_UPGRADE_STEP).filter(|step| !step.is_empty());
    if !topology.is_empty() && topology != wanted && step.is_none_or(|step| step != wanted) {
        let next = step.unwrap_or(topology);
        return Ok(Some(format!("{name} has a pending version upgrade to {next} {mark}")));
    }
    let Some(lowest) = control_plane.status_version()?.filter(|version| !version.is_empty()) else {
        return Ok(Some(format!("{name} is provisioning {mark}")));
    };
    let versions = control_plane.versions()?.unwrap_or_default();
    let found = versions.iter().map(|version| version.version.as_str());
    let found: Vec<&str> = if versions.is_empty() { vec![&lowest] } else { found.collect() };
    let is_behind = found.iter().any(|found| parsed(found) < parsed(wanted));
    Ok(is_behind.then(|| format!("{name} is upgrading {mark}")))
}

#[cfg(test)]
mod tests {
    use capstan_controller::KindName;
    use serde_json::{Value, json};

    use super::*;
    use crate::contract::ContractVersion;

    struct Case {
        what: &'static str,
        topology: &'static str,
        control_plane: Value,
        version: &'static str,
        kubeadm: bool,
        skipped: &'static str,
        failed: &'static [&'static str],
    }

    fn settled(version: &str) -> Value {
        json!({"spec": {"version": version}, "status": {"version": version}})
    }

    #[test]
    fn machines_are_created_only_for_a_stable_control_plane_of_a_compatible_version() {
        let case = |what, control_plane, version, failed| Case {
            what,
            topology: "",
            control_plane,
            version,
            kubeadm: false,
            skipped: "",
            failed,
        };
        for case in [
            case("all is well", settled("v1.33.0"), "v1.33.0", &[]),
            case("no version to check", json!({"spec": {}}), "v1.33.0", &[]),
            case("no version of its own", settled("v1.33.0"), "", &[]),
            case("not up yet", json!({"spec": {"version": "v1.33.0"}}), "v1.33.0", &["ControlPlaneIsStable"]),
            case(
                "upgrading",
                json!({"spec": {"version": "v1.34.0"}, "status": {"version": "v1.33.0"}}),
                "v1.34.0",
                &["ControlPlaneIsStable"],
            ),
            case(
                "one machine of it still old",
                json!({"spec": {"version": "v1.34.0"}, "status": {"versions": [{"version": "v1.33.0"}, {"version": "v1.34.0"}]}}),
                "v1.34.0",
                &["ControlPlaneIsStable"],
            ),
            case("newer than the control plane", settled("v1.33.0"), "v1.34.0", &["KubernetesVersionSkew"]),
            case("three older is allowed", settled("v1.33.0"), "v1.30.0", &[]),
            case("four older is not", settled("v1.33.0"), "v1.29.0", &["KubernetesVersionSkew"]),
            Case {
                kubeadm: true,
                ..case(
                    "kubeadm joins its own minor only",
                    settled("v1.33.0"),
                    "v1.32.0",
                    &["KubeadmVersionSkew"],
                )
            },
            Case {
                kubeadm: true,
                skipped: "KubeadmVersionSkew",
                ..case("unless skipped", settled("v1.33.0"), "v1.32.0", &[])
            },
            Case { skipped: "Other, All", ..case("or all skipped", settled("v1.33.0"), "v1.34.0", &[]) },
            Case { skipped: "All", ..case("even what is no version", settled("latest"), "v1.34.0", &[]) },
            case("a control plane without a patch version", settled("v1.33"), "v1.33.4", &[]),
            case("a vendor's version", settled("v1.33.1-eks-1a2b3c"), "v1.33.1-eks-1a2b3c", &[]),
            Case {
                topology: "v1.33.0",
                ..case("a topology's own version", settled("v1.33.0"), "v1.33.0", &[])
            },
            Case {
                topology: "v1.34.0",
                ..case("an upgrade about to come", settled("v1.33.0"), "v1.33.0", &["ControlPlaneIsStable"])
            },
            Case {
                topology: "v1.33.0",
                ..case(
                    "workers follow a topology exactly",
                    settled("v1.33.0"),
                    "v1.32.0",
                    &["ControlPlaneVersionSkew"],
                )
            },
        ] {
            let mut cluster = Cluster::default();
            cluster.spec.topology.version = case.topology.to_owned();
            let mut value = case.control_plane;
            value["metadata"] = json!({"namespace": "ns", "name": "cp"});
            let kind = KindName::namespaced("g", "v1", "KubeadmControlPlane", "kubeadmcontrolplanes");
            let bootstrap = ContractVersionedObjectReference {
                kind: if case.kubeadm { "KubeadmConfigTemplate".to_owned() } else { String::new() },
                api_group: "bootstrap.cluster.x-k8s.io".to_owned(),
                name: "b".to_owned(),
            };
            let preflight = Preflight {
                cluster: &cluster,
                control_plane: &External::new(kind, ContractVersion::V1Beta2, value),
                version: case.version,
                bootstrap: &bootstrap,
                skipped: case.skipped,
            };
            let failed = failures(&preflight).expect("a result");
            assert_eq!(failed.len(), case.failed.len(), "{}: {failed:?}", case.what);
            for (text, check) in failed.iter().zip(case.failed) {
                assert!(
                    text.ends_with(&format!("(\"{check}\" preflight check failed)")),
                    "{}: {text}",
                    case.what
                );
            }
        }
    }
}
