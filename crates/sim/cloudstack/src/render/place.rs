//! Zones, hosts, offerings, templates.

use serde_json::{Value, json};

use super::network::show_capability;
use super::{Fields, time};
use crate::call::Caller;
use crate::cloud::Cloud;
use crate::model::place::{
    DiskOffering, Host, NetworkOffering, OfferedSize, OsType, ServiceOffering, Template, VpcOffering, Zone,
};
use crate::model::table::Key;

/// What hosts do when something happens to them.
const HOST_EVENTS: &str = "ManagementServerDown; HostDown; StartAgentRebalance; Ping; AgentDisconnected; Remove; \
                           AgentUnreachableButHostIsHealthy";

impl Cloud {
    pub(crate) fn show_zone(&self, key: Key<Zone>, caller: Caller) -> Fields {
        let row = &self.zones[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "networktype": "Advanced",
            "securitygroupsenabled": false,
            "gputotal": 0,
            "gpuused": 0,
            "allocationstate": if row.enabled { "Enabled" } else { "Disabled" },
            "zonetoken": row.token,
            "dhcpprovider": "VirtualRouter",
            "localstorageenabled": false,
            "tags": self.short_tags(&row.uuid),
            "allowuserspecifyvrmtu": false,
            "routerprivateinterfacemaxmtu": 1500,
            "routerpublicinterfacemaxmtu": 1500,
            "type": "Core",
            "isnsxenabled": false,
            "ismultiarch": false,
            "asnrange": "",
            "routedmodeenabled": true,
            "hasannotations": false,
        }));
        if caller.is_root() {
            fields
                .put("dns1", row.dns.as_str())
                .put("internaldns1", row.dns.as_str())
                .put("guestcidraddress", row.guest_cidr.to_string());
        }
        fields
    }

    pub(crate) fn show_host(&self, key: Key<Host>) -> Value {
        let row = &self.hosts[key];
        let zone = &self.zones[row.zone];
        let (_, mhz, memory) = self.allocated_on(key);
        let capacity = row.cores * row.mhz;
        let cpu_share = share(mhz, capacity);
        let memory_share = share(memory, row.memory_mib);
        let bytes = row.memory_mib << 20;
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "state": "Up",
            "type": "Routing",
            "ipaddress": row.address,
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "podid": zone.pod,
            "podname": format!("{}-POD0", zone.name),
            "version": crate::VERSION,
            "hypervisor": "Simulator",
            "cpunumber": row.cores,
            "cpuspeed": row.mhz,
            "cpuallocated": cpu_share,
            "cpuallocatedvalue": mhz,
            "cpuallocatedpercentage": cpu_share,
            "cpuallocatedwithoverprovisioning": cpu_share,
            "cpuused": "0%",
            "cpuwithoverprovisioning": capacity.to_string(),
            "cpuloadaverage": 0.0,
            "networkkbsread": 32768,
            "networkkbswrite": 16384,
            "memorytotal": bytes,
            "memorywithoverprovisioning": bytes.to_string(),
            "memoryallocated": memory << 20,
            "memoryallocatedpercentage": memory_share,
            "memoryallocatedbytes": memory << 20,
            "memoryused": 0,
            "capabilities": "hvm",
            "lastpinged": time(self.now),
            "managementserverid": self.management_server,
            "managementservername": "localhost",
            "clusterid": row.cluster.0,
            "clustername": row.cluster.1,
            "clustertype": "CloudManaged",
            "islocalstorageactive": false,
            "created": time(row.created),
            "events": HOST_EVENTS,
            "hostha": {"haenable": false, "hastate": "Disabled"},
            "outofbandmanagement": {"powerstate": "Disabled", "enabled": false},
            "resourcestate": row.state.name(),
            "hypervisorversion": crate::VERSION,
            "hahost": false,
            "ueficapability": false,
            "arch": "x86_64",
            "hasannotations": false,
        }));
        fields.job(self, &row.uuid);
        fields.done()
    }

    pub(crate) fn show_service_offering(&self, key: Key<ServiceOffering>) -> Value {
        let row = &self.service_offerings[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "state": "Active",
            "created": time(row.created),
            "storagetype": if row.local_storage { "local" } else { "shared" },
            "provisioningtype": "thin",
            "offerha": row.offer_ha,
            "limitcpuuse": false,
            "isvolatile": false,
            "issystem": row.system_vm_type.is_some(),
            "defaultuse": row.default_use,
            "iscustomized": !matches!(row.size, OfferedSize::Fixed(_)),
            "rootdisksize": 0,
            "dynamicscalingenabled": true,
            "diskofferingstrictness": false,
            "diskofferingid": row.disk_offering,
            "diskofferingname": row.name,
            "encryptroot": false,
            "hasannotations": false,
        }));
        fields
            .maybe("displaytext", row.display_text.as_deref())
            .maybe("diskofferingdisplaytext", row.display_text.as_deref())
            .maybe("systemvmtype", row.system_vm_type)
            .maybe("networkrate", row.network_rate);
        match row.size {
            OfferedSize::Fixed(size) => {
                fields.put("cpunumber", size.cores).put("cpuspeed", size.mhz).put("memory", size.memory_mib);
            }
            OfferedSize::Custom => {}
            OfferedSize::Constrained { cores, memory_mib, mhz } => {
                fields.put("cpuspeed", mhz);
                fields.put(
                    "serviceofferingdetails",
                    json!({
                        "mincpunumber": cores.0.to_string(),
                        "maxcpunumber": cores.1.to_string(),
                        "minmemory": memory_mib.0.to_string(),
                        "maxmemory": memory_mib.1.to_string(),
                    }),
                );
            }
        }
        fields.done()
    }

    pub(crate) fn show_disk_offering(&self, key: Key<DiskOffering>) -> Value {
        let row = &self.disk_offerings[key];
        json!({
            "id": row.uuid,
            "name": row.name,
            "state": "Active",
            "displaytext": row.display_text,
            "disksize": row.gib.unwrap_or(0),
            "created": time(row.created),
            "iscustomized": row.gib.is_none(),
            "storagetype": "shared",
            "provisioningtype": "thin",
            "displayoffering": true,
            "disksizestrictness": false,
            "encrypt": false,
            "hasannotations": false,
        })
    }

    pub(crate) fn show_network_offering(&self, key: Key<NetworkOffering>) -> Value {
        let row = &self.network_offerings[key];
        let router =
            self.service_offerings.iter().find(|offering| offering.system_vm_type == Some("domainrouter"));
        let services: Vec<Value> = row
            .services
            .iter()
            .map(|(service, by)| {
                let mut fields = Fields::of(json!({"name": service, "provider": [{"name": by}]}));
                let capabilities: &[&str] = match *service {
                    "StaticNat" => &["ElasticIp", "AssociatePublicIP"],
                    "Lb" => &["SupportedLBIsolation", "ElasticLb", "InlineMode", "VmAutoScaling"],
                    "SourceNat" => &["SupportedSourceNatTypes", "RedundantRouter"],
                    _ => &[],
                };
                if !capabilities.is_empty() {
                    let shown: Vec<Value> =
                        capabilities.iter().map(|name| show_capability(service, name)).collect();
                    fields.put("capability", shown);
                }
                fields.done()
            })
            .collect();
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "displaytext": row.display_text,
            "created": time(row.created),
            "traffictype": "Guest",
            "isdefault": row.stock,
            "specifyvlan": row.specify_vlan,
            "conservemode": row.conserve_mode,
            "specifyipranges": row.specify_ip_ranges,
            "availability": if row.required { "Required" } else { "Optional" },
            "networkrate": 200,
            "state": if row.enabled { "Enabled" } else { "Disabled" },
            "guestiptype": row.guest_type.name(),
            "service": services,
            "forvpc": row.for_vpc,
            "fornsx": row.provided_by("Nsx"),
            "fortungsten": row.provided_by("Tungsten"),
            "ispersistent": false,
            "egressdefaultpolicy": row.egress_default_allow,
            "supportsstrechedl2subnet": false,
            "supportspublicaccess": false,
            "supportsinternallb": row.internal_lb,
            "internetprotocol": "IPv4",
            "specifyasnumber": false,
            "hasannotations": false,
        }));
        fields
            .maybe("serviceofferingid", router.map(|offering| offering.uuid.as_str()))
            .maybe("networkmode", row.network_mode)
            .maybe("routingmode", row.routing_mode);
        fields.done()
    }

    pub(crate) fn show_vpc_offering(&self, key: Key<VpcOffering>) -> Value {
        let row = &self.vpc_offerings[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "displaytext": row.name,
            "created": time(row.created),
            "isdefault": row.default,
            "state": if row.enabled { "Enabled" } else { "Disabled" },
            "service": vpc_services(&row.services),
            "distributedvpcrouter": false,
            "supportsregionLevelvpc": false,
            "fornsx": row.nsx,
            "internetprotocol": "IPv4",
            "specifyasnumber": false,
        }));
        fields.maybe("networkmode", row.network_mode);
        fields.done()
    }

    pub(crate) fn show_os_type(&self, key: Key<OsType>) -> Value {
        let row = &self.os_types[key];
        json!({
            "id": row.uuid,
            "oscategoryid": row.category.0,
            "oscategoryname": row.category.1,
            "name": row.name,
            "description": row.name,
            "isuserdefined": false,
            "fordisplay": true,
        })
    }

    /// A template as it stands in one zone.
    pub(crate) fn show_template(&self, key: Key<Template>, zone: Key<Zone>, caller: Caller) -> Value {
        let row = &self.templates[key];
        let zone = &self.zones[zone];
        let mut download = Fields::of(json!({
            "downloadState": "DOWNLOADED",
            "datastore": format!("{}-sec", zone.name),
            "downloadPercent": "100",
        }));
        if caller.is_root() {
            download.put("datastoreRole", "Image").put("datastoreId", zone.image_store.as_str());
        }
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "displaytext": row.display_text,
            "ispublic": row.public,
            "created": time(row.created),
            "isready": true,
            "passwordenabled": false,
            "format": row.format,
            "isfeatured": row.featured,
            "crossZones": row.cross_zones,
            "ostypeid": self.os_types[row.os_type].uuid,
            "ostypename": self.os_types[row.os_type].name,
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "size": row.size,
            "physicalsize": row.size,
            "templatetype": row.kind.name(),
            "hypervisor": row.hypervisor,
            "isextractable": false,
            "details": {},
            "downloaddetails": [download.done()],
            "arch": "x86_64",
            "bits": 0,
            "sshkeyenabled": false,
            "isdynamicallyscalable": false,
            "directdownload": false,
            "deployasis": false,
            "forcks": false,
            "requireshvm": row.requires_hvm,
            "tags": self.long_tags(&row.uuid),
            "hasannotations": false,
        }));
        fields.owner(self, row.account);
        if row.kind != crate::model::place::TemplateKind::User {
            fields.put("checksum", "");
        }
        if caller.is_root() || row.account == caller.account {
            fields.put("status", "Download Complete").put("url", row.url.as_str());
        }
        fields.done()
    }
}

/// Services of a VPC and who provides them.
pub(crate) fn vpc_services(services: &[(&'static str, Vec<&'static str>)]) -> Value {
    services
        .iter()
        .map(|(service, by)| {
            let by: Vec<Value> = by.iter().map(|name| json!({"name": name})).collect();
            json!({"name": service, "provider": by})
        })
        .collect()
}

/// A part of a whole as the API prints it.
pub(crate) fn share(part: u64, whole: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a share with two digits")]
    let percent = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{percent:.2}%")
}
