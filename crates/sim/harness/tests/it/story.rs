//! The life of a widget: created, scaled both ways, deleted, with every misfortune at every moment.

use std::sync::Arc;

use capstan_apiserver::Digest;
use capstan_controller::{Client, Deletion, Env, KindName, Options, Patch, Runtime, Transport};
use capstan_harness::{
    Acknowledged, AtMost, Checker, Fault, FinalizersGuard, FollowsOwnWrites, Heard, History, IntentsFirst,
    NoChildrenOfTheDying, NothingWhilePaused, OnlyOurs, Scenario, Violation, World, crash_points, run,
};
use capstan_object::{Key, ObjectMeta};
use capstan_store::{OpenError, SimDisk, Store};
use serde_json::json;

use crate::cloud::{ByName, ByOwner, SimCloud};
use crate::faulty::Ground;
use crate::widget::{FINALIZER, Flaw, PAUSED, Spec, Widget, Widgets, definition};

pub struct Life {
    pub flaw: Flaw,
    /// What is wrong with the store or the server.
    pub ground: Ground,
    /// The one property that is checked; all of them if there is none.
    pub only: Option<&'static str>,
    pub write_through: bool,
    pub moody: bool,
}

impl Life {
    pub fn with(flaw: Flaw) -> Self {
        Self { flaw, ground: Ground::Sound, only: None, write_through: true, moody: false }
    }

    /// A sound controller on a store or a server with a flaw.
    pub fn on(ground: Ground) -> Self {
        Self { ground, ..Self::with(Flaw::None) }
    }
}

fn widgets() -> KindName {
    KindName::of::<Widget>()
}

fn key() -> Key {
    Key::new("default", "w")
}

fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("story", error.to_string())
}

async fn patch(client: &Client, body: serde_json::Value) -> Result<(), Violation> {
    client.patch(&widgets(), &key(), None, &Patch::Merge(body)).await.map(drop).map_err(failed)
}

impl Life {
    async fn scale(&self, world: &mut World<'_>, cloud: &SimCloud, replicas: usize) -> Result<(), Violation> {
        patch(&world.user()?, json!({"spec": {"replicas": replicas}})).await?;
        world.rest().await?;
        let widget: Widget =
            world.user()?.get(&key()).await.map_err(failed)?.ok_or_else(|| failed("no widget"))?;
        let owned = cloud.owned(&widget.metadata.uid).len();
        if owned != replicas || widget.status.ready != replicas {
            return Err(failed(format!("{replicas} wanted, {owned} there, {} told", widget.status.ready)));
        }
        Ok(())
    }
}

impl Scenario for Life {
    type Outside = SimCloud;

    fn outside(&self, env: &Env) -> SimCloud {
        SimCloud::new(env, self.moody)
    }

    fn controllers(&self, cloud: &SimCloud, runtime: &mut Runtime) {
        runtime.add(Widgets { cloud: cloud.clone(), flaw: self.flaw });
    }

    fn checkers(&self, cloud: &SimCloud) -> Vec<Box<dyn Checker>> {
        let mut checkers: Vec<Box<dyn Checker>> = vec![
            Box::new(AtMost::new("S1", ByName(cloud.clone()), |_, _| Some(1))),
            Box::new(AtMost::new("S2", ByOwner(cloud.clone()), |_, _| Some(3))),
            Box::new(OnlyOurs(ByOwner(cloud.clone()))),
            Box::new(FinalizersGuard::new(ByOwner(cloud.clone()), widgets(), FINALIZER)),
            Box::new(IntentsFirst::new(|summary| summary.contains("machine"))),
            Box::new(NothingWhilePaused::new(PAUSED)),
            Box::new(NoChildrenOfTheDying::new(vec![widgets()])),
            Box::new(FollowsOwnWrites::default()),
            Box::new(Acknowledged::default()),
            Box::new(History::default()),
            Box::new(Heard::default()),
        ];
        checkers.retain(|checker| self.only.is_none_or(|only| checker.name() == only));
        checkers
    }

    fn store(&self, disk: SimDisk, options: capstan_store::Options) -> Result<Store<Digest>, OpenError> {
        self.ground.store(disk, options)
    }

    fn transport(&self, direct: Arc<dyn Transport>) -> Arc<dyn Transport> {
        self.ground.server(direct)
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
        // Simulated time, in which the server begins to serve the kind.
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        Ok(())
    }

    async fn play(&self, world: &mut World<'_>, cloud: &SimCloud) -> Result<(), Violation> {
        let widget = Widget {
            metadata: ObjectMeta::named("default", "w"),
            spec: Spec { replicas: 2 },
            ..Widget::default()
        };
        world.user()?.create_object(&widget).await.map_err(failed)?;
        world.rest().await?;
        self.scale(world, cloud, 3).await?;
        let now = world.clock().now().to_string();
        patch(&world.user()?, json!({"metadata": {"annotations": {PAUSED: now}}, "spec": {"replicas": 1}}))
            .await?;
        world.pass(std::time::Duration::from_secs(5)).await?;
        patch(&world.user()?, json!({"spec": {"replicas": 2}})).await?;
        world.rest().await?;
        patch(&world.user()?, json!({"metadata": {"annotations": {PAUSED: null}}})).await?;
        self.scale(world, cloud, 1).await?;
        world.user()?.delete(&widgets(), &key(), &Deletion::default()).await.map_err(failed)?;
        world.rest().await?;
        if world.objects()?.get(&widgets(), &key()).is_some() {
            return Err(Violation::new("L3", "the widget is still there"));
        }
        match cloud.count_ours() {
            0 => Ok(()),
            left => Err(Violation::new("L3", format!("{left} machines are left"))),
        }
    }
}

#[test]
fn a_widget_lives_as_it_should() {
    let report = run(&Life::with(Flaw::None), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.story());
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let life = Life { moody: true, ..Life::with(Flaw::None) };
    let faults = [Fault::CrashAfter(3), Fault::LoseReply(9)];
    let first = run(&life, 7, &faults).trace.text();
    assert_eq!(first, run(&life, 7, &faults).trace.text());
    assert!(first.contains("BOOT 2") && first.contains("ANSWER LOST"), "{first}");
    assert_ne!(first, run(&life, 8, &faults).trace.text(), "uids come from the seed");
}

#[test]
fn nothing_breaks_wherever_the_process_dies_or_an_answer_is_lost() {
    let faults: [fn(usize) -> Fault; 2] = [Fault::CrashAfter, Fault::LoseReply];
    let (reference, broken) = crash_points(&Life::with(Flaw::None), 2, &faults);
    assert!(reference.violation.is_none(), "{}", reference.story());
    assert!(reference.trace.effects() > 10, "{}", reference.story());
    if let Some(report) = broken.first() {
        panic!("{} of the runs broke something\n{}", broken.len(), report.story());
    }
}

#[test]
fn nothing_breaks_in_a_moody_cloud_with_refusals_and_cut_watches() {
    let faults: [fn(usize) -> Fault; 3] =
        [|effect| Fault::Refuse(effect, 503), |effect| Fault::Refuse(effect, 409), Fault::CutWatches];
    let life = Life { moody: true, ..Life::with(Flaw::None) };
    let (reference, broken) = crash_points(&life, 3, &faults);
    assert!(reference.violation.is_none(), "{}", reference.story());
    if let Some(report) = broken.first() {
        panic!("{} of the runs broke something\n{}", broken.len(), report.story());
    }
}
