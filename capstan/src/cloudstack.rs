//! The provider for CloudStack, in this process.

use std::sync::Arc;

use capstan_capi_plane::{Installed, ProviderVersions};
use capstan_capi_types::admission::Rules;
use capstan_capi_types::clusterctl::ProviderType;
use capstan_cloudstack_provider::{Clouds, OverNetwork};
use capstan_cloudstack_types::{admission, conversion, definitions};
use capstan_controller::Runtime;
use serde_json::Value;

/// The provider and its ways to management servers.
pub struct CloudStack {
    clouds: Clouds,
}

impl CloudStack {
    /// Reaches servers over the network, when an object first names one.
    pub fn new() -> Self {
        Self { clouds: Clouds::new(Arc::new(OverNetwork)) }
    }

    /// The ways to the servers.
    pub fn clouds(&self) -> Clouds {
        self.clouds.clone()
    }

    /// The definitions of its kinds.
    pub fn definitions() -> Vec<Value> {
        definitions::definitions()
    }

    /// Their rules.
    pub fn rules() -> [Rules; 6] {
        admission::all()
    }

    /// Their versions.
    pub fn versions() -> ProviderVersions {
        ProviderVersions { kinds: conversion::kinds(), convert: conversion::convert }
    }

    /// Adds the provider's controllers.
    pub fn add_controllers(&self, runtime: &mut Runtime) {
        capstan_cloudstack_provider::add_controllers(runtime, &self.clouds);
    }

    /// The provider, as clusterctl lists it.
    pub fn provider() -> Installed {
        Installed {
            name: "cloudstack",
            kind: ProviderType::Infrastructure,
            namespace: "capc-system",
            version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
