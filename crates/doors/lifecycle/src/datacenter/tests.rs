use std::sync::Arc;

use capstan_cloudstack_provider::{CloudError, code};
use capstan_controller::Look;
use capstan_object::{ConditionStatus, Conditions as _, ObjectMeta};
use jiff::Timestamp;

use super::{Datacenters, Validity, decide};
use crate::types::CloudStackDatacenterConfig;

fn datacenter(generation: i64) -> CloudStackDatacenterConfig {
    let mut datacenter =
        CloudStackDatacenterConfig { metadata: ObjectMeta::named("default", "dc"), ..Default::default() };
    datacenter.metadata.generation = generation;
    datacenter
}

fn decided(datacenter: &CloudStackDatacenterConfig, seen: Validity) -> CloudStackDatacenterConfig {
    let look = Look::<Datacenters>::new(Arc::new(datacenter.clone()), seen, Timestamp::UNIX_EPOCH);
    decide::decide(&look).object
}

#[test]
fn the_status_is_set_and_reset() {
    let missing = CloudError::new(code::NOT_FOUND, "NotFound", "zone \"z\" does not exist");
    let valid = decided(&datacenter(1), Ok(()));
    assert!(valid.status.spec_valid && valid.status.failure_message.is_none());
    assert_eq!(valid.status.observed_generation, 1);
    let wrong = decided(&valid, Err(missing));
    assert!(!wrong.status.spec_valid);
    assert_eq!(wrong.status.failure_message.as_deref(), Some("E-CS-NOTFOUND: zone \"z\" does not exist"));
    assert_eq!(wrong.status.conditions.condition("Ready").map(|it| it.status), Some(ConditionStatus::False));
    let mended = decided(&wrong, Ok(()));
    assert!(mended.status.spec_valid && mended.status.failure_message.is_none());
}

#[test]
fn a_cloud_that_is_down_does_not_make_a_valid_datacenter_invalid() {
    let down = || Err(CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no route to host"));
    let valid = decided(&datacenter(1), Ok(()));
    let stale = decided(&valid, down());
    assert!(stale.status.spec_valid);
    assert_eq!(
        stale.status.conditions.condition("Ready").map(|it| it.status),
        Some(ConditionStatus::Unknown)
    );
    // A new generation was never found valid.
    let mut changed = valid;
    changed.metadata.generation = 2;
    assert!(!decided(&changed, down()).status.spec_valid);
}
