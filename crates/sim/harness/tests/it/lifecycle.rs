//! The lifecycle of a widget: created, scaled both ways, deleted, with every fault at every effect.

use std::sync::Arc;

use capstan_apiserver::Digest;
use capstan_controller::{Client, Deletion, Env, KindName, Options, Patch, Runtime, Transport};
use capstan_harness::{
    Acknowledged, AtMost, Checker, Fault, FinalizersGuard, FollowsOwnWrites, History, IntentsFirst,
    NoChildrenWhileDeleting, NothingWhilePaused, OnlyOwned, Scenario, Violation, WatchStreams, World,
    crash_points, run,
};
use capstan_object::{Key, ObjectMeta};
use capstan_store::{OpenError, SimDisk, Store};
use serde_json::json;

use crate::cloud::{ByName, ByOwner, SimCloud};
use crate::faulty::Defect;
use crate::widget::{FINALIZER, Flaw, PAUSED, Spec, Widget, Widgets, definition};

pub struct Lifecycle {
    pub flaw: Flaw,
    /// Defect of the store or the server.
    pub defect: Defect,
    /// Checks only this property; `None` for all.
    pub only: Option<&'static str>,
    pub write_through: bool,
    pub flaky: bool,
}

impl Lifecycle {
    pub fn with(flaw: Flaw) -> Self {
        Self { flaw, defect: Defect::None, only: None, write_through: true, flaky: false }
    }

    /// A correct controller on a store or server with a defect.
    pub fn on(defect: Defect) -> Self {
        Self { defect, ..Self::with(Flaw::None) }
    }
}

fn widgets() -> KindName {
    KindName::of::<Widget>()
}

fn key() -> Key {
    Key::new("default", "w")
}

fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("lifecycle", error.to_string())
}

async fn patch(client: &Client, body: serde_json::Value) -> Result<(), Violation> {
    client.patch(&widgets(), &key(), None, &Patch::Merge(body)).await.map(drop).map_err(failed)
}

impl Lifecycle {
    async fn scale(&self, world: &mut World<'_>, cloud: &SimCloud, replicas: usize) -> Result<(), Violation> {
        patch(&world.user()?, json!({"spec": {"replicas": replicas}})).await?;
        world.run_until_idle().await?;
        let widget: Widget =
            world.user()?.get(&key()).await.map_err(failed)?.ok_or_else(|| failed("no widget"))?;
        let owned = cloud.owned(&widget.metadata.uid).len();
        if owned != replicas || widget.status.ready != replicas {
            return Err(failed(format!(
                "{replicas} desired, {owned} present, {} reported",
                widget.status.ready
            )));
        }
        Ok(())
    }
}

impl Scenario for Lifecycle {
    type Outside = SimCloud;

    fn outside(&self, env: &Env) -> SimCloud {
        SimCloud::new(env, self.flaky)
    }

    fn controllers(&self, cloud: &SimCloud, runtime: &mut Runtime) {
        runtime.add(Widgets { cloud: cloud.clone(), flaw: self.flaw });
    }

    fn checkers(&self, cloud: &SimCloud) -> Vec<Box<dyn Checker>> {
        let mut checkers: Vec<Box<dyn Checker>> = vec![
            Box::new(AtMost::new("S1", ByName(cloud.clone()), |_, _| Some(1))),
            Box::new(AtMost::new("S2", ByOwner(cloud.clone()), |_, _| Some(3))),
            Box::new(OnlyOwned(ByOwner(cloud.clone()))),
            Box::new(FinalizersGuard::new(ByOwner(cloud.clone()), widgets(), FINALIZER)),
            Box::new(IntentsFirst::new(|summary| summary.contains("machine"))),
            Box::new(NothingWhilePaused::new(PAUSED)),
            Box::new(NoChildrenWhileDeleting::new(vec![widgets()])),
            Box::new(FollowsOwnWrites::default()),
            Box::new(Acknowledged::default()),
            Box::new(History::default()),
            Box::new(WatchStreams::default()),
        ];
        checkers.retain(|checker| self.only.is_none_or(|only| checker.name() == only));
        checkers
    }

