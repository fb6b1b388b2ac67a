//! Allocation of cluster IPs and node ports to Services, and their release.
//!
//! An index of what Services have is built from the store on first use and follows every commit. A request that
//! allocates enters its choice into the index before it writes; when it ends, the index takes what is stored, so that
//! a failed request leaves nothing behind. `addresses.rs` records every cluster IP as an IPAddress, as upstream.

mod addresses;
mod range;

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use ::http::StatusCode;
use capstan_builtin::services::{self, allocates_node_ports, kind, needs_health_check, sloppy_ip, texts};
use capstan_env::Env;
use capstan_schema::field::FieldError;
use capstan_store::Store;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::auth::bucket::{IP_ADDRESSES, SERVICE_CIDRS, SERVICES};
use crate::call::Call;
use crate::digest::Digest;
use crate::http::options::DeleteOptions;
use crate::object::{self, Meta};
use crate::status::{Result, Status};
use crate::verbs::delete::delete_object;

pub(crate) use addresses::{MANAGED_BY, MANAGER, ensure_recorded, record, release};
pub(crate) use range::DEFAULT_CIDR;
pub use range::{ServiceRange, ServiceRangeError};

/// Ports of nodes, as upstream's default.
const NODE_PORTS: RangeInclusive<u16> = 30000..=32767;
/// The first ports are for clients that name one.
const RESERVED_PORTS: u16 = 86;
/// The port before the one that a dry run shows.
const DRY_RUN_PORT: i64 = 32768;
const TAKEN_ADDRESS: &str = "provided IP is already allocated";
const TAKEN_PORT: &str = "provided port is already allocated";

/// IPs and ports that are allocated to Services.
#[derive(Default)]
struct Taken {
    /// Whether the store was read.
    read: bool,
    /// The ranges of ready ServiceCIDRs, and the revision of the bucket they were read at.
    ranges: Vec<ServiceRange>,
    ranges_at: u64,
    /// Addresses that a Service had until its last change, for the controller to look at.
    freed: BTreeSet<Ipv4Addr>,
    addresses: HashMap<Ipv4Addr, Arc<str>>,
    ports: HashMap<u16, Arc<str>>,
    /// By key of the Service.
    holdings: HashMap<Arc<str>, Holding>,
}

#[derive(Default)]
struct Holding {
    addresses: Vec<Ipv4Addr>,
    ports: Vec<u16>,
}

impl Taken {
    fn set(&mut self, key: &str, service: Option<&Value>) {
        if let Some(before) = self.holdings.remove(key) {
            before.addresses.iter().for_each(|address| drop(self.addresses.remove(address)));
            self.freed.extend(&before.addresses);
            before.ports.iter().for_each(|port| drop(self.ports.remove(port)));
        }
        let Some(service) = service else { return };
        let key: Arc<str> = key.into();
        texts(service, "clusterIPs").into_iter().filter_map(address).for_each(|a| self.take_address(&key, a));
        node_ports(service).into_iter().for_each(|port| self.take_port(&key, port));
    }

    fn take_address(&mut self, key: &Arc<str>, address: Ipv4Addr) {
        self.addresses.insert(address, key.clone());
        self.holdings.entry(key.clone()).or_default().addresses.push(address);
    }

    fn take_port(&mut self, key: &Arc<str>, port: u16) {
        self.ports.insert(port, key.clone());
        self.holdings.entry(key.clone()).or_default().ports.push(port);
    }
}

fn address(text: &str) -> Option<Ipv4Addr> {
    match sloppy_ip(text)? {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn node_ports(service: &Value) -> BTreeSet<u16> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    let all = ports.chain([&service["spec"]["healthCheckNodePort"]]);
    all.map(number).filter(|port| *port != 0).filter_map(|port| port.try_into().ok()).collect()
}

/// Allocates from the service range and the node ports.
pub(crate) struct ServiceAllocator {
    range: ServiceRange,
    env: Env,
    store: Store<Digest>,
    taken: Mutex<Taken>,
}

/// Allocations of a request. Dropped when the request has ended, however it did.
#[must_use]
pub(crate) struct Reservation {
    allocator: Arc<ServiceAllocator>,
    key: String,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.allocator.follow(&self.key);
    }
}

impl ServiceAllocator {
    pub fn new(range: ServiceRange, env: Env, store: Store<Digest>) -> Arc<Self> {
        Arc::new(Self { range, env, store, taken: Mutex::default() })
    }

    /// The range that the server is configured with.
    pub fn range(&self) -> ServiceRange {
        self.range
    }

