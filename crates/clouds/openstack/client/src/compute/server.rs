//! Servers.

use std::collections::BTreeMap;

use capstan_cloud_http::{Secret, exposed};
use http::Method;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::flavor::Flavor;
use crate::block_storage::Volume;
use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::image::Image;
use crate::loose::{IdOf, Time, Truth, model, request, words};
use crate::microversion::{Microversion, Wanted};
use crate::network::{FixedIp, Network, Port};
use crate::resource::{Delete, Deletion, List, Resource, Update, encoded, item, unwritable, with_body};
use crate::service::Service;

words! {
    /// What a server is doing.
    pub enum ServerStatus {
        /// It is being made.
        Build = "BUILD",
        /// It runs.
        Active = "ACTIVE",
        /// It failed; see its fault.
        Error = "ERROR",
        /// It is off.
        Shutoff = "SHUTOFF",
        /// It restarts.
        Reboot = "REBOOT",
        /// It is restarted the hard way.
        HardReboot = "HARD_REBOOT",
        /// It is made anew from an image.
        Rebuild = "REBUILD",
        /// It moves or changes its flavor.
        Resize = "RESIZE",
        /// It waits for somebody to confirm that.
        VerifyResize = "VERIFY_RESIZE",
        /// It goes back.
        RevertResize = "REVERT_RESIZE",
        /// It moves to another host.
        Migrating = "MIGRATING",
        /// It sleeps in memory.
        Paused = "PAUSED",
        /// It sleeps on disk.
        Suspended = "SUSPENDED",
        /// It is put aside.
        Shelved = "SHELVED",
        /// It is put aside and has no host.
        ShelvedOffloaded = "SHELVED_OFFLOADED",
        /// It is gone, and shown for some seconds more.
        Deleted = "DELETED",
        /// It is gone and can be brought back.
        SoftDeleted = "SOFT_DELETED",
        /// Its host does not answer.
        Unknown = "UNKNOWN",
    }
}

model! {
    /// A server.
    pub struct Server {
        /// Id of the server.
        pub id: Id<Server>,
        /// Its name, which other servers may have too.
        pub name: String,
        /// What it is doing.
        pub status: ServerStatus,
        /// The step of a change that is under way.
        #[serde(rename = "OS-EXT-STS:task_state")]
        pub task_state: Option<String>,
        /// What Nova keeps it as.
        #[serde(rename = "OS-EXT-STS:vm_state")]
        pub vm_state: String,
        /// 1 runs, 4 is off.
        #[serde(rename = "OS-EXT-STS:power_state")]
        pub power_state: i32,
        /// Whose it is.
        #[serde(alias = "project_id")]
        pub tenant_id: String,
        /// Who made it.
        pub user_id: String,
        /// Addresses of the server by network.
        pub addresses: BTreeMap<String, Vec<Address>>,
        /// Keys and values of its owner.
        pub metadata: BTreeMap<String, String>,
        /// Words of its owner, in no order; shown from microversion 2.26 on.
        pub tags: Vec<String>,
        /// Its SSH key, which may be gone.
        pub key_name: Option<String>,
        /// Its flavor: an id, or what the flavor was when the server was made.
        pub flavor: ServerFlavor,
        /// Its image; none of a server that boots from a volume.
        #[serde(rename = "image")]
        pub image_id: ImageRef,
        /// Why it failed.
        pub fault: Option<Fault>,
        /// Groups of its ports; absent before it has a host.
        pub security_groups: Vec<GroupName>,
        /// Where it is; empty before it has a host.
        #[serde(rename = "OS-EXT-AZ:availability_zone")]
        pub availability_zone: String,
        /// Names its host without saying which it is.
        #[serde(rename = "hostId")]
        pub host_id: String,
        /// Volumes of the server.
        #[serde(rename = "os-extended-volumes:volumes_attached")]
        pub volumes_attached: Vec<AttachedVolume>,
        /// Its groups, from microversion 2.71 on and not in lists.
        pub server_groups: Vec<Id<super::ServerGroup>>,
        /// It reads its user data from a drive.
        pub config_drive: Truth,
        /// Nobody but its owner may change it.
        pub locked: bool,
        /// When it was made.
        pub created: Option<Time>,
        /// When it changed last.
        pub updated: Option<Time>,
    }

    /// An address of a server.
    pub struct Address {
        /// The address.
        pub addr: String,
        /// 4 or 6.
        pub version: u8,
        /// `fixed` or `floating`.
        #[serde(rename = "OS-EXT-IPS:type")]
        pub kind: String,
        /// Of the port.
        #[serde(rename = "OS-EXT-IPS-MAC:mac_addr")]
        pub mac_addr: String,
    }

    /// What is known of a server's flavor.
    pub struct ServerFlavor {
        /// The flavor, before microversion 2.47.
        pub id: Option<Id<Flavor>>,
        /// Its name, from 2.47 on.
        pub original_name: String,
        /// Processors, from 2.47 on.
        pub vcpus: Option<u32>,
        /// Memory in MiB, from 2.47 on.
        pub ram: Option<u64>,
        /// Disk in GiB, from 2.47 on.
        pub disk: Option<u64>,
    }

    /// Why a server failed.
    pub struct Fault {
        /// An HTTP status.
        pub code: u16,
        /// What happened.
        pub message: String,
        /// When.
        pub created: Option<Time>,
    }

    /// The name of a security group.
    pub struct GroupName {
        /// The name.
        pub name: String,
    }

    /// A volume of a server.
    pub struct AttachedVolume {
        /// The volume.
        pub id: Id<Volume>,
        /// It goes with the server.
        pub delete_on_termination: bool,
    }

    /// A port of a server.
    pub struct Interface {
        /// The port.
        pub port_id: Id<Port>,
        /// Network of the interface.
        pub net_id: Id<Network>,
        /// Of the port.
        pub mac_addr: String,
        /// `ACTIVE`, `DOWN` or `BUILD`.
        pub port_state: String,
        /// IP addresses of the interface.
        pub fixed_ips: Vec<FixedIp>,
    }

    /// What a server wrote to its console.
    pub struct ConsoleOutput {
        /// The text. It may hold what the machine printed of its boot data.
        pub output: Secret,
    }
}

