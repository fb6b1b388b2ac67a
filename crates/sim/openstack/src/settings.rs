//! Settings of a simulated cloud, and its initial content.

use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;

use crate::service::Service;

/// How a cloud behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long tokens are valid.
    pub token_lifetime: Duration,
    /// How long services trust their cached validation of a token, also of one that was revoked since.
    pub token_cache: Duration,
    /// Services that the cloud does not have.
    pub absent_services: Vec<Service>,
    /// Aliases of Neutron extensions that are switched off.
    pub disabled_extensions: Vec<String>,
    /// How Glance takes data of images, beside uploads: `glance-direct`, `web-download`.
    pub import_methods: Vec<String>,
    /// Octavia's health manager runs: what is ACTIVE gets ONLINE.
    pub health_manager: bool,
    pub timings: Timings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token_lifetime: Duration::from_secs(86_400),
            token_cache: Duration::from_secs(300),
            absent_services: Vec::new(),
            disabled_extensions: Vec::new(),
            import_methods: vec!["glance-direct".to_owned(), "web-download".to_owned()],
            health_manager: true,
            timings: Timings::default(),
        }
    }
}

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From the call until the scheduler chose a host or found none.
    pub schedule: Duration,
    /// From there until a server is ACTIVE.
    pub spawn: Duration,
    /// Stop, start, reboot, attach and detach of a server.
    pub power: Duration,
    /// From the call until a server is shown as DELETED.
    pub delete: Duration,
    /// How long it is shown as DELETED.
    pub linger: Duration,
    /// Changes of volumes.
    pub volume: Duration,
    /// Creation of a load balancer: its amphora boots.
    pub balancer_create: Duration,
    /// Changes of a load balancer or what belongs to it.
    pub balancer_update: Duration,
    /// Removal of a load balancer.
    pub balancer_delete: Duration,
    /// Import of an image.
    pub image: Duration,
}

impl Default for Timings {
    /// Measured on a deployment with fake hypervisors.
    fn default() -> Self {
        Self {
            schedule: Duration::from_millis(800),
            spawn: Duration::from_secs(6),
            power: Duration::from_secs(2),
            delete: Duration::from_secs(4),
            linger: Duration::from_secs(2),
            volume: Duration::from_millis(450),
            balancer_create: Duration::from_secs(25),
            balancer_update: Duration::from_secs(2),
            balancer_delete: Duration::from_secs(5),
            image: Duration::from_secs(1),
        }
    }
}

/// Initial content of a cloud.
#[derive(Debug, Clone)]
pub struct Layout {
    pub regions: Vec<RegionLayout>,
    /// Projects besides `admin` and `service`.
    pub projects: Vec<String>,
    pub users: Vec<UserLayout>,
}

/// A user with roles on a project.
#[derive(Clone)]
pub struct UserLayout {
    pub name: String,
    pub password: String,
    pub project: String,
    pub roles: Vec<String>,
}

impl std::fmt::Debug for UserLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserLayout")
            .field("name", &self.name)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct RegionLayout {
    pub name: String,
    pub hosts: Vec<HostLayout>,
    pub flavors: Vec<FlavorLayout>,
    pub images: Vec<ImageLayout>,
    /// The external network; `None` makes none.
    pub external: Option<ExternalLayout>,
}

/// A hypervisor host in an availability zone.
#[derive(Debug, Clone)]
pub struct HostLayout {
    pub name: String,
    pub zone: String,
    pub vcpus: u32,
    pub memory_mib: u64,
    pub disk_gib: u64,
}

#[derive(Debug, Clone)]
pub struct FlavorLayout {
    pub id: String,
    pub name: String,
    pub vcpus: u32,
    pub memory_mib: u64,
    pub disk_gib: u64,
    /// Every project may use it.
    pub public: bool,
}

#[derive(Debug, Clone)]
pub struct ImageLayout {
    pub name: String,
    /// Kubernetes version on it, such as `v1.36.0`.
    pub kubernetes: Option<String>,
    pub properties: Vec<(String, String)>,
    pub tags: Vec<String>,
    pub min_disk_gib: u64,
    /// Disk format: `qcow2`, `raw`.
    pub format: String,
}

#[derive(Debug, Clone)]
pub struct ExternalLayout {
    pub name: String,
    pub cidr: Ipv4Net,
    pub gateway: Ipv4Addr,
    /// First and last address of the allocation pool.
    pub pool: (Ipv4Addr, Ipv4Addr),
}

impl ImageLayout {
    /// A node image with the properties that its makers set.
    pub fn node(kubernetes: &str) -> Self {
        let properties = [("os_distro", "ubuntu"), ("os_type", "linux"), ("hw_disk_bus", "virtio")];
        let mut properties: Vec<(String, String)> =
            properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        properties.push(("kube_version".to_owned(), kubernetes.to_owned()));
        Self {
            name: format!("ubuntu-2404-kube-{kubernetes}"),
            kubernetes: Some(kubernetes.to_owned()),
            properties,
            tags: Vec::new(),
            min_disk_gib: 10,
            format: "qcow2".to_owned(),
        }
    }
}

impl FlavorLayout {
    pub fn new(id: &str, name: &str, vcpus: u32, memory_mib: u64, disk_gib: u64) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), vcpus, memory_mib, disk_gib, public: true }
    }
}

impl Layout {
    /// Two regions with two zones of three hosts each, a project `capstan` with a member, and images of these versions.
    pub fn small(kubernetes: &[&str]) -> Self {
        let region = |name: &str, third: u8| RegionLayout {
            name: name.to_owned(),
            hosts: ["az1", "az2"]
                .iter()
                .flat_map(|zone| {
                    (1..=3).map(move |number| HostLayout {
                        name: format!("{zone}-host{number}"),
                        zone: (*zone).to_owned(),
                        vcpus: 64,
                        memory_mib: 262_144,
                        disk_gib: 4_000,
                    })
                })
                .collect(),
            flavors: vec![
                FlavorLayout::new("1", "m1.tiny", 1, 512, 1),
                FlavorLayout::new("2", "m1.small", 1, 2_048, 20),
                FlavorLayout::new("3", "m1.medium", 2, 4_096, 40),
                FlavorLayout::new("4", "m1.large", 4, 8_192, 80),
            ],
            images: kubernetes.iter().map(|version| ImageLayout::node(version)).collect(),
            external: Some(ExternalLayout {
                name: "public".to_owned(),
                // Loopback addresses: clusters answer on them.
                cidr: Ipv4Net::new_assert(Ipv4Addr::new(127, 100, third, 0), 24),
                gateway: Ipv4Addr::new(127, 100, third, 1),
                pool: (Ipv4Addr::new(127, 100, third, 10), Ipv4Addr::new(127, 100, third, 250)),
            }),
        };
        Self {
            regions: vec![region("RegionOne", 1), region("RegionTwo", 2)],
            projects: vec!["capstan".to_owned()],
            users: vec![UserLayout {
                name: "capstan".to_owned(),
                password: "capstan".to_owned(),
                project: "capstan".to_owned(),
                roles: vec!["member".to_owned(), "load-balancer_member".to_owned()],
            }],
        }
    }
}
