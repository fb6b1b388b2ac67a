//! The cloud that the recording was made on, simulated.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use capstan_env::Env;
use capstan_sim_openstack::{
    Endpoints, ExternalLayout, FlavorLayout, HostLayout, ImageLayout, Layout, RegionLayout, Service,
    Settings, Simulator, Timings,
};
use http::Request;
use ipnet::Ipv4Net;
use serde_json::Value;

use crate::Answer;
use crate::case::Case;

const REGION: &str = "RegionOne";
/// Ports of the recorded services.
const PORTS: &[(Service, u16)] = &[
    (Service::Identity, 20500),
    (Service::Compute, 20774),
    (Service::Network, 20696),
    (Service::Image, 20292),
    (Service::Volume, 20776),
    (Service::LoadBalancer, 20876),
    (Service::Placement, 20778),
];

pub fn service(name: &str) -> Option<Service> {
    match name {
        "identity" => Some(Service::Identity),
        "compute" => Some(Service::Compute),
        "network" => Some(Service::Network),
        "image" => Some(Service::Image),
        "volume" => Some(Service::Volume),
        "load-balancer" => Some(Service::LoadBalancer),
        "placement" => Some(Service::Placement),
        _ => None,
    }
}

fn layout() -> Layout {
    let flavor = |name: &str, vcpus, memory, disk| FlavorLayout::new(name, name, vcpus, memory, disk);
    let host = |name: &str| HostLayout {
        name: name.to_owned(),
        zone: "nova".to_owned(),
        vcpus: 1000,
        memory_mib: 799_488,
        disk_gib: 600_000,
    };
    let image = |name: &str, distro: Option<&str>| {
        let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut properties = vec![
            property("owner_specified.openstack.md5", ""),
            property("owner_specified.openstack.sha256", ""),
            property("owner_specified.openstack.object", &format!("images/{name}")),
        ];
        properties.extend(distro.map(|distro| property("os_distro", distro)));
        ImageLayout {
            name: name.to_owned(),
            kubernetes: None,
            properties,
            tags: if distro.is_none() { vec![name.to_owned()] } else { Vec::new() },
            min_disk_gib: 0,
            format: "raw".to_owned(),
        }
    };
    Layout {
        regions: vec![RegionLayout {
            name: REGION.to_owned(),
            hosts: vec![host("compute1"), host("compute2")],
            flavors: vec![
                flavor("m1.tiny", 1, 512, 1),
                flavor("m1.small", 1, 2048, 10),
                flavor("m1.medium", 2, 4096, 20),
                flavor("m1.large", 4, 8192, 40),
                FlavorLayout { public: false, ..flavor("amphora", 1, 1024, 3) },
            ],
            images: vec![image("bed-image", Some("ubuntu")), image("amphora", None)],
            external: Some(ExternalLayout {
                name: "public".to_owned(),
                cidr: Ipv4Net::new_assert(Ipv4Addr::new(203, 0, 113, 0), 24),
                gateway: Ipv4Addr::new(203, 0, 113, 1),
                pool: (Ipv4Addr::new(203, 0, 113, 10), Ipv4Addr::new(203, 0, 113, 250)),
            }),
        }],
        projects: vec!["demo".to_owned()],
        users: Vec::new(),
    }
}

/// A simulator with a clock that is moved by hand.
pub struct Cloud {
    simulator: Simulator,
    millis: Arc<AtomicI64>,
    /// Time of the last case.
    last: AtomicI64,
}

impl Cloud {
    pub fn new(start: jiff::Timestamp) -> Self {
        let millis = Arc::new(AtomicI64::new(start.as_millisecond()));
        let read = millis.clone();
        let clock =
            move || jiff::Timestamp::from_millisecond(read.load(Ordering::Relaxed)).unwrap_or_default();
        // As fast as the recorded services were.
        let timings = Timings { balancer_update: Duration::from_secs(1), ..Timings::default() };
        let settings = Settings {
            health_manager: false,
            import_methods: vec!["glance-direct".to_owned()],
            timings,
            ..Settings::default()
        };
        let simulator = Simulator::new(Env::simulated(clock, 1), &layout(), settings, None);
        let urls = PORTS
            .iter()
            .map(|(service, port)| ((REGION.to_owned(), *service), format!("http://127.0.0.1:{port}")))
            .collect();
        simulator.set_endpoints(Endpoints(urls));
        Self { simulator, millis, last: AtomicI64::new(start.as_millisecond()) }
    }

    /// Advances the clock by as much as passed between two cases: waiting for states may have put it ahead. A poll waits by
    /// itself.
    pub fn reach(&self, at: jiff::Timestamp, poll: bool) {
        let last = self.last.swap(at.as_millisecond(), Ordering::Relaxed);
        let passed = if poll { 0 } else { (at.as_millisecond() - last).max(0) };
        self.millis.fetch_add(passed, Ordering::Relaxed);
    }

    pub fn pass(&self, millis: i64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }

    pub async fn send(
        &self,
        case: &Case,
        path: &str,
        body: Option<Vec<u8>>,
        token: Option<&str>,
        subject: Option<&str>,
    ) -> Result<Answer> {
        let service = service(&case.service).context("the service is not simulated")?;
        let mut request = Request::builder().method(case.method.as_str()).uri(encode(path));
        let has_kind = case.request_headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
        if body.is_some() && !has_kind {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in
            case.request_headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("x-subject-token"))
        {
            request = request.header(name, value);
        }
        if let Some(token) = token {
            request = request.header("x-auth-token", token);
        }
        if let Some(subject) = subject {
            request = request.header("x-subject-token", subject);
        }
        self.call(service, request.body(Bytes::from(body.unwrap_or_default()))?).await
    }

    pub async fn call(&self, service: Service, request: Request<Bytes>) -> Result<Answer> {
        let response = self.simulator.call(REGION, service, request).await?;
        let headers: BTreeMap<String, String> = response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap_or_default().to_owned()))
            .collect();
        let body =
            serde_json::from_slice(response.body()).unwrap_or_else(|_| match response.body().is_empty() {
                true => Value::Null,
                false => Value::String(String::from_utf8_lossy(response.body()).into_owned()),
            });
        Ok(Answer { status: response.status().as_u16(), headers, body })
    }
}

/// Characters that a client escapes before a path goes out.
fn encode(path: &str) -> String {
    path.chars()
        .map(|c| match c {
            '\'' | '|' | '^' | '{' | '}' | '"' | '<' | '>' | '`' | ' ' | '[' | ']' => {
                format!("%{:02X}", u32::from(c))
            }
            c => c.to_string(),
        })
        .collect()
}
