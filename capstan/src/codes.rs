//! The error codes of all parts of the program.

use capstan_controller::Code;

use crate::plugins::Plugins;

/// All codes, by part.
pub fn catalogues(plugins: &Plugins) -> Vec<(&'static str, &'static [Code])> {
    let own = [
        ("Every controller", capstan_controller::catalogue::CATALOGUE),
        ("Boot data", capstan_capi_kubeadm::bootstrap::code::CATALOGUE),
        ("Control planes", capstan_capi_kubeadm::control_plane::code::CATALOGUE),
    ];
    let of_providers = plugins.providers().map(|provider| (provider.title(), provider.codes()));
    own.into_iter().chain(of_providers).collect()
}

pub fn entry(plugins: &Plugins, id: &str) -> Option<Code> {
    catalogues(plugins).into_iter().flat_map(|(_, codes)| codes).copied().find(|code| code.id() == id)
}
