//! `ClusterClass`.

use capstan_go_template::Template;
use capstan_schema::{golang, meta};
use serde_json::json;

use super::common::{
    shown, validate_node_startup_timeout, validate_percentage, validate_rolling_update, validate_taints,
    validate_template_meta,
};
use super::{Admission, Features, FieldError, builtin};
use crate::core::cluster_class::{
    ClassNamingSpec, ClusterClassPatch, ClusterClassTemplateReference, DEFINED_INLINE, JsonPatch,
    PatchSelector, PatchSelectorMatchClass,
};
use crate::core::{ClusterClass, TEMPLATE_SUFFIX};
use crate::variables;
use crate::version;

impl Admission for ClusterClass {
    fn validate(&self, old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !features.cluster_topology {
            errors.push(FieldError::forbidden(
                "spec",
                "can be set only if the ClusterTopology feature flag is enabled",
            ));
            return errors;
        }
        for (path, template) in self.spec.templates() {
            validate_reference(template, &path, &mut errors);
        }
        validate_classes_are_unique(self, &mut errors);
        validate_parts(self, features, &mut errors);
        validate_names(self, &mut errors);
        errors.extend(variables::validate_definitions(&self.spec.variables, "spec.variables"));
        for (at, patch) in self.spec.patches.iter().enumerate() {
            let path = format!("spec.patches[{at}]");
            let before = &self.spec.patches[..at];
            validate_patch(self, patch, before, features, &path, &mut errors);
        }
        validate_versions(&self.spec.kubernetes_versions, &mut errors);
        if let Some(old) = old {
            errors.extend(incompatibilities(old, self));
        }
        errors
    }
}

fn validate_reference(template: &ClusterClassTemplateReference, path: &str, errors: &mut Vec<FieldError>) {
    if template.name.is_empty() {
        errors.push(FieldError::required(format!("{path}.ref.name"), "template name must be defined"));
    }
    if template.kind.strip_suffix(TEMPLATE_SUFFIX).is_none_or(str::is_empty) {
        let message = format!("template kind must be of form \"<name>{TEMPLATE_SUFFIX}\"");
        errors.push(FieldError::invalid(format!("{path}.ref.kind"), template.kind.as_str(), message));
    }
    if template.api_version.is_empty() {
        errors.push(FieldError::required(
            format!("{path}.ref.apiVersion"),
            "template apiVersion must be defined",
        ));
    }
}

fn validate_classes_are_unique(class: &ClusterClass, errors: &mut Vec<FieldError>) {
    let deployments: Vec<&str> =
        class.spec.workers.machine_deployments.iter().map(|class| &*class.class).collect();
    let pools: Vec<&str> = class.spec.workers.machine_pools.iter().map(|class| &*class.class).collect();
    for (kind, field, names) in
        [("MachineDeployment", "machineDeployments", deployments), ("MachinePool", "machinePools", pools)]
    {
        for (at, name) in names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name)) {
            let message = format!(
                "{kind} class must be unique. {kind} with class {} is defined more than once",
                golang::quote(name)
            );
            errors.push(FieldError::invalid(format!("spec.workers.{field}[{at}].class"), *name, message));
        }
    }
}

