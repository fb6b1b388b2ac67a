//! `Provider`: one entry of the inventory.

use capstan_object::{ObjectMeta, object};

use crate::wire::{choice, wire};

object!(Provider, "clusterctl.cluster.x-k8s.io" / "v1alpha3", "Provider", "providers", Namespaced);

wire! {
    /// A provider that is installed in the management cluster.
    pub struct Provider {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Name of the provider.
        pub provider_name: String,
        /// Type of the provider; see [`ProviderType`].
        #[serde(rename = "type")]
        pub kind: String,
        /// Installed version.
        pub version: String,
        /// Namespace that the provider watches. Defaults to all.
        pub watched_namespace: String,
    }
}

choice! {
    /// Type of a provider.
    pub enum ProviderType {
        /// The core kinds.
        Core = "CoreProvider",
        /// Boot data.
        Bootstrap = "BootstrapProvider",
        /// Infrastructure.
        Infrastructure = "InfrastructureProvider",
        /// Control planes.
        ControlPlane = "ControlPlaneProvider",
        /// Addresses.
        Ipam = "IPAMProvider",
        /// Runtime extensions.
        RuntimeExtension = "RuntimeExtensionProvider",
        /// Add-ons.
        Addon = "AddonProvider",
    }
}
