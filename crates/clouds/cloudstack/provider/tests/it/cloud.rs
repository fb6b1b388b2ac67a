//! A simulated CloudStack, reached without a network but over its own protocol.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use capstan_cloudstack_client::{
    Client, Clock, Credentials, Endpoint, Limits, Rotating, Transport, TransportError, Trust,
};
use capstan_cloudstack_provider::Connect;
use capstan_controller::Env;
use capstan_guest::{Site, SiteOptions};
use capstan_sim_cloudstack::{Layout, OfferedSize, Settings, Simulator, Size, ZoneLayout};
use futures::future::BoxFuture;
use http::{Request, Response};

/// What survives the end of the process: the management server and the machines.
#[derive(Clone)]
pub struct Cloud {
    pub simulator: Simulator,
    pub site: Site,
    env: Env,
    /// Calls of the plane, by command.
    calls: Calls,
    /// The address that manifests are to name as endpoint.
    endpoint: Arc<Mutex<Option<IpAddr>>>,
}

type Calls = Arc<Mutex<BTreeMap<String, u64>>>;

/// The way to the server; counts what goes there if somebody wants to know.
struct InProcess(Simulator, Option<Calls>);

/// The command of a request, in its query or its form.
fn command(request: &Request<Bytes>) -> String {
    let body = String::from_utf8_lossy(request.body());
    let mut pairs = request.uri().query().unwrap_or_default().split('&').chain(body.split('&'));
    pairs.find_map(|pair| pair.strip_prefix("command=")).unwrap_or_default().to_owned()
}

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        if let Some(calls) = &self.1 {
            *calls.lock().expect("counts").entry(command(&request)).or_default() += 1;
        }
        Box::pin(async move {
            let lost = |lost: capstan_sim_cloudstack::ConnectionLost| TransportError {
                message: lost.to_string(),
                never_sent: false,
            };
            self.0.call(request).await.map_err(lost)
        })
    }
}

impl Connect for Cloud {
    fn transport(&self, _: &str, _: Trust) -> Result<Arc<dyn Transport>, String> {
        Ok(Arc::new(InProcess(self.simulator.clone(), Some(self.calls.clone()))))
    }

    fn clock(&self) -> Clock {
        let env = self.env.clone();
        Arc::new(move || env.now())
    }
}

impl Cloud {
    /// A small cloud with two zones; its time goes by as long as the runtime that it is made in.
    pub fn new(env: &Env, settings: Settings) -> Self {
        let site = Site::new(env.clone(), SiteOptions { heartbeat: None, ..SiteOptions::default() });
        let mut layout = Layout::small(&["v1.35.0", "v1.36.0"]);
        let size = Size { cores: 64, mhz: 2000, memory_mib: 1 << 20 };
        layout.service_offerings.push(("Huge Instance".to_owned(), OfferedSize::Fixed(size)));
        layout.zones.push(ZoneLayout::new("zone-2", 8, Ipv4Addr::new(198, 51, 100, 2), 64));
        let simulator = Simulator::new(env.clone(), &layout, settings, Some(Arc::new(site.clone())));
        let driven = simulator.clone();
        tokio::spawn(async move { driven.drive().await });
        Self { simulator, site, env: env.clone(), calls: Calls::default(), endpoint: Arc::default() }
    }

    /// Somebody else with keys of an account: its owner by hand, or the operator.
    pub fn client(&self, account: &str) -> Client {
        let keys = self.simulator.credentials(account).expect("keys");
        let keys = Rotating::new(Credentials::new(keys.api_key, keys.secret_key));
        let transport = Arc::new(InProcess(self.simulator.clone(), None));
        let endpoint = Endpoint::new("http://cloud.example:8080/client/api", transport, Limits::default());
        Client::new(Arc::new(endpoint.expect("a URL").with_clock(self.clock())), Arc::new(keys))
    }

    /// Has the operator carry a command out, by the simulator's own API.
    pub async fn operate(&self, form: &str) -> Result<(), String> {
        let request = Request::post("/sim/call").body(Bytes::copy_from_slice(form.as_bytes()));
        let request = request.map_err(|error| error.to_string())?;
        let response = self.simulator.call(request).await.map_err(|lost| lost.to_string())?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(response.body()).into_owned()),
        }
    }

    /// The address that manifests are to name as endpoint.
    pub fn endpoint(&self) -> Option<IpAddr> {
        *self.endpoint.lock().expect("the endpoint")
    }

    pub fn set_endpoint(&self, address: IpAddr) {
        *self.endpoint.lock().expect("the endpoint") = Some(address);
    }

    /// Calls of the plane so far, by command.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        self.calls.lock().expect("counts").clone()
    }

    /// What the tenant has of a kind, by name.
    pub fn names(&self, kind: &str) -> Vec<String> {
        let leaks = self.simulator.leaks(Some("capstan"));
        leaks.into_iter().filter(|leak| leak.kind == kind).map(|leak| leak.name).collect()
    }
}
