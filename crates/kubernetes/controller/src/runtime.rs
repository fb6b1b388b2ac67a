//! Any number of controllers on one set of caches.

use std::sync::Arc;
use std::time::Duration;

use capstan_env::Env;
use capstan_object::{Key, Object, ObjectMeta};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::events::Recorder;
use crate::metrics::{Ending, Metrics};
use crate::queue::{Backoff, WorkQueue};
use crate::reconcile::facts::Memory;
use crate::reconcile::{self};
use crate::watches::External;
use crate::worker::Workers;
use crate::workload::Workloads;
use crate::writer::Writer;
use crate::{Cache, Caches, Client, Controller, KindName, View, Wait, Watches};

/// How a runtime is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Looks at one namespace only; at all if empty.
    pub namespace: String,
    /// Looks only after objects with this label and value.
    pub watch_filter: Option<(String, String)>,
    /// An annotation that pauses the object it is on.
    pub pause_annotation: Option<String>,
    /// Objects of one controller that are reconciled at the same time. Those that wait for a slow workload cluster do not
    /// count.
    pub concurrency: usize,
    /// A label that names the cluster an object belongs to. The clusters of a namespace take turns; an object without the
    /// label counts as a cluster of its own name.
    pub cluster_label: Option<String>,
    /// How long failing objects wait.
    pub backoff: Backoff,
    /// Longest look.
    pub observe_timeout: Duration,
    /// Longest call; one that takes longer is looked up.
    pub call_timeout: Duration,
    /// Names this process in events.
    pub instance: String,
    /// Answers of writes go into the caches at once. Off only to show what goes wrong without.
    pub write_through: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            watch_filter: None,
            pause_annotation: None,
            concurrency: 32,
            cluster_label: None,
            backoff: Backoff::default(),
            observe_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(300),
            instance: "capstan".to_owned(),
            write_through: true,
        }
    }
}

impl Options {
    /// Whether this process looks after an object.
    pub(crate) fn selects(&self, meta: &ObjectMeta) -> bool {
        self.watch_filter.as_ref().is_none_or(|(label, value)| meta.labels.get(label) == Some(value))
    }
}

/// What all controllers of a runtime share.
pub(crate) struct Shared {
    pub env: Env,
    pub options: Options,
    pub caches: Caches,
    pub client: Client,
    pub metrics: Arc<Metrics>,
    pub recorder: Recorder,
    pub workloads: Option<Arc<dyn Workloads>>,
}

/// One controller with its queue.
pub(crate) struct Tenant<C: Controller> {
    pub controller: C,
    pub shared: Arc<Shared>,
    pub cache: Arc<Cache<C::Kind>>,
    pub queue: Arc<WorkQueue>,
    pub external: Arc<External>,
    pub memory: Memory<C::Call>,
    pub writer: Writer,
}

impl<C: Controller> Tenant<C> {
    /// The world as it is now, for who looks at an object.
    pub fn view(&self, own: &Key) -> View {
        View {
            own: own.clone(),
            caches: self.shared.caches.clone(),
            client: self.writer.client.clone(),
            now: self.shared.env.now(),
            external: self.external.clone(),
            workloads: self.shared.workloads.clone(),
            read: self.writer.client.gate().map(|_| Mutex::default()),
        }
    }

    /// Hands keys out to reconciles, as many at a time as allowed, until it is told to stop. Those under way end then,
    /// wherever they wait.
    async fn dispatch(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut running = JoinSet::new();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.hand_out(&mut running) => {}
        }
        running.shutdown().await;
    }

    async fn hand_out(self: &Arc<Self>, running: &mut JoinSet<()>) {
        self.shared.caches.synced().await;
        let workers = Workers::new(self.shared.options.concurrency);
        loop {
            let Some(worker) = workers.free().await else { return };
            while running.try_join_next().is_some() {}
            let key = self.queue.next().await;
            let tenant = self.clone();
            running.spawn(workers.clone().run(worker, async move { tenant.reconcile(&key).await }));
        }
    }

    async fn reconcile(&self, key: &Key) {
        let begun = Instant::now();
        self.shared.metrics.begun(C::NAME, self.shared.options.concurrency);
        let (ending, again) = reconcile::run(self, key).await;
        let took = begun.elapsed();
        self.shared.metrics.ended(C::NAME, ending, took);
        match (ending, again) {
            (Ending::Error | Ending::NotSettled | Ending::Panic, _) => {
                self.queue.wake_after_failure(key);
            }
            (_, Some(time)) => {
                self.queue.forget(key);
                self.queue.wake_after(key, time);
            }
            _ => self.queue.forget(key),
        }
        self.queue.done(key, took);
    }
}

