//! A site as the hypervisor of a simulated cloud.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use capstan_env::Env;
use capstan_hypervisor::{Hypervisor, HypervisorError, HypervisorOptions};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use crate::vm::VmSpec;
use crate::{Site, SiteError, SiteOptions, Timings};

impl From<SiteError> for HypervisorError {
    fn from(error: SiteError) -> Self {
        Self(error.to_string())
    }
}

impl Site {
    /// An empty site for a simulated cloud.
    pub fn hypervisor(env: Env, options: HypervisorOptions) -> Arc<dyn Hypervisor> {
        let HypervisorOptions { endpoint_port, speed } = options;
        let timings = paced(Timings::default(), speed);
        Arc::new(Self::new(env, SiteOptions { endpoint_port, timings, ..SiteOptions::default() }))
    }
}

/// Machines that take this many times less time.
fn paced(timings: Timings, speed: f64) -> Timings {
    let faster = |time: Duration| time.div_f64(speed);
    Timings {
        boot: faster(timings.boot),
        init: faster(timings.init),
        join: faster(timings.join),
        pod: faster(timings.pod),
    }
}

impl Hypervisor for Site {
    fn create(&self, spec: VmSpec) -> Result<(), HypervisorError> {
        Ok(Self::create(self, spec).map(drop)?)
    }

    fn start(&self, id: &str) -> Result<(), HypervisorError> {
        Ok(Self::start(self, id)?)
    }

    fn stop(&self, id: &str) -> Result<(), HypervisorError> {
        Ok(Self::stop(self, id)?)
    }

    fn reboot(&self, id: &str) -> Result<(), HypervisorError> {
        Ok(Self::reboot(self, id)?)
    }

    fn destroy(&self, id: &str) -> Result<(), HypervisorError> {
        Ok(Self::destroy(self, id)?)
    }

    fn endpoint(&self, name: &str) -> SocketAddrV4 {
        Self::endpoint(self, name)
    }

    fn keep_endpoint(&self, name: &str, endpoint: SocketAddrV4) {
        Self::keep_endpoint(self, name, endpoint);
    }

    fn balance(&self, endpoint: SocketAddrV4, members: BTreeSet<Ipv4Addr>) {
        Self::balance(self, endpoint, members);
    }

    fn release(&self, endpoint: SocketAddrV4) {
        Self::release(self, endpoint);
    }

    fn serve<'a>(&'a self, listener: TcpListener, stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        Box::pin(Self::serve(self, listener, stop))
    }
}
