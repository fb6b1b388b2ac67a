//! The state of a cloud and what every command needs of it: who may see what, what is counted, what time it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_env::Env;
use capstan_hypervisor::Hypervisor;
use jiff::Timestamp;

use crate::call::{Call, Caller};
use crate::catalog::Command;
use crate::complaints::ComplaintLog;
use crate::error::{ApiError, Result};
use crate::events::EventLog;
use crate::jobs::{Event, Job};
use crate::model::compute::{AffinityGroup, KubernetesCluster, SshKey, Tag, Vm, Volume, VolumeKind};
use crate::model::identity::{Account, Domain, Project, Resource, RoleType, User};
use crate::model::network::{Acl, AclRule, FirewallRule, LbRule, Network, PortForwarding, PublicIp, Vpc};
use crate::model::place::{
    DiskOffering, Host, NetworkOffering, OsType, ServiceOffering, Template, VpcOffering, Zone,
};
use crate::model::table::{Key, Table};
use crate::sessions::Sessions;
use crate::settings::Settings;

pub(crate) struct Cloud {
    pub(crate) settings: Settings,
    pub(crate) env: Env,
    pub(crate) hypervisor: Option<Arc<dyn Hypervisor>>,
    /// Port of the hypervisor's load balancers.
    pub(crate) endpoint_port: u16,
    /// The time of what is going on.
    pub(crate) now: Timestamp,
    /// When the server was started; background tasks count from here.
    pub(crate) began: Timestamp,
    pub(crate) management_server: String,
    pub(crate) sessions: Sessions,

    pub(crate) domains: Table<Domain>,
    pub(crate) accounts: Table<Account>,
    pub(crate) users: Table<User>,
    pub(crate) projects: Table<Project>,
    pub(crate) roles: BTreeMap<RoleType, String>,
    /// UUIDs of all stock roles, in the order of their creation.
    pub(crate) stock_roles: Vec<String>,

    pub(crate) zones: Table<Zone>,
    pub(crate) hosts: Table<Host>,
    pub(crate) service_offerings: Table<ServiceOffering>,
    pub(crate) disk_offerings: Table<DiskOffering>,
    pub(crate) network_offerings: Table<NetworkOffering>,
    pub(crate) vpc_offerings: Table<VpcOffering>,
    pub(crate) os_types: Table<OsType>,
    pub(crate) templates: Table<Template>,
    pub(crate) acls: Table<Acl>,
    pub(crate) acl_rules: Table<AclRule>,

    pub(crate) networks: Table<Network>,
    pub(crate) vpcs: Table<Vpc>,
    pub(crate) ips: Table<PublicIp>,
    pub(crate) lb_rules: Table<LbRule>,
    pub(crate) firewall_rules: Table<FirewallRule>,
    pub(crate) forwardings: Table<PortForwarding>,

    pub(crate) vms: Table<Vm>,
    pub(crate) volumes: Table<Volume>,
    pub(crate) affinity_groups: Table<AffinityGroup>,
    pub(crate) ssh_keys: Table<SshKey>,
    pub(crate) kubernetes_clusters: Table<KubernetesCluster>,
    pub(crate) tags: Vec<Tag>,

    pub(crate) jobs: Table<Job>,
    pub(crate) log: EventLog,
    pub(crate) complaints: ComplaintLog,
    pub(crate) events: BTreeMap<(Timestamp, u64), Event>,
    pub(crate) event_count: u64,
    /// Starts and stops of machines that hosts fail, by command, and how often still.
    pub(crate) host_failures: BTreeMap<&'static str, u32>,
    /// No host takes another machine.
    pub(crate) full: bool,
}

impl Cloud {
    /// What parameters may name.
    #[cfg(test)]
    pub(crate) const ENTITIES: [&'static str; 39] = [
        "zone",
        "domain",
        "account",
        "user",
        "project",
        "host",
        "serviceoffering",
        "diskoffering",
        "networkoffering",
        "vpcoffering",
        "ostype",
        "template",
        "network",
        "vpc",
        "ip",
        "lb",
        "firewall",
        "forwarding",
        "vm",
        "volume",
        "affinitygroup",
        "kubernetes",
        "job",
        "acl",
        "aclrule",
        "sshkey",
        "role",
        "instancegroup",
        "physicalnetwork",
        "vlan",
        "pod",
        "cluster",
        "managementserver",
        "oscategory",
        "zonesubnet",
        "event",
        "nic",
        "anynetwork",
        "none",
    ];

