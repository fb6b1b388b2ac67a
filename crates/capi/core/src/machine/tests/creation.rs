//! A machine becomes a node.

use super::*;

#[test]
fn a_machine_goes_from_pending_to_running() {
    let bare = Observed {
        cluster: Some(cluster()),
        bootstrap: Lookup::Missing,
        infrastructure: Lookup::Missing,
        ..Observed::default()
    };
    let steps = [
        (bare, MachinePhase::Pending, ("BootstrapConfigReady", "DoesNotExist")),
        (
            Observed {
                bootstrap: config(false),
                infrastructure: infrastructure(false),
                node: ObservedNode::NotAsked,
                ..running()
            },
            MachinePhase::Pending,
            ("BootstrapConfigReady", "NotReady"),
        ),
        (
            Observed { infrastructure: infrastructure(false), node: ObservedNode::NotAsked, ..running() },
            MachinePhase::Provisioning,
            ("InfrastructureReady", "NotReady"),
        ),
        (
            Observed { node: ObservedNode::Missing, ..running() },
            MachinePhase::Provisioned,
            ("NodeHealthy", "InspectionFailed"),
        ),
        (running(), MachinePhase::Running, ("NodeHealthy", "NodeHealthy")),
    ];
    let mut state = machine();
    for (seen, phase, (kind, reason)) in steps {
        let decision = decide(state, seen);
        assert_eq!(decision.object.status.phase, Some(phase), "{kind} {reason}");
        assert!(condition(&decision, kind).1.ends_with(reason), "{phase}: {:?}", condition(&decision, kind));
        state = decision.object;
    }
    assert_eq!(state.spec.bootstrap.data_secret_name.as_deref(), Some("s"));
    assert_eq!((state.spec.provider_id.as_str(), state.spec.failure_domain.as_str()), ("fake://1", "z"));
    assert_eq!((state.status.addresses.len(), state.status.node_ref.name.as_str()), (1, "node"));
    assert_eq!(state.status.node_info.expect("info").kubelet_version, "v1.34.0");
}

#[test]
fn an_idle_machine_has_no_effects() {
    let first = decide(machine(), running());
    assert_eq!(effects(&first), [""; 0]);
    let second = decide(first.object.clone(), running());
    assert_eq!((effects(&second), &second.object), (vec![], &first.object));
    assert_eq!(condition(&second, "Ready"), (ConditionStatus::True, "Ready", ""));
    assert_eq!(condition(&second, "Available"), (ConditionStatus::True, "Available", ""));
    assert_eq!(second.look_again, None);
}

#[test]
fn a_machine_without_an_owner_is_owned_by_its_cluster_unless_a_label_names_another() {
    let orphan = |extra: Option<&str>| {
        let mut machine = machine();
        machine.metadata.owner_references.clear();
        machine.metadata.labels.clear();
        if let Some(name) = extra {
            machine.metadata.labels.insert(name.to_owned(), "x".to_owned());
        }
        decide(machine, running()).object.metadata
    };
    let adopted = orphan(None);
    assert_eq!(adopted.owner_references, [OwnerReference::to(&*cluster())]);
    assert_eq!(adopted.labels[label::CLUSTER_NAME], "c");
    for name in [label::SET_NAME, label::CONTROL_PLANE_NAME, label::POOL_NAME] {
        assert_eq!(orphan(Some(name)).owner_references, [], "{name}");
    }
}

#[test]
fn removed_finalizer_and_owner_references_are_restored() {
    let mut stripped = machine();
    stripped.metadata.finalizers.clear();
    assert_eq!(decide(stripped, running()).object.metadata.finalizers, [FINALIZER]);
    let bare = json!({"metadata": {"name": "x", "namespace": "n", "resourceVersion": "2"}});
    let kind = KindName::namespaced("g", "v1", "FakeMachine", "fakemachines");
    let external = External::new(kind, ContractVersion::V1Beta2, bare);
    let decision =
        decide(machine(), Observed { infrastructure: Lookup::Object(Box::new(external)), ..running() });
    let Some(Effect::Patch { patch, .. }) = decision.effects.first().map(|planned| &planned.effect) else {
        panic!("no patch")
    };
    assert_eq!(
        patch.body()["metadata"]["ownerReferences"],
        json!([OwnerReference::controlled_by(&machine())])
    );
}

#[test]
fn a_node_reference_that_somebody_changed_is_repaired() {
    let mut changed = decide(machine(), running()).object;
    changed.status.node_ref.name = "node-of-another-machine".to_owned();
    assert_eq!(decide(changed, running()).object.status.node_ref.name, "node");
}
