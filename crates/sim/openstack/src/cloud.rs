//! The state of a cloud: tables by region and kind, the current time, and work that is due later.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use capstan_env::Env;
use capstan_hypervisor::Hypervisor;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::service::Endpoints;
use crate::settings::Settings;
use crate::table::{Fields as _, Object, Table};
use crate::work::Task;

/// Name of the region that holds Keystone's tables, which all regions share.
const SHARED: &str = "";

/// What a dump holds: everything but settings and the clock.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// By region, then by kind.
    pub(crate) tables: BTreeMap<String, BTreeMap<String, Table>>,
    /// Work by the time at which it is due, in milliseconds, and a number that keeps the order.
    pub(crate) due: Vec<(i64, u64, String, Task)>,
    pub(crate) count: u64,
}

pub(crate) struct Cloud {
    pub(crate) state: State,
    pub(crate) settings: Settings,
    pub(crate) endpoints: Endpoints,
    pub(crate) env: Env,
    pub(crate) hypervisor: Option<Arc<dyn Hypervisor>>,
    pub(crate) now: Timestamp,
    /// Region of the request or work that is carried out.
    pub(crate) region: String,
    /// Names of regions; the first is the default.
    pub(crate) regions: Vec<String>,
    pub(crate) faults: CloudFaults,
    /// Endpoints that the hypervisor balances for this cloud.
    pub(crate) balanced: BTreeSet<SocketAddrV4>,
}

/// Faults of the cloud itself, apart from those of calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct CloudFaults {
    /// No host takes another server.
    pub(crate) no_host: bool,
    /// Servers that will fail to build, still.
    pub(crate) failing_builds: u32,
    /// Changes of load balancers that will end in ERROR, still.
    pub(crate) failing_balancers: u32,
    /// Downloads of images that will fail, still.
    pub(crate) failing_imports: u32,
    /// Work of this kind never ends.
    pub(crate) stuck: Vec<String>,
}

impl Cloud {
    fn home(&self, kind: &str) -> &str {
        if crate::keystone::TABLES.contains(&kind) { SHARED } else { &self.region }
    }

    pub(crate) fn all(&self, kind: &str) -> impl DoubleEndedIterator<Item = &Object> {
        self.table(kind).into_iter().flat_map(Table::iter)
    }

    fn table(&self, kind: &str) -> Option<&Table> {
        self.state.tables.get(self.home(kind))?.get(kind)
    }

    pub(crate) fn table_mut(&mut self, kind: &str) -> &mut Table {
        let home = self.home(kind).to_owned();
        self.state.tables.entry(home).or_default().entry(kind.to_owned()).or_default()
    }

    pub(crate) fn get(&self, kind: &str, id: &str) -> Option<&Object> {
        self.table(kind)?.get(id)
    }

    pub(crate) fn get_mut(&mut self, kind: &str, id: &str) -> Option<&mut Object> {
        self.table_mut(kind).get_mut(id)
    }

    pub(crate) fn put(&mut self, kind: &str, object: Object) {
        self.table_mut(kind).insert(object);
    }

    pub(crate) fn remove(&mut self, kind: &str, id: &str) -> Option<Object> {
        self.table_mut(kind).remove(id)
    }

    /// The first resource with this value in a field.
    pub(crate) fn find(&self, kind: &str, field: &str, value: &str) -> Option<&Object> {
        self.all(kind).find(|object| object.text(field) == value)
    }

    /// Sets a field of a resource that may be gone.
    pub(crate) fn set(&mut self, kind: &str, id: &str, field: &str, value: impl Into<serde_json::Value>) {
        if let Some(object) = self.get_mut(kind, id) {
            object.insert(field.to_owned(), value.into());
        }
    }

    pub(crate) fn uuid(&self) -> String {
        self.env.uuid()
    }

    /// An id without dashes, as Keystone has them.
    pub(crate) fn hex(&self) -> String {
        self.env.uuid().replace('-', "")
    }

    /// `2026-11-15T03:35:02Z`.
    pub(crate) fn stamp(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// `2026-11-15T03:35:02.000000`.
    pub(crate) fn micros(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
    }

    /// `2026-11-15T03:35:02`.
    pub(crate) fn naive(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%S").to_string()
    }

    /// Has work done later, in the current region.
    pub(crate) fn later(&mut self, after: Duration, task: Task) {
        let at = self.now.as_millisecond() + i64::try_from(after.as_millis()).unwrap_or(i64::MAX / 2);
        self.state.count += 1;
        let number = self.state.count;
        let region = self.region.clone();
        self.state.due.push((at, number, region, task));
    }

    /// When the next work is due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let at = self.state.due.iter().map(|(at, ..)| *at).min()?;
        Timestamp::from_millisecond(at).ok()
    }

    /// Does all work that is due, each at its time, and sets the time.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let region = self.region.clone();
        loop {
            let due = self.state.due.iter().enumerate().min_by_key(|(_, (at, number, ..))| (*at, *number));
            let Some((index, (at, ..))) = due else { break };
            let (index, at) = (index, *at);
            if at > now.as_millisecond() {
                break;
            }
            let (_, _, place, task) = self.state.due.swap_remove(index);
            self.now = Timestamp::from_millisecond(at).unwrap_or(now).max(self.now);
            self.region = place;
            if !self.faults.stuck.iter().any(|kind| kind == task.kind()) {
                task.run(self);
            }
        }
        self.region = region;
        self.now = self.now.max(now);
    }

    /// The first letters and digits of a hash, for host ids that hide host names.
    pub(crate) fn digest(text: &str) -> String {
        use sha2::Digest as _;
        sha2::Sha224::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Limits of a project: defaults and what was set.
    pub(crate) fn quota(&self, kind: &str, project: &str, defaults: &[(&str, i64)]) -> Object {
        let set = self.get(kind, project);
        let value = |name: &str, default: i64| {
            set.and_then(|set| set.get(name)).cloned().unwrap_or_else(|| json!(default))
        };
        defaults.iter().map(|(name, default)| ((*name).to_owned(), value(name, *default))).collect()
    }
}
