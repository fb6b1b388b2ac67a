//! Bootstrap of a cloud: stock content, and the content of a layout.

mod stock;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_env::Env;
use capstan_hypervisor::Hypervisor;
use sha2::{Digest as _, Sha512};

use crate::cloud::Cloud;
use crate::complaints::ComplaintLog;
use crate::events::EventLog;
use crate::model::identity::{Account, Domain, Keys, Limits, RoleType, User};
use crate::model::network::{HeldIp, PublicIp};
use crate::model::place::{
    DiskOffering, Host, HostState, OfferedSize, ServiceOffering, Template, TemplateKind, Zone,
};
use crate::model::table::{Key, Table};
use crate::sessions::Sessions;
use crate::settings::{AccountLayout, Layout, Settings, TemplateLayout, ZoneLayout};

/// Size of the console proxy and the secondary storage VM.
const SYSTEM_VMS: [(u64, u64, u64); 2] = [(1, 500, 1024), (1, 500, 512)];

impl Cloud {
    /// A cloud with this initial content.
    pub(crate) fn bootstrap(
        env: Env,
        layout: &Layout,
        settings: Settings,
        hypervisor: Option<Arc<dyn Hypervisor>>,
    ) -> Self {
        let now = env.now();
        let mut cloud = Self {
            settings,
            management_server: env.uuid(),
            env,
            hypervisor,
            endpoint_port: 6443,
            now,
            began: now,
            sessions: Sessions::default(),
            domains: Table::default(),
            accounts: Table::default(),
            users: Table::default(),
            projects: Table::default(),
            roles: BTreeMap::new(),
            stock_roles: Vec::new(),
            zones: Table::default(),
            hosts: Table::default(),
            service_offerings: Table::default(),
            disk_offerings: Table::default(),
            network_offerings: Table::default(),
            vpc_offerings: Table::default(),
            os_types: Table::default(),
            templates: Table::default(),
            acls: Table::default(),
            acl_rules: Table::default(),
            networks: Table::starting_at(200),
            vpcs: Table::default(),
            ips: Table::default(),
            lb_rules: Table::default(),
            firewall_rules: Table::default(),
            forwardings: Table::default(),
            vms: Table::default(),
            volumes: Table::default(),
            affinity_groups: Table::default(),
            ssh_keys: Table::default(),
            kubernetes_clusters: Table::default(),
            tags: Vec::new(),
            jobs: Table::default(),
            log: EventLog::default(),
            complaints: ComplaintLog::default(),
            events: BTreeMap::new(),
            event_count: 0,
            host_failures: BTreeMap::new(),
            full: false,
        };
        let (root, domain, user) = (RoleType::RootAdmin, RoleType::DomainAdmin, RoleType::User);
        for role in [Some(root), None, Some(domain), Some(user), None, None, None, None] {
            let uuid = cloud.fresh_uuid();
            if let Some(role) = role {
                cloud.roles.insert(role, uuid.clone());
            }
            cloud.stock_roles.push(uuid);
        }
        cloud.default_acls();
        let root = cloud.add_domain("ROOT", None, None);
        let system = cloud.add_account("system", root, RoleType::RootAdmin, true);
        let admin = cloud.add_account("admin", root, RoleType::RootAdmin, true);
        let user =
            cloud.add_user(admin, "admin", "password", ("Admin", "User"), Some("admin@mailprovider.com"));
        cloud.issue_keys(user);
        let service = cloud.add_account("baremetal-system-account", root, RoleType::User, false);
        let name = "baremetal-system-account";
        let user = cloud.add_user(service, name, "", (name, name), None);
        cloud.issue_keys(user);
        cloud.stock_offerings();
        cloud.stock_os_types();

        for (name, size) in &layout.service_offerings {
            cloud.add_service_offering(name, *size);
        }
        for (name, display_text, gib) in &layout.disk_offerings {
            let it = DiskOffering { name: name.clone(), display_text: display_text.clone(), gib: *gib };
            let uuid = cloud.fresh_uuid();
            cloud.disk_offerings.insert(uuid, now, it);
        }
        for (number, zone) in layout.zones.iter().enumerate() {
            cloud.add_zone(number, zone, system);
        }
        cloud.add_system_template(system);
        for template in &layout.templates {
            cloud.add_template(template, system);
        }
        for domain in &layout.domains {
            let key = cloud.add_domain(&domain.name, Some(root), domain.network_domain.as_deref());
            for account in &domain.accounts {
                cloud.add_person(key, account);
            }
        }
        cloud
    }

    fn add_domain(
        &mut self,
        name: &str,
        parent: Option<Key<Domain>>,
        network_domain: Option<&str>,
    ) -> Key<Domain> {
        let it = Domain {
            name: name.to_owned(),
            parent,
            network_domain: network_domain.map(str::to_owned),
            limits: Limits::default(),
        };
        let uuid = self.fresh_uuid();
        self.domains.insert(uuid, self.now, it)
    }

    pub(crate) fn add_account(
        &mut self,
        name: &str,
        domain: Key<Domain>,
        role: RoleType,
        default: bool,
    ) -> Key<Account> {
        let it = Account {
            name: name.to_owned(),
            domain,
            role,
            enabled: true,
            limits: Limits::default(),
            project: None,
            default,
            permissions: None,
            may_expunge: None,
            sees_destroyed: None,
        };
        let uuid = self.fresh_uuid();
        self.accounts.insert(uuid, self.now, it)
    }

    pub(crate) fn add_user(
        &mut self,
        account: Key<Account>,
        name: &str,
        password: &str,
        person: (&str, &str),
        email: Option<&str>,
    ) -> Key<User> {
        let it = User {
            account,
            name: name.to_owned(),
            password: password.to_owned(),
            first_name: person.0.to_owned(),
            last_name: person.1.to_owned(),
            email: email.map(str::to_owned),
            keys: None,
        };
        let uuid = self.fresh_uuid();
        self.users.insert(uuid, self.now, it)
    }

