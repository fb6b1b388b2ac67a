//! The differences between the versions of each kind: moved fields and changed types.

use serde_json::{Map, Value, json};

use super::duration;
use super::path::{each, put, take};

/// Context of a step.
pub(super) struct Context<'a> {
    pub namespace: &'a str,
    /// See [`super::VersionOf`].
    pub version_of: &'a (dyn Fn(&str, &str) -> Option<String> + Send + Sync),
}

/// One difference: below `at`, a field that has another path and type in the other version.
pub(super) struct Step {
    at: String,
    v1beta1: String,
    v1beta2: String,
    shape: Shape,
}

/// How a value is converted.
#[derive(Clone, Copy)]
enum Shape {
    /// Unchanged.
    Same,
    /// Duration as text; seconds.
    Seconds,
    /// Map; list of names and values.
    Arguments,
    /// Reference with version and namespace; reference by group.
    Reference,
    /// Reference with namespace; without.
    TemplateReference,
    /// Reference; name alone.
    Node,
    /// Map by name; list.
    FailureDomains,
    /// One phase fewer.
    MachinePhase,
    /// Required; absent if the disk has its own layout.
    WholeDisk,
    /// v1beta2 has it twice: the value is also the timeout of joining nodes.
    AlsoForJoining,
    /// Derived from the number of ready machines.
    Ready,
    /// A strategy whose type is required in v1beta2 and optional in v1beta1.
    Strategy,
}

fn step(at: &str, v1beta1: &str, v1beta2: &str, shape: Shape) -> Step {
    Step { at: at.to_owned(), v1beta1: v1beta1.to_owned(), v1beta2: v1beta2.to_owned(), shape }
}

fn moved(at: &str, v1beta1: &str, v1beta2: &str) -> Step {
    step(at, v1beta1, v1beta2, Shape::Same)
}

fn reshaped(at: &str, field: &str, shape: Shape) -> Step {
    step(at, field, field, shape)
}

impl Step {
    pub(super) fn up(&self, object: &mut Value) {
        each(object, &self.at, &mut |object| match self.shape {
            Shape::WholeDisk => {
                let parted = object["diskLayout"].as_array().is_some_and(|layout| !layout.is_empty());
                if parted && object["layout"] == false {
                    take(object, "layout");
                }
            }
            Shape::AlsoForJoining => {
                let seconds =
                    object.pointer("/initConfiguration/timeouts/controlPlaneComponentHealthCheckSeconds");
                if let Some(seconds) = seconds.cloned() {
                    put(object, &self.v1beta2, seconds);
                }
            }
            Shape::Ready => {
                take(object, "ready");
            }
            shape => {
                if let Some(value) = take(object, &self.v1beta1) {
                    put(object, &self.v1beta2, up(shape, value));
                }
            }
        });
    }

    pub(super) fn down(&self, object: &mut Value, context: &Context<'_>) {
        each(object, &self.at, &mut |object| match self.shape {
            Shape::WholeDisk => {
                if object.get("layout").is_none() {
                    put(object, "layout", false.into());
                }
            }
            Shape::AlsoForJoining => {}
            Shape::Ready => {
                if object["readyReplicas"].as_i64().is_some_and(|ready| ready > 0) {
                    put(object, "ready", true.into());
                }
            }
            shape => {
                if let Some(value) = take(object, &self.v1beta2) {
                    put(object, &self.v1beta1, down(shape, value, context));
                }
            }
        });
    }
}

fn without(mut value: Value, keys: &[&str]) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|key, _| !keys.contains(&key.as_str()));
    }
    value
}

