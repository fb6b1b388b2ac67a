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
    /// Credentials that clusters of several namespaces share.
    pub struct OpenStackClusterIdentity {
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackClusterIdentitySpec,
        }
    }

    /// Credentials, and who may use them.
    pub struct OpenStackClusterIdentitySpec {
        required {
            /// The Secret.
            pub secret_ref: OpenStackCredentialSecretReference,
        }
        optional {
            /// Namespaces whose clusters may use the credentials; all if not set.
            pub namespace_selector: Option<LabelSelector>,
        }
    }

    /// Names a Secret with credentials.
    pub struct OpenStackCredentialSecretReference {
        required {
            /// Its name.
            pub name: String,
            /// Its namespace.
            pub namespace: String,
        }
    }
}
