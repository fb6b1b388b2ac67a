//! Admission of CertificateSigningRequests: no client certificate may be issued for the administrators' group.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use super::{Admission, AdmissionAttributes, Operation, Representations};
use crate::auth::MASTERS;
use crate::status::Result;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Rejects signing requests for client certificates of the group `system:masters`, as upstream's plugin of this name.
pub struct CertificateSubjectRestriction;

impl CertificateSubjectRestriction {
    fn check(attributes: &AdmissionAttributes) -> Result<()> {
        let about_requests = attributes.resource.group == "certificates.k8s.io"
            && attributes.resource.resource == "certificatesigningrequests"
            && attributes.subresource.is_empty()
            && attributes.operation == Operation::Create;
        let Some(object) = attributes.object.as_ref().filter(|_| about_requests) else { return Ok(()) };
        if object["spec"]["signerName"] != SIGNER {
            return Ok(());
        }
        let organizations = organizations(&object["spec"]["request"])
            .map_err(|why| attributes.forbidden(format!("failed to parse CSR: {why}")))?;
        if organizations.iter().any(|group| group == MASTERS) {
            let why = format!("use of {SIGNER} signer with {MASTERS} group is not allowed");
            return Err(attributes.forbidden(why));
        }
        Ok(())
    }
}

/// The organizations in the subject of a signing request.
fn organizations(request: &Value) -> Result<Vec<String>, String> {
    let pem = STANDARD.decode(request.as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
    let der = CertificateSigningRequestDer::from_pem_slice(&pem)
        .map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
    let (_, parsed) = X509CertificationRequest::from_der(&der).map_err(|error| error.to_string())?;
    let subject = &parsed.certification_request_info.subject;
    // An organization that cannot be decoded might be the forbidden one in another encoding.
    let readable = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        value.as_str().map(str::to_owned).map_err(|_| "an organization is not a UTF-8 string".to_owned())
    };
    subject.iter_organization().map(readable).collect()
}

impl Admission for CertificateSubjectRestriction {
    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Self::check(attributes)))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use serde_json::json;

    use super::*;
    use crate::admission::{GroupVersionKind, GroupVersionResource, Warnings};
    use crate::auth::User;

    fn asks(signer: &str, organization: &str) -> Result<()> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, organization);
        let key = KeyPair::generate().expect("a key");
        let pem = params.serialize_request(&key).expect("a request").pem().expect("PEM");
        check(signer, &STANDARD.encode(pem))
    }

    fn check(signer: &str, request: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "jane"}, "spec": {"signerName": signer, "request": request},
        });
        CertificateSubjectRestriction::check(&AdmissionAttributes {
            operation: Operation::Create,
            kind: GroupVersionKind::of(&object),
            resource: GroupVersionResource::new("certificates.k8s.io", "v1", "certificatesigningrequests"),
            subresource: String::new(),
            name: "jane".into(),
            namespace: String::new(),
            object: Some(object),
            old_object: None,
            options: None,
            dry_run: false,
            user: User::new("jane", ["devs"]).into(),
            warnings: Warnings::default(),
            annotations: Default::default(),
            reinvocations: Default::default(),
        })
    }

    #[test]
    fn signing_requests_for_administrators_are_rejected() {
        let refused = asks(SIGNER, MASTERS).expect_err("refused");
        assert_eq!(refused.code, 403);
        assert_eq!(
            refused.message,
            "certificatesigningrequests.certificates.k8s.io \"jane\" is forbidden: use of \
             kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        );
        assert!(asks(SIGNER, "devs").is_ok());
        assert!(asks("example.org/own", MASTERS).is_ok(), "other signers decide for themselves");
        assert_eq!(check(SIGNER, "AA==").expect_err("refused").code, 403);
    }

    mod fuzz {
        use proptest::prelude::*;

        use super::*;
        use crate::fuzz::{config, mutated_bytes};

        /// A signing request of an administrator.
        fn request() -> Vec<u8> {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::OrganizationName, MASTERS);
            let key = KeyPair::generate().expect("a key");
            params.serialize_request(&key).expect("a request").der().to_vec()
        }

        fn pem(der: &[u8]) -> String {
            let (begin, end) = ("-----BEGIN CERTIFICATE REQUEST-----", "-----END CERTIFICATE REQUEST-----");
            format!("{begin}\n{}\n{end}\n", STANDARD.encode(der))
        }

        proptest! {
            #![proptest_config(config())]

            #[test]
            fn a_signing_request_is_read_or_refused(
                der in mutated_bytes(request()),
                text in mutated_bytes(pem(&request()).into_bytes()),
            ) {
                for pem in [pem(&der).into_bytes(), text] {
                    let organizations = organizations(&STANDARD.encode(&pem).into());
                    let refused = check(SIGNER, &STANDARD.encode(&pem)).is_err();
                    let is_master = organizations.is_ok_and(|all| all.iter().any(|group| group == MASTERS));
                    prop_assert!(refused || !is_master);
                }
            }
        }
    }
}
