//! A provider's entry in clusterctl's inventory.

use capstan_capi_types::clusterctl::{Provider, ProviderType, label};
use capstan_object::ObjectMeta;

/// A provider in this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its name among providers of its type.
    pub name: &'static str,
    pub kind: ProviderType,
    /// Namespace of the entry.
    pub namespace: &'static str,
    pub version: String,
}

impl Installed {
    /// An infrastructure provider with this program's version.
    pub fn infrastructure(name: &'static str, namespace: &'static str) -> Self {
        Self {
            name,
            kind: ProviderType::Infrastructure,
            namespace,
            version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// The label and name of the entry, as clusterctl derives them.
    pub fn label(&self) -> String {
        match self.kind {
            ProviderType::Bootstrap => format!("bootstrap-{}", self.name),
            ProviderType::ControlPlane => format!("control-plane-{}", self.name),
            ProviderType::Infrastructure => format!("infrastructure-{}", self.name),
            ProviderType::Ipam => format!("ipam-{}", self.name),
            ProviderType::RuntimeExtension => format!("runtime-extension-{}", self.name),
            ProviderType::Addon => format!("addon-{}", self.name),
            ProviderType::Core => self.name.to_owned(),
        }
    }

    pub fn entry(&self) -> Provider {
        let mut metadata = ObjectMeta::named(self.namespace, self.label());
        for (key, value) in [
            (label::CLUSTERCTL, String::new()),
            (label::CORE, "inventory".to_owned()),
            ("cluster.x-k8s.io/provider", self.label()),
        ] {
            metadata.labels.insert(key.to_owned(), value);
        }
        Provider {
            metadata,
            provider_name: self.name.to_owned(),
            kind: self.kind.as_str().to_owned(),
            version: self.version.clone(),
            ..Provider::default()
        }
    }
}
