//! Who may approve and sign certificates of which signer.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{Admission, AdmissionAttributes, Operation, Representations};
use crate::auth::{Attributes, Authorizer};
use crate::status::Result;

/// Requires the right to `approve` or `sign` for the signer of a request, beside the right to update it: upstream's
/// CertificateApproval and CertificateSigning.
pub struct SignerPermissions {
    authorizer: Arc<dyn Authorizer>,
}

impl SignerPermissions {
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Arc<Self> {
        Arc::new(Self { authorizer })
    }

    fn check(&self, attributes: &AdmissionAttributes) -> Result<()> {
        let about_requests = attributes.resource.group == "certificates.k8s.io"
            && attributes.resource.resource == "certificatesigningrequests"
            && attributes.operation == Operation::Update;
        let Some(old) = attributes.old_object.as_ref().filter(|_| about_requests) else { return Ok(()) };
        let verb = match attributes.subresource.as_str() {
            "approval" => "approve",
            "status" if signs(old, attributes.object.as_ref()) => "sign",
            _ => return Ok(()),
        };
        // Of the stored object: a request cannot choose another signer.
        let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
        if self.may(attributes, verb, signer) {
            return Ok(());
        }
        Err(attributes.forbidden(format!("user not permitted to {verb} requests with signerName {signer:?}")))
    }

    /// By name, or for all signers of its domain.
    fn may(&self, attributes: &AdmissionAttributes, verb: &str, signer: &str) -> bool {
        let domain = signer.split('/').next().unwrap_or_default();
        [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
            let question = Attributes {
                user: attributes.user.clone(),
                verb: verb.to_owned().into(),
                group: "certificates.k8s.io".to_owned(),
                version: "*".to_owned(),
                resource: "signers".to_owned(),
                name,
                ..Attributes::default()
            };
            self.authorizer.authorize(&question).allowed()
        })
    }
}

/// Whether an update of the status changes what a signer writes.
fn signs(old: &Value, new: Option<&Value>) -> bool {
    let none = Value::Null;
    let new = new.unwrap_or(&none);
    ["certificate", "conditions"].iter().any(|field| old["status"][*field] != new["status"][*field])
}

impl Admission for SignerPermissions {
    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(self.check(attributes)))
    }
}
