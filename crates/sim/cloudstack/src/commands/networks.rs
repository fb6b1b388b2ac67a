//! Guest networks.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde_json::json;

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::identity::{Account, Domain, Resource};
use crate::model::network::{Network, NetworkState, Vpc};
use crate::model::place::{GuestType, NetworkOffering, Zone};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listNetworks",
        "id:network name zoneid:zone type account domainid:domain projectid:project listall:flag \
         vpcid:vpc forvpc:flag canusefordeploy:flag issystem:flag associatednetworkid:network isrecursive:flag \
         networkofferingid:networkoffering physicalnetworkid:physicalnetwork networkfilter traffictype acltype \
         restartrequired:flag specifyipranges:flag supportedservices:long",
        list,
    ),
    sync(
        "createNetwork",
        "name! displaytext networkofferingid:networkoffering! zoneid:zone! gateway netmask startip endip \
         vlan vpcid:vpc aclid:acl account domainid:domain projectid:project asnumber:number \
         associatednetworkid:network cidrsize:number physicalnetworkid:physicalnetwork privatemtu:number \
         publicmtu:number",
        create,
    ),
    job(
        "updateNetwork",
        "id:network! name displaytext networkofferingid:networkoffering privatemtu:number \
         publicmtu:number",
        "user.network.UpdateNetworkCmd",
        update,
    ),
    job("restartNetwork", "id:network! cleanup:flag", "user.network.RestartNetworkCmd", restart),
    job("deleteNetwork", "id:network! forced:flag", "user.network.DeleteNetworkCmd", delete),
];

const FILTERS: [&str; 5] = ["account", "domain", "accountdomain", "shared", "all"];

/// Services that networks can have.
const SERVICES: [&str; 14] = [
    "Vpn",
    "Dhcp",
    "Dns",
    "Gateway",
    "Firewall",
    "Lb",
    "UserData",
    "SourceNat",
    "StaticNat",
    "PortForwarding",
    "SecurityGroup",
    "NetworkACL",
    "Connectivity",
    "CustomAction",
];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let kind = call.filled("type").filter(|kind| !kind.eq_ignore_ascii_case("all"));
    if let Some(kind) = kind
        && !["Isolated", "Shared", "L2"].iter().any(|known| known.eq_ignore_ascii_case(kind))
    {
        return Err(ApiError::invalid(format!("Unexpected Guest type : {kind}")));
    }
    let filter = call.text("networkfilter").unwrap_or("all").to_lowercase();
    if !FILTERS.contains(&filter.as_str()) {
        let held = call.text("networkfilter").unwrap_or_default();
        return Err(ApiError::invalid(format!("Invalid value of networkfilter: {held}")));
    }
    let visible = Visible::to(cloud, call)?;
    // Networks of accounts and those of domains, which every account below sees.
    let (of_accounts, of_domains) =
        (!matches!(filter.as_str(), "domain" | "shared"), !matches!(filter.as_str(), "account" | "shared"));
    let tags = cloud.tag_filter(call)?;
    let services: Vec<&str> =
        call.filled("supportedservices").into_iter().flat_map(|it| it.split(',')).collect();
    let rows: Vec<_> = cloud
        .networks
        .iter()
        .rev()
        .filter(|network| {
            let offering = &cloud.network_offerings[network.offering];
            let shared = offering.guest_type == GuestType::Shared;
            let seen = match shared {
                true => of_domains,
                false => of_accounts && visible.shows(cloud, network.account),
            };
            seen && call.selects(&cloud.networks, "id", network.key)
                && call.selects(&cloud.zones, "zoneid", network.zone)
                && call.text("vpcid").is_none_or(|vpc| network.vpc == cloud.vpcs.find(vpc))
                && call.flag("forvpc").is_none_or(|wanted| wanted == network.vpc.is_some())
                && call.selects(&cloud.network_offerings, "networkofferingid", network.offering)
                && call.names("name", &network.name)
                && kind.is_none_or(|kind| kind.eq_ignore_ascii_case(offering.guest_type.name()))
                && call.names("traffictype", "Guest")
                && call.names("acltype", if shared { "Domain" } else { "Account" })
                && call.flag("restartrequired") != Some(true)
                && call.flag("specifyipranges").is_none_or(|wanted| wanted == offering.specify_ip_ranges)
                && call.keyword_in(&[&network.name])
                && cloud.is_tagged(&tags, &network.uuid)
                && call
                    .flag("canusefordeploy")
                    .is_none_or(|wanted| wanted == cloud.zones[network.zone].enabled)
        })
        .collect();
    // Services are looked up only where there is a network to compare them with.
    let known = |service: &str| SERVICES.iter().any(|held| held.eq_ignore_ascii_case(service));
    if let Some(unknown) = services.iter().find(|service| !rows.is_empty() && !known(service)) {
        return Err(ApiError::invalid(format!("Invalid service specified {unknown}")));
    }
    let offers = |network: Key<Network>, service: &str| {
        let offering = &cloud.network_offerings[cloud.networks[network].offering];
        offering.services.iter().any(|(held, _)| held.eq_ignore_ascii_case(service))
    };
    let shown = rows
        .into_iter()
        .filter(|network| services.iter().all(|service| offers(network.key, service)))
        .map(|network| cloud.show_network(network.key, call.caller.is_root()))
        .collect();
    Ok(Answer::List("network", shown))
}

