//! The server itself: its commands, capabilities, settings and capacity.

use serde_json::{Value, json};

use super::{root_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::{self, Command};
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::model::place::Zone;
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync("listApis", "name", list_apis),
    sync("listCapabilities", "domainid:domain", list_capabilities),
    sync("listHypervisors", "zoneid:zone", list_hypervisors),
    sync("quotaIsEnabled", "", quota_is_enabled),
    root_admin(sync(
        "listConfigurations",
        "name category group subgroup parent zoneid:zone clusterid:cluster storageid:none accountid:account \
         domainid:domain imagestoreuuid:none managementserverid:managementserver",
        list_configurations,
    )),
    root_admin(sync("listCapacity", "zoneid:zone type:number clusterid:cluster podid:pod", list_capacity)),
    absent("createZone"),
    absent("deleteZone"),
    root_admin(sync("listRoles", "id:role name type state", list_roles)),
    absent("createRole"),
    absent("listRouters"),
    absent("listSystemVms"),
    absent("listManagementServers"),
    absent("listPods"),
    absent("listClusters"),
    absent("listStoragePools"),
    absent("listPhysicalNetworks"),
    absent("listVlanIpRanges"),
    absent("updateConfiguration"),
    absent("migrateVirtualMachine"),
    absent("addHost"),
    absent("deleteHost"),
];

/// A command of root that the server has and this simulator does not. Others get the error of a missing permission,
/// root an error that says so.
const fn absent(name: &'static str) -> Command {
    root_admin(sync(name, "", not_simulated))
}

fn not_simulated(_: &mut Cloud, call: &Call) -> Result<Answer> {
    Err(ApiError::runtime(format!("{} is not simulated", call.command.name)))
}

fn list_apis(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let shown: Vec<Value> = catalog::all()
        .filter(|command| {
            cloud.permits(call.caller, command) && call.text("name").is_none_or(|name| name == command.name)
        })
        .map(|command| {
            let parameters: Vec<Value> = command
                .parameters()
                .map(|parameter| {
                    json!({
                        "name": parameter.name,
                        "description": "",
                        "type": parameter.kind.name(),
                        "length": 255,
                        "required": parameter.required,
                    })
                })
                .collect();
            json!({
                "name": command.name,
                "description": "",
                "isasync": command.is_async(),
                "related": "",
                "params": parameters,
                "response": [],
            })
        })
        .collect();
    if shown.is_empty() {
        return Err(ApiError::new(
            530,
            9999,
            "Api Discovery plugin was unable to find an api by that name or process any apis",
        ));
    }
    Ok(Answer::List("api", shown))
}

fn list_capabilities(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let mut shown = json!({
        "securitygroupsenabled": false,
        "dynamicrolesenabled": true,
        "cloudstackversion": crate::VERSION,
        "userpublictemplateenabled": true,
        "supportELB": "false",
        "projectinviterequired": false,
        "allowusercreateprojects": true,
        "customdiskofferingminsize": 1,
        "customdiskofferingmaxsize": 1024,
        "regionsecondaryenabled": false,
        "kvmsnapshotenabled": true,
        "snapshotshowchainsize": false,
        "allowuserviewdestroyedvm": call.caller.is_admin() || cloud.sees_destroyed(call.caller.account),
        "allowuserexpungerecovervm": call.caller.is_admin() || cloud.may_expunge(call.caller.account),
        "allowuserexpungerecovervolume": true,
        "allowuserviewalldomainaccounts": false,
        "allowuserforcestopvm": true,
        "kubernetesserviceenabled": cloud.settings.kubernetes_service_enabled,
        "kubernetesclusterexperimentalfeaturesenabled": false,
        "customhypervisordisplayname": "Custom",
        "defaultuipagesize": 20,
        "instancesstatsretentiontime": 720,
        "instancesstatsuseronly": false,
        "instancesdisksstatsretentionenabled": false,
        "instancesdisksstatsretentiontime": 720,
        "sharedfsvmmincpucount": 2,
        "sharedfsvmminramsize": 1024,
        "instanceleaseenabled": false,
        "dynamicscalingenabled": false,
        "additionalconfigenabled": false,
    });
    if call.caller.is_root() {
        shown["extensionspath"] = json!("/usr/share/cloudstack-management/extensions");
    }
    Ok(Answer::Object("capability", shown))
}