fn validate_parts(class: &ClusterClass, features: &Features, errors: &mut Vec<FieldError>) {
    let control_plane = &class.spec.control_plane;
    let path = "spec.controlPlane";
    validate_template_meta(&control_plane.metadata, &format!("{path}.metadata"), errors);
    validate_taints(&control_plane.taints, &format!("{path}.taints"), features, errors);
    if control_plane.health_check != Default::default() {
        let path = format!("{path}.healthCheck");
        let trigger = &control_plane.health_check.remediation.trigger_if;
        validate_node_startup_timeout(&control_plane.health_check.checks, &path, errors);
        let most = trigger.unhealthy_less_than_or_equal_to.as_ref();
        validate_percentage(
            most,
            &format!("{path}.remediation.triggerIf.unhealthyLessThanOrEqualTo"),
            errors,
        );
        if !control_plane.machine_infrastructure.template_ref.is_defined() {
            errors.push(FieldError::forbidden(
                path,
                "can be only set if spec.controlPlane.machineInfrastructure is set",
            ));
        }
    }
    for deployment in &class.spec.workers.machine_deployments {
        let path = format!("spec.workers.machineDeployments[{}]", deployment.class);
        validate_template_meta(&deployment.metadata, &format!("{path}.template.metadata"), errors);
        validate_taints(&deployment.taints, &format!("{path}.taints"), features, errors);
        let rolling = &deployment.rollout.strategy.rolling_update;
        validate_rolling_update(
            rolling.max_unavailable.as_ref(),
            rolling.max_surge.as_ref(),
            &format!("{path}.rollout.strategy"),
            errors,
        );
        let path = format!("{path}.healthCheck");
        let remediation = &deployment.health_check.remediation;
        validate_node_startup_timeout(&deployment.health_check.checks, &path, errors);
        let most = remediation.trigger_if.unhealthy_less_than_or_equal_to.as_ref();
        validate_percentage(
            most,
            &format!("{path}.remediation.triggerIf.unhealthyLessThanOrEqualTo"),
            errors,
        );
        validate_percentage(
            remediation.max_in_flight.as_ref(),
            &format!("{path}.remediation.maxInFlight"),
            errors,
        );
    }
    for pool in &class.spec.workers.machine_pools {
        let path = format!("spec.workers.machinePools[{}]", pool.class);
        validate_template_meta(&pool.metadata, &format!("{path}.template.metadata"), errors);
        validate_taints(&pool.taints, &format!("{path}.taints"), features, errors);
    }
}

/// Naming templates must render to names.
fn validate_names(class: &ClusterClass, errors: &mut Vec<FieldError>) {
    let mut check = |naming: &ClassNamingSpec, what: &str, path: String, part: Option<&str>| {
        let template = naming.template.as_str();
        if template.is_empty() {
            return;
        }
        let mut data = json!({"cluster": {"name": "cluster"}, "random": "abcde"});
        if let Some(part) = part {
            data[part] = json!({"topologyName": "topology"});
        }
        let rendered =
            Template::parse(template).and_then(|template| template.missing_key_is_error().render(&data));
        match rendered {
            Err(error) => {
                let message = format!("invalid {what} name template: {error}");
                errors.push(FieldError::invalid(path, template, message));
            }
            Ok(name) => {
                for problem in meta::dns1123_subdomain(&name) {
                    errors.push(FieldError::invalid(path.as_str(), template, problem));
                }
            }
        }
    };
    let spec = &class.spec;
    check(
        &spec.infrastructure.naming,
        "InfraCluster",
        "spec.infrastructure.naming.template".to_owned(),
        None,
    );
    check(&spec.control_plane.naming, "ControlPlane", "spec.controlPlane.naming.template".to_owned(), None);
    for deployment in &spec.workers.machine_deployments {
        let path = format!("spec.workers.machineDeployments[{}].naming.template", deployment.class);
        check(&deployment.naming, "MachineDeployment", path, Some("machineDeployment"));
    }
    for pool in &spec.workers.machine_pools {
        let path = format!("spec.workers.machinePools[{}].naming.template", pool.class);
        check(&pool.naming, "MachinePool", path, Some("machinePool"));
    }
}

