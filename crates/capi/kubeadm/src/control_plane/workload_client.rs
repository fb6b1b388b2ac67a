//! Access to the API servers of workload clusters.

use capstan_controller::{ApiError, View, Workloads};

pub(super) fn workloads(view: &View) -> Result<&dyn Workloads, String> {
    view.workloads().map(AsRef::as_ref).ok_or_else(|| "this plane reaches no workload clusters".to_owned())
}

pub(super) fn error_chain(error: ApiError) -> String {
    let cause = std::error::Error::source(&error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