fn up(shape: Shape, value: Value) -> Value {
    match (shape, value) {
        (Shape::Seconds, Value::String(text)) => match duration::to_seconds(&text) {
            Some(seconds) => seconds.into(),
            // Kept, so that decoding rejects it with its name.
            None => Value::String(text),
        },
        (Shape::Strategy, Value::Object(mut strategy)) => {
            let kind = strategy.entry("type").or_insert_with(|| "".into());
            if *kind == "" {
                *kind = "RollingUpdate".into();
            }
            Value::Object(strategy)
        }
        (Shape::Arguments, Value::Object(map)) => {
            map.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
        }
        (Shape::Reference, value) => {
            let api_version = value["apiVersion"].as_str().unwrap_or_default().to_owned();
            let mut reference =
                without(value, &["apiVersion", "namespace", "uid", "resourceVersion", "fieldPath"]);
            if let Some((group, _)) = api_version.split_once('/') {
                put(&mut reference, "apiGroup", group.into());
            }
            reference
        }
        (Shape::TemplateReference, value) => {
            without(value, &["namespace", "uid", "resourceVersion", "fieldPath"])
        }
        (Shape::Node, Value::Object(mut reference)) => {
            reference.retain(|key, _| key == "name");
            Value::Object(reference)
        }
        (Shape::FailureDomains, Value::Object(map)) => map
            .into_iter()
            .map(|(name, mut domain)| {
                put(&mut domain, "name", name.into());
                domain
            })
            .collect(),
        (_, value) => value,
    }
}

fn down(shape: Shape, value: Value, context: &Context<'_>) -> Value {
    match (shape, value) {
        (Shape::Seconds, Value::Number(number)) => {
            duration::from_seconds(number.as_i64().unwrap_or_default()).into()
        }
        (Shape::Arguments, Value::Array(list)) => {
            let mut map = Map::new();
            for argument in list {
                let value = argument.get("value").cloned().unwrap_or_else(|| "".into());
                map.insert(argument["name"].as_str().unwrap_or_default().to_owned(), value);
            }
            Value::Object(map)
        }
        (Shape::Reference, value) => {
            let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
            let (group, kind) = (text("apiGroup"), text("kind"));
            let version = (context.version_of)(&group, &kind).unwrap_or_else(|| "v1beta2".to_owned());
            let mut reference = without(value, &["apiGroup"]);
            put(&mut reference, "apiVersion", format!("{group}/{version}").into());
            with_namespace(reference, context)
        }
        (Shape::TemplateReference, value) => with_namespace(value, context),
        (Shape::Node, mut value) => {
            put(&mut value, "apiVersion", "v1".into());
            put(&mut value, "kind", "Node".into());
            value
        }
        (Shape::FailureDomains, Value::Array(list)) => {
            let mut map = Map::new();
            for domain in list {
                map.insert(
                    domain["name"].as_str().unwrap_or_default().to_owned(),
                    without(domain.clone(), &["name"]),
                );
            }
            Value::Object(map)
        }
        // v1beta1 has no in-place updates.
        (Shape::MachinePhase, Value::String(phase)) if phase == "Updating" => "Running".into(),
        (_, value) => value,
    }
}

fn with_namespace(mut reference: Value, context: &Context<'_>) -> Value {
    if !context.namespace.is_empty() {
        put(&mut reference, "namespace", context.namespace.into());
    }
    reference
}

/// Conditions, failures and counts: each version keeps the other's under its own name.
pub(super) fn conditions(old: &[&str], new: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    for field in ["conditions", "failureReason", "failureMessage"].iter().chain(old) {
        steps.push(moved("status", field, &format!("deprecated.v1beta1.{field}")));
    }
    for field in ["conditions"].iter().chain(new) {
        steps.push(moved("status", &format!("v1beta2.{field}"), field));
    }
    steps
}

const NEW_COUNTS: &[&str] = &["readyReplicas", "availableReplicas", "upToDateReplicas"];

fn timeouts(at: &str) -> Vec<Step> {
    vec![
        step(at, "nodeDrainTimeout", "deletion.nodeDrainTimeoutSeconds", Shape::Seconds),
        step(at, "nodeVolumeDetachTimeout", "deletion.nodeVolumeDetachTimeoutSeconds", Shape::Seconds),
        step(at, "nodeDeletionTimeout", "deletion.nodeDeletionTimeoutSeconds", Shape::Seconds),
    ]
}

