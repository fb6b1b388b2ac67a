//! A small cloud and a client that signs: no client of ours, only what the API's documentation says.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use capstan_env::Env;
use capstan_guest::Site;
use capstan_hypervisor::Hypervisor;
use capstan_sim_cloudstack::{
    AccountLayout, ConnectionLost, DomainLayout, Layout, OfferedSize, RoleType, Settings, Simulator, Size,
    ZoneLayout, encode, sign,
};
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::Value;

/// When the world begins.
const BEGIN: i64 = 1_800_000_000_000;

/// A cloud of two hosts whose clock stands still until it is moved.
pub struct World {
    pub simulator: Simulator,
    millis: Arc<AtomicI64>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub wrapper: String,
    pub body: Value,
}

impl Answer {
    pub fn code(&self) -> (u16, Option<u64>) {
        (self.status, self.body["cserrorcode"].as_u64())
    }

    pub fn text(&self) -> &str {
        self.body["errortext"].as_str().unwrap_or_default()
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        Self::build(settings, None)
    }

    /// A cloud whose machines are guests of a site.
    pub fn on(site: &Site) -> Self {
        Self::build(Settings::default(), Some(Arc::new(site.clone())))
    }

    /// A clock that stands still.
    pub fn env() -> Env {
        Env::simulated(|| Timestamp::from_millisecond(BEGIN).unwrap(), 7)
    }

    fn build(settings: Settings, hypervisor: Option<Arc<dyn Hypervisor>>) -> Self {
        let mut layout = Layout::small(&["v1.36.0"]);
        layout.zones = vec![ZoneLayout::new("zone-1", 2, Ipv4Addr::new(192, 0, 2, 2), 6)];
        layout.zones[0].host_size = Size { cores: 8, mhz: 2000, memory_mib: 16_384 };
        layout.domains = vec![DomainLayout {
            name: "dom1".to_owned(),
            network_domain: Some("dom1.example".to_owned()),
            accounts: vec![
                AccountLayout::new("alice", RoleType::User),
                AccountLayout::new("bob", RoleType::User),
                AccountLayout::new("dadmin", RoleType::DomainAdmin),
            ],
        }];
        layout
            .service_offerings
            .push(("Huge".to_owned(), OfferedSize::Fixed(Size { cores: 4, mhz: 500, memory_mib: 1 << 20 })));
        let millis = Arc::new(AtomicI64::new(BEGIN));
        let read = millis.clone();
        let clock = move || Timestamp::from_millisecond(read.load(Ordering::Relaxed)).unwrap();
        Self { simulator: Simulator::new(Env::simulated(clock, 7), &layout, settings, hypervisor), millis }
    }