fn list_hypervisors(_: &mut Cloud, _: &Call) -> Result<Answer> {
    let names = ["KVM", "VMware", "XenServer", "Hyperv", "BareMetal", "Ovm", "LXC", "Ovm3", "External"];
    Ok(Answer::List("hypervisor", names.iter().map(|name| json!({"name": name})).collect()))
}

/// Name, type and description of the stock roles.
const ROLES: [(&str, &str, &str); 8] = [
    ("Root Admin", "Admin", "Default root admin role"),
    ("Resource Admin", "ResourceAdmin", "Default resource admin role"),
    ("Domain Admin", "DomainAdmin", "Default domain admin role"),
    ("User", "User", "Default user role"),
    ("Read-Only Admin - Default", "Admin", "Default read-only admin role"),
    ("Read-Only User - Default", "User", "Default read-only user role"),
    ("Support Admin - Default", "Admin", "Default support admin role"),
    ("Support User - Default", "User", "Default support user role"),
];

fn list_roles(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    if let Some(kind) = call.filled("type")
        && !["Admin", "ResourceAdmin", "DomainAdmin", "User", "Unknown"].contains(&kind)
    {
        return Err(ApiError::new(530, 9999, format!("No enum constant RoleType.{kind}")));
    }
    if let Some(id) = call.text("id")
        && !cloud.stock_roles.iter().any(|held| held == id)
    {
        return Err(call.unknown("id", id));
    }
    let shown = ROLES
        .iter()
        .zip(&cloud.stock_roles)
        .filter(|((name, kind, _), id)| {
            call.names("id", id)
                && call.names("name", name)
                && call.names("type", kind)
                && call.names("state", "enabled")
                && call.keyword_in(&[name])
        })
        .map(|((name, kind, description), id)| {
            json!({
                "id": id,
                "name": name,
                "description": description,
                "ispublic": true,
                "type": kind,
                "isdefault": true,
                "state": "enabled",
            })
        })
        .collect();
    Ok(Answer::List("role", shown))
}

fn quota_is_enabled(_: &mut Cloud, _: &Call) -> Result<Answer> {
    Ok(Answer::Object("isenabled", json!({"isenabled": false})))
}

/// Only the settings that this simulator has.
fn list_configurations(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let settings = &cloud.settings;
    let seconds = |span: std::time::Duration| span.as_secs().to_string();
    let known = [
        ("expunge.delay", seconds(settings.expunge_delay), "86400", "Number", "UserVmManager"),
        ("expunge.interval", seconds(settings.expunge_interval), "86400", "Number", "UserVmManager"),
        (
            "network.gc.wait",
            seconds(settings.network_gc_wait),
            "600",
            "Number",
            "NetworkOrchestrationService",
        ),
        (
            "network.gc.interval",
            seconds(settings.network_gc_interval),
            "600",
            "Number",
            "NetworkOrchestrationService",
        ),
        (
            "allow.user.expunge.recover.vm",
            settings.allow_user_expunge_recover_vm.to_string(),
            "false",
            "Boolean",
            "UserVmManager",
        ),
        (
            "allow.user.view.destroyed.vm",
            settings.allow_user_view_destroyed_vm.to_string(),
            "false",
            "Boolean",
            "QueryService",
        ),
        (
            "enforce.post.requests.and.timestamps",
            settings.enforce_post_and_timestamps.to_string(),
            "false",
            "Boolean",
            "ApiServer",
        ),
        (
            "vm.userdata.max.length",
            settings.user_data_max_length.to_string(),
            "32768",
            "Number",
            "UserDataManager",
        ),
        (
            "cloud.kubernetes.service.enabled",
            "true".to_owned(),
            "true",
            "Boolean",
            "KubernetesClusterService",
        ),
    ];
    let shown = known
        .into_iter()
        .filter(|(name, ..)| call.names("name", name) && call.keyword_in(&[name]))
        .map(|(name, value, default, kind, component)| {
            json!({
                "category": "Advanced",
                "group": "Miscellaneous",
                "subgroup": "Others",
                "name": name,
                "value": value,
                "defaultvalue": default,
                "description": name.replace('.', " "),
                "isdynamic": false,
                "component": component,
                "displaytext": name.replace('.', " "),
                "type": kind,
            })
        })
        .collect();
    Ok(Answer::List("configuration", shown))
}

