//! Paths of the cluster's certificates on machines.

use capstan_capi_types::bootstrap::{ClusterConfiguration, ExternalEtcd, File};

use super::pair::KeyPair;
use super::purpose::Purpose;

/// Default of `certificatesDir`.
pub const DEFAULT_CERTIFICATES_DIR: &str = "/etc/kubernetes/pki";

/// Paths of a certificate and its key on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateLocation {
    pub purpose: Purpose,
    /// Path of the certificate or public key.
    pub certificate_file: String,
    /// Path of the private key, if the machine gets one.
    pub key_file: Option<String>,
    /// The user provides it: it is never generated, and its key may be missing.
    pub provided: bool,
}

impl CertificateLocation {
    fn made(purpose: Purpose, directory: &str, certificate: &str, key: &str) -> Self {
        Self {
            purpose,
            certificate_file: format!("{directory}/{certificate}"),
            key_file: Some(format!("{directory}/{key}")),
            provided: false,
        }
    }

    pub fn files(&self, pair: &KeyPair) -> Vec<File> {
        let file = |path: &str, permissions: &str, content: &str| File {
            path: path.to_owned(),
            owner: "root:root".to_owned(),
            permissions: permissions.to_owned(),
            content: content.to_owned(),
            ..File::default()
        };
        let mut files = Vec::new();
        if !pair.certificate.is_empty() {
            files.push(file(&self.certificate_file, "0640", &pair.certificate));
        }
        if let (Some(path), false) = (&self.key_file, pair.key.is_empty()) {
            files.push(file(path, "0600", &pair.key));
        }
        files
    }
}

/// Certificates of a control plane machine, in the order in which the files are written.
pub fn locations_for_control_plane(config: &ClusterConfiguration) -> Vec<CertificateLocation> {
    let directory = match config.certificates_dir.trim_end_matches('/') {
        "" => DEFAULT_CERTIFICATES_DIR,
        directory => directory,
    };
    let external = &config.etcd.external;
    let is_external = *external != ExternalEtcd::default();
    let etcd = if is_external {
        CertificateLocation {
            purpose: Purpose::EtcdCa,
            certificate_file: external.ca_file.clone(),
            key_file: None,
            provided: true,
        }
    } else {
        CertificateLocation::made(Purpose::EtcdCa, directory, "etcd/ca.crt", "etcd/ca.key")
    };
    let mut locations = vec![
        CertificateLocation::made(Purpose::ClusterCa, directory, "ca.crt", "ca.key"),
        etcd,
        CertificateLocation::made(
            Purpose::FrontProxyCa,
            directory,
            "front-proxy-ca.crt",
            "front-proxy-ca.key",
        ),
        CertificateLocation::made(Purpose::ServiceAccount, directory, "sa.pub", "sa.key"),
    ];
    if is_external {
        locations.push(CertificateLocation {
            purpose: Purpose::ApiServerEtcdClient,
            certificate_file: external.cert_file.clone(),
            key_file: Some(external.key_file.clone()),
            provided: true,
        });
    }
    locations
}

/// Certificates of a worker: the cluster CA, of which only the hash is used.
pub fn locations_for_worker(ca_cert_path: &str) -> Vec<CertificateLocation> {
    let path = if ca_cert_path.is_empty() {
        format!("{DEFAULT_CERTIFICATES_DIR}/ca.crt")
    } else {
        ca_cert_path.to_owned()
    };
    vec![CertificateLocation {
        purpose: Purpose::ClusterCa,
        certificate_file: path,
        key_file: None,
        provided: false,
    }]
}
