//! The error codes of everything in this program, gathered.

use capstan_controller::Code;

use crate::plugins::Plugins;

/// Every code, by the part that gives it.
pub fn catalogues(plugins: &Plugins) -> Vec<(&'static str, &'static [Code])> {
    let own = [
        ("Every controller", capstan_controller::catalogue::CATALOGUE),
        ("Boot data", capstan_capi_kubeadm::bootstrap::code::CATALOGUE),
        ("Control planes", capstan_capi_kubeadm::control_plane::code::CATALOGUE),
    ];
    let of_providers = plugins.providers().map(|provider| (provider.title(), provider.codes()));
    own.into_iter().chain(of_providers).collect()
}

/// What the catalogue says of a code.
pub fn entry(plugins: &Plugins, id: &str) -> Option<Code> {
    catalogues(plugins).into_iter().flat_map(|(_, codes)| codes).copied().find(|code| code.id() == id)
}
