//! The clouds of this program and its front ends, one line each. Nothing else in the program names them.

use std::sync::Arc;

use capstan_provider_kit::{Plugin, Simulator};

/// In the order of help texts and of the error catalogue.
pub fn providers() -> Vec<Plugin> {
    use capstan_cloudstack_provider::CloudStack;
    use capstan_guest::Site;
    use capstan_kvm::Kvm;
    use capstan_lifecycle::Lifecycle;
    use capstan_sim_cloudstack::CloudStackSimulator;
    use capstan_sim_provider::{Simulated, SiteProcess};
    let cloudstack = CloudStack::default();
    let clouds = cloudstack.clouds().clone();
    vec![
        Plugin::new(cloudstack).simulated_by(CloudStackSimulator { hypervisor: Site::hypervisor }),
        Plugin::new(Simulated).simulated_by(SiteProcess),
        Plugin::new(Kvm),
        Plugin::new(Lifecycle::reaching(clouds)),
    ]
}

/// Simulated clouds that no provider of this program is for.
pub fn simulators() -> Vec<Arc<dyn Simulator>> {
    use capstan_guest::Site;
    use capstan_sim_openstack::OpenStackSimulator;
    vec![Arc::new(OpenStackSimulator { hypervisor: Site::hypervisor })]
}