    /// Whether something of this kind has this id.
    pub(crate) fn knows(&self, kind: &str, id: &str) -> bool {
        match kind {
            "zone" => self.zones.find(id).is_some(),
            "domain" => self.domains.find(id).is_some(),
            "account" => self.accounts.find(id).is_some(),
            "user" => self.users.find(id).is_some(),
            "project" => self.projects.find(id).is_some(),
            "host" => self.hosts.find(id).is_some(),
            "serviceoffering" => self.service_offerings.find(id).is_some(),
            "diskoffering" => self.disk_offerings.find(id).is_some(),
            "networkoffering" => self.network_offerings.find(id).is_some(),
            "vpcoffering" => self.vpc_offerings.find(id).is_some(),
            "ostype" => self.os_types.find(id).is_some(),
            "template" => self.templates.find(id).is_some(),
            "network" => self.networks.find(id).is_some(),
            "vpc" => self.vpcs.find(id).is_some(),
            "ip" => self.ips.find(id).is_some(),
            "lb" => self.lb_rules.find(id).is_some(),
            "firewall" => self.firewall_rules.find(id).is_some(),
            "forwarding" => self.forwardings.find(id).is_some(),
            "vm" => self.vms.find(id).is_some(),
            "volume" => self.volumes.find(id).is_some(),
            "affinitygroup" => self.affinity_groups.find(id).is_some(),
            "kubernetes" => self.kubernetes_clusters.find(id).is_some(),
            "job" => self.jobs.find(id).is_some(),
            "acl" => self.acls.find(id).is_some(),
            "aclrule" => self.acl_rules.find(id).is_some(),
            "sshkey" => self.ssh_keys.find(id).is_some(),
            "role" => self.stock_roles.iter().any(|held| held == id),
            "instancegroup" => {
                let mut groups = self.vms.iter().filter_map(|vm| vm.group.as_ref());
                groups.any(|(held, _)| held == id)
            }
            "physicalnetwork" => self.zones.iter().any(|zone| zone.physical_network == id),
            "vlan" => self.zones.iter().any(|zone| zone.public_vlan == id),
            "pod" => self.zones.iter().any(|zone| zone.pod == id),
            "cluster" => self.hosts.iter().any(|host| host.cluster.0 == id),
            "managementserver" => self.management_server == id,
            "zonesubnet" => {
                self.zones.iter().any(|zone| zone.routed_subnets.iter().any(|(held, _)| held == id))
            }
            "event" => self.log.iter().any(|entry| entry.uuid() == id),
            "nic" => self.vms.iter().any(|vm| vm.nics.iter().any(|nic| nic.uuid == id)),
            // Networks of public addresses can be named, and are not listed.
            "anynetwork" => {
                self.networks.find(id).is_some() || self.zones.iter().any(|zone| zone.public_network == id)
            }
            "oscategory" => self.os_types.iter().any(|os| os.category.0 == id),
            // Of this kind there is nothing, ever.
            _ => false,
        }
    }

    pub(crate) fn fresh_uuid(&self) -> String {
        self.env.uuid()
    }

    /// `ROOT/a/b`.
    pub(crate) fn domain_path(&self, domain: Key<Domain>) -> String {
        let row = &self.domains[domain];
        match row.parent {
            Some(parent) => format!("{}/{}", self.domain_path(parent), row.name),
            None => row.name.clone(),
        }
    }

    /// Whether a domain is another or below it.
    pub(crate) fn is_within(&self, domain: Key<Domain>, other: Key<Domain>) -> bool {
        domain == other || self.domains[domain].parent.is_some_and(|parent| self.is_within(parent, other))
    }

    pub(crate) fn account_named(&self, name: &str, domain: Key<Domain>) -> Option<Key<Account>> {
        self.accounts
            .iter()
            .find(|account| account.domain == domain && account.name.eq_ignore_ascii_case(name))
            .map(|account| account.key)
    }

    /// Whether a caller may touch what an account owns.
    pub(crate) fn may_operate(&self, caller: Caller, owner: Key<Account>) -> bool {
        let account = &self.accounts[owner];
        match caller.role {
            RoleType::RootAdmin => true,
            RoleType::DomainAdmin => self.is_within(account.domain, self.accounts[caller.account].domain),
            RoleType::User => {
                owner == caller.account
                    || account.project.is_some_and(|project| self.projects[project].owner == caller.account)
            }
        }
    }

    /// The server has a command: those of a plug-in that is off are unknown to it.
    pub(crate) fn has(&self, command: &Command) -> bool {
        self.settings.kubernetes_service_enabled || !command.name.contains("Kubernetes")
    }

    /// The role of a caller has a command.
    pub(crate) fn permits(&self, caller: Caller, command: &Command) -> bool {
        self.has(command) && caller.role >= command.role && self.has_permission(caller, command.name)
    }

    /// The custom role of a caller, if it has one, has a command.
    pub(crate) fn has_permission(&self, caller: Caller, command: &str) -> bool {
        self.accounts[caller.account].permissions.as_ref().is_none_or(|role| role.contains(command))
    }

