//! Names of templates. A template is never changed: one with another content gets the next number.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::admission::Admission;

use super::Current;
use crate::generate::{Generated, GeneratedGroup};
use crate::names;

/// Gives templates the names that are in use as long as their content is the same.
pub(super) fn rename(generated: &mut Generated, current: &Current) {
    let used = current.control_plane.as_ref();
    let used = used.map(|plane| plane.spec.machine_template.spec.infrastructure_ref.name.clone());
    let machines = &mut generated.control_plane_machines;
    let name = settled(machines, used, &current.machine_templates, |it| it.spec.clone());
    generated.control_plane.spec.machine_template.spec.infrastructure_ref.name.clone_from(&name);
    generated.control_plane_machines.metadata.name = name;
    for group in &mut generated.groups {
        rename_group(group, current);
    }
}

fn rename_group(group: &mut GeneratedGroup, current: &Current) {
    let running = current.deployments.get(&group.deployment.metadata.name).map(|it| &it.spec.template.spec);
    let machine = &mut group.deployment.spec.template.spec;
    let used = running.map(|spec| spec.infrastructure_ref.name.clone());
    let name = settled(&group.machines, used, &current.machine_templates, |it| it.spec.clone());
    machine.infrastructure_ref.name.clone_from(&name);
    group.machines.metadata.name = name;
    let used = running.map(|spec| spec.bootstrap.config_ref.name.clone());
    let name = settled(&group.bootstrap, used, &current.bootstrap_templates, |it| it.spec.clone());
    machine.bootstrap.config_ref.name.clone_from(&name);
    group.bootstrap.metadata.name = name;
}

/// The name in use if the content is the same, or the first free number after it. A number that was taken by a rotation
/// which was not finished is used again if its content fits.
fn settled<T: Admission, S: PartialEq>(
    wanted: &T,
    used: Option<String>,
    existing: &BTreeMap<String, Arc<T>>,
    content: impl Fn(&T) -> S,
) -> String {
    let mut defaulted = wanted.clone();
    // What admission adds is no difference. If it fails, the attempt to create the template reports why.
    let _ = Admission::default(&mut defaulted, None);
    let mut name = used.filter(|name| !name.is_empty()).unwrap_or_else(|| wanted.metadata().name.clone());
    while existing.get(&name).is_some_and(|there| content(there) != content(&defaulted)) {
        name = names::next_template(&name);
    }
    name
}