fn validate_patch(
    class: &ClusterClass,
    patch: &ClusterClassPatch,
    before: &[ClusterClassPatch],
    features: &Features,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let name = format!("{path}.name");
    if patch.name.is_empty() {
        errors.push(FieldError::required(name.as_str(), "patch name must be defined"));
    }
    if patch.name == DEFINED_INLINE {
        let message = format!("{} can not be used as the name of a patch", golang::quote(DEFINED_INLINE));
        errors.push(FieldError::required(name.as_str(), message));
    }
    if before.iter().any(|known| known.name == patch.name) {
        let message = format!(
            "patch names must be unique. Patch with name {} is defined more than once",
            golang::quote(&patch.name)
        );
        errors.push(FieldError::invalid(name, patch.name.as_str(), message));
    }
    if let Err(error) = Template::parse(&patch.enabled_if) {
        let message = format!("template can not be parsed: {error}");
        errors.push(FieldError::invalid(format!("{path}.enabledIf"), patch.enabled_if.as_str(), message));
    }
    match (&patch.external, patch.definitions.is_empty()) {
        (None, true) => {
            errors.push(FieldError::required(path, "one of definitions or external must be defined"));
        }
        (Some(_), false) => {
            let message = "only one of definitions or external can be defined";
            errors.push(FieldError::invalid(path, shown(patch), message));
        }
        (Some(_), true) | (None, false) => {}
    }
    if let Some(external) = &patch.external {
        let path = format!("{path}.external");
        if !features.runtime_sdk {
            let message = "patch.external can be used only if the RuntimeSDK feature flag is enabled";
            errors.push(FieldError::forbidden(path.as_str(), message));
        }
        if external.validate_topology_extension.is_empty() && external.generate_patches_extension.is_empty() {
            let message = "one of validateTopologyExtension and generatePatchesExtension must be defined";
            errors.push(FieldError::invalid(path, shown(external), message));
        }
    }
    for (at, definition) in patch.definitions.iter().enumerate() {
        let path = format!("{path}.definitions[{at}]");
        for (at, change) in definition.json_patches.iter().enumerate() {
            validate_change(class, change, &format!("{path}.jsonPatches[{at}]"), errors);
        }
        validate_selector(class, &definition.selector, &format!("{path}.selector"), errors);
    }
}

fn validate_change(class: &ClusterClass, change: &JsonPatch, path: &str, errors: &mut Vec<FieldError>) {
    if !["add", "replace", "remove"].contains(&&*change.op) {
        errors.push(FieldError::not_supported(
            format!("{path}.op"),
            change.op.as_str(),
            &["add", "remove", "replace"],
        ));
    }
    if !change.path.starts_with("/spec") {
        errors.push(FieldError::invalid(
            format!("{path}.path"),
            shown(change),
            "jsonPatch path must start with \"/spec\"",
        ));
    }
    validate_indices(change, &format!("{path}.path"), errors);
    if !["add", "replace"].contains(&&*change.op) {
        return;
    }
    let source = match (&change.value, &change.value_from) {
        (None, None) => {
            let message = "jsonPatch must define one of value or valueFrom";
            errors.push(FieldError::invalid(path, shown(change), message));
            return;
        }
        (Some(_), Some(_)) => {
            let message = "jsonPatch can not define both value and valueFrom";
            errors.push(FieldError::invalid(path, shown(change), message));
            return;
        }
        (Some(_), None) => return,
        (None, Some(source)) => source,
    };
    let path = format!("{path}.valueFrom");
    match (source.template.is_empty(), source.variable.is_empty()) {
        (true, true) => {
            let message = "valueFrom must set either template or variable";
            errors.push(FieldError::invalid(path, shown(source), message));
        }
        (false, false) => {
            let message = "valueFrom can not set both template and variable";
            errors.push(FieldError::invalid(path, shown(source), message));
        }
        (false, true) => {
            if let Err(error) = Template::parse(&source.template) {
                let message = format!("template can not be parsed: {error}");
                let path = format!("{path}.template");
                errors.push(FieldError::invalid(path, source.template.as_str(), message));
            }
        }
        (true, false) => {
            if let Some(problem) = unknown_variable(class, &source.variable) {
                let path = format!("{path}.variable");
                errors.push(FieldError::invalid(path, source.variable.as_str(), problem));
            }
        }
    }
}

