//! Validation of built-in kinds, with upstream's results, fields and messages. One file per group; each takes the new
//! object and, for updates, the old one.

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod cron;
mod devices;
mod discovery;
mod flowcontrol;
mod ingress;
mod job_policies;
mod job_status;
mod network;
mod network_policy;
mod node;
mod pod;
mod policies;
mod policy;
mod quantities;
mod quota;
mod rbac;
mod report;
mod service;
mod service_ranges;
mod storage;
mod storage_claims;

use capstan_schema::field::FieldErrors;
use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use crate::kinds;
use crate::strategy;
pub use network::sloppy_ip;
pub use rbac::role_limits;
use report::{Report, texts};
pub(crate) use service_ranges::address_name;
pub use service_ranges::family;

/// Validates an object of a built-in kind: on create without `old`, on update of the resource or a subresource with
/// it. For kinds without rules, metadata is validated.
pub fn validate(group: &str, kind: &str, subresource: &str, new: &Value, old: Option<&Value>) -> FieldErrors {
    let mut report = Report::default();
    let subject = Subject { group, kind, subresource, new, old };
    match old {
        None => subject.metadata(&mut report),
        Some(old) => subject.metadata_update(old, &mut report),
    }
    match group {
        "" => core::validate(&subject, &mut report),
        "coordination.k8s.io" => coordination::validate(&subject, &mut report),
        "events.k8s.io" => core::event(&subject, &mut report),
        "rbac.authorization.k8s.io" => rbac::validate(&subject, &mut report),
        "admissionregistration.k8s.io" if kind.contains("AdmissionPolicy") => {
            policies::validate(&subject, &mut report);
        }
        "admissionregistration.k8s.io" => admission::validate(&subject, &mut report),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::validate(&subject, &mut report),
        "apps" => apps::validate(&subject, &mut report),
        "autoscaling" => autoscaling::autoscaler(&subject, &mut report),
        "batch" => batch::validate(&subject, &mut report),
        "networking.k8s.io" if kind == "NetworkPolicy" => {
            network_policy::network_policy(&subject, &mut report);
        }
        "networking.k8s.io" if matches!(kind, "IPAddress" | "ServiceCIDR") => {
            service_ranges::validate(&subject, &mut report);
        }
        "networking.k8s.io" => ingress::validate(&subject, &mut report),
        "policy" if kind == "PodDisruptionBudget" => policy::disruption_budget(&subject, &mut report),
        "scheduling.k8s.io" => policy::priority_class(&subject, &mut report),
        "node.k8s.io" => policy::runtime_class(&subject, &mut report),
        "apiregistration.k8s.io" => policy::api_service(&subject, &mut report),
        "discovery.k8s.io" => discovery::endpoint_slice(&subject, &mut report),
        "storage.k8s.io" => storage::validate(&subject, &mut report),
        "resource.k8s.io" => devices::validate(&subject, &mut report),
        "certificates.k8s.io" => certificates::signing_request(&subject, &mut report),
        _ => {}
    }
    report.errors
}

/// Contradictions between the addresses and IP families of a Service.
pub(crate) fn service_addresses(new: &Value, old: Option<&Value>) -> FieldErrors {
    let mut report = Report::default();
    service::cluster_ips(&new["spec"], old.map(|old| &old["spec"]), &mut report);
    report.errors
}

/// The validated object.
#[derive(Debug, Clone, Copy)]
struct Subject<'a> {
    group: &'a str,
    kind: &'a str,
    subresource: &'a str,
    new: &'a Value,
    old: Option<&'a Value>,
}

const METADATA: Path<'static> = Path::ROOT;

impl Subject<'_> {
    fn metadata(&self, report: &mut Report) {
        let namespaced =
            kinds::kinds().iter().any(|k| k.group == self.group && k.kind == self.kind && k.namespaced);
        let names = strategy::strategy(self.group, self.kind).name;
        let metadata = &self.new["metadata"];
        report.extend(meta::validate_object_meta(metadata, namespaced, names, &METADATA.field("metadata")));
        self.finalizers(report);
    }

    fn metadata_update(&self, old: &Value, report: &mut Report) {
        let path = METADATA.field("metadata");
        report.extend(meta::validate_object_meta_update(&self.new["metadata"], &old["metadata"], &path));
        self.finalizers(report);
    }

    /// Finalizers without a domain must be upstream's own. A few groups are exempt.
    fn finalizers(&self, report: &mut Report) {
        let free = [
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "apiregistration.k8s.io",
            "coordination.k8s.io",
            "node.k8s.io",
        ];
        if free.contains(&self.group) {
            return;
        }
        let path = METADATA.field("metadata");
        let path = path.field("finalizers");
        for (index, name) in texts(&self.new["metadata"], "finalizers").into_iter().enumerate() {
            kube_finalizer(name, path.index(index), report);
        }
    }
}

fn kube_finalizer(name: &str, path: Path<'_>, report: &mut Report) {
    if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        report.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

#[cfg(test)]
mod tests;