/// Whose networks a list shows. It differs from that of other lists: an account without a domain is ignored, an id widens
/// nothing, and administrators see their domain without asking for it.
struct Visible {
    /// These accounts'; everybody's of the domain if empty.
    accounts: Vec<Key<Account>>,
    domain: Key<Domain>,
    /// The domains below too.
    recursive: bool,
    projects: Projects,
}

#[derive(PartialEq)]
enum Projects {
    Without,
    Only,
    Too,
}

impl Visible {
    fn to(cloud: &Cloud, call: &Call) -> Result<Self> {
        let (caller, own) = (call.caller, cloud.accounts[call.caller.account].domain);
        let mut accounts = Vec::new();
        let mut domain = call.key(&cloud.domains, "domainid");
        if let Some(domain) = domain {
            if !caller.is_root() && !cloud.is_within(domain, own) {
                return Err(ApiError::not_yours());
            }
            if let Some(name) = call.text("account") {
                let found = cloud.account_named(name, domain).ok_or_else(|| {
                    ApiError::invalid(format!("Unable to find account {name} in specified domain"))
                })?;
                cloud.allow(caller, found)?;
                accounts.push(found);
            }
        }
        let project = call.text("projectid").filter(|project| *project != "-1");
        if !caller.is_admin() || project.is_some() && domain.is_none() {
            accounts.push(caller.account);
            domain = Some(own);
        }
        let mut projects = Projects::Without;
        if project.is_some() {
            let project = call.the(&cloud.projects, "projectid")?;
            cloud.allow_project(call, project)?;
            accounts = vec![cloud.projects[project].account];
            projects = Projects::Only;
        } else if call.text("projectid").is_some() {
            if !caller.is_admin() {
                let mine = cloud.projects.iter().filter(|project| project.owner == caller.account);
                accounts.extend(mine.map(|project| project.account));
            }
            projects = Projects::Too;
        }
        let recursive = call.is("isrecursive") || call.is("listall") && domain.is_none();
        Ok(Self { accounts, domain: domain.unwrap_or(own), recursive, projects })
    }