    /// Whether a Service has an address, or a request is about to give it to one.
    pub fn holds(&self, key: &str, address: Ipv4Addr) -> bool {
        self.taken.lock().addresses.get(&address).is_some_and(|holder| **holder == *key)
    }

    /// The key of the Service that has an address.
    pub fn holder(&self, address: Ipv4Addr) -> Option<Arc<str>> {
        let mut taken = self.taken.lock();
        self.read(&mut taken);
        taken.addresses.get(&address).cloned()
    }

    /// Addresses that were given up since the last call and that no Service has.
    pub fn take_freed(&self) -> Vec<Ipv4Addr> {
        let mut taken = self.taken.lock();
        let freed = std::mem::take(&mut taken.freed);
        freed.into_iter().filter(|address| !taken.addresses.contains_key(address)).collect()
    }

    /// Takes over what is stored of a Service, after a commit.
    pub fn follow(&self, key: &str) {
        let mut taken = self.taken.lock();
        if taken.read {
            let stored = self.store.get(SERVICES, key);
            let stored: Option<Value> = stored.and_then(|entry| serde_json::from_slice(&entry.value).ok());
            taken.set(key, stored.as_ref());
        }
    }

    fn read(&self, taken: &mut Taken) {
        if !taken.read {
            for entry in self.store.snapshot(SERVICES).range("", None) {
                let stored: Option<Value> = serde_json::from_slice(&entry.value).ok();
                taken.set(&entry.key, stored.as_ref());
            }
            taken.read = true;
        }
    }

    /// Completes a Service with addresses and ports. `old` is the current object of an update.
    pub fn allocate(
        self: &Arc<Self>,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Option<Reservation>> {
        let name = service.name().to_owned();
        services::initialise(service, old).map_err(|errors| Status::invalid("", "Service", &name, errors))?;
        let key = object::key(service.namespace(), &name);
        let mut taken = self.taken.lock();
        self.read(&mut taken);
        let revision = self.store.bucket_revision(SERVICE_CIDRS);
        if taken.ranges_at != revision {
            taken.ranges = range::ready(&self.store);
            taken.ranges_at = revision;
        }
        let mut operation = Operation {
            ranges: taken.ranges.clone(),
            store: &self.store,
            env: &self.env,
            taken: &mut taken,
            key: key.as_str().into(),
            chosen: Vec::new(),
            dry_run,
        };
        let done = operation.run(service, old);
        drop(taken);
        // Also of a failure: it may have taken the first of two things.
        let reservation = Reservation { allocator: self.clone(), key };
        done?;
        Ok((!dry_run).then_some(reservation))
    }
}

/// The allocations of one request.
struct Operation<'a> {
    /// The default range first.
    ranges: Vec<ServiceRange>,
    store: &'a Store<Digest>,
    env: &'a Env,
    taken: &'a mut Taken,
    key: Arc<str>,
    /// Ports that this request has allocated.
    chosen: Vec<i64>,
    dry_run: bool,
}

fn invalid(service: &Value, field: &str, value: Value, detail: String) -> Status {
    Status::invalid("", "Service", service.name(), vec![FieldError::invalid(field, value, detail)])
}

