//! `capstan set`: changes fields of a cluster's infrastructure, or of the machines of a part of it.
//!
//! Machine templates are immutable. A changed copy is created and its owner refers to it, which replaces the machines.

mod fields;

use anyhow::{Context as _, Result, bail};
use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_controller::KindName;
use capstan_object::Key;
use serde_json::{Value, json};

use crate::apply::Applier;
use crate::change::{Change, ControlPlane, apply_changes};
use crate::connection::{ConnectionArgs, Management};
use crate::exit::Exit;
use crate::output::{Action, ActionReport, OutputArgs};
use crate::plan::{self, Proposal};
use crate::plugins::Plugins;
use crate::topology;
use crate::wait::{Goal, WaitArgs};
use crate::workers;

use fields::Field;

/// Annotation of a copied template: the name of the one that it was first copied from.
const COPIED_FROM: &str = "capstan.dev/copied-from";

/// Arguments of `capstan set`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["control_plane", "workers", "infrastructure"]))]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    /// Fields below spec, such as template.name=ubuntu-2404; list entries by name; FIELD= removes a field
    #[arg(value_name = "FIELD=VALUE", required = true)]
    fields: Vec<Field>,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Change the machines of the control plane
    #[arg(long)]
    control_plane: bool,
    /// Change the machines of a MachineDeployment, named in full or without the prefix CLUSTER-
    #[arg(long, value_name = "NAME")]
    workers: Option<String>,
    /// Change the cluster's infrastructure object
    #[arg(long)]
    infrastructure: bool,
    /// With --control-plane and --workers: change the bootstrap configuration instead of the infrastructure
    #[arg(long, conflicts_with = "infrastructure")]
    bootstrap: bool,
    /// Validate the change on the server, print the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not simulate the change and ask the cloud about it first
    #[arg(long)]
    no_plan: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// New objects, and patches of existing ones after that.
struct Edit {
    apply: Vec<Value>,
    changes: Vec<Change>,
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        let cluster: Cluster = management.find(&args.cluster).await?;
        topology::refuse(&cluster, |cluster| Ok(vec![topology::edit(cluster)]))?;
        let edit = edit(args, &management, &cluster).await?;
        let mut report = ActionReport::new(args.output);
        if edit.changes.is_empty() {
            report.note("nothing to change: the fields have these values")?;
        } else if !args.no_plan {
            let proposal =
                Proposal { apply: edit.apply.clone(), patch: edit.changes.clone(), ..Proposal::default() };
            plan::check_proposal(&management, &args.cluster, proposal, args.dry_run).await?;
        }
        let mut applier = Applier::new(&management.client, &management.namespace);
        if args.dry_run {
            applier = applier.dry();
        }
        for object in &edit.apply {
            applier.apply(object).await?;
            let object = crate::apply::title(object).to_lowercase();
            let dry = if args.dry_run { " (dry run)" } else { "" };
            let sentence = format!("{object}: created{dry}");
            report.record(Action { object, what: "created".to_owned(), dry_run: args.dry_run, sentence })?;
        }
        apply_changes(&management, &edit.changes, args.dry_run, &mut report).await?;
        args.wait.follow(&management, &args.cluster, Goal::Ready, args.dry_run, &report).await
    })
}

async fn edit(args: &Args, management: &Management, cluster: &Cluster) -> Result<Edit> {
    if args.infrastructure {
        let reference = &cluster.spec.infrastructure_ref;
        let (kind, object) =
            referred(management, &reference.api_group, &reference.kind, &reference.name).await?;
        return Ok(Edit {
            apply: Vec::new(),
            changes: own_change(args, &kind, &object, "/spec")?.into_iter().collect(),
        });
    }
    if args.control_plane {
        let owner = ControlPlane::of(management, cluster).await?;
        if args.bootstrap {
            let change = own_change(args, &owner.kind, &owner.object, "/spec/kubeadmConfigSpec")?;
            return Ok(Edit { apply: Vec::new(), changes: change.into_iter().collect() });
        }
        let path = "/spec/machineTemplate/spec/infrastructureRef";
        return copied(args, management, &owner.kind, &owner.object, path).await;
    }
    let name = args.workers.as_deref().unwrap_or_default();
    let all = workers::deployments(management, &args.cluster).await?;
    let found = workers::named_deployment(&args.cluster, &management.namespace, &all, name)?;
    let path = match args.bootstrap {
        true => "/spec/template/spec/bootstrap/configRef",
        false => "/spec/template/spec/infrastructureRef",
    };
    copied(args, management, &KindName::of::<MachineDeployment>(), &serde_json::to_value(found)?, path).await
}

/// A change of the object itself, below `path`; `None` if the fields have these values.
fn own_change(args: &Args, kind: &KindName, object: &Value, path: &str) -> Result<Option<Change>> {
    let before = object.pointer(path).cloned().unwrap_or_default();
    let after = changed(args, &before)?;
    let patch = difference(&before, &after);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Ok((before != after).then(|| Change {
        kind: kind.clone(),
        name,
        what: shown(&args.fields),
        patch: nested(path, patch),
    }))
}

