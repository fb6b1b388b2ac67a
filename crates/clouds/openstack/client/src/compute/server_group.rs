//! Groups of servers that the scheduler keeps together or apart.

use serde::Serialize;
use serde_json::Value;

use super::server::Server;
use crate::id::Id;
use crate::loose::{model, request};
use crate::microversion::{Microversion, Wanted};
use crate::pages::Paging;
use crate::resource::{Create, Delete, List, Resource};
use crate::service::Service;

model! {
    /// A group of servers.
    pub struct ServerGroup {
        /// Id of the server group.
        pub id: Id<ServerGroup>,
        /// Its name, which other groups may have too.
        pub name: String,
        /// `anti-affinity`, `soft-anti-affinity`, `affinity` or `soft-affinity`, from microversion 2.64 on.
        pub policy: String,
        /// The same before.
        pub policies: Vec<String>,
        /// Its servers, those in ERROR included.
        pub members: Vec<Id<Server>>,
        /// Project that owns the server group.
        pub project_id: String,
        /// Who made it.
        pub user_id: String,
    }
}

impl ServerGroup {
    /// The policy, whichever way the service writes it.
    pub fn policy(&self) -> &str {
        match self.policy.is_empty() {
            true => self.policies.first().map_or("", String::as_str),
            false => &self.policy,
        }
    }
}

/// A new group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewServerGroup {
    /// Name of the server group.
    pub name: String,
    /// Its policy. The soft ones need microversion 2.15.
    pub policy: String,
    /// Servers on one host at most, of `anti-affinity`. Needs microversion 2.64.
    pub max_server_per_host: Option<u32>,
}

impl NewServerGroup {
    /// Only what 2.64 alone can say is said in its words: older clouds understand the rest.
    fn is_plain(&self) -> bool {
        self.max_server_per_host.is_none()
    }
}

impl Serialize for NewServerGroup {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serde_json::Map::new();
        body.insert("name".to_owned(), self.name.clone().into());
        if self.is_plain() {
            body.insert("policies".to_owned(), vec![self.policy.clone()].into());
        } else {
            body.insert("policy".to_owned(), self.policy.clone().into());
            let rules = serde_json::json!({ "max_server_per_host": self.max_server_per_host });
            body.insert("rules".to_owned(), rules);
        }
        Value::Object(body).serialize(serializer)
    }
}

request! {
    /// What groups can be narrowed by. There is no filter by name.
    pub struct ServerGroupFilter {
        /// Of all projects; for administrators.
        pub all_projects: Option<bool>,
    }
}

impl Resource for ServerGroup {
    const SERVICE: Service = Service::Compute;
    const PATH: &'static str = "os-server-groups";
    const ONE: Option<&'static str> = Some("server_group");
    const WANTED: Option<Wanted> = Some(Wanted::between(Microversion(2, 1), Microversion(2, 64)));
}

impl List for ServerGroup {
    const MANY: &'static str = "server_groups";
    const PAGING: Paging = Paging::Offset;
    type Filter = ServerGroupFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}

impl Create for ServerGroup {
    type New = NewServerGroup;

    fn needs(new: &NewServerGroup) -> Option<Wanted> {
        Some(match new.is_plain() {
            false => Wanted::exactly(Microversion(2, 64)),
            true if new.policy.starts_with("soft-") => {
                Wanted::between(Microversion(2, 15), Microversion(2, 63))
            }
            true => Wanted::between(Microversion(2, 1), Microversion(2, 63)),
        })
    }
}

impl Delete for ServerGroup {}