    fn shows(&self, cloud: &Cloud, owner: Key<Account>) -> bool {
        let account = &cloud.accounts[owner];
        let theirs = match self.accounts.is_empty() {
            true if self.recursive => cloud.is_within(account.domain, self.domain),
            true => account.domain == self.domain,
            false => self.accounts.contains(&owner),
        };
        theirs
            && match self.projects {
                Projects::Without => account.project.is_none(),
                Projects::Only => account.project.is_some(),
                Projects::Too => true,
            }
    }
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let zone = call.the(&cloud.zones, "zoneid")?;
    let offering = call.the(&cloud.network_offerings, "networkofferingid")?;
    let owner = cloud.owner(call)?;
    if !cloud.zones[zone].enabled && !call.caller.is_root() {
        let refused =
            ApiError::denied("Cannot perform this operation since specified Zone is currently disabled");
        return Err(refused.about(&cloud.zones[zone].uuid, "zoneId"));
    }
    let kind = &cloud.network_offerings[offering];
    if kind.guest_type == GuestType::Shared && kind.specify_vlan && !call.caller.is_root() {
        return Err(ApiError::invalid(
            "This user can only create an Isolated network, a L2 network or a Shared network with specifyVlan=false.",
        ));
    }
    if !kind.enabled {
        return Err(ApiError::invalid("Can't use specified network offering id as its state is not Enabled"));
    }
    let vpc = call.key(&cloud.vpcs, "vpcid");
    if let Some(missing) = vpc.and_then(|vpc| cloud.missing_in_vpc(vpc, offering)) {
        return Err(ApiError::invalid(missing));
    }
    let kind = &cloud.network_offerings[offering];
    if vpc.is_some() && !kind.for_vpc {
        return Err(ApiError::invalid("Network offering can't be used for VPC networks"));
    }
    if vpc.is_none() && kind.for_vpc {
        return Err(ApiError::invalid("Network offering can be used for VPC networks only"));
    }
    if let Some(refused) = vpc.and_then(|vpc| cloud.refuses_tier(vpc, offering)) {
        return Err(refused);
    }
    let (cidr, gateway) = cloud.addresses_of_new_network(call, zone, offering)?;
    if let (Some(vpc), Some(cidr)) = (vpc, cidr) {
        let row = &cloud.vpcs[vpc];
        if !row.cidr.contains(&cidr) {
            return Err(ApiError::invalid(format!(
                "Network cidr {cidr} is not within vpc cidr {}",
                row.cidr
            )));
        }
        let other = cloud.networks.iter().find(|network| {
            network.vpc == Some(vpc)
                && network.cidr.is_some_and(|held| held.contains(&cidr) || cidr.contains(&held))
        });
        if let Some(other) = other {
            return Err(ApiError::invalid(format!(
                "Network cidr {cidr} crosses other network cidr {}",
                other.name
            )));
        }
    }
    cloud.within_limit(owner, Resource::Network, 1)?;
    let name = call.text("name").unwrap_or_default();
    let display_text = call.filled("displaytext").unwrap_or(name).to_owned();
    let key = cloud.add_network(name, &display_text, owner, zone, offering, (cidr, gateway));
    cloud.networks[key].vpc = vpc;
    let acl = call.key(&cloud.acls, "aclid");
    cloud.networks[key].acl = acl.or_else(|| vpc.and_then(|_| cloud.acls.iter().next().map(|acl| acl.key)));
    Ok(Answer::Object("network", cloud.show_network(key, call.caller.is_root())))
}

