//! Guests of servers that boot nothing. Nova's fake hypervisor reports servers as ACTIVE and keeps their user data: here
//! a simulated machine executes it, and the floating IPs in front of Octavia's addresses lead to the machines of its
//! members.
//!
//! ```text
//! Nova ── ACTIVE servers, user data ──▶ Look ──▶ wanted ──▶ Site: machines
//! Neutron, Octavia ── addresses, members ──┘        └─────▶ Site: addresses on loopback and who answers there
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use capstan_guest::vm::{Image, VmSpec};
use capstan_guest::{Site, SiteOptions, Timings};
use futures::FutureExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::admin::Admin;

/// Interval between looks.
const INTERVAL: Duration = Duration::from_secs(2);
/// Failed looks in a row before pairing ends: a busy service may not answer in time.
const FAILURES: u32 = 5;
/// In the names of images, before the Kubernetes version.
const VERSION_MARK: &str = "-kube-";

/// What the services have of a project, as far as guests depend on it.
#[derive(Debug, Default)]
struct Look {
    servers: Vec<Value>,
    /// Names of images by id.
    images: BTreeMap<String, String>,
    floating: Vec<Value>,
    balancers: Vec<Value>,
    listeners: Vec<Value>,
    /// Members by pool.
    members: BTreeMap<String, Vec<Value>>,
}

/// Machines that are to run, by id, and who answers at an address.
#[derive(Debug, Default)]
struct Wanted {
    machines: BTreeMap<String, VmSpec>,
    addresses: BTreeMap<SocketAddrV4, BTreeSet<Ipv4Addr>>,
}

/// Guests of a project. They end when it is dropped.
#[derive(Debug)]
pub struct Pairing {
    tasks: [JoinHandle<Result<()>>; 2],
}

impl Pairing {
    /// Starts to pair the servers of a project, by its id. API servers answer at `listener`'s port of every address.
    pub fn start(admin: Admin, project: String, listener: TcpListener) -> Result<Self> {
        let options = SiteOptions {
            endpoint_port: listener.local_addr()?.port(),
            timings: Timings::none(),
            ..SiteOptions::default()
        };
        let site = Site::new(capstan_env::Env::system(), options);
        let served = site.clone();
        let serve = tokio::spawn(async move {
            served.serve(listener, std::future::pending()).await;
            Ok(())
        });
        Ok(Self { tasks: [tokio::spawn(follow(admin, project, site)), serve] })
    }

    /// Fails if pairing has ended.
    pub fn check(&mut self) -> Result<()> {
        for task in &mut self.tasks {
            if let Some(ended) = task.now_or_never() {
                ended.context("pairing panicked")?.context("pairing of servers with guests")?;
                bail!("pairing of servers with guests has ended");
            }
        }
        Ok(())
    }
}

