//! What a user may say about the kinds, and what may not change: CAPO's rules in CAPO's words, because people search for
//! them. Nothing is filled in here: defaults are in the definitions.

mod cluster;

use capstan_capi_types::admission::{Admission, Features, FieldError, Rules, SecretUse};
use capstan_object::Key;

use crate::v1alpha1::{OpenStackClusterIdentity, OpenStackFloatingIPPool, OpenStackServer};
use crate::v1beta2::{
    AdditionalBlockDevice, OpenStackCluster, OpenStackClusterTemplate, OpenStackIdentityReference,
    OpenStackMachine, OpenStackMachineSpec, OpenStackMachineTemplate, PortOpts, RootVolume,
};

/// Rules of every kind of this provider in its stored version.
pub fn all() -> [Rules; 7] {
    [
        Rules::of::<OpenStackCluster>(),
        Rules::of::<OpenStackClusterTemplate>(),
        Rules::of::<OpenStackMachine>(),
        Rules::of::<OpenStackMachineTemplate>(),
        Rules::of::<OpenStackServer>(),
        Rules::of::<OpenStackFloatingIPPool>(),
        Rules::of::<OpenStackClusterIdentity>(),
    ]
}

/// Rules of a kind of this provider in its stored version; `None` for kinds of others.
pub fn rules(group: &str, kind: &str) -> Option<Rules> {
    all().into_iter().find(|rules| (rules.kind.group, rules.kind.kind) == (group, kind))
}

/// The Secret of a reference, which is in the namespace of the object. An OpenStackClusterIdentity names its own and says
/// which namespaces may use it.
fn secret(namespace: &str, reference: &OpenStackIdentityReference, path: &str) -> Option<SecretUse> {
    let is_secret = matches!(reference.kind.as_str(), "" | "Secret") && !reference.name.is_empty();
    is_secret
        .then(|| SecretUse { path: path.to_owned(), secret: Key::new(namespace, reference.name.as_str()) })
}

impl Admission for OpenStackClusterTemplate {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let changed = old.is_some_and(|old| old.spec.template.spec != self.spec.template.spec);
        let immutable = || {
            FieldError::forbidden(
                "OpenStackClusterTemplate.spec.template.spec",
                "OpenStackClusterTemplate spec.template.spec field is immutable. Please create new resource instead.",
            )
        };
        changed.then(immutable).into_iter().collect()
    }

    fn secrets(&self) -> Vec<SecretUse> {
        let reference = &self.spec.template.spec.identity_ref;
        secret(&self.metadata.namespace, reference, "spec.template.spec.identityRef").into_iter().collect()
    }
}

impl Admission for OpenStackMachine {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let Some(old) = old else {
            let (spec, groups) = (&self.spec, |port: &PortOpts| !port.security_groups.is_empty());
            let open =
                spec.ports.iter().filter(|port| port.enable_port_security == Some(false) && groups(port));
            return server_errors(spec.root_volume.as_ref(), &spec.additional_block_devices, open.count());
        };
        let (new, old) = (fixed_part(&self.spec), fixed_part(&old.spec));
        (new != old).then(|| FieldError::forbidden("spec", "cannot be modified")).into_iter().collect()
    }

    fn secrets(&self) -> Vec<SecretUse> {
        let reference = self.spec.identity_ref.as_ref();
        reference
            .and_then(|it| secret(&self.metadata.namespace, it, "spec.identityRef"))
            .into_iter()
            .collect()
    }
}

/// What of a machine never changes.
fn fixed_part(spec: &OpenStackMachineSpec) -> OpenStackMachineSpec {
    OpenStackMachineSpec { provider_id: None, identity_ref: None, ..without_address_pairs(spec) }
}

/// Addresses that ports may use beside their own follow the template.
fn without_address_pairs(spec: &OpenStackMachineSpec) -> OpenStackMachineSpec {
    let mut spec = spec.clone();
    for port in &mut spec.ports {
        port.allowed_address_pairs.clear();
    }
    spec
}

impl Admission for OpenStackMachineTemplate {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let spec = &self.spec.template.spec;
        let Some(old) = old else {
            let set = spec.provider_id.is_some();
            let forbidden =
                || FieldError::forbidden("spec.template.spec.providerID", "cannot be set in templates");
            return set.then(forbidden).into_iter().collect();
        };
        let changed = without_address_pairs(spec) != without_address_pairs(&old.spec.template.spec);
        let immutable = || {
            FieldError::forbidden(
                "spec.template.spec",
                "OpenStackMachineTemplate spec.template.spec field is immutable. Please create a new resource \
                 instead. Ref doc: https://cluster-api.sigs.k8s.io/tasks/change-machine-template.html",
            )
        };
        changed.then(immutable).into_iter().collect()
    }

    fn secrets(&self) -> Vec<SecretUse> {
        let reference = self.spec.template.spec.identity_ref.as_ref();
        let path = "spec.template.spec.identityRef";
        reference.and_then(|it| secret(&self.metadata.namespace, it, path)).into_iter().collect()
    }
}

impl Admission for OpenStackServer {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let Some(old) = old else {
            let spec = &self.spec;
            let open = spec.ports.iter().filter(|port| port.disable_port_security == Some(true));
            let open = open.filter(|port| !port.security_groups.is_empty());
            return server_errors(spec.root_volume.as_ref(), &spec.additional_block_devices, open.count());
        };
        // CAPO means to let identityRef change here, and compares it all the same.
        let immutable = || {
            FieldError::forbidden(
                "spec",
                "OpenStackServer spec field is immutable. Please create a new resource instead.",
            )
        };
        (self.spec != old.spec).then(immutable).into_iter().collect()
    }

    fn secrets(&self) -> Vec<SecretUse> {
        let (namespace, spec) = (&self.metadata.namespace, &self.spec);
        let mut secrets: Vec<_> =
            secret(namespace, &spec.identity_ref, "spec.identityRef").into_iter().collect();
        if let Some(user_data) = &spec.user_data_ref {
            let path = "spec.userDataRef".to_owned();
            secrets.push(SecretUse { path, secret: Key::new(namespace.as_str(), user_data.name.as_str()) });
        }
        secrets
    }
}

/// What is wrong with a new server; `open` of its ports are not guarded and have groups all the same.
fn server_errors(
    root: Option<&RootVolume>,
    devices: &[AdditionalBlockDevice],
    open: usize,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for _ in devices.iter().filter(|device| root.is_some() && device.name == "root") {
        let what = "cannot contain a device named \"root\" when rootVolume is set";
        errors.push(FieldError::forbidden("spec.additionalBlockDevices", what));
    }
    for _ in 0..open {
        let what = "cannot have security groups when EnablePortSecurity is set to false";
        errors.push(FieldError::forbidden("spec.ports", what));
    }
    errors
}

impl Admission for OpenStackFloatingIPPool {
    fn secrets(&self) -> Vec<SecretUse> {
        secret(&self.metadata.namespace, &self.spec.identity_ref, "spec.identityRef").into_iter().collect()
    }
}

impl Admission for OpenStackClusterIdentity {
    fn secrets(&self) -> Vec<SecretUse> {
        let reference = &self.spec.secret_ref;
        let secret = Key::new(reference.namespace.as_str(), reference.name.as_str());
        vec![SecretUse { path: "spec.secretRef".to_owned(), secret }]
    }
}