impl Cloud {
    /// The range and gateway that a new network is to have; layer 2 has none.
    fn addresses_of_new_network(
        &self,
        call: &Call,
        zone: Key<Zone>,
        offering: Key<NetworkOffering>,
    ) -> Result<(Option<Ipv4Net>, Option<Ipv4Addr>)> {
        if self.network_offerings[offering].guest_type == GuestType::L2 {
            return Ok((None, None));
        }
        if let Some(cidr) = self.range_of_routed_network(call, zone, offering)? {
            return Ok((Some(cidr), cidr.hosts().next()));
        }
        let (Some(gateway), Some(netmask)) = (call.filled("gateway"), call.filled("netmask")) else {
            if let Some(gateway) = call.filled("gateway") {
                parse_gateway(gateway)?;
            }
            let cidr = self.free_range(zone);
            return Ok((Some(cidr), cidr.hosts().next()));
        };
        let gateway = parse_gateway(gateway)?;
        let refused =
            || ApiError::invalid("Invalid gateway IP provided. Either the IP is broadcast or network IP.");
        let netmask: Ipv4Addr =
            netmask.parse().map_err(|_| ApiError::invalid("Netmask parameter is invalid"))?;
        let cidr = Ipv4Net::with_netmask(gateway, netmask).map_err(|_| refused())?.trunc();
        if gateway == cidr.network() || gateway == cidr.broadcast() {
            return Err(refused());
        }
        Ok((Some(cidr), Some(gateway)))
    }

    /// Why a VPC takes no further tier of an offering: it has as many as it may have, or its load balancers are another
    /// offering's.
    fn refuses_tier(&self, vpc: Key<Vpc>, offering: Key<NetworkOffering>) -> Option<ApiError> {
        let tiers = || self.networks.iter().filter(|network| !network.removed && network.vpc == Some(vpc));
        if tiers().count() >= self.settings.vpc_max_networks {
            return Some(ApiError::internal(4250));
        }
        let balances = |offering: Key<NetworkOffering>| {
            let offering = &self.network_offerings[offering];
            offering.offers("Lb") && !offering.internal_lb
        };
        let other = tiers()
            .find(|tier| tier.offering != offering && balances(tier.offering) && balances(offering))?;
        let vpc = &self.vpcs[vpc].name;
        let text = format!("Public LB service is already supported by network {} in VPC {vpc}", other.name);
        Some(ApiError::invalid(text))
    }

    /// What a tier's offering has and its VPC has not.
    fn missing_in_vpc(&self, vpc: Key<Vpc>, offering: Key<NetworkOffering>) -> Option<String> {
        let offering = &self.network_offerings[offering];
        let held = &self.vpc_offerings[self.vpcs[vpc].offering].services;
        let has = |(service, by): &&(&str, &str)| {
            held.iter().any(|(known, providers)| known == service && providers.contains(by))
        };
        let (service, by) = offering.services.iter().find(|it| !has(it))?;
        let vpc = &self.vpcs[vpc].name;
        Some(format!("Service/provider combination {service}/{by} is not supported by VPC {vpc}"))
    }

    /// What a network gets that asks for nothing: the zone's range, or one of its own where all machines share the
    /// address space of one hypervisor.
    fn free_range(&self, zone: Key<Zone>) -> Ipv4Net {
        let default = self.zones[zone].guest_cidr;
        if self.hypervisor.is_none() {
            return default;
        }
        let taken = |range: &Ipv4Net| {
            self.networks
                .iter()
                .any(|network| network.cidr.is_some_and(|held| held.contains(range) || range.contains(&held)))
        };
        let step = 1_u32 << (32 - u32::from(default.prefix_len()));
        let start = u32::from(default.network());
        (0..u16::MAX)
            .filter_map(|at| {
                let address = start.checked_add(step.checked_mul(u32::from(at))?)?;
                Ipv4Net::new(Ipv4Addr::from(address), default.prefix_len()).ok()
            })
            .find(|range| !taken(range))
            .unwrap_or(default)
    }

    pub(crate) fn add_network(
        &mut self,
        name: &str,
        display_text: &str,
        account: Key<Account>,
        zone: Key<Zone>,
        offering: Key<NetworkOffering>,
        (cidr, gateway): (Option<Ipv4Net>, Option<Ipv4Addr>),
    ) -> Key<Network> {
        let it = Network {
            name: name.to_owned(),
            display_text: display_text.to_owned(),
            account,
            zone,
            offering,
            state: NetworkState::Allocated,
            cidr,
            gateway,
            vlan: None,
            vpc: None,
            acl: None,
            nics: 0,
        };
        let uuid = self.fresh_uuid();
        self.networks.insert(uuid, self.now, it)
    }

