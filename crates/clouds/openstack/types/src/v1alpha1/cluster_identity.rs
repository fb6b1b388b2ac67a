//! `OpenStackClusterIdentity`: credentials that several namespaces share.

use capstan_capi_types::wire::record;
use capstan_object::{LabelSelector, ObjectMeta, object};

object!(
    OpenStackClusterIdentity,
    "infrastructure.cluster.x-k8s.io" / "v1alpha1",
    "OpenStackClusterIdentity",
    "openstackclusteridentities",
    Cluster
);

record! {
    /// Credentials that clusters in several namespaces may use.
    pub struct OpenStackClusterIdentity {
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackClusterIdentitySpec,
        }
    }

    /// Desired state of an OpenStackClusterIdentity.
    pub struct OpenStackClusterIdentitySpec {
        required {
            /// Reference to the Secret with the credentials.
            pub secret_ref: OpenStackCredentialSecretReference,
        }
        optional {
            /// Selects the namespaces whose clusters may use the credentials. Defaults to all namespaces.
            pub namespace_selector: Option<LabelSelector>,
        }
    }

    /// Reference to a Secret with credentials.
    pub struct OpenStackCredentialSecretReference {
        required {
            /// Name of the Secret.
            pub name: String,
            /// Namespace of the Secret.
            pub namespace: String,
        }
    }
}
