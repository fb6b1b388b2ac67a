use std::sync::Arc;

use super::reasons_to_replace;
use crate::control_plane::fixture::{control_plane, machine, plane};
use crate::control_plane::observed::{ControlPlaneMachine, TemplateOrigin};
use crate::testing::object;

#[test]
fn machines_are_replaced_for_changes_that_are_not_in_place() {
    let reasons = |rest: &str, change: &dyn Fn(&mut ControlPlaneMachine)| {
        let mut plane = plane(control_plane(3, rest), vec![machine(1)]);
        change(&mut plane.machines[0]);
        let member = plane.machines[0].clone();
        reasons_to_replace(&plane, &member)
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(reasons("", &|_| ()), none);
    assert_eq!(
        reasons("", &|m| Arc::make_mut(&mut m.machine).spec.version = "v1.33.0".to_owned()),
        ["Version v1.33.0, v1.34.1 required"]
    );
    let after = "  rollout: {after: '2026-11-10T00:00:00Z'}";
    assert_eq!(reasons(after, &|_| ()), ["KubeadmControlPlane spec.rollout.after expired"]);
    assert_eq!(reasons("  rollout: {after: '2026-12-10T00:00:00Z'}", &|_| ()), none, "not yet");
    assert_eq!(reasons("  rollout: {after: '2026-10-10T00:00:00Z'}", &|_| ()), none, "made after it");
    let before = "  rollout: {before: {certificatesExpiryDays: 21}}";
    let expires = |at: &'static str| {
        move |m: &mut ControlPlaneMachine| {
            Arc::make_mut(&mut m.machine).status.certificates_expiry_date = Some(object(at));
        }
    };
    assert_eq!(reasons(before, &expires("'2026-12-01T00:00:00Z'")), ["Certificates will expire soon"]);
    assert_eq!(reasons(before, &expires("'2027-06-01T00:00:00Z'")), none);
    let origin = |name: &str| {
        let name = name.to_owned();
        move |m: &mut ControlPlaneMachine| {
            let group_kind = "SimMachineTemplate.infrastructure.cluster.x-k8s.io".to_owned();
            m.origin = Some(TemplateOrigin { name: name.clone(), group_kind });
        }
    };
    assert_eq!(reasons("", &origin("cp")), none);
    assert_eq!(reasons("", &origin("cp-old")), ["SimMachine is not up-to-date"]);
}

#[test]
fn a_configuration_is_compared_as_init_or_join() {
    let rest = "  kubeadmConfigSpec:
    clusterConfiguration: {apiServer: {extraArgs: [{name: v, value: '2'}]}}
    initConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: a, value: b}]}}
    joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: a, value: b}]}}";
    let outdated = |config: &str| {
        let mut plane = plane(control_plane(3, rest), vec![machine(1)]);
        plane.machines[0].config = Some(object(config));
        let member = plane.machines[0].clone();
        !reasons_to_replace(&plane, &member).is_empty()
    };
    let cluster = "clusterConfiguration: {featureGates: {ControlPlaneKubeletLocalMode: true}, controlPlaneEndpoint: 'x:1', dns: {imageTag: v1}, apiServer: {extraArgs: [{name: v, value: '2'}], extraEnvs: []}}";
    let node = "nodeRegistration: {kubeletExtraArgs: [{name: a, value: b}]}";
    let joined = format!(
        "{{{cluster}, joinConfiguration: {{{node}, controlPlane: {{}}, discovery: {{bootstrapToken: {{token: t}}}}}}}}"
    );
    let first = format!("{{{cluster}, initConfiguration: {{{node}}}}}");
    assert!(!outdated(&joined), "what was filled in while joining is no difference");
    assert!(!outdated(&first), "the first machine was reported the same in other words");
    let defaulted =
        joined.replace("{name: a, value: b}]}", "{name: a, value: b}], imagePullPolicy: IfNotPresent}");
    assert!(defaulted != joined && !outdated(&defaulted), "earlier releases wrote this default");
    assert!(outdated(&defaulted.replace("IfNotPresent", "Always")));
    assert!(outdated(&joined.replace("value: '2'", "value: '4'")));
    assert!(outdated(&first.replace("value: b", "value: c")));
}
