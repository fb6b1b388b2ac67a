//! Leases.

use capstan_schema::path::Path;

use super::Subject;
use super::report::{NOT_NEGATIVE, Report, maybe_int, text};

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    if subject.kind != "Lease" {
        return;
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    if let Some(seconds) = maybe_int(spec, "leaseDurationSeconds").filter(|s| *s <= 0) {
        report.invalid(path.field("leaseDurationSeconds"), seconds, "must be greater than 0");
    }
    if let Some(transitions) = maybe_int(spec, "leaseTransitions").filter(|t| *t < 0) {
        report.invalid(path.field("leaseTransitions"), transitions, NOT_NEGATIVE);
    }
    if !text(spec, "preferredHolder").is_empty() && text(spec, "strategy").is_empty() {
        report.forbidden(path.field("preferredHolder"), "may only be specified if `strategy` is defined");
    }
}
