//! The clouds of this program: a line each, and nothing else in the program names them.

use capstan_provider_kit::Plugin;

/// Every cloud, in the order of help texts and of the catalogue of errors.
pub fn providers() -> Vec<Plugin> {
    use capstan_cloudstack_provider::CloudStack;
    use capstan_kvm::Kvm;
    use capstan_sim_cloudstack::CloudStackSimulator;
    use capstan_sim_provider::{Simulated, SiteProcess};
    vec![
        Plugin::new(CloudStack::default()).simulated_by(CloudStackSimulator),
        Plugin::new(Simulated).simulated_by(SiteProcess),
        Plugin::new(Kvm),
    ]
}