    /// The network that a machine gets which asks for none, in an account that has none.
    pub(crate) fn default_network(&mut self, account: Key<Account>, zone: Key<Zone>) -> Option<Key<Network>> {
        let offering = self
            .network_offerings
            .iter()
            .find(|offering| offering.name == "DefaultIsolatedNetworkOfferingWithSourceNatService")?
            .key;
        let name = format!("{}-network", self.accounts[account].name);
        let cidr = self.free_range(zone);
        Some(self.add_network(&name, &name, account, zone, offering, (Some(cidr), cidr.hosts().next())))
    }

    /// Removes a network with its addresses and rules.
    pub(crate) fn remove_network(&mut self, network: Key<Network>) {
        let ips: Vec<_> = self
            .ips
            .iter()
            .filter(|ip| ip.held.as_ref().is_some_and(|held| held.network == Some(network)))
            .map(|ip| ip.key)
            .collect();
        for ip in ips {
            // The addresses of a VPC outlive its tiers.
            if self.ips[ip].held.as_ref().is_some_and(|held| held.vpc.is_some()) {
                self.remove_rules(ip);
                continue;
            }
            self.release(ip);
        }
        let rules: Vec<_> =
            self.firewall_rules.iter().filter(|rule| rule.network == network).map(|rule| rule.key).collect();
        for rule in rules {
            self.firewall_rules.forget(rule);
        }
        let uuid = self.networks[network].uuid.clone();
        self.untag(&uuid);
        self.networks.remove(network);
    }
}

fn parse_gateway(text: &str) -> Result<Ipv4Addr> {
    text.parse().map_err(|_| ApiError::invalid("Gateway parameter is invalid"))
}

/// A network that is there and the caller's.
fn own(cloud: &Cloud, call: &Call) -> Result<Key<Network>> {
    let key = call.the(&cloud.networks, "id")?;
    if cloud.networks[key].removed {
        return Err(ApiError::invalid(format!("Network ID={} doesn't exist", key.number())));
    }
    cloud.allow(call.caller, cloud.networks[key].account)?;
    Ok(key)
}

fn update(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    let (name, text) =
        (call.filled("name").map(str::to_owned), call.filled("displaytext").map(str::to_owned));
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if let Some(name) = name {
            cloud.networks[key].name = name;
        }
        if let Some(text) = text {
            cloud.networks[key].display_text = text;
        }
        Ok(json!({"network": cloud.show_network(key, full)}))
    });
    Ok(Answer::Job(submission.about("Network")))
}

fn restart(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    let timings = cloud.settings.timings;
    let after = if call.is("cleanup") { timings.network } else { timings.rule };
    let submission = Submission::once(after, move |cloud, _| {
        if cloud.networks[key].state != NetworkState::Implemented {
            return Err(ApiError::invalid(
                "Unable to restart the Network: Network is not in the right state to be restarted. Correct states are: \
                 Implemented, Setup",
            ));
        }
        Ok(success())
    });
    Ok(Answer::Job(submission.about("Network")))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    let forced = call.is("forced") && !call.caller.is_root();
    let implemented = cloud.networks[key].state == NetworkState::Implemented;
    let timings = cloud.settings.timings;
    let submission =
        Submission::once(if implemented { timings.network } else { timings.rule }, move |cloud, _| {
            if forced {
                return Err(ApiError::invalid(
                    "Delete network with 'forced' option can only be called by root admins",
                ));
            }
            // Destroyed machines hold their addresses until they are expunged.
            if cloud.vms.iter().any(|vm| vm.nics.iter().any(|nic| nic.network == key)) {
                return Err(ApiError::runtime("Failed to delete network"));
            }
            cloud.remove_network(key);
            Ok(success())
        });
    Ok(Answer::Job(submission.about("Network")))
}
