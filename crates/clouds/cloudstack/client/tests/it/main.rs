//! The client against a simulated CloudStack. They share no code: they meet on the wire, in simulated time.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod faults;
mod tenant;

use std::sync::Arc;

use bytes::Bytes;
use capstan_cloudstack_client::commands::{
    CreateNetwork, DeployVirtualMachine, ListNetworkOfferings, ListServiceOfferings, ListTemplates,
    ListZones, Owner,
};
use capstan_cloudstack_client::model::{Network, VirtualMachine};
use capstan_cloudstack_client::{
    Client, Credentials, Endpoint, Limits, Policy, Rotating, Transport, TransportError, ZoneId,
};
use capstan_env::Env;
use capstan_sim_cloudstack::{AccountLayout, Layout, RoleType, Settings, Simulator};
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

struct InProcess(Simulator);

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let lost = |lost: capstan_sim_cloudstack::ConnectionLost| TransportError {
                message: lost.to_string(),
                never_sent: false,
            };
            self.0.call(request).await.map_err(lost)
        })
    }
}

/// A cloud with a tenant, and what the tenant has looked up.
struct World {
    simulator: Simulator,
    client: Client,
    keys: Arc<Rotating>,
    zone: ZoneId,
}

impl World {
    async fn new(settings: Settings) -> Self {
        Self::with_policy(settings, Policy::default()).await
    }

    async fn with_policy(settings: Settings, policy: Policy) -> Self {
        let mut layout = Layout::small(&["v1.36.0"]);
        layout.domains[0].accounts.push(AccountLayout::new("boss", RoleType::DomainAdmin));
        let begun = Instant::now();
        let clock = move || {
            let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            start + SignedDuration::try_from(begun.elapsed()).unwrap()
        };
        let simulator = Simulator::new(Env::simulated(clock, 7), &layout, settings, None);
        let transport = Arc::new(InProcess(simulator.clone()));
        let endpoint = Endpoint::new("http://cloud.example:8080/client/api", transport, Limits::default())
            .unwrap()
            .with_clock(Arc::new(clock));
        let keys = simulator.credentials("capstan").unwrap();
        let keys = Arc::new(Rotating::new(Credentials::new(keys.api_key, keys.secret_key)));
        let client = Client::with_policy(Arc::new(endpoint), keys.clone(), policy);
        let zone = client.find(&ListZones::default()).await.unwrap().unwrap().id;
        Self { simulator, client, keys, zone }
    }

    /// A client of another account.
    fn client_of(&self, account: &str) -> Client {
        let keys = self.simulator.credentials(account).unwrap();
        let keys = Credentials::new(keys.api_key, keys.secret_key);
        Client::new(self.client.endpoint().clone(), Arc::new(keys))
    }

    async fn network(&self, name: &str) -> Network {
        let offering = "DefaultIsolatedNetworkOfferingWithSourceNatService";
        let question = ListNetworkOfferings { name: Some(offering.to_owned()), ..Default::default() };
        // Look-ups by name find every name that contains it.
        let found = self.client.cached(&question).await.unwrap();
        let offering = found.iter().find(|found| found.name == offering).unwrap();
        let network = CreateNetwork {
            name: name.to_owned(),
            displaytext: None,
            networkofferingid: offering.id.clone(),
            zoneid: self.zone.clone(),
            gateway: None,
            netmask: None,
            cidrsize: None,
            vpcid: None,
            aclid: None,
            owner: Owner::default(),
        };
        self.client.call(&network).await.unwrap()
    }

    async fn order(&self, name: &str, network: &Network) -> DeployVirtualMachine {
        let offering = ListServiceOfferings { name: Some("small instance".to_owned()), ..Default::default() };
        let offering = self.client.cached(&offering).await.unwrap()[0].clone();
        assert_eq!((offering.cpunumber, offering.memory), (Some(2), Some(2048)));
        let template = self.client.cached(&ListTemplates::default()).await.unwrap()[0].clone();
        assert!(template.isready);
        let mut order = DeployVirtualMachine::new(self.zone.clone(), offering.id, template.id);
        order.name = Some(name.to_owned());
        order.networkids = vec![network.id.clone()];
        order
    }

    async fn machine(&self, name: &str, network: &Network) -> VirtualMachine {
        self.client.run(&self.order(name, network).await).await.unwrap()
    }
}
