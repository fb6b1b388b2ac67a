//! Reads the Secrets of a cluster.

use capstan_controller::{ObserveError, View};
use capstan_object::Key;

use crate::certificates::Purpose;
use capstan_capi_core::secret::Secret;

pub(super) async fn read(
    view: &View,
    cluster: &Key,
    purpose: Purpose,
) -> Result<Option<Secret>, ObserveError> {
    let key = Key::new(cluster.namespace.as_str(), purpose.secret_name(&cluster.name));
    Ok(view.client().get::<Secret>(&key).await?)
}
