//! Lists of machines.

use serde_json::json;

use crate::call::{Answer, Call};
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::model::compute::{Vm, VmState};
use crate::model::identity::Account;
use crate::model::table::{Key, Row};
use crate::render::{Details, VmView};

const DETAILS: [&str; 14] = [
    "all", "group", "nics", "stats", "secgrp", "tmpl", "servoff", "diskoff", "backoff", "iso", "volume",
    "min", "affgrp", "vnfnics",
];

pub(super) fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let view = view(call)?;
    let shown = select(cloud, call)?.into_iter().map(|vm| cloud.show_vm(vm, view).done()).collect();
    Ok(Answer::List("virtualmachine", shown))
}

/// The same with sums that people read.
pub(super) fn list_metrics(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let view = view(call)?;
    let shown = select(cloud, call)?.into_iter().map(|vm| {
        let mut fields = cloud.show_vm(vm, view);
        let size = cloud.vms[vm].size;
        #[expect(clippy::cast_precision_loss, reason = "sizes that people read")]
        let (ghz, gib) = ((size.cores * size.mhz) as f64 / 1000.0, size.memory_mib as f64 / 1024.0);
        fields
            .put("cputotal", format!("{ghz:.1} Ghz"))
            .put("memorytotal", format!("{gib:.2} GiB"))
            .put("networkread", "32.00 MiB")
            .put("networkwrite", "16.00 MiB")
            .put("diskread", "0.00 MiB")
            .put("diskwrite", "0.00 MiB")
            .put("diskiopstotal", 0);
        fields.drop_field("domainpath");
        fields.done()
    });
    Ok(Answer::List("virtualmachine", shown.collect()))
}

fn view(call: &Call) -> Result<VmView> {
    let mut details = Details::NONE;
    let asked = call.filled("details").unwrap_or("all").to_lowercase();
    for word in asked.split(',') {
        let Some(group) = Details::of(word.trim()) else {
            return Err(ApiError::invalid(format!(
                "The details parameter contains a non permitted value. The allowed values are [{}]",
                DETAILS.join(", ")
            )));
        };
        details = details.with(group);
    }
    Ok(VmView { details, user_data: call.is("userdata"), ..VmView::full(call.caller) })
}

impl Cloud {
    /// `allow.user.view.destroyed.vm` for an account.
    pub(crate) fn sees_destroyed(&self, account: Key<Account>) -> bool {
        self.accounts[account].sees_destroyed.unwrap_or(self.settings.allow_user_view_destroyed_vm)
    }

    /// `allow.user.expunge.recover.vm` for an account.
    pub(crate) fn may_expunge(&self, account: Key<Account>) -> bool {
        self.accounts[account].may_expunge.unwrap_or(self.settings.allow_user_expunge_recover_vm)
    }
}

/// Types that the server knows, whatever the case.
const HYPERVISORS: [&str; 14] = [
    "XenServer",
    "KVM",
    "VMware",
    "Hyperv",
    "VirtualBox",
    "Parallels",
    "BareMetal",
    "Simulator",
    "Ovm",
    "Ovm3",
    "LXC",
    "Custom",
    "External",
    "Any",
];

/// The server knows a type of hypervisor.
pub(crate) fn is_hypervisor(name: &str) -> bool {
    HYPERVISORS.iter().any(|held| held.eq_ignore_ascii_case(name))
}

fn is_in_state(call: &Call, vm: &Row<Vm>) -> bool {
    let gone = matches!(vm.state, VmState::Destroyed | VmState::Expunging);
    match call.text("state") {
        Some(state) if state.eq_ignore_ascii_case("present") => !gone,
        Some(state) => state.eq_ignore_ascii_case(vm.state.name()),
        None => true,
    }
}

/// A keyword is a part of a name or an address, or a whole state.
fn matches_keyword(cloud: &Cloud, call: &Call, vm: &Row<Vm>) -> bool {
    let Some(word) = call.filled("keyword") else { return true };
    let nated =
        cloud.ips.iter().filter(|ip| ip.held.as_ref().is_some_and(|it| it.static_nat == Some(vm.key)));
    let own = vm.nics.iter().filter_map(|nic| nic.address);
    let addresses: Vec<String> =
        own.chain(nated.map(|ip| ip.address)).map(|address| address.to_string()).collect();
    let instance = call.caller.is_root().then(|| cloud.instance_name(vm.key));
    let texts: Vec<&str> = [vm.name.as_str(), vm.display_name.as_str()]
        .into_iter()
        .chain(addresses.iter().map(String::as_str))
        .chain(instance.as_deref())
        .collect();
    call.keyword_in(&texts) || vm.state.name().eq_ignore_ascii_case(word)
}

