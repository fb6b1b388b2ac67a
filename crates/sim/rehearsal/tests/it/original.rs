//! The original: the sample cluster with the provider of simulated machines. An edit is rehearsed on a copy and then
//! applied to the original, and the events of both are recorded.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_capi_plane as plane;
use capstan_controller::{Client, Env, KindName, Options, Runtime, Workloads};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_harness::{Checker, Objects, Scenario, Violation, World};
use capstan_provider_kit::{MachineModel, Size};
use capstan_rehearsal::{
    Kinds, MachineEvent, Preview, Recorder, Records, Rehearsal, RehearsalError, rehearse,
};
use capstan_sim_provider::{SimClusters, SimMachinePools, SimMachines};
use futures::future::BoxFuture;

pub type Edit = fn(Client) -> BoxFuture<'static, Result<(), String>>;

/// The previewed and the actual events.
pub struct Both {
    pub previewed: Preview,
    pub happened: Vec<MachineEvent>,
}

struct Original {
    prepare: Edit,
    /// When the copy is taken; when the original is idle if absent.
    after: Option<Duration>,
    edit: Edit,
    both: OnceLock<Result<Both, RehearsalError>>,
}

/// Rehearses an edit on the result of `prepare`, then applies it.
pub fn rehearse_and_apply(prepare: Edit, edit: Edit) -> Result<Both, RehearsalError> {
    both(prepare, None, edit)
}

/// The same, `after` some time of preparation.
pub fn rehearse_in_the_middle(prepare: Edit, after: Duration, edit: Edit) -> Result<Both, RehearsalError> {
    both(prepare, Some(after), edit)
}

fn both(prepare: Edit, after: Option<Duration>, edit: Edit) -> Result<Both, RehearsalError> {
    let original = Original { prepare, after, edit, both: OnceLock::new() };
    let report = capstan_harness::run(&original, 3, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
    original.both.into_inner().expect("the scenario ran")
}

fn kinds() -> Kinds {
    let mut definitions = plane::definitions();
    definitions.extend(capstan_sim_provider::definitions());
    Kinds { definitions, configure: Box::new(configured) }
}

fn configured(config: Config) -> Config {
    let rules = plane::Rules::default().with(capstan_sim_provider::rules());
    config.with_kinds(Arc::new(plane::ClusterApi::new(rules)))
}

fn records(objects: &Objects) -> Records {
    let mut names = kinds().names();
    names.push(KindName::namespaced("", "v1", "Secret", "secrets"));
    names.push(KindName::namespaced("", "v1", "ConfigMap", "configmaps"));
    let all = names.into_iter().flat_map(|kind| {
        objects.list(&kind).into_iter().map(move |object| (kind.clone(), object)).collect::<Vec<_>>()
    });
    Records(all.filter(|(_, object)| object["metadata"]["namespace"] == "default").collect())
}

fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("original", error.to_string())
}

impl Scenario for Original {
    type Outside = Site;

    fn outside(&self, env: &Env) -> Site {
        Site::new(env.clone(), SiteOptions { heartbeat: None, ..SiteOptions::default() })
    }

    fn controllers(&self, site: &Site, runtime: &mut Runtime) {
        // Tokens of pools are replaced forever, and this waits until nothing happens.
        let token_ttl = Duration::from_secs(24 * 3600);
        plane::add_controllers(runtime, &plane::Settings { token_ttl, ..plane::Settings::default() });
        runtime.add(SimClusters::new(site.clone()));
        runtime.add(SimMachines::new(site.clone()));
        runtime.add(SimMachinePools);
    }

    fn checkers(&self, _: &Site) -> Vec<Box<dyn Checker>> {
        Vec::new()
    }

    fn workloads(&self, site: &Site, management: Client, env: Env) -> Option<Arc<dyn Workloads>> {
        Some(plane::workloads(management, site.dial(), env))
    }

    fn configure(&self, config: Config) -> Config {
        configured(config)
    }

    fn options(&self) -> Options {
        plane::options(&plane::Settings::default())
    }

    async fn prepare(&self, world: &World<'_>) -> Result<(), Violation> {
        plane::install(&world.user()?, &kinds().definitions).await.map_err(failed)
    }

    async fn run(&self, world: &mut World<'_>, _: &Site) -> Result<(), Violation> {
        (self.prepare)(world.user()?).await.map_err(failed)?;
        match self.after {
            Some(time) => world.pass(time).await?,
            None => world.run_until_idle().await?,
        }
        let rehearsal = Rehearsal {
            records: records(&world.objects()?),
            kinds: kinds(),
            settings: plane::Settings::default(),
            now: world.clock().now(),
            timings: Timings::default(),
            models: vec![MachineModel {
                kind: "SimMachine",
                provider_id_prefix: "sim://",
                size: Size::in_spec,
            }],
            edit: Box::new(self.edit),
        };
        // On a thread of its own: simulated time differs here.
        let previewed = std::thread::spawn(move || rehearse(rehearsal)).join().expect("no panic");
        let previewed = match previewed {
            Ok(previewed) => previewed,
            Err(error) => {
                let _ = self.both.set(Err(error));
                return Ok(());
            }
        };
        let recorder = Recorder::follow(world.objects()?.store(), world.clock());
        (self.edit)(world.user()?).await.map_err(failed)?;
        world.run_until_idle().await?;
        let _ = self.both.set(Ok(Both { previewed, happened: recorder.steps() }));
        Ok(())
    }
}
