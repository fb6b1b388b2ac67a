//! The phase `certs`: checks `/etc/kubernetes/pki` and generates what is missing.

use std::net::IpAddr;

use capstan_pki::{Authority, Credential, Leaf, PrivateKey};
use capstan_x509::pem;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::config::{Cluster, of_api_service};
use super::{Abort, Kubeadm};

/// A CA: its file name without extension, its name in kubeadm, its common name.
struct Ca {
    base: &'static str,
    name: &'static str,
    common_name: &'static str,
}

const CA: Ca = Ca { base: "ca", name: "ca", common_name: "kubernetes" };
const FRONT_PROXY: Ca = Ca { base: "front-proxy-ca", name: "front-proxy-ca", common_name: "front-proxy-ca" };
const ETCD: Ca = Ca { base: "etcd/ca", name: "etcd-ca", common_name: "etcd-ca" };

/// The subject of the certificates.
pub(super) struct Subject<'a> {
    pub(super) node: &'a str,
    pub(super) address: IpAddr,
    pub(super) cluster: &'a Cluster,
}

impl Kubeadm<'_, '_> {
    /// Checks and generates everything that a control plane needs.
    pub(super) fn certs(&mut self, subject: &Subject<'_>) -> Result<(), Abort> {
        let directory = subject.cluster.certificates_dir().to_owned();
        self.print(&format!("[certs] Using certificateDir folder {directory:?}"));
        let cluster_admins =
            if self.version.at_least(29) { "kubeadm:cluster-admins" } else { "system:masters" };
        let client = |name: &str, groups: &[&str]| Leaf::Client {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        };
        let etcd_peer = |names: Vec<String>| Leaf::Peer { name: subject.node.to_owned(), names };
        let mut tree = vec![
            (
                &CA,
                vec![
                    ("apiserver", "apiserver", Leaf::Server { names: api_names(subject)? }),
                    (
                        "apiserver-kubelet-client",
                        "apiserver-kubelet-client",
                        client("kube-apiserver-kubelet-client", &[cluster_admins]),
                    ),
                ],
            ),
            (
                &FRONT_PROXY,
                vec![("front-proxy-client", "front-proxy-client", client("front-proxy-client", &[]))],
            ),
        ];
        if subject.cluster.has_local_etcd() {
            tree.push((
                &ETCD,
                vec![
                    (
                        "etcd-server",
                        "etcd/server",
                        etcd_peer(etcd_names(subject, "/etcd/local/serverCertSANs")),
                    ),
                    ("etcd-peer", "etcd/peer", etcd_peer(etcd_names(subject, "/etcd/local/peerCertSANs"))),
                    (
                        "etcd-healthcheck-client",
                        "etcd/healthcheck-client",
                        client("kube-etcd-healthcheck-client", &[]),
                    ),
                    (
                        "apiserver-etcd-client",
                        "apiserver-etcd-client",
                        client("kube-apiserver-etcd-client", &[]),
                    ),
                ],
            ));
        } else {
            self.print("[certs] External etcd mode: Skipping etcd/ca certificate authority generation");
        }
        for (ca, leaves) in tree {
            let phase = format!("certs/{}", ca.name);
            let authority =
                self.authority(&directory, ca, subject).map_err(|why| Abort::phase(&phase, why))?;
            for (name, base, leaf) in leaves {
                let made = self.leaf(&directory, base, ca, authority.as_ref(), &leaf, subject);
                made.map_err(|why| Abort::phase(&format!("certs/{name}"), why))?;
            }
        }
        self.service_account(&directory, subject).map_err(|why| Abort::phase("certs/sa", why))
    }

