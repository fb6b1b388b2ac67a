//! A small cloud and a client that knows only the APIs' documentation.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use capstan_env::Env;
use capstan_guest::Site;
use capstan_hypervisor::Hypervisor;
use capstan_sim_openstack::{ConnectionLost, Layout, Service, Settings, Simulator, UserLayout};
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};

/// When the world begins.
const BEGIN: i64 = 1_800_000_000_000;

pub struct World {
    pub simulator: Simulator,
    millis: Arc<AtomicI64>,
    /// Region of the calls.
    pub region: String,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub token: Option<String>,
    pub body: Value,
}

impl World {
    pub fn new() -> Self {
        Self::build(None)
    }

    /// A cloud whose servers are guests of a site.
    pub fn on(site: &Site) -> Self {
        Self::build(Some(Arc::new(site.clone())))
    }

    /// A clock that stands still.
    pub fn env() -> Env {
        Env::simulated(|| Timestamp::from_millisecond(BEGIN).unwrap(), 7)
    }

    fn build(hypervisor: Option<Arc<dyn Hypervisor>>) -> Self {
        let mut layout = Layout::small(&["v1.36.0"]);
        layout.projects.push("other".to_owned());
        layout.users.push(UserLayout {
            name: "mallory".to_owned(),
            password: "mallory".to_owned(),
            project: "other".to_owned(),
            roles: vec!["member".to_owned()],
        });
        let millis = Arc::new(AtomicI64::new(BEGIN));
        let read = millis.clone();
        let clock = move || Timestamp::from_millisecond(read.load(Ordering::Relaxed)).unwrap();
        let simulator = Simulator::new(Env::simulated(clock, 7), &layout, Settings::default(), hypervisor);
        Self { simulator, millis, region: "RegionOne".to_owned() }
    }

    pub fn pass(&self, span: Duration) {
        self.millis.fetch_add(i64::try_from(span.as_millis()).unwrap(), Ordering::Relaxed);
    }

    pub async fn send(
        &self,
        token: Option<&str>,
        service: Service,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Answer, ConnectionLost> {
        let mut request =
            Request::builder().method(method).uri(path).header("openstack-api-version", "compute 2.79");
        if service == Service::Volume {
            request = Request::builder().method(method).uri(path);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        if let Some(token) = token {
            request = request.header("x-auth-token", token);
        }
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let response =
            self.simulator.call(&self.region, service, request.body(Bytes::from(bytes)).unwrap()).await?;
        let token = response.headers().get("x-subject-token").map(|it| it.to_str().unwrap().to_owned());
        let body = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
        Ok(Answer { status: response.status().as_u16(), token, body })
    }

    /// A token of a user whose password is its name, on a project.
    pub async fn token(&self, user: &str, project: &str) -> String {
        let domain = json!({"name": "Default"});
        let auth = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": user, "domain": domain, "password": user}}},
            "scope": {"project": {"name": project, "domain": domain}},
        }});
        let answer = self.send(None, Service::Identity, "POST", "/v3/auth/tokens", Some(auth)).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.token.unwrap()
    }

    pub async fn tenant(&self) -> Client<'_> {
        Client { world: self, token: self.token("capstan", "capstan").await }
    }

    pub async fn client(&self, user: &str, project: &str) -> Client<'_> {
        Client { world: self, token: self.token(user, project).await }
    }
}

pub struct Client<'a> {
    pub world: &'a World,
    pub token: String,
}

impl Client<'_> {
    pub async fn call(&self, service: Service, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.world.send(Some(&self.token), service, method, path, body).await.unwrap()
    }

    pub async fn get(&self, service: Service, path: &str) -> Value {
        let answer = self.call(service, "GET", path, None).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }

    /// Creates something and returns it without its wrapper.
    pub async fn create(&self, service: Service, path: &str, body: Value) -> Value {
        let answer = self.call(service, "POST", path, Some(body)).await;
        assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
        answer.body.as_object().unwrap().values().next().unwrap().clone()
    }

    pub async fn network(&self, name: &str, cidr: &str) -> (String, String) {
        let network =
            self.create(Service::Network, "/v2.0/networks", json!({"network": {"name": name}})).await;
        let id = network["id"].as_str().unwrap().to_owned();
        let subnet = json!({"subnet": {"network_id": id, "ip_version": 4, "cidr": cidr}});
        let subnet = self.create(Service::Network, "/v2.0/subnets", subnet).await;
        (id, subnet["id"].as_str().unwrap().to_owned())
    }

    /// A router from a subnet to the external network.
    pub async fn router(&self, subnet: &str) -> String {
        let external = self.external().await;
        let body = json!({"router": {"name": "r", "external_gateway_info": {"network_id": external}}});
        let router = self.create(Service::Network, "/v2.0/routers", body).await;
        let id = router["id"].as_str().unwrap().to_owned();
        let path = format!("/v2.0/routers/{id}/add_router_interface");
        let added = self.call(Service::Network, "PUT", &path, Some(json!({"subnet_id": subnet}))).await;
        assert_eq!(added.status, 200, "{added:?}");
        id
    }

    pub async fn external(&self) -> String {
        let found = self.get(Service::Network, "/v2.0/networks?router:external=true").await;
        found["networks"][0]["id"].as_str().unwrap().to_owned()
    }

    pub async fn image(&self) -> String {
        self.get(Service::Image, "/v2/images").await["images"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Asks for a server of 40 GiB.
    pub async fn order(&self, name: &str, network: &str, more: Value) -> Answer {
        let image = self.image().await;
        let mut server =
            json!({"name": name, "imageRef": image, "flavorRef": "3", "networks": [{"uuid": network}]});
        let mut body = json!({});
        for (key, value) in more.as_object().unwrap() {
            match key.as_str() {
                "os:scheduler_hints" => body[key] = value.clone(),
                _ => server[key] = value.clone(),
            }
        }
        body["server"] = server;
        self.call(Service::Compute, "POST", "/v2.1/servers", Some(body)).await
    }

    /// A server after it was built or has failed.
    pub async fn server(&self, name: &str, network: &str, more: Value) -> Value {
        let ordered = self.order(name, network, more).await;
        assert_eq!(ordered.status, 202, "{ordered:?}");
        let id = ordered.body["server"]["id"].as_str().unwrap().to_owned();
        for _ in 0..60 {
            let server = self.get(Service::Compute, &format!("/v2.1/servers/{id}")).await["server"].clone();
            if server["status"] != "BUILD" {
                return server;
            }
            self.world.pass(Duration::from_secs(1));
        }
        panic!("the server is never built");
    }

    /// Waits until a resource is gone.
    pub async fn gone(&self, service: Service, path: &str) {
        for _ in 0..60 {
            if self.call(service, "GET", path, None).await.status == 404 {
                return;
            }
            self.world.pass(Duration::from_secs(1));
        }
        panic!("{path} is never gone");
    }

    /// Waits until a load balancer is not PENDING.
    pub async fn settled(&self, balancer: &str) -> String {
        for _ in 0..120 {
            let row = self.get(Service::LoadBalancer, &format!("/v2/lbaas/loadbalancers/{balancer}")).await;
            let status = row["loadbalancer"]["provisioning_status"].as_str().unwrap().to_owned();
            if !status.starts_with("PENDING") {
                return status;
            }
            self.world.pass(Duration::from_secs(1));
        }
        panic!("the load balancer is PENDING for ever");
    }
}
