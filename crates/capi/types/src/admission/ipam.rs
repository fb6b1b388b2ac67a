//! `IPAddress` and `IPAddressClaim`.

use std::net::IpAddr;

use super::common::shown;
use super::{Admission, Features, FieldError};
use crate::ipam::{IPAddress, IPAddressClaim};

impl Admission for IPAddress {
    fn validate(&self, old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        if let Some(old) = old {
            if old.spec != *spec {
                errors.push(FieldError::forbidden("spec", "IPAddress spec is immutable."));
            }
            return errors;
        }
        let address = spec.address.parse::<IpAddr>();
        if address.is_err() {
            errors.push(FieldError::invalid("spec.address", &*spec.address, "not a valid IP address"));
        }
        let prefix = spec.prefix.unwrap_or_default();
        if prefix < 0 {
            errors.push(FieldError::invalid("spec.prefix", prefix, "prefix cannot be negative"));
        }
        let too_large = match address {
            Ok(IpAddr::V4(_)) if prefix > 32 => Some("prefix is too large for an IPv4 address"),
            Ok(IpAddr::V6(_)) if prefix > 128 => Some("prefix is too large for an IPv6 address"),
            _ => None,
        };
        if let Some(too_large) = too_large {
            errors.push(FieldError::invalid("spec.prefix", prefix, too_large));
        }
        if !spec.gateway.is_empty() && spec.gateway.parse::<IpAddr>().is_err() {
            errors.push(FieldError::invalid("spec.gateway", &*spec.gateway, "not a valid IP address"));
        }
        errors
    }
}

/// A new address must be from the pool of its claim.
pub fn pool_differs_from_claim(address: &IPAddress, claim: &IPAddressClaim) -> Option<FieldError> {
    (address.spec.pool_ref != claim.spec.pool_ref).then(|| {
        FieldError::invalid(
            "spec.poolRef",
            shown(&address.spec.pool_ref),
            "the referenced pool is different from the pool referenced by the claim this address should fulfill",
        )
    })
}

impl Admission for IPAddressClaim {
    fn validate(&self, old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        match old {
            Some(old) if old.spec != self.spec => {
                vec![FieldError::forbidden("spec", "IPAddressClaim spec is immutable.")]
            }
            _ => Vec::new(),
        }
    }
}
