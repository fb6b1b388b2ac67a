//! A simulated CloudStack, reached without a network but over its own protocol.

use std::sync::Arc;

use bytes::Bytes;
use capstan_cloudstack_client::{Clock, Transport, TransportError, Trust};
use capstan_cloudstack_provider::Connect;
use capstan_controller::Env;
use capstan_guest::{Site, SiteOptions};
use capstan_sim_cloudstack::{Layout, Settings, Simulator};
use futures::future::BoxFuture;
use http::{Request, Response};

/// What lives on when the process dies: the management server and the machines.
#[derive(Clone)]
pub struct Cloud {
    pub simulator: Simulator,
    pub site: Site,
    env: Env,
}

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
    /// A small cloud; its time goes by as long as the runtime that it is made in.
    pub fn new(env: &Env, settings: Settings) -> Self {
        let site = Site::new(env.clone(), SiteOptions { heartbeat: None, ..SiteOptions::default() });
        let layout = Layout::small(&["v1.35.0", "v1.36.0"]);
        let simulator = Simulator::new(env.clone(), &layout, settings, Some(site.clone()));
        let driven = simulator.clone();
        tokio::spawn(async move { driven.drive().await });
        Self { simulator, site, env: env.clone() }
    }

    /// What the tenant has of a kind, by name.
    pub fn names(&self, kind: &str) -> Vec<String> {
        let leaks = self.simulator.leaks(Some("capstan"));
        leaks.into_iter().filter(|leak| leak.kind == kind).map(|leak| leak.name).collect()
    }
}