    pub fn pass(&self, span: Duration) {
        self.millis.fetch_add(i64::try_from(span.as_millis()).unwrap(), Ordering::Relaxed);
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.millis.load(Ordering::Relaxed)).unwrap()
    }

    /// A query string of somebody, signed.
    pub fn query(&self, account: &str, command: &str, parameters: &[(&str, &str)]) -> String {
        let keys = self.simulator.credentials(account).unwrap();
        self.query_with(&keys.api_key, &keys.secret_key, command, parameters)
    }

    pub fn query_with(&self, key: &str, secret: &str, command: &str, parameters: &[(&str, &str)]) -> String {
        let mut all: Vec<(String, String)> = [("command", command), ("apiKey", key), ("response", "json")]
            .iter()
            .chain(parameters)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let signature = sign(&all, secret);
        all.push(("signature".to_owned(), signature));
        let pairs: Vec<_> = all.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        pairs.join("&")
    }

    pub async fn send(
        &self,
        method: Method,
        query: &str,
        form: &str,
    ) -> Result<Response<Bytes>, ConnectionLost> {
        let request = Request::builder().method(method).uri(format!("/client/api?{query}"));
        self.simulator.call(request.body(Bytes::copy_from_slice(form.as_bytes())).unwrap()).await
    }

    pub async fn try_get(
        &self,
        account: &str,
        command: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Answer, ConnectionLost> {
        self.send(Method::GET, &self.query(account, command, parameters), "").await.map(read)
    }

    pub async fn get(&self, account: &str, command: &str, parameters: &[(&str, &str)]) -> Answer {
        self.try_get(account, command, parameters).await.unwrap()
    }

    /// The end of a job, after however long it takes.
    pub async fn wait(&self, account: &str, submitted: &Answer) -> Value {
        assert_eq!(submitted.status, 200, "{submitted:?}");
        let job = submitted.body["jobid"].as_str().unwrap().to_owned();
        for _ in 0..100 {
            let answer = self.get(account, "queryAsyncJobResult", &[("jobid", &job)]).await;
            if answer.body["jobstatus"] != 0 {
                return answer.body;
            }
            self.pass(Duration::from_secs(1));
        }
        panic!("the job does not end");
    }

    /// Submits a job and awaits its success.
    pub async fn done(&self, account: &str, command: &str, parameters: &[(&str, &str)]) -> Value {
        let submitted = self.get(account, command, parameters).await;
        let end = self.wait(account, &submitted).await;
        assert_eq!(end["jobstatus"], 1, "{end}");
        end["jobresult"].clone()
    }

    /// The id of the one thing of a name in a list.
    pub async fn id(&self, list: &str, key: &str, name: &str) -> String {
        let filter: &[(&str, &str)] = &[("templatefilter", "featured")];
        let answer = self.get("alice", list, filter).await;
        let all = answer.body[key].as_array().unwrap_or_else(|| panic!("{answer:?}"));
        all.iter().find(|one| one["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub async fn zone(&self) -> String {
        self.id("listZones", "zone", "zone-1").await
    }

    pub async fn network(&self, account: &str, name: &str) -> String {
        let zone = self.zone().await;
        let offering = self
            .id(
                "listNetworkOfferings",
                "networkoffering",
                "DefaultIsolatedNetworkOfferingWithSourceNatService",
            )
            .await;
        let made = self
            .get(
                account,
                "createNetwork",
                &[("zoneid", &zone), ("networkofferingid", &offering), ("name", name)],
            )
            .await;
        assert_eq!(made.status, 200, "{made:?}");
        made.body["network"]["id"].as_str().unwrap().to_owned()
    }

    /// Asks for a machine of the smallest size.
    pub async fn deploy(&self, account: &str, network: &str, name: &str, more: &[(&str, &str)]) -> Answer {
        let zone = self.zone().await;
        let template = self.id("listTemplates", "template", "ubuntu-2404-kube-v1.36.0").await;
        let small = self.id("listServiceOfferings", "serviceoffering", "Small Instance").await;
        let mut parameters: Vec<(&str, &str)> =
            vec![("zoneid", &zone), ("templateid", &template), ("name", name)];
        if !more.iter().any(|(name, _)| *name == "serviceofferingid") {
            parameters.push(("serviceofferingid", &small));
        }
        if !network.is_empty() {
            parameters.push(("networkids", network));
        }
        parameters.extend(more);
        self.get(account, "deployVirtualMachine", &parameters).await
    }

    /// A running machine.
    pub async fn machine(&self, account: &str, network: &str, name: &str) -> String {
        let submitted = self.deploy(account, network, name, &[]).await;
        let end = self.wait(account, &submitted).await;
        assert_eq!(end["jobstatus"], 1, "{end}");
        submitted.body["id"].as_str().unwrap().to_owned()
    }
}

pub fn read(response: Response<Bytes>) -> Answer {
    let status = response.status().as_u16();
    let value: Value = serde_json::from_slice(response.body())
        .unwrap_or_else(|error| panic!("{error}: {:?}", response.body()));
    let (wrapper, body) = value.as_object().unwrap().iter().next().unwrap();
    Answer { status, wrapper: wrapper.clone(), body: body.clone() }
}

pub fn is_ok(response: &Response<Bytes>) -> bool {
    response.status() == StatusCode::OK
}