fn machine_spec(at: &str) -> Vec<Step> {
    let mut steps = timeouts(at);
    steps.push(reshaped(at, "infrastructureRef", Shape::Reference));
    steps.push(reshaped(at, "bootstrap.configRef", Shape::Reference));
    steps
}

/// Health checks, which are flat in v1beta1.
fn checks(at: &str) -> Vec<Step> {
    let mut steps = vec![
        moved(at, "unhealthyConditions", "checks.unhealthyNodeConditions"),
        moved(at, "unhealthyMachineConditions", "checks.unhealthyMachineConditions"),
        step(at, "nodeStartupTimeout", "checks.nodeStartupTimeoutSeconds", Shape::Seconds),
        moved(at, "maxUnhealthy", "remediation.triggerIf.unhealthyLessThanOrEqualTo"),
        moved(at, "unhealthyRange", "remediation.triggerIf.unhealthyInRange"),
        step(at, "remediationTemplate", "remediation.templateRef", Shape::TemplateReference),
    ];
    for list in ["unhealthyNodeConditions", "unhealthyMachineConditions"] {
        steps.push(step(&format!("{at}.checks.{list}[]"), "timeout", "timeoutSeconds", Shape::Seconds));
    }
    steps
}

pub(super) fn cluster() -> Vec<Step> {
    let topology = "spec.topology";
    let mut steps = vec![
        reshaped("spec", "controlPlaneRef", Shape::Reference),
        reshaped("spec", "infrastructureRef", Shape::Reference),
        moved(topology, "class", "classRef.name"),
        moved(topology, "classNamespace", "classRef.namespace"),
    ];
    for at in ["spec.topology.controlPlane", "spec.topology.workers.machineDeployments[]"] {
        steps.push(moved(at, "machineHealthCheck", "healthCheck"));
        let health_check = format!("{at}.healthCheck");
        steps.push(moved(&health_check, "enable", "enabled"));
        steps.extend(checks(&health_check));
        steps.extend(timeouts(at));
    }
    let deployments = "spec.topology.workers.machineDeployments[]";
    steps.push(moved(deployments, "strategy.rollingUpdate.deletePolicy", "deletion.order"));
    steps.push(moved(deployments, "strategy.remediation.maxInFlight", "healthCheck.remediation.maxInFlight"));
    steps.push(moved(deployments, "strategy", "rollout.strategy"));
    steps.extend(timeouts("spec.topology.workers.machinePools[]"));
    steps.push(reshaped("status", "failureDomains", Shape::FailureDomains));
    steps.push(moved("status", "infrastructureReady", "initialization.infrastructureProvisioned"));
    steps.push(moved("status", "controlPlaneReady", "initialization.controlPlaneInitialized"));
    steps.extend(conditions(&[], &["controlPlane", "workers"]));
    steps
}

