//! Global settings of a simulated cloud, and its initial content.

use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;

use crate::model::place::{OfferedSize, Size};

/// Global settings. The defaults are those of a production server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `expunge.delay`: minimum time that a destroyed machine is kept.
    pub expunge_delay: Duration,
    /// `expunge.interval`: interval of the task that expunges them.
    pub expunge_interval: Duration,
    /// `storage.cleanup.delay`: minimum time that a destroyed disk is kept.
    pub storage_cleanup_delay: Duration,
    /// `storage.cleanup.interval`: interval of the task that removes them.
    pub storage_cleanup_interval: Duration,
    /// `network.gc.wait`: minimum time that a network without running machines stays implemented.
    pub network_gc_wait: Duration,
    /// `network.gc.interval`: interval of the task that shuts them down.
    pub network_gc_interval: Duration,
    /// `allow.user.expunge.recover.vm`.
    pub allow_user_expunge_recover_vm: bool,
    /// `allow.user.view.destroyed.vm`.
    pub allow_user_view_destroyed_vm: bool,
    /// `vm.userdata.max.length`, in characters of base64.
    pub user_data_max_length: usize,
    /// `vpc.max.networks`.
    pub vpc_max_networks: usize,
    /// `enforce.post.requests.and.timestamps`.
    pub enforce_post_and_timestamps: bool,
    /// `cloud.kubernetes.service.enabled`: without it the server does not know the commands about Kubernetes clusters.
    pub kubernetes_service_enabled: bool,
    /// Durations of jobs.
    pub timings: Timings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            expunge_delay: Duration::from_secs(86_400),
            expunge_interval: Duration::from_secs(86_400),
            storage_cleanup_delay: Duration::from_secs(86_400),
            storage_cleanup_interval: Duration::from_secs(86_400),
            network_gc_wait: Duration::from_secs(600),
            network_gc_interval: Duration::from_secs(600),
            allow_user_expunge_recover_vm: false,
            allow_user_view_destroyed_vm: false,
            user_data_max_length: 32_768,
            vpc_max_networks: 3,
            enforce_post_and_timestamps: false,
            kubernetes_service_enabled: true,
            timings: Timings::default(),
        }
    }
}

/// Durations of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From the call to the moment when a machine's start begins.
    pub submit: Duration,
    /// Start of a machine, and its stop and reboot.
    pub power: Duration,
    /// Start of a network's router, which the first machine of the network waits for.
    pub router: Duration,
    /// Removal of a machine's disks and nics.
    pub expunge: Duration,
    /// Changes of rules and addresses.
    pub rule: Duration,
    /// Removal of a network that was implemented.
    pub network: Duration,
}

impl Default for Timings {
    /// Measured on a management server with simulated agents.
    fn default() -> Self {
        Self {
            submit: Duration::from_millis(100),
            power: Duration::from_millis(1900),
            router: Duration::from_millis(1500),
            expunge: Duration::from_millis(2000),
            rule: Duration::from_millis(200),
            network: Duration::from_millis(4000),
        }
    }
}

impl Timings {
    /// Jobs end at once.
    pub fn none() -> Self {
        let none = Duration::ZERO;
        Self { submit: none, power: none, router: none, expunge: none, rule: none, network: none }
    }
}

/// Initial content of a cloud. Root's account `admin` and the stock roles, network offerings and guest types exist in
/// addition.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Zones, in order of creation.
    pub zones: Vec<ZoneLayout>,
    /// Domains below ROOT.
    pub domains: Vec<DomainLayout>,
    /// Sizes of machines.
    pub service_offerings: Vec<(String, OfferedSize)>,
    /// Name, display text and size in GiB of disk offerings; no size means that the caller chooses.
    pub disk_offerings: Vec<(String, String, Option<u64>)>,
    /// Public templates.
    pub templates: Vec<TemplateLayout>,
}

