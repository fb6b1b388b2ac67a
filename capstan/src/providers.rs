//! The clouds of this program and its front ends, one line each. Nothing else in the program names them.

use capstan_provider_kit::Plugin;

/// In the order of help texts and of the error catalogue.
pub fn providers() -> Vec<Plugin> {
    use capstan_cloudstack_provider::CloudStack;
    use capstan_guest::Site;
    use capstan_kvm::Kvm;
    use capstan_lifecycle::Lifecycle;
    use capstan_openstack_provider::OpenStack;
    use capstan_sim_cloudstack::CloudStackSimulator;
    use capstan_sim_openstack::OpenStackSimulator;
    use capstan_sim_provider::{Simulated, SiteProcess};
    let cloudstack = CloudStack::default();
    let clouds = cloudstack.clouds().clone();
    vec![
        Plugin::new(cloudstack).simulated_by(CloudStackSimulator { hypervisor: Site::hypervisor }),
        Plugin::new(OpenStack::default()).simulated_by(OpenStackSimulator { hypervisor: Site::hypervisor }),
        Plugin::new(Simulated).simulated_by(SiteProcess),
        Plugin::new(Kvm),
        Plugin::new(Lifecycle::reaching(clouds)),
    ]
}