fn select(cloud: &Cloud, call: &Call) -> Result<Vec<Key<Vm>>> {
    if call.text("id").is_some() && call.filled("ids").is_some() {
        return Err(ApiError::invalid("Specify either id or ids but not both parameters"));
    }
    let hypervisor = call.text("hypervisor");
    if let Some(unknown) = hypervisor.filter(|name| !is_hypervisor(name)) {
        return Err(ApiError::invalid(format!("Invalid HypervisorType {unknown}")));
    }
    let scope = cloud.scope(call)?;
    let tags = cloud.tag_filter(call)?;
    let ids = call.keys(&cloud.vms, "ids");
    let sees_gone = call.caller.is_admin() || cloud.sees_destroyed(call.caller.account);
    let network = call.key(&cloud.networks, "networkid");
    let group = call.key(&cloud.affinity_groups, "affinitygroupid");
    let host = call.key(&cloud.hosts, "hostid").filter(|_| call.caller.is_root());
    let vpc = call.key(&cloud.vpcs, "vpcid");
    let user = call.key(&cloud.users, "userid");
    let chosen = cloud.vms.iter().filter(|vm| {
        cloud.shows(call, scope, vm.account)
            && (sees_gone || !matches!(vm.state, VmState::Destroyed | VmState::Expunging))
            && is_in_state(call, vm)
            && call.selects(&cloud.vms, "id", vm.key)
            && (ids.is_empty() || ids.contains(&vm.key))
            && call.names("name", &vm.name)
            && hypervisor
                .is_none_or(|name| name.eq_ignore_ascii_case(&cloud.templates[vm.template].hypervisor))
            && matches_keyword(cloud, call, vm)
            && call.selects(&cloud.zones, "zoneid", vm.zone)
            && call.selects(&cloud.templates, "templateid", vm.template)
            && call.selects(&cloud.service_offerings, "serviceofferingid", vm.offering)
            && network.is_none_or(|network| vm.nics.iter().any(|nic| nic.network == network))
            && vpc.is_none_or(|vpc| vm.nics.iter().any(|nic| cloud.networks[nic.network].vpc == Some(vpc)))
            && user.is_none_or(|user| vm.user == user)
            && call.text("groupid").is_none_or(|id| vm.group.as_ref().is_some_and(|(held, _)| held == id))
            && call.text("keypair").is_none_or(|name| vm.key_pairs.iter().any(|held| held == name))
            && group.is_none_or(|group| vm.affinity.contains(&group))
            && host.is_none_or(|host| vm.host == Some(host))
            && cloud.is_tagged(&tags, &vm.uuid)
    });
    let mut chosen: Vec<Key<Vm>> = chosen.map(|vm| vm.key).collect();
    // Those of projects stand before the caller's own.
    chosen.sort_by_key(|vm| cloud.accounts[cloud.vms[*vm].account].project.is_none());
    Ok(chosen)
}

pub(super) fn user_data(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.vms, "virtualmachineid")?;
    let row = &cloud.vms[key];
    cloud.allow(call.caller, row.account)?;
    if row.removed {
        return Err(super::expunged(key));
    }
    let data = row.user_data.as_deref().unwrap_or_default();
    Ok(Answer::Object("virtualmachineuserdata", json!({"virtualmachineid": row.uuid, "userdata": data})))
}

pub(super) fn list_nics(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.vms, "virtualmachineid")?;
    let row = &cloud.vms[key];
    cloud.allow(call.caller, row.account)?;
    if row.removed {
        return Err(super::expunged(key));
    }
    let network = call.key(&cloud.networks, "networkid");
    let shown = (0..row.nics.len())
        .filter(|at| {
            let nic = &row.nics[*at];
            network.is_none_or(|network| nic.network == network) && call.names("nicid", &nic.uuid)
        })
        .map(|at| {
            let mut fields = cloud.show_nic(key, at);
            fields.put("virtualmachineid", row.uuid.as_str());
            fields.drop_field("secondaryip");
            fields.done()
        })
        .collect();
    Ok(Answer::List("nic", shown))
}
