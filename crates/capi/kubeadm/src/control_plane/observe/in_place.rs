//! Asks an extension whether the machine that the rollout would delete next can be updated in place.

use std::sync::Arc;

use capstan_capi_core::clone;
use capstan_capi_core::contract::{External, Lookup, look_up};
use capstan_capi_core::in_place::{
    AskError, Failure, Part, Question, Updater, begins, changed_object, to_template,
};
use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::Machine;
use capstan_capi_types::runtime::Hook;
use capstan_controller::{ApiError, ObserveError, View};
use capstan_object::{Object, to_value};
use serde_json::{Value, json};

use crate::control_plane::observed::{InPlace, Observed, ObservedMachine};
use crate::control_plane::rollout::candidate;
use crate::control_plane::rollout::up_to_date::compared;

const HOOK: Hook = Hook::CanUpdateMachine;

pub(super) async fn ask(
    control_plane: &Arc<KubeadmControlPlane>,
    seen: &mut Observed,
    updater: &dyn Updater,
    view: &View,
) -> Result<(), ObserveError> {
    for machine in seen.machines.iter().filter(|seen| begins(&seen.machine)) {
        if let Some(template) = former_template(machine, view).await? {
            seen.former_templates.insert(machine.machine.metadata.name.clone(), template);
        }
    }
    let Some(cluster) = seen.cluster.clone() else { return Ok(()) };
    let plane = seen.plane(control_plane.clone(), cluster, view.now());
    let Some(name) = candidate(&plane).map(|member| member.machine.metadata.name.clone()) else {
        return Ok(());
    };
    let key = control_plane.key();
    match updater.answers(view, &key, HOOK).await {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(error) => return held(seen, error),
    }
    let Some(machine) = seen.machines.iter().find(|seen| seen.machine.metadata.name == name) else {
        return Ok(());
    };
    let refused = |why: String| InPlace::Refused {
        machine: name.clone(),
        why: format!("Machine {name} cannot be updated in-place: {why}"),
    };
    let question = match question(control_plane, machine, &seen.template, view).await? {
        Ok(question) => question,
        Err(why) => {
            seen.in_place = refused(why);
            return Ok(());
        }
    };
    let subject = format!(
        "{} {} {} {}",
        machine.machine.metadata.uid,
        machine.machine.metadata.generation,
        control_plane.metadata.uid,
        control_plane.metadata.generation
    );
    match updater.can_update(view, &key, HOOK, &subject, &question).await {
        Ok(left) if left.is_empty() => seen.in_place = InPlace::Possible { machine: name },
        Ok(left) => seen.in_place = refused(left.join(", ")),
        Err(error) => return held(seen, error),
    }
    Ok(())
}

fn held(seen: &mut Observed, error: AskError) -> Result<(), ObserveError> {
    match error {
        AskError::Failed(failure) => {
            let why = format!("{HOOK}: {}", failure.why);
            seen.in_place = InPlace::Failed(Failure { why, ..failure });
            Ok(())
        }
        AskError::Observe(error) => Err(error),
    }
}

/// The template that a machine's infrastructure machine was made from.
async fn former_template(machine: &ObservedMachine, view: &View) -> Result<Option<External>, ObserveError> {
    let Some(object) = machine.infrastructure.object() else { return Ok(None) };
    let Some(origin) = clone::origin(&object.metadata) else { return Ok(None) };
    match look_up(view, &origin, &object.metadata.namespace).await? {
        Lookup::Object(template) => Ok(Some(*template)),
        _ => Ok(None),
    }
}

/// The machine as it is and as it should be, or why it must be replaced.
async fn question(
    control_plane: &KubeadmControlPlane,
    seen: &ObservedMachine,
    template: &Lookup,
    view: &View,
) -> Result<Result<Question, String>, ObserveError> {
    let (Some(template), Some(object), Some(config)) =
        (template.object(), seen.infrastructure.object(), &seen.config)
    else {
        return Ok(Err("its objects or the template do not exist".to_owned()));
    };
    let former = former_template(seen, view).await?;
    let now = object.typed_value();
    let wanted = match to_template(object, former.as_ref(), template) {
        None => now.clone(),
        Some(change) => match changed_object(object, &change) {
            Ok(wanted) => wanted,
            Err(why) => return Ok(Err(why)),
        },
    };
    if wanted["spec"] != now["spec"]
        && let Some(why) = refusal(object, &wanted, view).await?
    {
        return Ok(Err(why));
    }
    // Labels and annotations are propagated without a rollout.
    let mut before = now;
    before["metadata"] = wanted["metadata"].clone();
    let (config_now, config_wanted) = compared(control_plane, &config.spec);
    let with_spec = |spec| {
        let config = KubeadmConfig { metadata: config.metadata.clone(), spec, ..KubeadmConfig::default() };
        // Plain data always serializes.
        to_value(&config).unwrap_or_default()
    };
    let mut machine = Machine::clone(&seen.machine);
    machine.spec.version.clone_from(&control_plane.spec.version);
    Ok(Ok(Question(vec![
        Part::machine(&seen.machine, &machine),
        Part::bootstrap_config(&with_spec(config_now), &with_spec(config_wanted)),
        Part::infrastructure_machine(&before, &wanted),
    ])))
}

/// Why the provider does not accept the change, if it does not: a machine must not be marked for an update that cannot
/// begin.
async fn refusal(object: &External, wanted: &Value, view: &View) -> Result<Option<String>, ObserveError> {
    let reference = object.reference();
    let body = json!({
        "apiVersion": wanted["apiVersion"], "kind": wanted["kind"],
        "metadata": {"name": object.metadata.name, "namespace": object.metadata.namespace},
        "spec": wanted["spec"],
    });
    match view.client().dry_run_apply(&reference.kind, &reference.key, &body).await {
        Ok(_) => Ok(None),
        Err(error) if error.is_invalid() || matches!(error, ApiError::Status { code: 403, .. }) => {
            Ok(Some(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