impl Fault {
    /// No host could take the server: the cloud is full, or its groups and zones leave no host.
    pub fn is_no_valid_host(&self) -> bool {
        self.message.starts_with("No valid host was found")
    }
}

/// The image of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRef(pub Option<Id<Image>>);

impl<'de> Deserialize<'de> for ImageRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(IdOf::deserialize(deserializer)?.0.map(Id::new)))
    }
}

request! {
    /// A new server.
    pub struct NewServer {
        /// Name of the server.
        pub name: String,
        /// Flavor of the server.
        #[serde(rename = "flavorRef")]
        pub flavor: Id<Flavor>,
        /// Its image. Left out, an empty text is sent: that is how Nova hears of a boot volume.
        #[serde(rename = "imageRef", serialize_with = "text_or_empty")]
        pub image: Option<Id<Image>>,
        /// Where it is to be.
        pub availability_zone: Option<String>,
        /// Its ports, in order.
        pub networks: Vec<PortAttachment>,
        /// What it does at its first boot, in base64; 65535 characters at most.
        #[serde(serialize_with = "exposed_text")]
        pub user_data: Option<Secret>,
        /// Words; 50 of 60 characters at most, without commas and slashes. Needs microversion 2.52.
        pub tags: Vec<String>,
        /// Keys and values; 255 characters each.
        pub metadata: BTreeMap<String, String>,
        /// It reads its user data from a drive.
        pub config_drive: Option<bool>,
        /// SSH key of the server.
        pub key_name: Option<String>,
        /// Its disks, when they are not just those of the flavor.
        pub block_device_mapping_v2: Vec<BlockDevice>,
        /// Where the scheduler puts it. Stands beside the server in the body.
        #[serde(skip)]
        pub scheduler_hints: SchedulerHints,
    }

    /// A port of a new server.
    pub struct PortAttachment {
        /// The port.
        pub port: Id<Port>,
        /// What the metadata calls it. Needs microversion 2.42.
        pub tag: Option<String>,
    }

    /// What can be changed of a server.
    pub struct ServerChange {
        /// Name of the server.
        pub name: Option<String>,
    }

    /// What servers can be narrowed by.
    pub struct ServerFilter {
        /// A regular expression that occurs in the name, whatever the case: `^name$` for a whole name.
        pub name: Option<String>,
        /// All of these, in one text with commas. Needs microversion 2.26.
        #[serde(serialize_with = "crate::query::comma_list")]
        pub tags: Vec<String>,
        /// A status.
        pub status: Option<String>,
        /// Changed since then.
        #[serde(rename = "changes-since")]
        pub changes_since: Option<String>,
        /// Of all projects; for administrators.
        pub all_tenants: Option<bool>,
    }
}