/// A changed copy of the template at `path` of its owner, and the reference to it.
async fn copied(
    args: &Args,
    management: &Management,
    owner_kind: &KindName,
    owner: &Value,
    path: &str,
) -> Result<Edit> {
    let reference = owner.pointer(path).cloned().unwrap_or_default();
    let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
    let (_, template) = referred(management, &text("apiGroup"), &text("kind"), &text("name")).await?;
    let Some(copy) = copy(args, &template)? else {
        return Ok(Edit { apply: Vec::new(), changes: Vec::new() });
    };
    let name = copy["metadata"]["name"].clone();
    let change = Change {
        kind: owner_kind.clone(),
        name: owner["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        what: format!("machines with {}", shown(&args.fields)),
        patch: nested(path, json!({"name": name})),
    };
    Ok(Edit { apply: vec![copy], changes: vec![change] })
}

/// The template with the changes, under a name that depends on its content; `None` if nothing changes.
fn copy(args: &Args, template: &Value) -> Result<Option<Value>> {
    let before = &template["spec"]["template"]["spec"];
    let after = changed(args, before)?;
    if after == *before {
        return Ok(None);
    }
    let meta = &template["metadata"];
    let origin = meta["annotations"][COPIED_FROM].as_str().or(meta["name"].as_str()).unwrap_or_default();
    let mut spec = template["spec"].clone();
    spec["template"]["spec"] = after;
    let mut copy = json!({
        "apiVersion": template["apiVersion"], "kind": template["kind"],
        "metadata": {
            "name": format!("{origin}-{:08x}", digest(&spec)), "namespace": meta["namespace"],
            "annotations": {COPIED_FROM: origin},
        },
        "spec": spec,
    });
    if !meta["labels"].is_null() {
        copy["metadata"]["labels"] = meta["labels"].clone();
    }
    Ok(Some(copy))
}

/// FNV-1a. The same for the same content: a repeated command makes no second copy.
fn digest(spec: &Value) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    spec.to_string().bytes().fold(0x811c_9dc5, step)
}

fn changed(args: &Args, spec: &Value) -> Result<Value> {
    let mut spec = spec.clone();
    for field in &args.fields {
        field.apply(&mut spec).map_err(anyhow::Error::msg)?;
    }
    Ok(spec)
}

fn shown(fields: &[Field]) -> String {
    fields.iter().map(Field::shown).collect::<Vec<_>>().join(", ")
}

/// A merge patch: fields that are gone become null, lists are replaced.
fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let removed = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let differs = |(key, value): &(&String, &Value)| old.get(*key) != Some(*value);
    let kept = new.iter().filter(differs).map(|(key, value)| {
        let old = old.get(key).unwrap_or(&Value::Null);
        (key.clone(), difference(old, value))
    });
    Value::Object(removed.chain(kept).collect())
}

/// A value below a path of fields.
fn nested(path: &str, value: Value) -> Value {
    path.rsplit('/').filter(|field| !field.is_empty()).fold(value, |inner, field| json!({field: inner}))
}

/// The object that a reference names.
async fn referred(management: &Management, group: &str, kind: &str, name: &str) -> Result<(KindName, Value)> {
    if name.is_empty() {
        bail!("the reference is empty: there is nothing to change");
    }
    let kinds = management.kinds().await?;
    let known = kinds.iter().find(|known| known.kind.group == group && known.kind.kind == kind);
    let known = known.with_context(|| format!("the server does not have the kind {kind} in {group}"))?;
    let key = Key::new(&management.namespace, name);
    let found = management.client.get_raw(&known.kind, &key).await?;
    let found = found.with_context(|| format!("{kind} {key} does not exist: create it with kubectl"))?;
    let mut object: Value = found.parse()?;
    // Items of some responses have neither.
    object["apiVersion"] = match known.kind.group.as_ref() {
        "" => known.kind.version.to_string().into(),
        group => format!("{group}/{}", known.kind.version).into(),
    };
    object["kind"] = kind.into();
    Ok((known.kind.clone(), object))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &[&str]) -> Args {
        Line::parse_from(["set", "c"].iter().chain(line)).args
    }

    #[test]
    fn a_copy_has_a_name_of_its_own_and_no_status() {
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "ExampleMachineTemplate",
            "metadata": {"name": "workers", "namespace": "default", "uid": "1", "labels": {"a": "b"}},
            "spec": {"template": {"spec": {"template": {"name": "typo"}}}}, "status": {"capacity": {}},
        });
        let first = copy(&args(&["--workers", "w", "template.name=right"]), &template);
        let first = first.expect("valid").expect("a change");
        assert_eq!(first["spec"]["template"]["spec"]["template"]["name"], "right");
        assert_eq!((&first["metadata"]["uid"], &first["status"]), (&Value::Null, &Value::Null));
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        assert!(name(&first).starts_with("workers-"), "{first}");
        let second = copy(&args(&["--workers", "w", "template.name=other"]), &first);
        let second = second.expect("valid").expect("a change");
        assert_eq!(name(&second).len(), name(&first).len(), "suffixes do not pile up: {second}");
        assert_ne!(name(&second), name(&first));
        assert_eq!(copy(&args(&["--workers", "w", "template.name=typo"]), &template).expect("valid"), None);
    }

    #[test]
    fn a_patch_has_only_what_differs() {
        let before = json!({"a": {"x": 1, "y": 2}, "list": [1], "gone": true});
        let after = json!({"a": {"x": 1, "y": 3}, "list": [1]});
        assert_eq!(difference(&before, &after), json!({"a": {"y": 3}, "gone": null}));
        assert_eq!(nested("/spec/inner", json!(1)), json!({"spec": {"inner": 1}}));
    }
}