    /// The CA, existing or generated; `None` if its key is not on this machine.
    fn authority(
        &mut self,
        directory: &str,
        ca: &Ca,
        subject: &Subject<'_>,
    ) -> Result<Option<Authority>, String> {
        let base = ca.base;
        let (certificate, key) = (format!("{directory}/{base}.crt"), format!("{directory}/{base}.key"));
        match (self.guest.files.exists(&certificate), self.guest.files.exists(&key)) {
            (true, true) => {
                let credential = self
                    .load_pair(directory, base)
                    .map_err(|why| format!("failure loading {base} certificate: {why}"))?;
                if !is_authority(&credential.certificate) {
                    return Err(format!("certificate {base} is not a CA"));
                }
                self.print(&format!("[certs] Using existing {base} certificate authority"));
                Ok(Some(Authority::new(credential)))
            }
            (true, false) => {
                let certificate = self.load_certificate(&certificate)?;
                if !is_authority(&certificate) {
                    return Err(format!("certificate {base} is not a CA"));
                }
                self.print(&format!("[certs] Using existing {base} keyless certificate authority"));
                Ok(None)
            }
            (false, true) => Err(format!(
                "failure loading {base} certificate: couldn't load the certificate file {certificate}: open {certificate}: no \
                 such file or directory"
            )),
            (false, false) => {
                self.print(&format!("[certs] Generating {base:?} certificate and key"));
                let made = subject.cluster.algorithm().key().and_then(|key| {
                    Authority::named(self.guest.env, ca.common_name, key, subject.cluster.validity(true))
                });
                let authority = made.map_err(|error| error.to_string())?;
                self.save(directory, base, authority.credential())?;
                Ok(Some(authority))
            }
        }
    }

    fn leaf(
        &mut self,
        directory: &str,
        base: &str,
        ca: &Ca,
        authority: Option<&Authority>,
        leaf: &Leaf,
        subject: &Subject<'_>,
    ) -> Result<(), String> {
        let (certificate, key) = (format!("{directory}/{base}.crt"), format!("{directory}/{base}.key"));
        if self.guest.files.exists(&certificate) || self.guest.files.exists(&key) {
            let credential = self
                .load_pair(directory, base)
                .map_err(|why| format!("failure loading {base} certificate: {why}"))?;
            let issuer = self.load_certificate(&format!("{directory}/{}.crt", ca.base))?;
            if !is_signed_by(&credential.certificate, &issuer) {
                return Err(format!("certificate {base} is not signed by corresponding CA"));
            }
            self.print(&format!("[certs] Using existing {base} certificate and key on disk"));
            return Ok(());
        }
        let Some(authority) = authority else {
            return Err(format!(
                "couldn't load CA certificate {}: failure loading {} certificate authority: couldn't load the private key file \
                 {directory}/{}.key: open {directory}/{}.key: no such file or directory",
                ca.name, ca.base, ca.base, ca.base
            ));
        };
        self.print(&format!("[certs] Generating {base:?} certificate and key"));
        let made =
            subject.cluster.algorithm().key().and_then(|key| {
                authority.issue_for(self.guest.env, leaf, key, subject.cluster.validity(false))
            });
        self.save(directory, base, &made.map_err(|error| error.to_string())?)?;
        if let Leaf::Server { names } | Leaf::Peer { names, .. } = leaf {
            let (addresses, hosts): (Vec<&String>, Vec<&String>) =
                names.iter().partition(|name| name.parse::<IpAddr>().is_ok());
            let joined =
                |names: &[&String]| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
            self.print(&format!(
                "[certs] {base} serving cert is signed for DNS names [{}] and IPs [{}]",
                joined(&hosts),
                joined(&addresses)
            ));
        }
        Ok(())
    }

    fn service_account(&mut self, directory: &str, subject: &Subject<'_>) -> Result<(), String> {
        let path = format!("{directory}/sa.key");
        if let Ok(text) = self.guest.files.text(&path) {
            PrivateKey::from_pem(&text).map_err(|error| {
                format!("file sa.key existed but it could not be loaded properly: {error}")
            })?;
            self.print("[certs] Using the existing \"sa\" key");
            return Ok(());
        }
        self.print("[certs] Generating \"sa\" key and public key");
        let key = subject.cluster.algorithm().key().map_err(|error| error.to_string())?;
        self.save_file(&path, key.to_pem().as_bytes(), 0o600)?;
        let public = pem("PUBLIC KEY", &key.public_key_info());
        self.save_file(&format!("{directory}/sa.pub"), public.as_bytes(), 0o600)
    }

    pub(super) fn load_pair(&self, directory: &str, base: &str) -> Result<Credential, String> {
        let read = |end: &str, what: &str| {
            let path = format!("{directory}/{base}.{end}");
            self.guest.files.text(&path).map_err(|error| {
                format!("couldn't load the {what} file {path}: open {path}: {}", error.lower())
            })
        };
        let (certificate, key) = (read("crt", "certificate")?, read("key", "private key")?);
        Credential::from_pem(&certificate, &key).map_err(|error| error.to_string())
    }