    /// An account with one user, who has keys.
    pub(crate) fn add_person(&mut self, domain: Key<Domain>, layout: &AccountLayout) -> Key<User> {
        let account = self.add_account(&layout.name, domain, layout.role, false);
        let person = (layout.person.0.as_str(), layout.person.1.as_str());
        let email = format!("{}@example.com", layout.name);
        let user = self.add_user(account, &layout.name, &layout.password, person, Some(&email));
        self.issue_keys(user);
        user
    }

    /// Replaces the keys of a user.
    pub(crate) fn issue_keys(&mut self, user: Key<User>) {
        let make = |seed: String| URL_SAFE_NO_PAD.encode(Sha512::digest(seed));
        let keys = Keys { api: make(self.fresh_uuid()), secret: make(self.fresh_uuid()), expired: false };
        self.users[user].keys = Some(keys);
    }

    pub(crate) fn add_service_offering(&mut self, name: &str, size: OfferedSize) -> Key<ServiceOffering> {
        let it = ServiceOffering {
            name: name.to_owned(),
            display_text: Some(name.to_owned()),
            size,
            system_vm_type: None,
            network_rate: None,
            offer_ha: false,
            default_use: false,
            local_storage: false,
            disk_offering: self.fresh_uuid(),
        };
        let uuid = self.fresh_uuid();
        self.service_offerings.insert(uuid, self.now, it)
    }

    fn add_zone(&mut self, number: usize, layout: &ZoneLayout, system: Key<Account>) {
        let name = &layout.name;
        let it = Zone {
            name: name.clone(),
            enabled: true,
            token: self.fresh_uuid(),
            dns: layout.dns.to_string(),
            guest_cidr: layout.guest_cidr,
            routed_subnets: Vec::new(),
            physical_network: self.fresh_uuid(),
            public_network: self.fresh_uuid(),
            public_vlan: self.fresh_uuid(),
            pod: self.fresh_uuid(),
            image_store: self.fresh_uuid(),
            primary_storage: self.fresh_uuid(),
        };
        let uuid = self.fresh_uuid();
        let zone = self.zones.insert(uuid, self.now, it);
        let mut clusters = Vec::new();
        for host in 0..layout.hosts {
            if host % 2 == 0 {
                clusters.push((self.fresh_uuid(), format!("{name}-C{}", host / 2)));
            }
            let Some(cluster) = clusters.last().cloned() else { continue };
            let it = Host {
                zone,
                name: format!("SimulatedAgent.{}", self.fresh_uuid()),
                address: format!("172.16.{}.{}", 15 + number, 10 + host),
                cluster,
                cores: layout.host_size.cores,
                mhz: layout.host_size.mhz,
                memory_mib: layout.host_size.memory_mib,
                state: HostState::Enabled,
                system: SYSTEM_VMS.get(host).copied().unwrap_or((0, 0, 0)),
            };
            let uuid = self.fresh_uuid();
            self.hosts.insert(uuid, self.now, it);
        }
        for at in 0..layout.public_count {
            let step = u32::try_from(at).unwrap_or(u32::MAX);
            let address = match &self.hypervisor {
                // Addresses that a client on this machine reaches.
                Some(hypervisor) => {
                    let endpoint = hypervisor.endpoint(&format!("cloudstack/{name}/{at}"));
                    self.endpoint_port = endpoint.port();
                    *endpoint.ip()
                }
                None => Ipv4Addr::from(u32::from(layout.public_start).saturating_add(step)),
            };
            // The console proxy and the secondary storage VM of the zone.
            let held = (at < 2).then_some(HeldIp {
                account: system,
                allocated: self.now,
                network: None,
                vpc: None,
                source_nat: false,
                state: "Allocated",
                system: true,
                static_nat: None,
            });
            let uuid = self.fresh_uuid();
            self.ips.insert(uuid, self.now, PublicIp { zone, address, held });
        }
    }

    fn add_system_template(&mut self, system: Key<Account>) {
        let os_type = self.os_type_named("Debian GNU/Linux 5.0 (64-bit)");
        let zones: Vec<_> = self.zones.iter().map(|zone| zone.key).collect();
        let name = "SystemVM Template (simulator)";
        let it = Template {
            name: name.to_owned(),
            display_text: name.to_owned(),
            account: system,
            zones,
            cross_zones: true,
            os_type,
            kind: TemplateKind::System,
            public: false,
            featured: false,
            format: "VHD".to_owned(),
            hypervisor: "Simulator".to_owned(),
            url: "http://example.com/systemvm.vhd".to_owned(),
            size: 2 << 30,
            requires_hvm: false,
            kubernetes: None,
        };
        let uuid = self.fresh_uuid();
        self.templates.insert(uuid, self.now, it);
    }

    fn add_template(&mut self, layout: &TemplateLayout, system: Key<Account>) {
        let os_type = self.os_type_named("CentOS 5.6 (64-bit)");
        let it = Template {
            name: layout.name.clone(),
            display_text: layout.name.clone(),
            account: system,
            zones: self.zones.iter().map(|zone| zone.key).collect(),
            cross_zones: true,
            os_type,
            kind: TemplateKind::BuiltIn,
            public: true,
            featured: true,
            format: "VHD".to_owned(),
            hypervisor: "Simulator".to_owned(),
            url: format!("http://example.com/{}.vhd", layout.name),
            size: layout.gib << 30,
            requires_hvm: false,
            kubernetes: layout.kubernetes.clone(),
        };
        let uuid = self.fresh_uuid();
        self.templates.insert(uuid, self.now, it);
    }
}