pub(super) fn cluster_class() -> Vec<Step> {
    let template = |at: &str, old: &str, new: &str| step(at, old, new, Shape::TemplateReference);
    let mut steps = vec![
        template("spec", "infrastructure.ref", "infrastructure.templateRef"),
        moved("spec", "infrastructureNamingStrategy", "infrastructure.naming"),
        template("spec.controlPlane", "ref", "templateRef"),
        template("spec.controlPlane", "machineInfrastructure.ref", "machineInfrastructure.templateRef"),
    ];
    let deployments = "spec.workers.machineDeployments[]";
    let pools = "spec.workers.machinePools[]";
    for at in [deployments, pools] {
        steps.push(template(at, "template.bootstrap.ref", "bootstrap.templateRef"));
        steps.push(template(at, "template.infrastructure.ref", "infrastructure.templateRef"));
        steps.push(moved(at, "template.metadata", "metadata"));
    }
    for at in ["spec.controlPlane", deployments, pools] {
        steps.push(moved(at, "namingStrategy", "naming"));
        steps.extend(timeouts(at));
    }
    for at in ["spec.controlPlane", deployments] {
        steps.push(moved(at, "machineHealthCheck", "healthCheck"));
        steps.extend(checks(&format!("{at}.healthCheck")));
    }
    steps.push(moved(deployments, "strategy.rollingUpdate.deletePolicy", "deletion.order"));
    steps.push(moved(deployments, "strategy.remediation.maxInFlight", "healthCheck.remediation.maxInFlight"));
    steps.push(moved(deployments, "strategy", "rollout.strategy"));
    for at in ["spec.variables[]", "status.variables[].definitions[]"] {
        steps.push(moved(at, "metadata", "deprecatedV1Beta1Metadata"));
    }
    let external = "spec.patches[].external";
    steps.push(moved(external, "generateExtension", "generatePatchesExtension"));
    steps.push(moved(external, "validateExtension", "validateTopologyExtension"));
    steps.extend(conditions(&[], &[]));
    steps
}

pub(super) fn machine() -> Vec<Step> {
    let mut steps = machine_spec("spec");
    steps.push(moved("status", "bootstrapReady", "initialization.bootstrapDataSecretCreated"));
    steps.push(moved("status", "infrastructureReady", "initialization.infrastructureProvisioned"));
    steps.push(reshaped("status", "nodeRef", Shape::Node));
    steps.push(reshaped("status", "phase", Shape::MachinePhase));
    steps.extend(conditions(&[], &[]));
    steps
}

