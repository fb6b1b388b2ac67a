//! What kubeadm on a machine reaches: the network of the site, and clusters behind it.

use std::sync::{Arc, Weak};

use futures::future::BoxFuture;

use super::Inner;
use crate::cluster::{Founding, GuestCluster};
use crate::request::{Control, InitRequest, JoinRequest, KubeadmError};

/// The world as one machine sees it.
pub(super) struct Kubeadm {
    site: Weak<Inner>,
    vm: String,
}

impl Kubeadm {
    pub(super) fn new(site: Weak<Inner>, vm: &str) -> Self {
        Self { site, vm: vm.to_owned() }
    }

    fn site(&self) -> Result<Arc<Inner>, KubeadmError> {
        self.site
            .upgrade()
            .ok_or_else(|| KubeadmError { phase: "preflight", why: "the site is gone".to_owned() })
    }
}

impl Control for Kubeadm {
    fn init<'a>(&'a self, request: InitRequest) -> BoxFuture<'a, Result<(), KubeadmError>> {
        Box::pin(async move {
            let site = self.site()?;
            tokio::time::sleep(site.options.timings.init).await;
            let node = request.node.name.clone();
            let founding = Founding { env: site.env.clone(), options: site.options.clone(), request };
            let cluster = GuestCluster::found(founding).await?;
            site.joined(&self.vm, &cluster, &node);
            Ok(())
        })
    }

    fn join<'a>(&'a self, request: JoinRequest) -> BoxFuture<'a, Result<(), KubeadmError>> {
        Box::pin(async move {
            let site = self.site()?;
            tokio::time::sleep(site.options.timings.join).await;
            drop(request);
            Err(KubeadmError { phase: "discovery", why: "connection refused".to_owned() })
        })
    }
}
