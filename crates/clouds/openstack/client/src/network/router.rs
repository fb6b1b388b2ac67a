//! Routers: from a network into others, and out of the cloud.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Network, Port, Subnet, TagFilter};
use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{model, request};
use crate::resource::{Deletion, item, resources, verbs, with_body};
use crate::service::Service;

model! {
    /// A router.
    pub struct Router {
        /// Id of the router.
        pub id: Id<Router>,
        /// Its name, which other routers may have too.
        pub name: String,
        /// Description of the router.
        pub description: String,
        /// Project that owns the router.
        pub project_id: String,
        /// `ACTIVE`, `ALLOCATING` or `ERROR`.
        pub status: String,
        /// It carries traffic.
        pub admin_state_up: bool,
        /// How it leads out of the cloud.
        pub external_gateway_info: Option<ExternalGateway>,
        /// Static routes.
        pub routes: Vec<Route>,
        /// Words of its owner.
        pub tags: Vec<String>,
        /// Grows with every change.
        pub revision_number: u64,
    }

    /// A subnet at a router.
    pub struct RouterInterface {
        /// The router.
        pub id: Id<Router>,
        /// The port between them.
        pub port_id: Id<Port>,
        /// The subnet.
        pub subnet_id: Id<Subnet>,
    }
}

/// How a router leads out of the cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalGateway {
    /// The external network.
    pub network_id: Id<Network>,
    /// Addresses there. Setting them is for administrators by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external_fixed_ips: Vec<GatewayIp>,
    /// Addresses inside are hidden. Setting it is for administrators by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_snat: Option<bool>,
}

/// An address of a router in the external network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayIp {
    /// The subnet.
    #[serde(skip_serializing_if = "Id::is_empty")]
    pub subnet_id: Id<Subnet>,
    /// The address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip_address: String,
}

/// A static route.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Where to.
    pub destination: String,
    /// By way of.
    pub nexthop: String,
}

request! {
    /// A new router.
    pub struct NewRouter {
        /// Name of the router.
        pub name: String,
        /// Description of the router.
        pub description: Option<String>,
        /// How it leads out of the cloud.
        pub external_gateway_info: Option<ExternalGateway>,
    }

    /// What can be changed of a router.
    pub struct RouterChange {
        /// Name of the router.
        pub name: Option<String>,
        /// Description of the router.
        pub description: Option<String>,
        /// How it leads out of the cloud.
        pub external_gateway_info: Option<ExternalGateway>,
    }

    /// What routers can be narrowed by.
    pub struct RouterFilter {
        /// Id of the router.
        pub id: Option<String>,
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// Description of the router.
        pub description: Option<String>,
        /// Project that owns the router.
        pub project_id: Option<String>,
        /// Words it has or has not.
        #[serde(flatten)]
        pub tags: TagFilter,
    }
}

resources! {
    Router: Network "routers" Some("router"), "routers" by RouterFilter;
}

verbs! {
    Router: new NewRouter, change RouterChange, delete;
}

impl Client {
    /// Puts a subnet at a router. Refused with 400 if it is there already.
    pub async fn add_router_interface(
        &self,
        router: &Id<Router>,
        subnet: &Id<Subnet>,
    ) -> Result<RouterInterface, Error> {
        let call = self.router_action(router, "add_router_interface", &json!({ "subnet_id": subnet }))?;
        self.read(&call, None).await
    }

    /// Takes a subnet from a router.
    pub async fn remove_router_interface(
        &self,
        router: &Id<Router>,
        subnet: &Id<Subnet>,
    ) -> Result<Deletion, Error> {
        let call = self.router_action(router, "remove_router_interface", &json!({ "subnet_id": subnet }))?;
        self.remove(&call.idempotent()).await
    }

    /// Adds static routes. Those that are there already do not count.
    pub async fn add_routes(&self, router: &Id<Router>, routes: &[Route]) -> Result<Router, Error> {
        let call =
            self.router_action(router, "add_extraroutes", &json!({ "router": { "routes": routes } }))?;
        self.read(&call.idempotent(), Some("router")).await
    }

    /// Removes static routes. Those that are not there do not count.
    pub async fn remove_routes(&self, router: &Id<Router>, routes: &[Route]) -> Result<Router, Error> {
        let call =
            self.router_action(router, "remove_extraroutes", &json!({ "router": { "routes": routes } }))?;
        self.read(&call.idempotent(), Some("router")).await
    }

    fn router_action(&self, router: &Id<Router>, action: &str, body: &Value) -> Result<Call, Error> {
        let path = format!("{}/{action}", item("routers", router));
        let call = Call::change(Service::Network, Method::PUT, path, Body::None);
        self.checked_id(router, &call)?;
        with_body(call, None, body)
    }
}