words! {
    /// What a disk is made from.
    pub enum SourceType {
        /// An image.
        Image = "image",
        /// A volume.
        Volume = "volume",
        /// Nothing.
        Blank = "blank",
    }

    /// Where a disk is.
    pub enum DestinationType {
        /// On the host.
        Local = "local",
        /// In a volume.
        Volume = "volume",
    }
}

/// A disk of a new server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BlockDevice {
    /// 0 boots; -1 never does.
    pub boot_index: i32,
    /// The image or volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// What it is made from.
    pub source_type: SourceType,
    /// Where it is.
    pub destination_type: DestinationType,
    /// GiB, when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<u64>,
    /// Type of the volume that is made. Needs microversion 2.67.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
    /// It goes with the server.
    pub delete_on_termination: bool,
    /// What the metadata calls it. Needs microversion 2.42.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// Where the scheduler puts a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SchedulerHints {
    /// Its group: an id, because Nova refuses names.
    pub group: Option<Id<super::ServerGroup>>,
    /// Whatever else the cloud's scheduler reads.
    pub additional: Map<String, Value>,
}

fn text_or_empty<S: serde::Serializer>(image: &Option<Id<Image>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(image.as_ref().map_or("", Id::as_str))
}

fn exposed_text<S: serde::Serializer>(text: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    match text {
        Some(text) => exposed(text, serializer),
        None => serializer.serialize_none(),
    }
}

/// 2.79 is the last whose answers were compared with recorded ones; 2.1 has all that must be there.
const VERSIONS: Wanted = Wanted::between(Microversion(2, 1), Microversion(2, 79));

impl Resource for Server {
    const SERVICE: Service = Service::Compute;
    const PATH: &'static str = "servers";
    const ONE: Option<&'static str> = Some("server");
    const WANTED: Option<Wanted> = Some(VERSIONS);
}

impl List for Server {
    const LIST_PATH: &'static str = "servers/detail";
    const MANY: &'static str = "servers";
    type Filter = ServerFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}

impl Update for Server {
    type Change = ServerChange;
}

impl Delete for Server {}

impl NewServer {
    /// The microversion that the request needs.
    pub fn needs(&self) -> Wanted {
        let mut wanted = VERSIONS;
        let devices = &self.block_device_mapping_v2;
        if self.networks.iter().any(|port| port.tag.is_some())
            || devices.iter().any(|disk| disk.tag.is_some())
        {
            wanted = wanted.needing(Microversion(2, 42));
        }
        if !self.tags.is_empty() {
            wanted = wanted.needing(Microversion(2, 52));
        }
        if devices.iter().any(|disk| disk.volume_type.is_some()) {
            wanted = wanted.needing(Microversion(2, 67));
        }
        wanted
    }

    fn body(&self) -> Result<Value, serde_json::Error> {
        let mut server = serde_json::to_value(self)?;
        // Left out by default like everything else, and needed.
        if self.image.is_none() {
            server["imageRef"] = json!("");
        }
        let mut body = json!({ "server": server });
        let mut hints = self.scheduler_hints.additional.clone();
        if let Some(group) = &self.scheduler_hints.group {
            hints.insert("group".to_owned(), group.as_str().into());
        }
        if !hints.is_empty() {
            body["os:scheduler_hints"] = Value::Object(hints);
        }
        Ok(body)
    }
}

/// What the answer to a creation says: the id, and little else.
#[derive(Debug, Deserialize)]
struct Created {
    id: Id<Server>,
}

impl Client {
    /// Makes a server. The answer comes before a host is chosen: an action is refused with 404 or 409 until it is
    /// `ACTIVE`, and failures show in its status.
    pub async fn create_server(&self, new: &NewServer) -> Result<Id<Server>, Error> {
        let call =
            Call::change(Service::Compute, Method::POST, "servers", Body::None).wanting(Some(new.needs()));
        let body = new.body().map_err(|error| unwritable(&call, &error))?;
        let call = with_body(call, None, &body)?;
        let created: Created = self.read(&call, Some("server")).await?;
        Ok(created.id)
    }

