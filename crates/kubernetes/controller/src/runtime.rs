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
use crate::reconcile::memory::Memory;
use crate::reconcile::{self};
use crate::watches::External;
use crate::worker::Workers;
use crate::workload::Workloads;
use crate::writer::Writer;
use crate::{Cache, Caches, Client, Controller, KindName, View, Wait, Watches};

/// How a runtime is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Restricts controllers to one namespace; all if empty.
    pub namespace: String,
    /// Restricts controllers to objects with this label and value.
    pub watch_filter: Option<(String, String)>,
    /// An annotation that pauses the object it is on.
    pub pause_annotation: Option<String>,
    /// Objects of one controller that are reconciled at the same time. Those that wait for a slow workload cluster do not
    /// count.
    pub concurrency: usize,
    /// A label that names the cluster an object belongs to. The clusters of a namespace take turns; an object without the
    /// label counts as a cluster of its own name.
    pub cluster_label: Option<String>,
    /// Back-off of failing objects.
    pub backoff: Backoff,
    /// Time limit of an observation.
    pub observe_timeout: Duration,
    /// Time limit of a call. The outcome of one that takes longer is looked up.
    pub call_timeout: Duration,
    /// Name of this process in events.
    pub instance: String,
    /// Responses of writes enter the caches at once. Only a test turns it off, to show what goes wrong then.
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
    /// Whether this process reconciles an object.
    pub(crate) fn selects(&self, meta: &ObjectMeta) -> bool {
        self.watch_filter.as_ref().is_none_or(|(label, value)| meta.labels.get(label) == Some(value))
    }
}

/// What all controllers of a runtime use.
pub(crate) struct RuntimeParts {
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
    pub shared: Arc<RuntimeParts>,
    pub cache: Arc<Cache<C::Kind>>,
    pub queue: Arc<WorkQueue>,
    pub external: Arc<External>,
    pub memory: Memory<C::Call>,
    pub writer: Writer,
}

impl<C: Controller> Tenant<C> {
    /// What a reconcile of an object can read.
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

    /// Starts reconciles, as many at a time as allowed, until it is stopped. Those under way are cancelled then.
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

/// A controller, with its types erased.
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
    shared: Arc<RuntimeParts>,
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
        let shared = Arc::new(RuntimeParts { env, options, caches, client, metrics, recorder, workloads });
        Self { shared, tenants: Vec::new(), tasks: JoinSet::new(), stop: watch::Sender::new(false) }
    }

    /// Adds a controller. All are added before [`Runtime::start`].
    pub fn add<C: Controller>(&mut self, controller: C) -> &mut Self {
        let shared = &self.shared;
        let cache = shared.caches.ensure::<C::Kind>();
        let mut queue = WorkQueue::new(shared.options.backoff, shared.metrics.queue(C::NAME));
        if let Some(label) = shared.options.cluster_label.clone() {
            // The cache requeues keys: a strong reference in both directions would leak.
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

    /// Starts to watch the server and to reconcile. Must be called inside a Tokio runtime.
    pub fn start(&mut self) {
        self.shared.caches.start(&self.shared.client);
        for tenant in &self.tenants {
            tenant.clone().start(&mut self.tasks, self.stop.subscribe());
        }
    }

    /// Cancels every reconcile and returns once none is under way, so that the store may close and another process may
    /// become leader. Dropping a runtime cancels them too, but does not wait.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }

    /// The caches that the controllers read.
    pub fn caches(&self) -> &Caches {
        &self.shared.caches
    }

    /// Metrics of the controllers.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// What each controller of a kind waits for on an object.
    pub fn waits<T: Object>(&self, key: &Key) -> Vec<(&'static str, Vec<Wait>)> {
        let kind = KindName::of::<T>();
        let tenants = self.tenants.iter().filter(|tenant| tenant.kind() == kind);
        tenants.map(|tenant| (tenant.name(), tenant.waits(key))).collect()
    }

    /// The number of objects that are queued or being reconciled, and of those requeued for later.
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
