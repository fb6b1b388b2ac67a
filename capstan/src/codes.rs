//! The error codes of everything in this binary, gathered.

use capstan_controller::Code;

/// Every code, by the part that gives it.
pub const CATALOGUES: [(&str, &[Code]); 6] = [
    ("Every controller", capstan_controller::catalogue::CATALOGUE),
    ("Boot data", capstan_capi_kubeadm::bootstrap::code::CATALOGUE),
    ("Control planes", capstan_capi_kubeadm::control_plane::code::CATALOGUE),
    ("CloudStack", capstan_cloudstack_provider::code::CATALOGUE),
    ("Machines on this host", capstan_kvm::code::CATALOGUE),
    ("Simulated machines", capstan_sim_provider::code::CATALOGUE),
];

/// What the catalogue says of a code.
pub fn entry(id: &str) -> Option<Code> {
    CATALOGUES.into_iter().flat_map(|(_, codes)| codes).copied().find(|code| code.id() == id)
}