    /// The servers with exactly this name.
    pub async fn servers_named(&self, name: &str) -> Result<Vec<Server>, Error> {
        let filter = ServerFilter { name: Some(format!("^{}$", literal(name))), ..ServerFilter::default() };
        let mut servers = self.list::<Server>(&filter).await?;
        // The database compares without regard to case.
        servers.retain(|server| server.name == name);
        Ok(servers)
    }

    /// The ports of a server.
    pub async fn interfaces(&self, server: &Id<Server>) -> Result<Vec<Interface>, Error> {
        let call = Call::read(Service::Compute, format!("{}/os-interface", item("servers", server)));
        self.checked_id(server, &call)?;
        self.read(&call, Some("interfaceAttachments")).await
    }

    /// Takes a port from a server.
    pub async fn detach_interface(&self, server: &Id<Server>, port: &Id<Port>) -> Result<Deletion, Error> {
        let path = format!("{}/os-interface/{}", item("servers", server), encoded(port.as_str()));
        let call = Call::change(Service::Compute, Method::DELETE, path, Body::None);
        self.checked_id(server, &call)?;
        self.checked_id(port, &call)?;
        self.remove(&call).await
    }

    /// The last lines that a server wrote to its console.
    pub async fn console_output(&self, server: &Id<Server>, lines: u32) -> Result<ConsoleOutput, Error> {
        let action = json!({ "os-getConsoleOutput": { "length": lines } });
        let call = self.action(server, &action)?;
        // It changes nothing, so it may be repeated.
        self.read(&call.idempotent(), None).await
    }

    /// Starts a server that is off.
    pub async fn start_server(&self, server: &Id<Server>) -> Result<(), Error> {
        let call = self.action(server, &json!({ "os-start": null }))?;
        self.send(&call).await.map(drop)
    }

    /// Switches a server off.
    pub async fn stop_server(&self, server: &Id<Server>) -> Result<(), Error> {
        let call = self.action(server, &json!({ "os-stop": null }))?;
        self.send(&call).await.map(drop)
    }

    /// Restarts a server as its power switch would.
    pub async fn reboot_server(&self, server: &Id<Server>) -> Result<(), Error> {
        let call = self.action(server, &json!({ "reboot": { "type": "HARD" } }))?;
        self.send(&call).await.map(drop)
    }

    fn action(&self, server: &Id<Server>, action: &Value) -> Result<Call, Error> {
        let path = format!("{}/action", item("servers", server));
        let call = Call::change(Service::Compute, Method::POST, path, Body::None);
        self.checked_id(server, &call)?;
        with_body(call, None, action)
    }
}

/// A text as a regular expression that matches nothing else. Nova gives it to the database.
fn literal(text: &str) -> String {
    let mut literal = String::new();
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_says_what_it_needs_and_hides_its_user_data() {
        let mut new = NewServer {
            name: "m".to_owned(),
            flavor: "f".into(),
            networks: vec![PortAttachment { port: "p".into(), tag: None }],
            user_data: Some(Secret::new("Ym9vdA==")),
            ..NewServer::default()
        };
        assert_eq!(new.needs().at_least, Microversion(2, 1));
        assert_eq!(
            new.body().unwrap(),
            json!({ "server": {
                "name": "m", "flavorRef": "f", "imageRef": "", "networks": [{ "port": "p" }], "user_data": "Ym9vdA==",
            } })
        );
        assert!(!format!("{new:?}").contains("Ym9vdA"));
        new.tags = vec!["t".to_owned()];
        assert_eq!(new.needs().at_least, Microversion(2, 52));
        new.block_device_mapping_v2 =
            vec![BlockDevice { volume_type: Some("ssd".to_owned()), ..BlockDevice::default() }];
        assert_eq!(new.needs().at_least, Microversion(2, 67));
        new.scheduler_hints.group = Some("g".into());
        new.image = Some("i".into());
        let body = new.body().unwrap();
        assert_eq!(body["os:scheduler_hints"], json!({ "group": "g" }));
        assert_eq!(body["server"]["imageRef"], "i");
    }

    #[test]
    fn a_name_is_looked_up_as_it_is() {
        assert_eq!(literal("a.b-c[1]"), r"a\.b-c\[1\]");
    }
}