pub(super) fn machine_set() -> Vec<Step> {
    let mut steps = machine_spec("spec.template.spec");
    steps.push(moved("spec", "minReadySeconds", "template.spec.minReadySeconds"));
    steps.push(moved("spec", "deletePolicy", "deletion.order"));
    steps.push(moved("spec", "machineNamingStrategy", "machineNaming"));
    steps.extend(conditions(&["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], NEW_COUNTS));
    steps
}

pub(super) fn machine_deployment() -> Vec<Step> {
    let mut steps = machine_spec("spec.template.spec");
    steps.push(moved("spec", "minReadySeconds", "template.spec.minReadySeconds"));
    steps.push(moved("spec", "rolloutAfter", "rollout.after"));
    steps.push(moved("spec", "strategy.rollingUpdate.deletePolicy", "deletion.order"));
    steps.push(moved("spec", "strategy.remediation.maxInFlight", "remediation.maxInFlight"));
    steps.push(moved("spec", "strategy", "rollout.strategy"));
    steps.push(moved("spec", "machineNamingStrategy", "machineNaming"));
    let old = ["updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];
    steps.extend(conditions(&old, NEW_COUNTS));
    steps
}

pub(super) fn machine_pool() -> Vec<Step> {
    let mut steps = machine_spec("spec.template.spec");
    steps.push(moved("spec", "minReadySeconds", "template.spec.minReadySeconds"));
    steps.push(moved("status", "bootstrapReady", "initialization.bootstrapDataSecretCreated"));
    steps.push(moved("status", "infrastructureReady", "initialization.infrastructureProvisioned"));
    let old = ["readyReplicas", "availableReplicas", "unavailableReplicas"];
    steps.extend(conditions(&old, NEW_COUNTS));
    steps
}

pub(super) fn machine_health_check() -> Vec<Step> {
    let mut steps = checks("spec");
    steps.extend(conditions(&[], &[]));
    steps
}

/// kubeadm's configuration, in any kind.
pub(super) fn kubeadm_config_spec(at: &str) -> Vec<Step> {
    let below = |path: &str| format!("{at}.{path}");
    let mut steps = Vec::new();
    for component in ["apiServer", "controllerManager", "scheduler", "etcd.local"] {
        let component = below(&format!("clusterConfiguration.{component}"));
        steps.push(reshaped(&component, "extraArgs", Shape::Arguments));
    }
    for configuration in ["initConfiguration", "joinConfiguration"] {
        let registration = below(&format!("{configuration}.nodeRegistration"));
        steps.push(reshaped(&registration, "kubeletExtraArgs", Shape::Arguments));
    }
    let tokens = below("initConfiguration.bootstrapTokens[]");
    steps.push(step(&tokens, "ttl", "ttlSeconds", Shape::Seconds));
    steps.push(step(
        at,
        "clusterConfiguration.apiServer.timeoutForControlPlane",
        "initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds",
        Shape::Seconds,
    ));
    let joining = "joinConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds";
    steps.push(reshaped(at, joining, Shape::AlsoForJoining));
    steps.push(step(
        at,
        "joinConfiguration.discovery.timeout",
        "joinConfiguration.timeouts.tlsBootstrapSeconds",
        Shape::Seconds,
    ));
    steps.push(reshaped(&below("diskSetup.partitions[]"), "layout", Shape::WholeDisk));
    steps
}

pub(super) fn kubeadm_config() -> Vec<Step> {
    let mut steps = kubeadm_config_spec("spec");
    steps.push(moved("status", "ready", "initialization.dataSecretCreated"));
    steps.extend(conditions(&[], &[]));
    steps
}

/// Rollout, remediation and naming of a control plane.
fn control_plane(at: &str) -> Vec<Step> {
    let mut steps = vec![
        moved(at, "rolloutBefore", "rollout.before"),
        moved(at, "rolloutAfter", "rollout.after"),
        moved(at, "rolloutStrategy", "rollout.strategy"),
        step(at, "remediationStrategy.retryPeriod", "remediation.retryPeriodSeconds", Shape::Seconds),
        step(
            at,
            "remediationStrategy.minHealthyPeriod",
            "remediation.minHealthyPeriodSeconds",
            Shape::Seconds,
        ),
        moved(at, "remediationStrategy.maxRetry", "remediation.maxRetry"),
        moved(at, "machineNamingStrategy", "machineNaming"),
    ];
    steps.extend(kubeadm_config_spec(&format!("{at}.kubeadmConfigSpec")));
    let machines = format!("{at}.machineTemplate");
    steps.push(moved(&machines, "taints", "spec.taints"));
    for (old, new) in [
        ("nodeDrainTimeout", "spec.deletion.nodeDrainTimeoutSeconds"),
        ("nodeVolumeDetachTimeout", "spec.deletion.nodeVolumeDetachTimeoutSeconds"),
        ("nodeDeletionTimeout", "spec.deletion.nodeDeletionTimeoutSeconds"),
    ] {
        steps.push(step(&machines, old, new, Shape::Seconds));
    }
    steps
}

pub(super) fn kubeadm_control_plane() -> Vec<Step> {
    let mut steps = vec![reshaped("status", "ready", Shape::Ready)];
    steps.extend(control_plane("spec"));
    let machines = "spec.machineTemplate";
    steps.push(step(machines, "infrastructureRef", "spec.infrastructureRef", Shape::Reference));
    steps.push(moved(machines, "readinessGates", "spec.readinessGates"));
    steps.push(moved("status", "initialized", "initialization.controlPlaneInitialized"));
    steps.push(moved("status", "lastRemediation.timestamp", "lastRemediation.time"));
    let old = ["updatedReplicas", "readyReplicas", "unavailableReplicas"];
    steps.extend(conditions(&old, NEW_COUNTS));
    steps
}

pub(super) fn kubeadm_control_plane_template() -> Vec<Step> {
    let mut steps = control_plane("spec.template.spec");
    steps.push(reshaped("spec.template.spec.rollout", "strategy", Shape::Strategy));
    steps
}
