//! The initial content of a cloud.

use std::sync::Arc;

use capstan_env::Env;
use capstan_hypervisor::Hypervisor;
use serde_json::json;

use crate::cloud::{Cloud, CloudFaults, State};
use crate::neutron;
use crate::service::{Endpoints, Service};
use crate::settings::{Layout, RegionLayout, Settings};
use crate::table::{Fields as _, object};

/// Roles that every cloud has, and whether they are fixed.
const ROLES: &[(&str, bool)] = &[
    ("admin", true),
    ("manager", true),
    ("member", true),
    ("reader", true),
    ("service", true),
    ("load-balancer_member", false),
    ("load-balancer_observer", false),
    ("load-balancer_admin", false),
    ("load-balancer_quota_admin", false),
];

impl Cloud {
    pub(crate) fn bootstrap(
        env: Env,
        layout: &Layout,
        settings: Settings,
        hypervisor: Option<Arc<dyn Hypervisor>>,
    ) -> Self {
        let regions: Vec<String> = layout.regions.iter().map(|region| region.name.clone()).collect();
        let now = env.now();
        let mut cloud = Self {
            state: State::default(),
            settings,
            endpoints: Endpoints::shared("http://127.0.0.1", &regions),
            env,
            hypervisor,
            now,
            region: regions.first().cloned().unwrap_or_default(),
            regions,
            faults: CloudFaults::default(),
            balanced: std::collections::BTreeSet::new(),
        };
        cloud.bootstrap_identity(layout);
        for region in &layout.regions {
            cloud.region.clone_from(&region.name);
            cloud.bootstrap_region(region);
        }
        cloud.region = cloud.regions.first().cloned().unwrap_or_default();
        cloud
    }

    fn bootstrap_identity(&mut self, layout: &Layout) {
        self.put("domains", object(json!({
            "id": "default", "name": "Default", "description": "The default domain", "enabled": true, "tags": [], "options": {},
        })));
        for (name, fixed) in ROLES {
            let options = if *fixed { json!({"immutable": true}) } else { json!({}) };
            let id = self.hex();
            self.put(
                "roles",
                object(json!({
                    "id": id, "name": name, "domain_id": null, "description": null, "options": options,
                })),
            );
        }
        self.bootstrap_project("admin", "Bootstrap project for initializing the cloud.");
        self.bootstrap_project("service", "");
        for name in &layout.projects {
            self.bootstrap_project(name, "");
        }
        let admin = self.bootstrap_user("admin", "admin", "admin", &["admin"]);
        self.set("users", &admin, "_system", true);
        for user in &layout.users {
            let roles: Vec<&str> = user.roles.iter().map(String::as_str).collect();
            self.bootstrap_user(&user.name, &user.password, &user.project, &roles);
        }
        for region in self.regions.clone() {
            self.put("regions", object(json!({"id": region, "description": "", "parent_region_id": null})));
        }
        let absent = self.settings.absent_services.clone();
        for service in Service::ALL.into_iter().filter(|service| !absent.contains(service)) {
            let id = self.hex();
            self.put(
                "services",
                object(json!({
                    "id": id, "name": service.name(), "type": service.kind(), "enabled": true,
                })),
            );
            for region in self.regions.clone() {
                let interfaces: &[&str] = if service == Service::Identity {
                    &["internal", "admin", "public"]
                } else {
                    &["public", "internal"]
                };
                for interface in interfaces {
                    let endpoint = self.hex();
                    self.put(
                        "endpoints",
                        object(json!({
                            "id": endpoint, "interface": interface, "region": region, "service_id": id,
                        })),
                    );
                }
            }
        }
    }

    fn bootstrap_project(&mut self, name: &str, description: &str) {
        let id = self.hex();
        self.put(
            "projects",
            object(json!({
                "id": id, "name": name, "domain_id": "default", "description": description, "enabled": true,
                "parent_id": "default", "is_domain": false, "tags": [], "options": {},
            })),
        );
    }