    /// Refuses unless the caller may touch what an account owns.
    pub(crate) fn allow(&self, caller: Caller, owner: Key<Account>) -> Result<()> {
        if self.may_operate(caller, owner) { Ok(()) } else { Err(ApiError::not_yours()) }
    }

    /// The account that a command is to act for: the caller's, another's, a project's.
    pub(crate) fn owner(&self, call: &Call) -> Result<Key<Account>> {
        let named = call.text("account").zip(call.key(&self.domains, "domainid"));
        if named.is_some() && call.text("projectid").is_some() {
            return Err(ApiError::invalid("ProjectId and account/domainId can't be specified together"));
        }
        if let Some(project) = call.key(&self.projects, "projectid") {
            let row = &self.projects[project];
            self.allow_project(call, project)?;
            if !row.active {
                return Err(ApiError::denied(
                    "Can't add resources to the project with specified projectId in state=Suspended as it's no longer active",
                )
                .about(&row.uuid, "projectId"));
            }
            return Ok(row.account);
        }
        let Some((name, domain)) = named else {
            return match call.text("account") {
                Some(_) => Err(ApiError::invalid("AccountName and domainId must be specified together")),
                None => Ok(call.caller.account),
            };
        };
        let own = &self.accounts[call.caller.account];
        // Whoever is no administrator does not learn whether there is such an account.
        if !call.caller.is_admin() {
            return match name == own.name && domain == own.domain {
                true => Ok(call.caller.account),
                false => Err(ApiError::denied(format!(
                    "Can't create/list resources for account {name} in domain {}, permission denied",
                    domain.number()
                ))),
            };
        }
        let owner = self.account_named(name, domain).ok_or_else(|| {
            ApiError::invalid(format!("Unable to find account {name} in domain {}", domain.number()))
        })?;
        self.allow(call.caller, owner)?;
        Ok(owner)
    }

    pub(crate) fn allow_project(&self, call: &Call, project: Key<Project>) -> Result<()> {
        if self.may_operate(call.caller, self.projects[project].account) {
            return Ok(());
        }
        Err(ApiError::unavailable(format!(
            "The API [{}] does not exist or is not available for this account/user in project [{}].",
            call.command.name, self.projects[project].uuid
        )))
    }

    /// Whose things a list command is about.
    pub(crate) fn scope(&self, call: &Call) -> Result<Scope> {
        let caller = call.caller;
        let own_domain = self.accounts[caller.account].domain;
        if let Some(domain) = call.key(&self.domains, "domainid")
            && !caller.is_root()
            && !self.is_within(domain, own_domain)
        {
            return Err(ApiError::not_yours());
        }
        if call.text("account").is_some() && call.text("projectid").is_some() {
            return Err(ApiError::invalid("Account and projectId can't be specified together"));
        }
        if let Some(project) = call.text("projectid") {
            if project == "-1" {
                let all = call.is("listall");
                return Ok(match caller.is_root() && all {
                    true => Scope::AllAndProjects,
                    false => Scope::Projects { own_too: all },
                });
            }
            let project = call.the(&self.projects, "projectid")?;
            self.allow_project(call, project)?;
            return Ok(Scope::Account(self.projects[project].account));
        }
        if let Some(name) = call.text("account") {
            let domain = call.key(&self.domains, "domainid").unwrap_or(own_domain);
            let Some(account) = self.account_named(name, domain) else {
                let row = &self.domains[domain];
                return Err(ApiError::invalid(format!(
                    "could not find account {name} in domain {}",
                    row.uuid
                )));
            };
            self.allow(caller, account)?;
            return Ok(Scope::Account(account));
        }
        if let Some(domain) = call.key(&self.domains, "domainid") {
            return Ok(match caller.role {
                RoleType::User => Scope::Account(caller.account),
                _ if call.is("isrecursive") => Scope::Domain(domain),
                _ => Scope::OneDomain(domain),
            });
        }
        // An id reaches everything that the caller may see, projects included; several ids do not.
        let by_id = call.text("id").is_some();
        Ok(match caller.role {
            RoleType::RootAdmin if by_id => Scope::AllAndProjects,
            RoleType::RootAdmin if call.is("listall") => Scope::All,
            RoleType::DomainAdmin if by_id || call.is("listall") => Scope::Domain(own_domain),
            _ => Scope::Account(caller.account),
        })
    }

    /// Whether what an account owns is in a scope.
    pub(crate) fn shows(&self, call: &Call, scope: Scope, owner: Key<Account>) -> bool {
        let account = &self.accounts[owner];
        match scope {
            Scope::Account(only) => owner == only,
            Scope::AllAndProjects => true,
            Scope::All => account.project.is_none(),
            Scope::OneDomain(domain) => account.project.is_none() && account.domain == domain,
            Scope::Domain(domain) => account.project.is_none() && self.is_within(account.domain, domain),
            Scope::Projects { own_too } => match account.project {
                Some(project) => call.caller.is_root() || self.projects[project].owner == call.caller.account,
                None => own_too && owner == call.caller.account,
            },
        }
    }

