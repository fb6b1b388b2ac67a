//! What fixes a blocker: the catalogue's text for its error code, and commands to paste.

use capstan_provider_kit::{Failure, MachineGroup};
use capstan_view::{Advice, Blocker, Part, Tree, Why};

use crate::codes;
use crate::plugins::Plugins;
use crate::versions::parsed;

/// Completes the advice of all blockers.
pub fn complete(plugins: &Plugins, tree: &Tree, mut why: Why) -> Why {
    let namespace = tree.part.namespace.clone();
    let readable = console_is_readable(plugins, tree);
    let undo = undo(tree);
    for blocker in std::iter::once(&mut why.first).chain(&mut why.others) {
        if let Some(advice) = advice(plugins, &namespace, blocker) {
            blocker.cause.advice = Some(advice);
        }
        blocker.cause.undo = undo.clone().filter(|_| does_not_fit(blocker));
        if let Some(advice) = blocker.cause.advice.as_mut().filter(|_| !readable) {
            advice.commands.retain(|command| !command.starts_with("capstan console "));
        }
    }
    why
}

/// Whether a machine of a version is blocked by an image that is none of that version.
fn does_not_fit(blocker: &Blocker) -> bool {
    let code = blocker.cause.code.as_deref().unwrap_or_default();
    ["-TEMPLATE", "-IMAGE"].iter().any(|end| code.ends_with(end))
}

/// The command that takes an upgrade back, while no machine of the new version has joined the control plane. Clusters of a
/// class are upgraded by their topology.
fn undo(tree: &Tree) -> Option<String> {
    let cluster = Some(&tree.part).filter(|part| part.kind == "Cluster" && part.topology.is_none())?;
    let control_plane = tree.children.iter().find(|child| child.part.kind.ends_with("ControlPlane"))?;
    let version = |part: &Part| parsed(part.version.as_deref()?).ok();
    let machines = control_plane.walk().filter(|part| part.kind == "Machine" && part.joined);
    let newest = machines.filter_map(version).max()?;
    let upgrades = newest < version(&control_plane.part)?;
    upgrades.then(|| format!("capstan upgrade {} -n {} --to v{newest}", cluster.name, cluster.namespace))
}

/// Whether `capstan console` works for the machines of a cluster.
fn console_is_readable(plugins: &Plugins, tree: &Tree) -> bool {
    let kinds: Vec<&str> = plugins.providers().filter_map(|it| it.console()).map(|it| it.kind()).collect();
    let of_provider = |part: &&Part| part.kind.ends_with("Machine") && part.kind != "Machine";
    tree.walk().filter(of_provider).all(|part| kinds.contains(&part.kind.as_str()))
}

/// The advice for a blocker with an error code.
fn advice(plugins: &Plugins, namespace: &str, blocker: &Blocker) -> Option<Advice> {
    let code = codes::entry(plugins, blocker.cause.code.as_deref()?)?;
    let commands = match &blocker.cause.advice {
        // It is about this part, and not only about the code.
        Some(own) => own.commands.clone(),
        None => commands(plugins, code.id(), namespace, blocker),
    };
    Some(Advice { fixed_by: code.0.fault.as_str(), fix: code.0.mend.to_owned(), commands })
}

fn commands(plugins: &Plugins, code: &str, namespace: &str, blocker: &Blocker) -> Vec<String> {
    let of_kind = |kind: &str| {
        let mut parts = blocker.chain.iter().filter_map(|link| link.part.split_once('/'));
        parts.find(|(found, _)| *found == kind).map(|(_, name)| name)
    };
    let workers = || of_kind("MachineDeployment").map(MachineGroup::Workers);
    let control_plane = || of_kind("KubeadmControlPlane").map(|_| MachineGroup::ControlPlane);
    let failure = Failure {
        code,
        message: blocker.chain.last().map(|link| link.message.as_str()).unwrap_or_default(),
        namespace,
        cluster: of_kind("Cluster").unwrap_or("CLUSTER"),
        machine: of_kind("Machine"),
        group: workers().or_else(control_plane),
    };
    plugins.providers().map(|provider| provider.fix(&failure)).find(|it| !it.is_empty()).unwrap_or_default()
}
