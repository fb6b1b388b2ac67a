//! The copy: a management cluster in simulated time that starts from recorded objects.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_capi_plane as plane;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{Client, Env, KindName, Options, Runtime, Workloads};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_harness::{Checker, Objects, Scenario, Violation, World};
use capstan_object::{Key, Scope};
use capstan_provider_kit::MachineModel;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use crate::events::{FindInfrastructure, Preview, Recorder};
use crate::infrastructure::Model;
use crate::load::{self, bucket};
use crate::restore;

/// Without an event for this long, no more events are expected.
const STUCK: Duration = Duration::from_secs(2 * 3600);

/// After this many machines that the copy created and deleted again, it is in a loop, as when health checks replace
/// machines that never become ready.
const MAX_REPLACED: usize = 6;

/// Tokens of pools are replaced as long as the pool exists: with the default lifetime the copy would never be idle.
const TOKEN_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// The API group of infrastructure providers.
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// All objects that the copy starts with, in their storage version. Includes Secrets: the copy needs the CAs and
/// tokens.
#[derive(Clone, Default)]
pub struct Records(pub Vec<(KindName, Value)>);

/// Definitions and rules of the kinds, for the server of the copy.
pub struct Kinds {
    pub definitions: Vec<Value>,
    /// Configures defaulting, validation and conversion of a server.
    pub configure: Box<dyn Fn(Config) -> Config + Send + Sync>,
}

/// The edit to the copy; an error is the server's.
pub type Edit = Box<dyn Fn(Client) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The input of a rehearsal.
pub struct Rehearsal {
    pub records: Records,
    pub kinds: Kinds,
    /// Settings of the controllers.
    pub settings: plane::Settings,
    /// Start time of the copy: certificates and ages are relative to it.
    pub now: Timestamp,
    /// Durations in machines.
    pub timings: Timings,
    /// The providers' machine models.
    pub models: Vec<MachineModel>,
    pub edit: Edit,
}

/// Why a rehearsal failed.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The server rejected the edit.
    #[error("{0}")]
    Refused(String),
    /// The records cannot be copied.
    #[error("{0}")]
    NotCopied(String),
}

/// Applies an edit to a copy and returns what happens. Must not be called from a task of a Tokio runtime: simulated
/// time jumps.
pub fn rehearse(mut rehearsal: Rehearsal) -> Result<Preview, RehearsalError> {
    rehearsal.settings.token_ttl = TOKEN_TTL;
    let fork =
        Fork { rehearsal, site: OnceLock::new(), preview: Mutex::default(), refused: Mutex::default() };
    let report = capstan_harness::run(&fork, 1, &[]);
    if let Some(refused) = fork.refused.into_inner() {
        return Err(RehearsalError::Refused(refused));
    }
    match report.violation {
        Some(violation) => Err(RehearsalError::NotCopied(violation.what)),
        None => Ok(fork.preview.into_inner()),
    }
}

struct Fork {
    rehearsal: Rehearsal,
    site: OnceLock<Site>,
    preview: Mutex<Preview>,
    refused: Mutex<Option<String>>,
}

fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("copy", error.to_string())
}

impl Fork {
    /// The defined kinds of a group, in their storage version.
    fn defined(&self, group: &str) -> Vec<KindName> {
        let of_group = |definition: &&Value| group.is_empty() || definition["spec"]["group"] == group;
        self.rehearsal.kinds.definitions.iter().filter(of_group).filter_map(stored).collect()
    }

    fn infrastructure(&self, objects: &Objects) -> FindInfrastructure {
        let store = objects.store().clone();
        let kinds = self.defined(INFRASTRUCTURE);
        Box::new(move |machine: &Machine| {
            let reference = &machine.spec.infrastructure_ref;
            let kind = kinds.iter().find(|kind| kind.kind == reference.kind)?;
            let key = format!("{}/{}", machine.metadata.namespace, reference.name);
            let entry = store.get(&bucket(&kind.group, &kind.plural), &key)?;
            serde_json::from_slice(&entry.value).ok()
        })
    }

    fn site(&self) -> Result<&Site, Violation> {
        self.site.get().ok_or_else(|| failed("there is no site"))
    }

    fn objects(&self, objects: &Objects) -> Vec<Value> {
        self.defined("").iter().flat_map(|kind| objects.list(kind)).collect()
    }

    /// Clusters without a CNI of their own.
    async fn without_network(&self, site: &Site, objects: &Objects) -> Vec<Key> {
        let find = self.infrastructure(objects);
        let mut looked = BTreeSet::new();
        let mut without = Vec::new();
        for machine in objects.list(&KindName::of::<Machine>()) {
            let Ok(machine) = serde_json::from_value::<Machine>(machine) else { continue };
            let cluster = Key::new(&machine.metadata.namespace, &machine.spec.cluster_name);
            let object = find(&machine);
            let id = object.as_ref().and_then(|object| object["metadata"]["uid"].as_str());
            let Some(guest) = id.and_then(|id| site.cluster_of(id)) else { continue };
            if looked.insert(cluster.clone()) && guest.lacks_cni().await {
                without.push(cluster);
            }
        }
        without
    }