    fn load_certificate(&self, path: &str) -> Result<CertificateDer<'static>, String> {
        let text = self.guest.files.read(path).map_err(|error| {
            format!("couldn't load the certificate file {path}: open {path}: {}", error.lower())
        })?;
        CertificateDer::from_pem_slice(text)
            .map_err(|_| format!("couldn't load the certificate file {path}: data does not contain any valid RSA or ECDSA certificates"))
    }

    fn save(&mut self, directory: &str, base: &str, credential: &Credential) -> Result<(), String> {
        let failed = |why: String| format!("failure while saving {base} certificate and key: {why}");
        self.save_file(&format!("{directory}/{base}.key"), credential.key.to_pem().as_bytes(), 0o600)
            .map_err(failed)?;
        self.save_file(&format!("{directory}/{base}.crt"), credential.certificate_pem().as_bytes(), 0o644)
            .map_err(failed)
    }

    fn save_file(&mut self, path: &str, content: &[u8], mode: u32) -> Result<(), String> {
        self.put(path, content, mode)
            .map_err(|error| format!("unable to write file {path}: {}", error.lower()))
    }

    /// Errors in the certificates that control plane machines share, as a joining machine reports them.
    pub(super) fn shared_certificates(&self, directory: &str) -> Vec<String> {
        let mut errors = Vec::new();
        for (base, name) in [("ca", "CA"), ("front-proxy-ca", "front-proxy CA"), ("etcd/ca", "etcd CA")] {
            let path = format!("{directory}/{base}.crt");
            match self.load_certificate(&path) {
                Err(why) => errors.push(format!("failure loading certificate for {name}: {why}")),
                Ok(certificate) if !is_authority(&certificate) => {
                    errors.push(format!("certificate {name} is not a CA"));
                }
                Ok(_) if self.guest.files.exists(&format!("{directory}/{base}.key")) => {
                    if let Err(why) = self.load_pair(directory, base) {
                        errors.push(format!("failure loading key for {name}: {why}"));
                    }
                }
                Ok(_) => {}
            }
        }
        let path = format!("{directory}/sa.key");
        match self.guest.files.text(&path) {
            Err(error) => errors.push(format!(
                "failure loading key for service account: couldn't load the private key file {path}: open {path}: {}",
                error.lower()
            )),
            Ok(text) => {
                if let Err(error) = PrivateKey::from_pem(&text) {
                    errors.push(format!("failure loading key for service account: {error}"));
                }
            }
        }
        errors
    }
}

/// Whether a certificate is a CA's.
fn is_authority(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, parsed)| parsed.is_ca())
}

/// Whether a certificate names another as its issuer, by name and by key.
fn is_signed_by(certificate: &CertificateDer<'_>, issuer: &CertificateDer<'_>) -> bool {
    use x509_parser::extensions::ParsedExtension;
    let (Ok((_, certificate)), Ok((_, issuer))) =
        (X509Certificate::from_der(certificate), X509Certificate::from_der(issuer))
    else {
        return false;
    };
    let authority_key =
        certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0),
            _ => None,
        });
    let own_key = issuer.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
        _ => None,
    });
    let same_key = authority_key.zip(own_key).is_none_or(|(authority, own)| authority == own);
    certificate.issuer().as_raw() == issuer.subject().as_raw() && same_key
}

/// Names in the certificate of the API server.
fn api_names(subject: &Subject<'_>) -> Result<Vec<String>, Abort> {
    let cluster = subject.cluster;
    let domain = cluster.text("/networking/dnsDomain");
    let mut names = vec![
        subject.node.to_owned(),
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
        format!("kubernetes.default.svc.{domain}"),
    ];
    let services = cluster.text("/networking/serviceSubnet");
    let first = of_api_service(services).ok_or_else(|| {
        Abort::phase(
            "certs/apiserver",
            format!("unable to get first IP address from the given CIDR: {services}"),
        )
    })?;
    names.extend([first.to_string(), subject.address.to_string()]);
    let endpoint = cluster.server("");
    let host = endpoint.trim_start_matches("https://").rsplit_once(':').map_or("", |(host, _)| host);
    if !host.is_empty() {
        names.push(host.trim_matches(['[', ']']).to_owned());
    }
    names.extend(cluster.texts("/apiServer/certSANs").into_iter().map(str::to_lowercase));
    Ok(unique(names))
}

fn etcd_names(subject: &Subject<'_>, more: &str) -> Vec<String> {
    let mut names: Vec<String> =
        [subject.node, "localhost", &subject.address.to_string(), "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
    names.extend(subject.cluster.texts(more).into_iter().map(str::to_lowercase));
    unique(names)
}

fn unique(names: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}
