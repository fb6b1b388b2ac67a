//! A simulated OpenStack, reached without a network but over its own protocol.

use std::sync::Arc;

use bytes::Bytes;
use capstan_controller::Env;
use capstan_guest::{Site, SiteOptions};
use capstan_openstack_client::config::Clouds;
use capstan_openstack_client::{Client, Clock, Cloud as Settings, Policy, Transport, TransportError};
use capstan_openstack_provider::Connect;
use capstan_sim_openstack::{
    Endpoints, HostLayout, Layout, Settings as CloudSettings, Simulator, UserLayout,
};
use futures::future::BoxFuture;
use http::{Request, Response};

/// Where the services are reached.
const URL: &str = "http://cloud.example";
/// Password of the tenant: nothing else has this text.
pub const PASSWORD: &str = "correct-horse-battery-staple";
/// Name of the tenant's project and user.
pub const TENANT: &str = "capstan";
/// Name of another project and its user, who has the same password.
pub const OTHER: &str = "other";

/// What outlives the process: the cloud and its servers.
#[derive(Clone)]
pub struct Cloud {
    pub simulator: Simulator,
    pub site: Site,
    env: Env,
}

/// The size of a host.
const HOST: HostLayout =
    HostLayout { name: String::new(), zone: String::new(), vcpus: 64, memory_mib: 262_144, disk_gib: 4_000 };

struct InProcess(Simulator);

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let lost = |lost: capstan_sim_openstack::ConnectionLost| TransportError {
                message: lost.to_string(),
                never_sent: false,
            };
            self.0.call_shared(request).await.map_err(lost)
        })
    }
}

impl Connect for Cloud {
    fn transport(&self, _: &Settings) -> Result<Arc<dyn Transport>, String> {
        Ok(Arc::new(InProcess(self.simulator.clone())))
    }

    fn clock(&self) -> Clock {
        let env = self.env.clone();
        Arc::new(move || env.now())
    }
}

/// The `clouds.yaml` of the tenant.
pub fn clouds_yaml() -> String {
    format!(
        "clouds:\n  {TENANT}:\n    auth:\n      auth_url: {URL}/identity/v3\n      username: {TENANT}\n      password: \
         {PASSWORD}\n      project_name: {TENANT}\n      user_domain_name: Default\n      project_domain_name: Default\n    \
         region_name: RegionOne\n"
    )
}

impl Cloud {
    /// A small cloud with two or three zones; its time goes by as long as the runtime that it is made in.
    pub fn new(env: &Env, settings: CloudSettings, third_zone: bool) -> Self {
        let site = Site::new(env.clone(), SiteOptions { heartbeat: None, ..SiteOptions::default() });
        let mut layout = Layout::small(&["v1.35.0", "v1.36.0"]);
        layout.projects.push(OTHER.to_owned());
        let other = layout.users.first().cloned();
        layout.users.extend(other.map(|user| UserLayout {
            name: OTHER.to_owned(),
            project: OTHER.to_owned(),
            ..user
        }));
        for user in &mut layout.users {
            user.password = PASSWORD.to_owned();
        }
        if third_zone {
            for region in &mut layout.regions {
                let host = HostLayout { name: "az3-host1".to_owned(), zone: "az3".to_owned(), ..HOST };
                region.hosts.push(host);
            }
        }
        let simulator = Simulator::new(env.clone(), &layout, settings, Some(Arc::new(site.clone())));
        simulator.set_endpoints(Endpoints::shared(URL, &simulator.regions()));
        let driven = simulator.clone();
        tokio::spawn(async move { driven.drive().await });
        Self { simulator, site, env: env.clone() }
    }

    /// The tenant by hand.
    pub fn client(&self) -> Client {
        let clouds = Clouds::parse(&clouds_yaml(), None, None).expect("clouds.yaml");
        self.client_of(clouds.cloud(Some(TENANT), None).expect("a cloud"))
    }

    /// A client with other credentials.
    pub fn client_of(&self, settings: Settings) -> Client {
        let transport = Arc::new(InProcess(self.simulator.clone()));
        Client::with_clock(settings, transport, Policy::default(), self.clock())
    }

    /// What the tenant has of a kind, by name.
    pub fn names(&self, kind: &str) -> Vec<String> {
        let leaks = self.simulator.leaks(Some(TENANT));
        leaks.into_iter().filter(|leak| leak.kind == kind).map(|leak| leak.name).collect()
    }
}