    /// Lets the copy become idle; returns whether it did before [`STUCK`] passed.
    async fn settle(&self, world: &mut World<'_>, recorder: &Recorder) -> Result<bool, Violation> {
        let begun = world.clock().seconds();
        loop {
            if world.is_quiet().await? {
                return Ok(true);
            }
            let silent = world.clock().seconds() - recorder.last().max(begun);
            if silent > STUCK.as_secs_f64() || recorder.given_up() >= MAX_REPLACED {
                return Ok(false);
            }
        }
    }
}

/// The kind of a definition, in its storage version.
fn stored(definition: &Value) -> Option<KindName> {
    let spec = &definition["spec"];
    let version = spec["versions"].as_array()?.iter().find(|version| version["storage"] == true)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut kind = KindName::namespaced(
        text(&spec["group"])?,
        text(&version["name"])?,
        text(&spec["names"]["kind"])?,
        text(&spec["names"]["plural"])?,
    );
    if spec["scope"] == "Cluster" {
        kind.scope = Scope::Cluster;
    }
    Some(kind)
}

impl Kinds {
    /// The kinds in their storage versions. Records must be read in these versions.
    pub fn names(&self) -> Vec<KindName> {
        self.definitions.iter().filter_map(stored).collect()
    }
}

impl Scenario for Fork {
    type Outside = Site;

    fn start_time(&self) -> Timestamp {
        self.rehearsal.now
    }

    fn outside(&self, env: &Env) -> Site {
        // A CNI may be installed in ways that are not recorded, such as Helm.
        let options = SiteOptions {
            timings: self.rehearsal.timings,
            heartbeat: None,
            assume_addons: true,
            ..SiteOptions::default()
        };
        self.site.get_or_init(|| Site::new(env.clone(), options)).clone()
    }

    fn controllers(&self, _: &Site, runtime: &mut Runtime) {
        plane::add_controllers(runtime, &self.rehearsal.settings);
    }

    fn checkers(&self, _: &Site) -> Vec<Box<dyn Checker>> {
        Vec::new()
    }

    fn workloads(&self, site: &Site, management: Client, env: Env) -> Option<Arc<dyn Workloads>> {
        Some(plane::workloads(management, site.dial(), env))
    }

    fn configure(&self, config: Config) -> Config {
        (self.rehearsal.kinds.configure)(config)
    }

    fn options(&self) -> Options {
        plane::options(&self.rehearsal.settings)
    }

    async fn prepare(&self, world: &World<'_>) -> Result<(), Violation> {
        let client = world.user()?;
        let Rehearsal { records, kinds, .. } = &self.rehearsal;
        plane::install(&client, &kinds.definitions).await.map_err(failed)?;
        for namespace in load::namespaces(&records.0) {
            plane::ensure_namespace(&client, &namespace).await.map_err(failed)?;
        }
        load::load(world.objects()?.store(), &records.0).await.map_err(failed)?;
        restore::restore(self.site()?, records).await.map_err(failed)
    }

    async fn run(&self, world: &mut World<'_>, site: &Site) -> Result<(), Violation> {
        let (objects, clock) = (world.objects()?, world.clock());
        let model = Model {
            client: world.user()?.named("provider"),
            store: objects.store().clone(),
            site: site.clone(),
            kinds: self.defined(INFRASTRUCTURE),
            models: self.rehearsal.models.clone(),
        };
        // Ends with the runtime of this run.
        tokio::spawn(model.run());
        let recorder = Recorder::finding(objects.store(), clock, Some(self.infrastructure(&objects)));
        self.settle(world, &recorder).await?;
        let (before, present) = recorder.begin(clock);
        let clusters = objects.list(&KindName::of::<Cluster>());
        let any_class = clusters.iter().any(|cluster| cluster["spec"]["topology"].is_object());
        let objects_before = if any_class { self.objects(&objects) } else { Vec::new() };
        if let Err(refused) = (self.rehearsal.edit)(world.user()?).await {
            *self.refused.lock() = Some(refused);
            return Ok(());
        }
        let idle = self.settle(world, &recorder).await?;
        *self.preview.lock() = Preview {
            before,
            present,
            steps: recorder.steps(),
            idle,
            objects_before,
            objects: self.objects(&objects),
            without_network: self.without_network(site, &objects).await,
        };
        Ok(())
    }
}