impl Operation<'_> {
    fn run(&mut self, service: &mut Value, old: Option<&Value>) -> Result<()> {
        if old.is_none_or(|old| kind(old) == "ExternalName") {
            self.cluster_ips(service)?;
        }
        let exposed = matches!(kind(service), "NodePort" | "LoadBalancer");
        match old {
            None if exposed => self.new_ports(service)?,
            Some(old) if exposed => self.changed_ports(service, old)?,
            _ => {}
        }
        if needs_health_check(service) && !old.is_some_and(needs_health_check) {
            self.health_check_port(service)?;
        }
        Ok(())
    }

    fn cluster_ips(&mut self, service: &mut Value) -> Result<()> {
        if kind(service) == "ExternalName" || services::is_headless(service) {
            return Ok(());
        }
        // There is one family, so there is one address.
        let named = texts(service, "clusterIPs").first().map(|text| (*text).to_owned());
        match named {
            Some(text) => {
                let asked = address(&text).filter(|_| !text.is_empty());
                let asked =
                    asked.ok_or_else(|| Status::internal(format!("failed to parse service IP {text:?}")))?;
                self.named_address(asked).map_err(|why| {
                    let all = service["spec"]["clusterIPs"].clone();
                    invalid(service, "spec.clusterIPs", all, format!("failed to allocate IP {text}: {why}"))
                })?;
            }
            None => {
                let found = self.any_address().ok_or_else(|| {
                    let name = service.name();
                    Status::internal(format!(
                        "failed to allocate a serviceIP for Service {name:?}: range is full"
                    ))
                })?;
                service["spec"]["clusterIP"] = found.to_string().into();
                service["spec"]["clusterIPs"] = json!([found.to_string()]);
            }
        }
        Ok(())
    }

    fn named_address(&mut self, asked: Ipv4Addr) -> Result<(), String> {
        if !self.ranges.iter().any(|range| range.contains(asked)) {
            return Err(match self.ranges.first() {
                Some(range) if self.dry_run => {
                    format!(
                        "the provided IP ({asked}) is not in the valid range. The range of valid IPs is {range}"
                    )
                }
                _ => "the provided network does not match the current range".to_owned(),
            });
        }
        // As upstream, a dry run does not look.
        if self.dry_run {
            return Ok(());
        }
        if self.is_taken(asked) {
            return Err(TAKEN_ADDRESS.to_owned());
        }
        self.taken.take_address(&self.key, asked);
        Ok(())
    }

    /// By a Service, or by an IPAddress that somebody has created.
    fn is_taken(&self, address: Ipv4Addr) -> bool {
        self.taken.addresses.contains_key(&address)
            || self.store.get(IP_ADDRESSES, &address.to_string()).is_some()
    }

    fn any_address(&mut self) -> Option<Ipv4Addr> {
        if self.dry_run {
            // As upstream: an address that no Service has.
            return self.ranges.first().map(|range| range.network());
        }
        let found = self.ranges.iter().find_map(|range| {
            let (first, last) = range.addresses().into_inner();
            let middle = (first + range.reserved() - 1).min(last);
            let all = rotated(self.env, middle..=last).chain(rotated(self.env, first..=middle));
            all.map(Ipv4Addr::from).find(|address| !self.is_taken(*address))
        })?;
        self.taken.take_address(&self.key, found);
        Some(found)
    }

    fn named_port(&mut self, port: i64) -> Result<(), String> {
        let known = u16::try_from(port).ok().filter(|port| NODE_PORTS.contains(port));
        if self.dry_run {
            let taken = known.is_some_and(|port| self.taken.ports.contains_key(&port));
            if taken || self.chosen.contains(&port) {
                return Err(TAKEN_PORT.to_owned());
            }
            self.chosen.push(port);
            return Ok(());
        }
        let Some(known) = known else {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                NODE_PORTS.start(),
                NODE_PORTS.end()
            ));
        };
        if self.taken.ports.contains_key(&known) {
            return Err(TAKEN_PORT.to_owned());
        }
        self.taken.take_port(&self.key, known);
        Ok(())
    }

    fn any_port(&mut self) -> Result<i64, &'static str> {
        if self.dry_run {
            let port = self.chosen.iter().max().copied().unwrap_or(DRY_RUN_PORT) + 1;
            self.chosen.push(port);
            return Ok(port);
        }
        let (first, last) = (u32::from(*NODE_PORTS.start()), u32::from(*NODE_PORTS.end()));
        let middle = first + u32::from(RESERVED_PORTS);
        let all = rotated(self.env, middle..=last).chain(rotated(self.env, first..=middle - 1));
        let free =
            all.filter_map(|port| u16::try_from(port).ok()).find(|p| !self.taken.ports.contains_key(p));
        let port = free.ok_or("range is full")?;
        self.taken.take_port(&self.key, port);
        Ok(i64::from(port))
    }

    /// The node ports of a new Service. Two protocols on one port share one.
    fn new_ports(&mut self, service: &mut Value) -> Result<()> {
        let mut ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
        let mut by_port: HashMap<i64, i64> = HashMap::new();
        for index in 0..ports.len() {
            let asked = number(&ports[index]["nodePort"]);
            if asked == 0 && !allocates_node_ports(service) {
                continue;
            }
            let port = number(&ports[index]["port"]);
            let refused = |number: i64, why| {
                invalid(service, &format!("spec.ports[{index}].nodePort"), number.into(), why)
            };
            match by_port.get(&port) {
                Some(shared) if asked == 0 => ports[index]["nodePort"] = (*shared).into(),
                Some(shared) if asked == *shared => {}
                Some(_) => self.named_port(asked).map_err(|why| refused(asked, why))?,
                None => {
                    let wanted = ports
                        .iter()
                        .filter(|other| number(&other["port"]) == port)
                        .map(|other| number(&other["nodePort"]))
                        .find(|wanted| *wanted != 0);
                    let found = match wanted {
                        Some(wanted) => {
                            self.named_port(wanted).map_err(|why| refused(wanted, why))?;
                            wanted
                        }
                        None => self.any_port().map_err(no_port)?,
                    };
                    ports[index]["nodePort"] = found.into();
                    by_port.insert(port, found);
                }
            }
        }
        if !ports.is_empty() {
            service["spec"]["ports"] = ports.into();
        }
        Ok(())
    }

    fn changed_ports(&mut self, service: &mut Value, old: &Value) -> Result<()> {
        let numbers = |service: &Value| -> Vec<i64> {
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            ports.map(|port| number(&port["nodePort"])).filter(|number| *number != 0).collect()
        };
        let before = numbers(old);
        let mut ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
        let mut seen: Vec<(String, i64)> = Vec::new();
        let mut allocated: Vec<i64> = Vec::new();
        for (index, port) in ports.iter_mut().enumerate() {
            let asked = number(&port["nodePort"]);
            if asked == 0 && !allocates_node_ports(service) {
                continue;
            }
            let found = if asked == 0 {
                self.any_port().map_err(no_port)?
            } else {
                if !before.contains(&asked) && !allocated.contains(&asked) {
                    let field = format!("spec.ports[{index}].nodePort");
                    self.named_port(asked).map_err(|why| invalid(service, &field, asked.into(), why))?;
                    allocated.push(asked);
                }
                asked
            };
            port["nodePort"] = found.into();
            let protocol = port["protocol"].as_str().unwrap_or_default().to_owned();
            if seen.contains(&(protocol.clone(), found)) {
                let message = format!("duplicate nodePort: {{{protocol} {found}}}");
                return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
            }
            seen.push((protocol, found));
        }
        if !ports.is_empty() {
            service["spec"]["ports"] = ports.into();
        }
        Ok(())
    }

    fn health_check_port(&mut self, service: &mut Value) -> Result<()> {
        match number(&service["spec"]["healthCheckNodePort"]) {
            0 => {
                let port = self.any_port().map_err(|why| {
                    Status::internal(format!("failed to allocate a HealthCheck NodePort 0: {why}"))
                })?;
                service["spec"]["healthCheckNodePort"] = port.into();
            }
            asked => self.named_port(asked).map_err(|why| {
                Status::internal(format!("failed to allocate requested HealthCheck NodePort {asked}: {why}"))
            })?,
        }
        Ok(())
    }
}

