//! kubeadm's configuration of the whole cluster.

use std::collections::BTreeMap;

use crate::kubernetes::EnvVar;
use crate::schema::{UNIQUE_NAMES, rule};
use crate::wire::{choice, wire};

wire! {
    /// kubeadm's configuration of the whole cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterConfiguration {
        /// Settings of etcd.
        pub etcd: Etcd,
        /// Stable endpoint of the control plane. Defaults to the endpoint of the cluster.
        #[schemars(length(min = 1, max = 512))]
        pub control_plane_endpoint: String,
        /// Settings of the API server.
        pub api_server: APIServer,
        /// Settings of the controller manager.
        pub controller_manager: ControllerManager,
        /// Settings of the scheduler.
        pub scheduler: Scheduler,
        /// Settings of CoreDNS.
        pub dns: DNS,
        /// Directory of the certificates.
        #[schemars(length(min = 1, max = 512))]
        pub certificates_dir: String,
        /// Registry and path that images are pulled from.
        #[schemars(length(min = 1, max = 512))]
        pub image_repository: String,
        /// kubeadm's feature gates.
        pub feature_gates: BTreeMap<String, bool>,
        /// Days that certificates are valid; 365 if absent.
        #[schemars(range(min = 1, max = 1095))]
        pub certificate_validity_period_days: i32,
        /// Days that certificate authorities are valid; 3650 if absent.
        #[schemars(range(min = 1, max = 36500))]
        pub ca_certificate_validity_period_days: i32,
        /// Algorithm of the keys.
        pub encryption_algorithm: Option<EncryptionAlgorithmType>,
    }

    /// Settings of the API server.
    #[schemars(extend("minProperties" = 1))]
    pub struct APIServer {
        /// Additional command line flags, with unique names.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "value"], "x-kubernetes-validations" = [rule(UNIQUE_NAMES, "extraArgs name must be unique")])
        )]
        pub extra_args: Vec<Arg>,
        /// Additional host path volumes.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub extra_volumes: Vec<HostPathMount>,
        /// Additional environment variables.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub extra_envs: Option<Vec<EnvVar>>,
        /// Additional subject alternative names of the API server's certificate.
        #[serde(rename = "certSANs")]
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 253)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub cert_sans: Vec<String>,
    }

    /// Settings of the controller manager.
    #[schemars(extend("minProperties" = 1))]
    pub struct ControllerManager {
        /// Additional command line flags, with unique names.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "value"], "x-kubernetes-validations" = [rule(UNIQUE_NAMES, "extraArgs name must be unique")])
        )]
        pub extra_args: Vec<Arg>,
        /// Additional host path volumes.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub extra_volumes: Vec<HostPathMount>,
        /// Additional environment variables.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub extra_envs: Option<Vec<EnvVar>>,
    }

    /// Settings of the scheduler.
    #[schemars(extend("minProperties" = 1))]
    pub struct Scheduler {
        /// Additional command line flags, with unique names.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "value"], "x-kubernetes-validations" = [rule(UNIQUE_NAMES, "extraArgs name must be unique")])
        )]
        pub extra_args: Vec<Arg>,
        /// Additional host path volumes.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub extra_volumes: Vec<HostPathMount>,
        /// Additional environment variables.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub extra_envs: Option<Vec<EnvVar>>,
    }

    /// The CoreDNS image.
    #[schemars(extend("minProperties" = 1))]
    pub struct DNS {
        /// Registry and path that images are pulled from.
        #[schemars(length(min = 1, max = 512))]
        pub image_repository: String,
        /// Tag of the image.
        #[schemars(length(min = 1, max = 256))]
        pub image_tag: String,
    }

    /// Settings of etcd, local or external.
    #[schemars(extend("minProperties" = 1))]
    pub struct Etcd {
        /// Members run on the control plane nodes.
        pub local: LocalEtcd,
        /// An existing etcd cluster.
        pub external: ExternalEtcd,
    }

    /// etcd members on the control plane nodes.
    #[schemars(extend("minProperties" = 1))]
    pub struct LocalEtcd {
        /// Registry and path that images are pulled from.
        #[schemars(length(min = 1, max = 512))]
        pub image_repository: String,
        /// Tag of the image.
        #[schemars(length(min = 1, max = 256))]
        pub image_tag: String,
        /// Directory of the data.
        #[schemars(length(min = 1, max = 512))]
        pub data_dir: String,
        /// Additional command line flags, with unique names.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "value"], "x-kubernetes-validations" = [rule(UNIQUE_NAMES, "extraArgs name must be unique")])
        )]
        pub extra_args: Vec<Arg>,
        /// Additional environment variables.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub extra_envs: Option<Vec<EnvVar>>,
        /// Additional subject alternative names of the server's certificate.
        #[serde(rename = "serverCertSANs")]
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 253)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub server_cert_sans: Vec<String>,
        /// Additional subject alternative names of the peer certificate.
        #[serde(rename = "peerCertSANs")]
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 253)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub peer_cert_sans: Vec<String>,
    }

    /// An existing etcd cluster.
    pub struct ExternalEtcd {
        /// Endpoints of the members.
        #[schemars(
            length(min = 1, max = 50),
            inner(length(min = 1, max = 512)),
            extend("x-required" = true, "x-kubernetes-list-type" = "atomic")
        )]
        pub endpoints: Vec<String>,
        /// Path of the certificate authority.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub ca_file: String,
        /// Path of the client certificate.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub cert_file: String,
        /// Path of the client key.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub key_file: String,
    }

    /// A directory or file of the host, mounted into a pod.
    pub struct HostPathMount {
        /// Name of the volume.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub name: String,
        /// Path on the host.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub host_path: String,
        /// Path in the pod.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub mount_path: String,
        /// Whether the volume is read-only.
        pub read_only: Option<bool>,
        /// Required type of the path.
        pub path_type: String,
    }

    /// A command line flag.
    pub struct Arg {
        /// Name without dashes.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Value, possibly empty.
        #[schemars(length(min = 0, max = 1024), extend("x-required" = true))]
        pub value: Option<String>,
    }
}

choice! {
    /// Algorithm of a key.
    pub enum EncryptionAlgorithmType {
        /// ECDSA on P-256.
        EcdsaP256 = "ECDSA-P256",
        /// ECDSA on P-384.
        EcdsaP384 = "ECDSA-P384",
        /// RSA with 2048 bits.
        Rsa2048 = "RSA-2048",
        /// RSA with 3072 bits.
        Rsa3072 = "RSA-3072",
        /// RSA with 4096 bits.
        Rsa4096 = "RSA-4096",
    }
}
