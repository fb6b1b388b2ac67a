//! A simulated CloudStack with a network that is shared by all tenants, reached without a network but over its protocol.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use capstan_cloudstack_client::commands::{CreateNetwork, ListNetworkOfferings, ListZones, Owner};
use capstan_cloudstack_client::{
    Client, Clock, Credentials, Endpoint, Limits, Rotating, Transport, TransportError, Trust,
};
use capstan_cloudstack_provider::Connect;
use capstan_controller::{Dial, Env, Stream};
use capstan_guest::{Site, SiteOptions};
use capstan_sim_cloudstack::{ConnectionLost, Layout, Settings, Simulator};
use futures::future::BoxFuture;
use http::{Request, Response};
use parking_lot::Mutex;

pub const URL: &str = "http://cloud.example:8080/client/api";

/// What survives the end of the process: the management server and the machines.
#[derive(Clone)]
pub struct Cloud {
    pub simulator: Simulator,
    pub site: Site,
    pub env: Env,
    /// What answers at every address before the machines do, if anything.
    pub stranger: Arc<Mutex<Option<Stranger>>>,
}

/// A host that is no part of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    Answers,
    Refuses,
}

struct Doors(Cloud);

impl Dial for Doors {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        match *self.0.stranger.lock() {
            None => Box::pin(async move { self.0.site.dial().dial(host, port).await }),
            Some(Stranger::Refuses) => Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) }),
            Some(Stranger::Answers) => Box::pin(async { Ok(Box::new(tokio::io::duplex(64).0) as _) }),
        }
    }
}

struct InProcess(Simulator);

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let lost = |lost: ConnectionLost| TransportError { message: lost.to_string(), never_sent: false };
            self.0.call(request).await.map_err(lost)
        })
    }
}

impl Connect for Cloud {
    fn transport(&self, _: &str, _: Trust) -> Result<Arc<dyn Transport>, String> {
        Ok(Arc::new(InProcess(self.simulator.clone())))
    }

    fn clock(&self) -> Clock {
        let env = self.env.clone();
        Arc::new(move || env.now())
    }
}

impl Cloud {
    pub fn new(env: &Env, settings: Settings) -> Self {
        let site = Site::new(env.clone(), SiteOptions { heartbeat: None, ..SiteOptions::default() });
        let layout = Layout::small(&["v1.35.0", "v1.36.0"]);
        let simulator = Simulator::new(env.clone(), &layout, settings, Some(Arc::new(site.clone())));
        let driven = simulator.clone();
        tokio::spawn(async move { driven.drive().await });
        Self { simulator, site, env: env.clone(), stranger: Arc::default() }
    }

    /// How the lifecycle API finds out whether an address is in use.
    pub fn dial(&self) -> Arc<dyn Dial> {
        Arc::new(Doors(self.clone()))
    }

    pub fn client(&self, account: &str) -> Client {
        let keys = self.simulator.credentials(account).expect("keys");
        let keys = Rotating::new(Credentials::new(keys.api_key, keys.secret_key));
        let transport = Arc::new(InProcess(self.simulator.clone()));
        let endpoint = Endpoint::new(URL, transport, Limits::default());
        Client::new(Arc::new(endpoint.expect("a URL").with_clock(self.clock())), Arc::new(keys))
    }

    /// What the tenant has of a kind, by name.
    pub fn names(&self, kind: &str) -> Vec<String> {
        let leaks = self.simulator.leaks(Some("capstan"));
        leaks.into_iter().filter(|leak| leak.kind == kind).map(|leak| leak.name).collect()
    }

    /// The operator makes a network for all tenants.
    pub async fn share_network(&self, name: &str) {
        let operator = self.client("admin");
        let zones = operator.list(&ListZones::default()).await.expect("zones");
        let offering = Some("DefaultSharedNetworkOffering".to_owned());
        let question = ListNetworkOfferings { name: offering.clone(), ..ListNetworkOfferings::default() };
        let offerings = operator.list(&question).await.expect("offerings");
        let offering =
            offerings.into_iter().find(|it| Some(&it.name) == offering.as_ref()).expect("offering");
        let request = CreateNetwork {
            name: name.to_owned(),
            displaytext: None,
            networkofferingid: offering.id,
            zoneid: zones.into_iter().next().expect("a zone").id,
            gateway: "10.99.0.1".parse().ok(),
            netmask: Some("255.255.255.0".to_owned()),
            cidrsize: None,
            vpcid: None,
            aclid: None,
            owner: Owner::default(),
        };
        operator.call(&request).await.expect("a network");
        self.simulator.forgive();
    }
}