/// Why a patch cannot take its value from a variable. Of a variable of the class only the name is checked, of a builtin
/// variable the whole path.
fn unknown_variable(class: &ClusterClass, path: &str) -> Option<String> {
    if let Some(path) = builtin::below(path) {
        return (!builtin::is_variable(path)).then(|| "not a defined builtin variable".to_owned());
    }
    let name = path.split(['.', '[']).next().unwrap_or_default();
    let known = class.spec.variables.iter().any(|variable| variable.name == name);
    (!known).then(|| format!("variable with name {path} cannot be found"))
}

/// Lists can be prepended and appended to; what stands at another index depends on other writers.
fn validate_indices(change: &JsonPatch, path: &str, errors: &mut Vec<FieldError>) {
    let mut parts = change.path.split('/').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && part != "0" {
            let message = "jsonPatch elements cannot be added to arrays at a position other than 0 or \"-\"";
            errors.push(FieldError::invalid(path, shown(change), message));
        }
        if (part == "0" || part == "-") && !(change.op == "add" && last) {
            let message =
                "jsonPatch path can only access an array element at the end of the path of an add operation";
            errors.push(FieldError::invalid(path, shown(change), message));
        }
    }
}

fn validate_selector(
    class: &ClusterClass,
    selector: &PatchSelector,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let wanted = &selector.match_resources;
    let path = format!("{path}.matchResources");
    let matches = |template: &ClusterClassTemplateReference| {
        (&template.kind, &template.api_version) == (&selector.kind, &selector.api_version)
    };
    let named = |names: &Option<PatchSelectorMatchClass>| {
        names.as_ref().map(|names| names.names.clone()).unwrap_or_default()
    };
    let deployments = named(&wanted.machine_deployment_class);
    let pools = named(&wanted.machine_pool_class);
    let infrastructure = wanted.infrastructure_cluster == Some(true);
    let control_plane = wanted.control_plane == Some(true);
    if !infrastructure && !control_plane && deployments.is_empty() && pools.is_empty() {
        let path = path.trim_end_matches(".matchResources");
        errors.push(FieldError::invalid(path, shown(selector), "no selector enabled"));
        return;
    }
    let spec = &class.spec;
    if infrastructure && !matches(&spec.infrastructure.template_ref) {
        let message = "selector is enabled but does not match the infrastructure ref";
        errors.push(FieldError::invalid(format!("{path}.infrastructureCluster"), true, message));
    }
    let of_control_plane = matches(&spec.control_plane.template_ref)
        || matches(&spec.control_plane.machine_infrastructure.template_ref);
    if control_plane && !of_control_plane {
        let message = "selector is enabled but matches neither the controlPlane ref nor the controlPlane machineInfrastructure ref";
        errors.push(FieldError::invalid(format!("{path}.controlPlane"), true, message));
    }
    let of_deployments: Vec<(&str, bool)> = spec
        .workers
        .machine_deployments
        .iter()
        .map(|it| {
            (&*it.class, matches(&it.infrastructure.template_ref) || matches(&it.bootstrap.template_ref))
        })
        .collect();
    let of_pools: Vec<(&str, bool)> = spec
        .workers
        .machine_pools
        .iter()
        .map(|it| {
            (&*it.class, matches(&it.infrastructure.template_ref) || matches(&it.bootstrap.template_ref))
        })
        .collect();
    for (kind, field, names, classes) in [
        ("MachineDeployment", "machineDeploymentClass", deployments, of_deployments),
        ("MachinePool", "machinePoolClass", pools, of_pools),
    ] {
        for (at, name) in names.iter().enumerate() {
            let path = format!("{path}.{field}.names[{at}]");
            if name.matches('*').count() > 1 {
                let message = "selector can at most contain a single \"*\" rune";
                errors.push(FieldError::invalid(path, name.as_str(), message));
                break;
            }
            if name.contains('*') && !name.starts_with('*') && !name.ends_with('*') {
                let message = "\"*\" rune can only appear at the beginning, or ending of the selector";
                errors.push(FieldError::invalid(path, name.as_str(), message));
                break;
            }
            if !classes.iter().any(|(class, fits)| *fits && selects_class(name, class)) {
                let message = format!(
                    "selector is enabled but matches neither the bootstrap ref nor the infrastructure ref of a {kind} class"
                );
                errors.push(FieldError::invalid(path, name.as_str(), message));
            }
        }
    }
}

