//! Trunks: ports that carry several networks.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Port, TagFilter};
use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{model, request};
use crate::resource::{item, resources, verbs, with_body};
use crate::service::Service;

model! {
    /// A trunk.
    pub struct Trunk {
        /// Id of the trunk.
        pub id: Id<Trunk>,
        /// Its name, which other trunks may have too.
        pub name: String,
        /// Description of the trunk.
        pub description: String,
        /// Project that owns the trunk.
        pub project_id: String,
        /// The port that carries the others.
        pub port_id: Id<Port>,
        /// The ports that it carries.
        pub sub_ports: Vec<SubPort>,
        /// `ACTIVE`, `DOWN`, `BUILD`, `DEGRADED` or `ERROR`.
        pub status: String,
        /// Words of its owner.
        pub tags: Vec<String>,
    }
}

/// A port that a trunk carries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubPort {
    /// The port.
    pub port_id: Id<Port>,
    /// `vlan`.
    pub segmentation_type: String,
    /// Segmentation id of the subport.
    pub segmentation_id: u32,
}

request! {
    /// A new trunk.
    pub struct NewTrunk {
        /// The port that carries the others.
        pub port_id: Id<Port>,
        /// Name of the trunk.
        pub name: String,
        /// Description of the trunk.
        pub description: Option<String>,
    }

    /// What trunks can be narrowed by.
    pub struct TrunkFilter {
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// The port that carries the others; one of these.
        pub port_id: Vec<Id<Port>>,
        /// Words it has or has not.
        #[serde(flatten)]
        pub tags: TagFilter,
    }
}

resources! {
    Trunk: Network "trunks" Some("trunk"), "trunks" by TrunkFilter;
}

verbs! {
    Trunk: new NewTrunk, delete;
}

impl Client {
    /// The ports that a trunk carries.
    pub async fn sub_ports(&self, trunk: &Id<Trunk>) -> Result<Vec<SubPort>, Error> {
        let call = Call::read(Service::Network, format!("{}/get_subports", item("trunks", trunk)));
        self.checked_id(trunk, &call)?;
        self.read(&call, Some("sub_ports")).await
    }

    /// Lets a trunk carry more ports.
    pub async fn add_sub_ports(&self, trunk: &Id<Trunk>, ports: &[SubPort]) -> Result<Trunk, Error> {
        let call = self.trunk_action(trunk, "add_subports")?;
        self.read(&with_body(call, None, &json!({ "sub_ports": ports }))?, None).await
    }

    /// Takes ports from a trunk. Refused with 404 if one is not there.
    pub async fn remove_sub_ports(&self, trunk: &Id<Trunk>, ports: &[Id<Port>]) -> Result<Trunk, Error> {
        let ports: Vec<_> = ports.iter().map(|port| json!({ "port_id": port })).collect();
        let call = self.trunk_action(trunk, "remove_subports")?;
        self.read(&with_body(call, None, &json!({ "sub_ports": ports }))?, None).await
    }

    fn trunk_action(&self, trunk: &Id<Trunk>, action: &str) -> Result<Call, Error> {
        let path = format!("{}/{action}", item("trunks", trunk));
        let call = Call::change(Service::Network, Method::PUT, path, Body::None);
        self.checked_id(trunk, &call)?;
        Ok(call)
    }
}