    fn store(&self, disk: SimDisk, options: capstan_store::Options) -> Result<Store<Digest>, OpenError> {
        self.defect.store(disk, options)
    }

    fn transport(&self, direct: Arc<dyn Transport>) -> Arc<dyn Transport> {
        self.defect.server(direct)
    }

    fn options(&self) -> Options {
        Options {
            pause_annotation: (self.flaw != Flaw::IgnoresPause).then(|| PAUSED.to_owned()),
            write_through: self.write_through,
            ..Options::default()
        }
    }

    async fn prepare(&self, world: &World<'_>) -> Result<(), Violation> {
        let mut definitions = KindName::namespaced(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        );
        definitions.scope = capstan_object::Scope::Cluster;
        world.user()?.create(&definitions, "", &definition()).await.map_err(failed)?;
        // Until the server serves the kind.
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        Ok(())
    }

    async fn run(&self, world: &mut World<'_>, cloud: &SimCloud) -> Result<(), Violation> {
        let widget = Widget {
            metadata: ObjectMeta::named("default", "w"),
            spec: Spec { replicas: 2 },
            ..Widget::default()
        };
        world.user()?.create_object(&widget).await.map_err(failed)?;
        world.run_until_idle().await?;
        self.scale(world, cloud, 3).await?;
        let now = world.clock().now().to_string();
        patch(&world.user()?, json!({"metadata": {"annotations": {PAUSED: now}}, "spec": {"replicas": 1}}))
            .await?;
        world.pass(std::time::Duration::from_secs(5)).await?;
        patch(&world.user()?, json!({"spec": {"replicas": 2}})).await?;
        world.run_until_idle().await?;
        patch(&world.user()?, json!({"metadata": {"annotations": {PAUSED: null}}})).await?;
        self.scale(world, cloud, 1).await?;
        world.user()?.delete(&widgets(), &key(), &Deletion::default()).await.map_err(failed)?;
        world.run_until_idle().await?;
        if world.objects()?.get(&widgets(), &key()).is_some() {
            return Err(Violation::new("L3", "the widget still exists"));
        }
        match cloud.count_ours() {
            0 => Ok(()),
            left => Err(Violation::new("L3", format!("{left} machines were left behind"))),
        }
    }
}

#[test]
fn a_widget_is_created_scaled_and_deleted() {
    let report = run(&Lifecycle::with(Flaw::None), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let lifecycle = Lifecycle { flaky: true, ..Lifecycle::with(Flaw::None) };
    let faults = [Fault::CrashAfter(3), Fault::LoseReply(9)];
    let first = run(&lifecycle, 7, &faults).trace.text();
    assert_eq!(first, run(&lifecycle, 7, &faults).trace.text());
    assert!(first.contains("BOOT 2") && first.contains("RESPONSE LOST"), "{first}");
    assert_ne!(first, run(&lifecycle, 8, &faults).trace.text(), "uids come from the seed");
}

#[test]
fn no_property_breaks_with_a_crash_or_a_lost_response_at_any_effect() {
    let faults: [fn(usize) -> Fault; 2] = [Fault::CrashAfter, Fault::LoseReply];
    let (reference, broken) = crash_points(&Lifecycle::with(Flaw::None), 2, &faults);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    assert!(reference.trace.effects() > 10, "{}", reference.transcript());
    if let Some(report) = broken.first() {
        panic!("{} runs violated a property\n{}", broken.len(), report.transcript());
    }
}

#[test]
fn no_property_breaks_in_a_flaky_cloud_with_refusals_and_cut_watches() {
    let faults: [fn(usize) -> Fault; 3] =
        [|effect| Fault::Refuse(effect, 503), |effect| Fault::Refuse(effect, 409), Fault::CutWatches];
    let lifecycle = Lifecycle { flaky: true, ..Lifecycle::with(Flaw::None) };
    let (reference, broken) = crash_points(&lifecycle, 3, &faults);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    if let Some(report) = broken.first() {
        panic!("{} runs violated a property\n{}", broken.len(), report.transcript());
    }
}
