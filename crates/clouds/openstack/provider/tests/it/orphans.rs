//! `capstan orphans`: what carries our mark and has no object.

use std::sync::Arc;

use capstan_harness::{Violation, World, run};
use capstan_openstack_client::network::{Network, NetworkFilter, NewNetwork};
use capstan_openstack_provider::{Clouds, OpenStack};
use capstan_provider_kit::{DifferenceKind, Provider as _};

use crate::cloud::Cloud;
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

#[test]
fn what_is_marked_and_has_no_object_is_found_and_removed_and_nothing_else() {
    fn compare<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let provider = OpenStack::reaching(Clouds::new(Arc::new(cloud.clone())));
            let inventory = provider.inventory().ok_or_else(|| failed("no inventory"))?;
            let user = world.user()?;
            let drift = inventory.compare(&user, "").await.map_err(failed)?;
            if !drift.differences.is_empty() {
                return Err(Violation::new("orphans", format!("{:?}", drift.differences)));
            }
            let client = cloud.client();
            for (name, description) in [("left", "by somebody capstan-mark=gone"), ("theirs", "by somebody")]
            {
                let description = Some(description.to_owned());
                let new = NewNetwork { name: name.to_owned(), description, ..NewNetwork::default() };
                client.create::<Network>(&new).await.map_err(failed)?;
            }
            let drift = inventory.compare(&user, "").await.map_err(failed)?;
            let found: Vec<_> = drift.differences.iter().map(|it| (it.how, it.what.as_str())).collect();
            if found != [(DifferenceKind::Unrecorded, "Network/left")] {
                return Err(Violation::new("orphans", format!("{found:?}")));
            }
            for project in &drift.unrecorded {
                let removed = project.remove().await.map_err(failed)?;
                if !removed.kept.is_empty() {
                    return Err(Violation::new("orphans", format!("{:?}", removed.kept)));
                }
            }
            let left = cloud.names("networks");
            if left.len() != 2 || left.contains(&"left".to_owned()) {
                return Err(Violation::new("orphans", format!("{left:?}")));
            }
            let filter = NetworkFilter { name: Some("theirs".to_owned()), ..NetworkFilter::default() };
            for theirs in client.list::<Network>(&filter).await.map_err(failed)? {
                client.delete(&theirs.id).await.map_err(failed)?;
            }
            Ok(())
        })
    }
    let story = Script { bare: true, ..Script::of(&[Create, Check(compare), Delete]) };
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