/// A controller whose types are forgotten.
trait AnyTenant: Send + Sync {
    fn start(self: Arc<Self>, tasks: &mut JoinSet<()>, stop: watch::Receiver<bool>);
    fn kind(&self) -> KindName;
    fn name(&self) -> &'static str;
    fn waits(&self, key: &Key) -> Vec<Wait>;
    fn load(&self) -> (usize, usize);
}

impl<C: Controller> AnyTenant for Tenant<C> {
    fn start(self: Arc<Self>, tasks: &mut JoinSet<()>, stop: watch::Receiver<bool>) {
        tasks.spawn(self.dispatch(stop));
    }

    fn kind(&self) -> KindName {
        KindName::of::<C::Kind>()
    }

    fn name(&self) -> &'static str {
        C::NAME
    }

    fn waits(&self, key: &Key) -> Vec<Wait> {
        self.memory.waits(key)
    }

    fn load(&self) -> (usize, usize) {
        self.queue.load()
    }
}

/// Runs controllers against one API server until it is dropped.
pub struct Runtime {
    shared: Arc<Shared>,
    tenants: Vec<Arc<dyn AnyTenant>>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Runtime {
    /// A runtime without controllers.
    pub fn new(client: Client, env: Env, options: Options) -> Self {
        Self::with_workloads(client, env, options, None)
    }

    /// A runtime whose controllers reach workload clusters.
    pub fn with_workloads(
        client: Client,
        env: Env,
        options: Options,
        workloads: Option<Arc<dyn Workloads>>,
    ) -> Self {
        let caches = Caches::new(&options.namespace);
        let recorder = Recorder::new(client.clone(), env.clone(), &options.instance);
        let metrics = Arc::default();
        let shared = Arc::new(Shared { env, options, caches, client, metrics, recorder, workloads });
        Self { shared, tenants: Vec::new(), tasks: JoinSet::new(), stop: watch::Sender::new(false) }
    }

    /// Adds a controller. All are added before [`Runtime::start`].
    pub fn add<C: Controller>(&mut self, controller: C) -> &mut Self {
        let shared = &self.shared;
        let cache = shared.caches.ensure::<C::Kind>();
        let mut queue = WorkQueue::new(shared.options.backoff, shared.metrics.queue(C::NAME));
        if let Some(label) = shared.options.cluster_label.clone() {
            // The cache wakes the queue: one of them must not hold the other.
            let cache = Arc::downgrade(&cache);
            queue = queue.grouped(move |key| {
                let object = cache.upgrade().and_then(|cache| cache.get(key).ok().flatten());
                let cluster = object.and_then(|object| object.metadata().labels.get(&label).cloned());
                cluster.unwrap_or_else(|| key.name.clone())
            });
        }
        let queue = Arc::new(queue);
        let mut watches = Watches::<C::Kind>::new(shared.caches.clone(), queue.clone());
        let options = shared.options.clone();
        watches.own(move |meta| options.selects(meta));
        controller.watches(&mut watches);
        let writer = Writer {
            client: shared.client.named(C::NAME),
            caches: shared.caches.clone(),
            write_through: shared.options.write_through,
        };
        self.tenants.push(Arc::new(Tenant {
            cache,
            external: Arc::new(External::new(KindName::of::<C::Kind>(), queue.clone())),
            memory: Memory::default(),
            shared: shared.clone(),
            controller,
            queue,
            writer,
        }));
        self
    }

    /// Begins to follow the server and to reconcile. Must be called inside a Tokio runtime.
    pub fn start(&mut self) {
        self.shared.caches.start(&self.shared.client);
        for tenant in &self.tenants {
            tenant.clone().start(&mut self.tasks, self.stop.subscribe());
        }
    }

    /// Ends every reconcile where it waits and returns once none is under way, so that what they write to may close and
    /// another process may lead. Dropping a runtime ends them too, a moment later.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }

    /// The caches, for whoever wants to read what the controllers see.
    pub fn caches(&self) -> &Caches {
        &self.shared.caches
    }

    /// What the controllers have done.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// What the controllers of a kind wait for on an object: controller by controller.
    pub fn waits<T: Object>(&self, key: &Key) -> Vec<(&'static str, Vec<Wait>)> {
        let kind = KindName::of::<T>();
        let tenants = self.tenants.iter().filter(|tenant| tenant.kind() == kind);
        tenants.map(|tenant| (tenant.name(), tenant.waits(key))).collect()
    }

    /// Objects that are being looked at or wait to be, and objects that will be at some later time.
    pub fn load(&self) -> (usize, usize) {
        self.tenants.iter().map(|tenant| tenant.load()).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shared.caches.stop();
    }
}

#[cfg(test)]
mod tests;