/// Whether a name of a patch selector stands for a class.
pub fn selects_class(name: &str, class: &str) -> bool {
    name == class
        || name == "*"
        || name.strip_prefix('*').is_some_and(|end| class.ends_with(end))
        || name.strip_suffix('*').is_some_and(|begin| class.starts_with(begin))
}

fn validate_versions(versions: &[String], errors: &mut Vec<FieldError>) {
    let mut previous: Option<semver::Version> = None;
    for (at, text) in versions.iter().enumerate() {
        let path = format!("spec.kubernetesVersion[{at}]");
        let Some(version) = version::tolerant(text) else {
            errors.push(FieldError::invalid(path, text.as_str(), "version must be a valid semantic version"));
            continue;
        };
        if let Some(previous) = &previous {
            if version <= *previous {
                let message = format!("version must be greater than v{previous}");
                errors.push(FieldError::invalid(path.as_str(), text.as_str(), message));
            }
            if previous.minor != version.minor && previous.minor + 1 != version.minor {
                let message = format!(
                    "expecting a version with minor {} or {}, found version {version}",
                    previous.minor,
                    previous.minor + 1
                );
                errors.push(FieldError::invalid(path, text.as_str(), message));
            }
        }
        previous = Some(version);
    }
}

/// Why a class cannot take the place of another.
pub fn incompatibilities(old: &ClusterClass, new: &ClusterClass) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut compare = |old: &ClusterClassTemplateReference,
                       new: &ClusterClassTemplateReference,
                       path: &str| {
        if old.group() != new.group() {
            let message = format!(
                "group of apiVersion cannot be changed from {} to {} to prevent incompatible changes in the Clusters",
                golang::quote(old.group()),
                golang::quote(new.group())
            );
            errors.push(FieldError::forbidden(format!("{path}.apiVersion"), message));
        }
        if old.kind != new.kind {
            let message = format!(
                "kind cannot be changed from {} to {} to prevent incompatible changes in the Clusters",
                golang::quote(&old.kind),
                golang::quote(&new.kind)
            );
            errors.push(FieldError::forbidden(format!("{path}.kind"), message));
        }
    };
    let (old, new) = (&old.spec, &new.spec);
    compare(
        &old.infrastructure.template_ref,
        &new.infrastructure.template_ref,
        "spec.infrastructure.templateRef",
    );
    compare(
        &old.control_plane.template_ref,
        &new.control_plane.template_ref,
        "spec.controlPlane.templateRef",
    );
    compare(
        &old.control_plane.machine_infrastructure.template_ref,
        &new.control_plane.machine_infrastructure.template_ref,
        "spec.controlPlane.machineInfrastructure.templateRef",
    );
    for (at, class) in new.workers.machine_deployments.iter().enumerate() {
        let before = old.workers.machine_deployments.iter().find(|old| old.class == class.class);
        if let Some(before) = before {
            compare(
                &before.infrastructure.template_ref,
                &class.infrastructure.template_ref,
                &format!("spec.workers.machineDeployments[{at}].infrastructure.templateRef"),
            );
        }
    }
    for (at, class) in new.workers.machine_pools.iter().enumerate() {
        let before = old.workers.machine_pools.iter().find(|old| old.class == class.class);
        if let Some(before) = before {
            compare(
                &before.infrastructure.template_ref,
                &class.infrastructure.template_ref,
                &format!("spec.workers.machinePools[{at}].infrastructure.templateRef"),
            );
        }
    }
    errors
}