    /// The tags that a list command filters by: any of them will do, as the server reads them.
    pub(crate) fn tag_filter(&self, call: &Call) -> Result<Vec<(String, String)>> {
        let mut wanted = Vec::new();
        for entry in call.params.maps("tags") {
            let of =
                |name: &str| entry.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v);
            let Some(key) = of("key") else { continue };
            let Some(value) = of("value") else {
                return Err(ApiError::invalid(format!("No value is passed in for key {key}")));
            };
            wanted.push((key.clone(), value.clone()));
        }
        Ok(wanted)
    }

    /// Whether something carries one of these tags.
    pub(crate) fn is_tagged(&self, wanted: &[(String, String)], resource: &str) -> bool {
        wanted.is_empty()
            || self.tags.iter().any(|tag| {
                tag.resource == resource
                    && wanted
                        .iter()
                        .any(|(key, value)| tag.key.eq_ignore_ascii_case(key) && tag.value == *value)
            })
    }

    /// Takes the tags off something that goes.
    pub(crate) fn untag(&mut self, resource: &str) {
        self.tags.retain(|tag| tag.resource != resource);
    }

    /// What an account has of something.
    pub(crate) fn used(&self, account: Key<Account>, resource: Resource) -> i64 {
        let vms = || self.vms.iter().filter(|vm| vm.account == account && vm.state.counts());
        let volumes = || self.volumes.iter().filter(|volume| volume.account == account && !volume.destroyed);
        let gib = |bytes: u64| i64::try_from(bytes >> 30).unwrap_or(i64::MAX);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let sum = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        match resource {
            Resource::UserVm => number(vms().count()),
            Resource::Cpu => sum(vms().map(|vm| vm.size.cores).sum()),
            Resource::Memory => sum(vms().map(|vm| vm.size.memory_mib).sum()),
            Resource::Volume => number(volumes().filter(|volume| !self.is_of_error_vm(volume)).count()),
            Resource::PrimaryStorage => {
                volumes().filter(|volume| !self.is_of_error_vm(volume)).map(|volume| gib(volume.bytes)).sum()
            }
            Resource::PublicIp => number(
                self.ips
                    .iter()
                    .filter(|ip| ip.held.as_ref().is_some_and(|held| held.account == account && !held.system))
                    .count(),
            ),
            Resource::Network => number(self.networks.iter().filter(|net| net.account == account).count()),
            Resource::Vpc => number(self.vpcs.iter().filter(|vpc| vpc.account == account).count()),
            Resource::Template => {
                number(self.templates.iter().filter(|template| template.account == account).count())
            }
            Resource::Project => {
                number(self.projects.iter().filter(|project| project.owner == account).count())
            }
            _ => 0,
        }
    }

    /// A machine that never started takes nothing.
    fn is_of_error_vm(&self, volume: &Volume) -> bool {
        matches!(volume.kind, VolumeKind::Root(..))
            && volume.vm.is_some_and(|vm| self.vms[vm].state == crate::model::compute::VmState::Error)
    }

    /// What an account may have of something; -1 is without limit.
    pub(crate) fn limit(&self, account: Key<Account>, resource: Resource) -> i64 {
        let account = &self.accounts[account];
        match account.limits.get(resource) {
            Some(max) => max,
            None if account.role == RoleType::RootAdmin => -1,
            None => resource.default_limit(),
        }
    }

    /// Refuses if an account would have more than it may: 535.
    pub(crate) fn within_limit(&self, account: Key<Account>, resource: Resource, more: i64) -> Result<()> {
        let (max, used) = (self.limit(account, resource), self.used(account, resource));
        if max < 0 || used + more <= max {
            return Ok(());
        }
        let row = &self.accounts[account];
        Err(ApiError::new(
            535,
            4370,
            format!(
                "Maximum amount of resources of Type = '{}', tag = 'null' for Account Name = {} in Domain Id = {} is exceeded: \
                 Account Resource Limit = {max}, Current Account Resource Amount = {used}, Requested Resource Amount = {more}.",
                resource.name(),
                row.name,
                row.domain.number()
            ),
        ))
    }
}

/// Whose things a list shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope {
    /// One account's.
    Account(Key<Account>),
    /// Those of a domain and the domains below, but no projects'.
    Domain(Key<Domain>),
    /// Those of one domain without the domains below, but no projects'.
    OneDomain(Key<Domain>),
    /// Everything but projects'.
    All,
    /// Everything.
    AllAndProjects,
    /// Those of the caller's projects.
    Projects {
        /// And the caller's own.
        own_too: bool,
    },
}
