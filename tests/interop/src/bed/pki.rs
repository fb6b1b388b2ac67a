//! Certificates and keys of a test bed: one CA, one server certificate, one administrator.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

#[derive(Clone, Debug)]
pub struct Pki {
    folder: PathBuf,
}

impl Pki {
    /// Creates a CA and its certificates in a folder.
    pub fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        let pki = Self { folder: folder.to_owned() };

        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name.push(DnType::CommonName, "bed-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = authority.self_signed(&authority_key)?;
        pki.write("ca.crt", &certificate.pem())?;
        let issuer = Issuer::new(authority, authority_key);

        let names =
            ["127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc"].map(String::from).to_vec();
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        pki.leaf("server", server, &issuer)?;

        let mut admin = CertificateParams::new(Vec::new())?;
        admin.distinguished_name.push(DnType::CommonName, "admin");
        admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        pki.leaf("admin", admin, &issuer)?;

        let service_accounts = KeyPair::generate()?;
        pki.write("sa.key", &service_accounts.serialize_pem())?;
        pki.write("sa.pub", &service_accounts.public_key_pem())?;

        // Managers expect these two file names.
        for (from, to) in [("server.crt", "tls.crt"), ("server.key", "tls.key")] {
            let webhook = pki.webhook_folder();
            std::fs::create_dir_all(&webhook)?;
            std::fs::copy(pki.path(from), webhook.join(to))?;
        }
        Ok(pki)
    }

    fn leaf(&self, name: &str, mut params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<()> {
        let key = KeyPair::generate()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let certificate = params.signed_by(&key, issuer)?;
        self.write(&format!("{name}.crt"), &certificate.pem())?;
        self.write(&format!("{name}.key"), &key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::write(self.path(name), text).with_context(|| format!("write {name}"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        std::fs::read(self.path(name)).with_context(|| format!("read {name}"))
    }

    /// Folder with `tls.crt` and `tls.key` for a manager's webhook server.
    pub fn webhook_folder(&self) -> PathBuf {
        self.folder.join("webhook")
    }
}