fn no_port(why: &str) -> Status {
    Status::internal(format!("failed to allocate a nodePort: {why}"))
}

/// All numbers of a range, starting somewhere.
fn rotated(env: &Env, range: RangeInclusive<u32>) -> impl Iterator<Item = u32> + use<> {
    let (first, last) = range.into_inner();
    let start = first + env.random_below(last - first + 1);
    (start..=last).chain(first..start)
}

/// Allocates for the Service that a request creates or changes; nothing for other kinds.
pub(crate) fn allocate(
    call: &Call,
    object: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Option<Reservation>> {
    match &call.parts.services {
        Some(allocator) if is_service(call) => allocator.allocate(object, old, dry_run),
        _ => Ok(None),
    }
}

fn is_service(call: &Call) -> bool {
    &*call.resource().bucket == SERVICES && call.subresource().is_empty()
}

/// Deletes what belongs to a deleted Service: its Endpoints, so that a new one of the same name does not start with
/// them, and its IPAddresses.
pub(crate) async fn after_delete(call: &Call, service: &Value) {
    if call.parts.services.is_none() || &*call.resource().bucket != SERVICES {
        return;
    }
    release(call, &cluster_addresses(service)).await;
    let Some(endpoints) = call.registry.find("", "v1", "endpoints").cloned() else { return };
    let call = call.parts.internal_call("system:apiserver", endpoints, service.namespace(), service.name());
    match delete_object(&call, &call.key(), &DeleteOptions::default()).await {
        Err(status) if status.reason != "NotFound" => {
            tracing::warn!(service = %call.key(), error = %status, "the endpoints of a service are not deleted");
        }
        _ => {}
    }
}

/// The addresses that a Service has no more after an update.
pub(crate) fn given_up(call: &Call, service: &Value, old: &Value) -> BTreeSet<Ipv4Addr> {
    if call.parts.services.is_none() || !is_service(call) {
        return BTreeSet::new();
    }
    &cluster_addresses(old) - &cluster_addresses(service)
}

pub(crate) fn cluster_addresses(service: &Value) -> BTreeSet<Ipv4Addr> {
    texts(service, "clusterIPs").into_iter().filter_map(address).collect()
}