impl Drop for Pairing {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn follow(admin: Admin, project: String, site: Site) -> Result<()> {
    let mut images = BTreeMap::new();
    let mut held = BTreeSet::new();
    let mut failures = 0;
    loop {
        match look(&admin, &project, &mut images).await {
            Ok(look) => {
                failures = 0;
                apply(&site, wanted(&look), &mut held)?;
            }
            Err(_) if failures < FAILURES => failures += 1,
            Err(error) => return Err(error),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn look(admin: &Admin, project: &str, images: &mut BTreeMap<String, String>) -> Result<Look> {
    let mut look = Look::default();
    let servers = format!("/servers/detail?all_tenants=1&project_id={project}");
    look.servers = admin.list("compute", &servers).await?;
    for server in &look.servers {
        let image = text(&server["image"], "id");
        if !image.is_empty() && !images.contains_key(image) {
            let found = admin.get("image", &format!("/v2/images/{image}")).await?;
            images.insert(image.to_owned(), text(&found, "name").to_owned());
        }
    }
    look.images.clone_from(images);
    look.floating = admin.list("network", &format!("/v2.0/floatingips?project_id={project}")).await?;
    let of = |kind: &str| format!("/v2/lbaas/{kind}?project_id={project}");
    look.balancers = admin.list("load-balancer", &of("loadbalancers")).await?;
    if !look.balancers.is_empty() {
        look.listeners = admin.list("load-balancer", &of("listeners")).await?;
    }
    for listener in &look.listeners {
        let pool = text(listener, "default_pool_id");
        if !pool.is_empty() {
            let path = format!("/v2/lbaas/pools/{pool}/members");
            // The pool may go while it is read.
            let members = admin.list("load-balancer", &path).await.unwrap_or_default();
            look.members.insert(pool.to_owned(), members);
        }
    }
    Ok(look)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn wanted(look: &Look) -> Wanted {
    let mut wanted = Wanted::default();
    for server in &look.servers {
        // Once it was ACTIVE its machine stays until Nova forgets the server.
        let runs = matches!(text(server, "status"), "ACTIVE" | "SHUTOFF" | "REBOOT");
        if let Some(machine) = machine(server, &look.images).filter(|_| runs) {
            wanted.machines.insert(machine.id.clone(), machine);
        }
    }
    for balancer in &look.balancers {
        let port = text(balancer, "vip_port_id");
        let floating = look.floating.iter().filter(|it| text(it, "port_id") == port);
        let addresses: Vec<Ipv4Addr> =
            floating.filter_map(|it| text(it, "floating_ip_address").parse().ok()).collect();
        let ours = |listener: &&Value| {
            let of = listener["loadbalancers"].as_array().into_iter().flatten();
            of.into_iter().any(|it| it["id"] == balancer["id"])
        };
        for listener in look.listeners.iter().filter(ours) {
            let members = look.members.get(text(listener, "default_pool_id"));
            let members = members.into_iter().flatten().filter_map(|it| text(it, "address").parse().ok());
            let members: BTreeSet<Ipv4Addr> = members.collect();
            let port = listener["protocol_port"].as_u64().and_then(|port| u16::try_from(port).ok());
            let Some(port) = port else { continue };
            for address in &addresses {
                wanted.addresses.insert(SocketAddrV4::new(*address, port), members.clone());
            }
        }
    }
    wanted
}

/// The machine of a server; `None` while it has no address.
fn machine(server: &Value, images: &BTreeMap<String, String>) -> Option<VmSpec> {
    let networks = server["addresses"].as_object().into_iter().flatten();
    let all = networks.flat_map(|(_, addresses)| addresses.as_array().into_iter().flatten());
    let mut fixed = all.filter(|address| address["OS-EXT-IPS:type"] == "fixed");
    let address = fixed.find_map(|address| text(address, "addr").parse().ok())?;
    let image = images.get(text(&server["image"], "id")).map(String::as_str).unwrap_or_default();
    let kubernetes = image.split_once(VERSION_MARK).map(|(_, version)| version.to_owned());
    let tags = server["metadata"].as_object().into_iter().flatten();
    let id = text(server, "id");
    Some(VmSpec {
        id: id.to_owned(),
        name: text(server, "OS-EXT-SRV-ATTR:hostname").to_owned(),
        user_data: BASE64.decode(text(server, "OS-EXT-SRV-ATTR:user_data")).unwrap_or_default(),
        image: Image { kubernetes },
        address: Some(address),
        provider_id: Some(format!("openstack:///{id}")),
        cpus: server["flavor"]["vcpus"].as_u64().and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(1),
        memory_mib: server["flavor"]["ram"].as_u64().unwrap_or_default(),
        tags: tags.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect(),
        faults: Vec::new(),
    })
}

/// Reconciles the site with the desired machines. Machines are deleted before others are created: Neutron gives addresses out again.
fn apply(site: &Site, wanted: Wanted, held: &mut BTreeSet<SocketAddrV4>) -> Result<()> {
    let running: BTreeSet<String> = site.vms().into_iter().map(|vm| vm.id).collect();
    for gone in running.iter().filter(|id| !wanted.machines.contains_key(*id)) {
        site.destroy(gone)?;
    }
    for (id, machine) in wanted.machines {
        if !running.contains(&id) {
            site.create(machine).with_context(|| format!("boot the guest of server {id}"))?;
        }
    }
    for gone in held.iter().filter(|address| !wanted.addresses.contains_key(address)) {
        site.release(*gone);
    }
    for (address, members) in &wanted.addresses {
        site.keep_endpoint(&address.to_string(), *address);
        site.balance(*address, members.clone());
    }
    *held = wanted.addresses.into_keys().collect();
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(id: &str, status: &str, address: &str) -> Value {
        json!({
            "id": id, "status": status, "OS-EXT-SRV-ATTR:hostname": format!("host-{id}"), "image": {"id": "i"},
            "OS-EXT-SRV-ATTR:user_data": BASE64.encode("#cloud-config"), "flavor": {"vcpus": 2, "ram": 4096},
            "addresses": {"net": [
                {"addr": "127.203.0.9", "OS-EXT-IPS:type": "floating"}, {"addr": address, "OS-EXT-IPS:type": "fixed"},
            ]},
            "metadata": {"capstan-mark": "m"},
        })
    }

    #[test]
    fn a_server_has_a_machine_once_it_is_active() {
        let look = Look {
            servers: vec![server("a", "ACTIVE", "10.6.0.5"), server("b", "BUILD", "10.6.0.6")],
            images: BTreeMap::from([("i".to_owned(), "ubuntu-2404-kube-v1.36.0".to_owned())]),
            ..Look::default()
        };
        let wanted = wanted(&look);
        let machines: Vec<_> = wanted.machines.values().collect();
        let [machine] = machines.as_slice() else { panic!("{machines:?}") };
        assert_eq!((machine.name.as_str(), machine.cpus, machine.memory_mib), ("host-a", 2, 4096));
        assert_eq!(machine.user_data, b"#cloud-config");
        assert_eq!(machine.address, Some(Ipv4Addr::new(10, 6, 0, 5)));
        assert_eq!(machine.image.kubernetes.as_deref(), Some("v1.36.0"));
    }

    #[test]
    fn the_floating_ip_of_a_load_balancer_leads_to_its_members() {
        let look = Look {
            floating: vec![
                json!({"port_id": "vip", "floating_ip_address": "127.203.0.7"}),
                json!({"port_id": "other", "floating_ip_address": "127.203.0.8"}),
            ],
            balancers: vec![json!({"id": "lb", "vip_port_id": "vip"})],
            listeners: vec![
                json!({"loadbalancers": [{"id": "lb"}], "default_pool_id": "p", "protocol_port": 6443}),
            ],
            members: BTreeMap::from([("p".to_owned(), vec![json!({"address": "10.6.0.5"})])]),
            ..Look::default()
        };
        let endpoint = SocketAddrV4::new(Ipv4Addr::new(127, 203, 0, 7), 6443);
        let members = BTreeSet::from([Ipv4Addr::new(10, 6, 0, 5)]);
        assert_eq!(wanted(&look).addresses, BTreeMap::from([(endpoint, members)]));
    }
}