fn list_capacity(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let zones: Vec<Key<Zone>> = cloud
        .zones
        .iter()
        .filter(|zone| call.selects(&cloud.zones, "zoneid", zone.key))
        .map(|zone| zone.key)
        .collect();
    let mut shown = Vec::new();
    for zone in zones {
        let row = &cloud.zones[zone];
        for (kind, name, allocated, used, total) in cloud.capacity(zone) {
            if call.number("type").is_some_and(|wanted| wanted != kind) {
                continue;
            }
            let mut entry = json!({
                "type": kind,
                "name": name,
                "zoneid": row.uuid,
                "zonename": row.name,
                "capacityused": used,
                "capacitytotal": total,
                "percentused": percent(used, total),
            });
            if allocated {
                entry["capacityallocated"] = json!(used);
            }
            shown.push(entry);
        }
    }
    Ok(Answer::List("capacity", shown))
}

impl Cloud {
    /// Type, name, whether it is allocated to machines, used and total, of everything that a zone has.
    pub(crate) fn capacity(&self, zone: Key<Zone>) -> Vec<(i64, &'static str, bool, u64, u64)> {
        let hosts = || self.hosts.iter().filter(|host| host.zone == zone);
        let (mut cores, mut mhz, mut memory) = (0, 0, 0);
        for host in hosts() {
            let used = self.allocated_on(host.key);
            (cores, mhz, memory) = (cores + used.0, mhz + used.1, memory + used.2);
        }
        let all_cores: u64 = hosts().map(|host| host.cores).sum();
        let all_mhz: u64 = hosts().map(|host| host.cores * host.mhz).sum();
        let all_memory: u64 = hosts().map(|host| host.memory_mib).sum();
        let ips = || self.ips.iter().filter(|ip| ip.zone == zone);
        let taken = ips().filter(|ip| ip.held.as_ref().is_some_and(|held| !held.system)).count();
        let networks =
            self.networks.iter().filter(|network| network.zone == zone && network.vlan.is_some()).count();
        let disks: u64 = self
            .volumes
            .iter()
            .filter(|volume| volume.zone == zone && volume.ready)
            .map(|volume| volume.bytes)
            .sum();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        vec![
            (0, "MEMORY", true, memory << 20, all_memory << 20),
            (1, "CPU", true, mhz, all_mhz),
            (2, "STORAGE", false, 0, 2 << 40),
            (3, "STORAGE_ALLOCATED", false, disks, 4 << 40),
            (4, "VIRTUAL_NETWORK_PUBLIC_IP", false, number(taken), number(ips().count())),
            (5, "PRIVATE_IP", false, 4, 199),
            (6, "SECONDARY_STORAGE", false, 0, 0),
            (7, "VLAN", false, number(networks), 101),
            (19, "GPU", true, 0, 0),
            (90, "CPU_CORE", true, cores, all_cores),
        ]
    }
}

/// A share without needless digits.
pub(crate) fn percent(used: u64, total: u64) -> String {
    let text = crate::render::share(used, total);
    let text = text.trim_end_matches('%').trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() { "0".to_owned() } else { text.to_owned() }
}