    fn bootstrap_user(&mut self, name: &str, password: &str, project: &str, roles: &[&str]) -> String {
        let id = self.hex();
        let project =
            self.find("projects", "name", project).map(|it| it.text("id").to_owned()).unwrap_or_default();
        self.put(
            "users",
            object(json!({
                "id": id, "name": name, "domain_id": "default", "enabled": true, "password_expires_at": null,
                "options": {}, "_password": Self::digest(password),
            })),
        );
        for role in roles {
            let Some(role) = self.find("roles", "name", role).map(|it| it.text("id").to_owned()) else {
                continue;
            };
            let grant = format!("{project} {id} {role}");
            self.put("grants", object(json!({"id": grant, "project": project, "user": id, "role": role})));
        }
        id
    }

    fn bootstrap_region(&mut self, layout: &RegionLayout) {
        for host in &layout.hosts {
            let id = self.uuid();
            self.put("hosts", object(json!({
                "id": host.name, "uuid": id, "zone": host.zone, "vcpus": host.vcpus, "memory": host.memory_mib,
                "disk": host.disk_gib,
            })));
        }
        for flavor in &layout.flavors {
            self.put("flavors", object(json!({
                "id": flavor.id, "name": flavor.name, "ram": flavor.memory_mib, "disk": flavor.disk_gib, "swap": 0,
                "ephemeral": 0, "vcpus": flavor.vcpus, "is_public": flavor.public, "rxtx_factor": 1.0, "description": null,
                "extra_specs": {},
            })));
        }
        let admin =
            self.find("projects", "name", "admin").map(|it| it.text("id").to_owned()).unwrap_or_default();
        for image in &layout.images {
            let mut row = object(json!({
                "id": self.uuid(), "name": image.name, "status": "active", "visibility": "public", "protected": false,
                "container_format": "bare", "disk_format": image.format, "min_disk": image.min_disk_gib, "min_ram": 0,
                "size": 2_361_393_152_u64, "virtual_size": 10_737_418_240_u64, "owner": admin, "os_hidden": false,
                "tags": image.tags, "checksum": "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "os_hash_algo": "sha512",
                "os_hash_value": Self::digest(&image.name).repeat(2), "created_at": self.stamp(),
                "updated_at": self.stamp(), "_kubernetes": image.kubernetes,
            }));
            for (name, value) in &image.properties {
                row.insert(name.clone(), json!(value));
            }
            self.put("images", row);
        }
        self.put("volume_types", object(json!({
            "id": self.uuid(), "name": "__DEFAULT__", "is_public": true, "description": "Default Volume Type",
            "extra_specs": {}, "qos_specs_id": null,
        })));
        if let Some(external) = &layout.external {
            self.bootstrap_external(external, &admin);
        }
    }

    fn bootstrap_external(&mut self, external: &crate::settings::ExternalLayout, admin: &str) {
        let network = object(json!({
            "name": external.name, "admin_state_up": true, "description": "", "mtu": 0, "port_security_enabled": true,
            "router:external": true, "shared": false, "is_default": true, "provider:network_type": "flat",
            "provider:physical_network": "public", "provider:segmentation_id": null, "availability_zone_hints": [],
            "qos_policy_id": null, "vlan_transparent": false, "qinq": false, "project_id": admin, "tenant_id": admin,
        }));
        let Ok(network) = neutron::create_network(self, network) else { return };
        let (start, end) = external.pool;
        let subnet = object(json!({
            "name": format!("{}-subnet", external.name), "network_id": network, "ip_version": 4,
            "cidr": external.cidr.to_string(), "gateway_ip": external.gateway.to_string(),
            "allocation_pools": [{"start": start.to_string(), "end": end.to_string()}], "dns_nameservers": [],
            "host_routes": [], "enable_dhcp": false, "ipv6_ra_mode": null, "ipv6_address_mode": null,
            "subnetpool_id": null, "prefixlen": null, "description": "", "service_types": [], "segment_id": null,
            "project_id": admin, "tenant_id": admin,
        }));
        if let Err(fail) = neutron::create_subnet(self, subnet) {
            tracing::warn!(
                network = external.name,
                error = fail.message,
                "the external network has no subnet"
            );
        }
    }
}