/// A zone with its hosts and addresses.
#[derive(Debug, Clone)]
pub struct ZoneLayout {
    pub name: String,
    pub hosts: usize,
    /// Cores of a host, MHz of a core, MiB of a host.
    pub host_size: Size,
    /// First public address. Ignored with a hypervisor, which has addresses of its own.
    pub public_start: Ipv4Addr,
    /// Number of public addresses; system VMs use the first two.
    pub public_count: usize,
    /// Default CIDR of isolated networks.
    pub guest_cidr: Ipv4Net,
    pub dns: Ipv4Addr,
}

/// A domain with its accounts.
#[derive(Debug, Clone)]
pub struct DomainLayout {
    pub name: String,
    /// Suffix of host names.
    pub network_domain: Option<String>,
    /// Accounts, each with one user of the same name.
    pub accounts: Vec<AccountLayout>,
}

/// An account with a user of the same name, and the user's keys.
#[derive(Debug, Clone)]
pub struct AccountLayout {
    pub name: String,
    /// First and last name of the user.
    pub person: (String, String),
    pub role: crate::RoleType,
    /// Password for sessions.
    pub password: String,
}

/// An image.
#[derive(Debug, Clone)]
pub struct TemplateLayout {
    pub name: String,
    /// Kubernetes version, such as `v1.36.0`.
    pub kubernetes: Option<String>,
    /// GiB of its disk.
    pub gib: u64,
}

impl Layout {
    /// One zone, one tenant, a few offerings and a template per version.
    pub fn small(kubernetes: &[&str]) -> Self {
        let size = |cores, mhz, memory_mib| OfferedSize::Fixed(Size { cores, mhz, memory_mib });
        Self {
            zones: vec![ZoneLayout::new("zone-1", 8, Ipv4Addr::new(203, 0, 113, 2), 64)],
            domains: vec![DomainLayout {
                name: "tenants".to_owned(),
                network_domain: None,
                accounts: vec![AccountLayout::new("capstan", crate::RoleType::User)],
            }],
            service_offerings: vec![
                ("Small Instance".to_owned(), size(2, 2000, 2048)),
                ("Medium Instance".to_owned(), size(4, 2000, 8192)),
                ("Custom Instance".to_owned(), OfferedSize::Custom),
            ],
            disk_offerings: vec![
                ("Small".to_owned(), "Small Disk, 5 GB".to_owned(), Some(5)),
                ("Custom".to_owned(), "Custom Disk".to_owned(), None),
            ],
            templates: kubernetes.iter().map(|version| TemplateLayout::kubernetes(version)).collect(),
        }
    }
}

impl ZoneLayout {
    /// A zone with hosts of 32 cores and 128 GiB.
    pub fn new(name: &str, hosts: usize, public_start: Ipv4Addr, public_count: usize) -> Self {
        Self {
            name: name.to_owned(),
            hosts,
            host_size: Size { cores: 32, mhz: 2000, memory_mib: 131_072 },
            public_start,
            public_count,
            guest_cidr: Ipv4Net::new_assert(Ipv4Addr::new(10, 1, 1, 0), 24),
            dns: Ipv4Addr::new(10, 147, 28, 6),
        }
    }
}

impl AccountLayout {
    /// An account whose user has the same name.
    pub fn new(name: &str, role: crate::RoleType) -> Self {
        let mut first = name.to_owned();
        if let Some(letter) = first.get_mut(..1) {
            letter.make_ascii_uppercase();
        }
        Self {
            name: name.to_owned(),
            person: (first, "Test".to_owned()),
            role,
            password: format!("{name}-password"),
        }
    }
}

impl TemplateLayout {
    /// An image with a Kubernetes version, named as the image builder names them.
    pub fn kubernetes(version: &str) -> Self {
        let version = version.trim_start_matches('v');
        Self {
            name: format!("ubuntu-2404-kube-v{version}"),
            kubernetes: Some(format!("v{version}")),
            gib: 10,
        }
    }
}
