//! Lifecycles of clusters into which `cargo xtask cloudstack-faults` injects faults.

use serde_json::Value;

use crate::manifests::Shape;
use crate::story::Act::{
    self, Check, Create, CreateOrGiveUp, Delete, Destroy, ScaleControlPlane, ScaleWorkers, Upgrade,
};
use crate::story::{Mishap, Script};
use crate::{routed_sites, sites};

/// A network that a cluster comes to: what is there before, and how the manifest differs from the example.
#[derive(Clone, Copy)]
pub struct Ground {
    before: Option<Mishap>,
    change: Option<fn(&mut Value)>,
}

pub const OWN: Ground = Ground { before: None, change: None };
pub const OWN_VPC: Ground = Ground { before: None, change: Some(sites::in_a_vpc) };
pub const EXISTING: Ground =
    Ground { before: Some(sites::a_network_with_an_address), change: Some(sites::with_all_features) };
pub const TIER: Ground = Ground { before: Some(sites::a_tier_is_there), change: None };
pub const SHARED: Ground =
    Ground { before: Some(sites::a_shared_network_is_there), change: Some(sites::with_kube_vip) };

pub const ROUTED: Ground =
    Ground { before: Some(routed_sites::are_offered), change: Some(routed_sites::asked_for) };
pub const ROUTED_TIER: Ground =
    Ground { before: Some(routed_sites::are_offered), change: Some(routed_sites::asked_for_in_a_vpc) };
pub const ROUTED_EXISTING: Ground =
    Ground { before: Some(routed_sites::one_is_there), change: Some(routed_sites::asked_for) };

impl Ground {
    /// Acts on this network, without a CNI.
    pub fn script(self, acts: &[Act]) -> Script {
        let mut all: Vec<Act> = self.before.map(Check).into_iter().collect();
        all.extend(acts);
        Script { bare: true, change: self.change, ..Script::of(&all) }
    }
}

/// Every lifecycle, by its name.
pub fn all() -> Vec<(&'static str, Script)> {
    let brief = [Create, Delete];
    let hasty = [CreateOrGiveUp, Delete];
    vec![
        ("brief", OWN.script(&brief)),
        ("brief-vpc", OWN_VPC.script(&brief)),
        ("brief-existing", EXISTING.script(&brief)),
        ("brief-tier", TIER.script(&brief)),
        ("brief-shared", SHARED.script(&brief)),
        ("brief-routed", ROUTED.script(&brief)),
        ("brief-routed-tier", ROUTED_TIER.script(&brief)),
        ("brief-routed-existing", ROUTED_EXISTING.script(&brief)),
        ("hasty", OWN.script(&hasty)),
        ("hasty-vpc", OWN_VPC.script(&hasty)),
        ("hasty-existing", EXISTING.script(&hasty)),
        ("hasty-tier", TIER.script(&hasty)),
        ("hasty-shared", SHARED.script(&hasty)),
        ("hasty-routed", ROUTED.script(&hasty)),
        ("short", OWN.script(&[Create, ScaleWorkers(2), ScaleWorkers(1), Delete])),
        ("whole", whole()),
    ]
}

/// A cluster of 3+3 in two failure domains with everything that may befall it.
fn whole() -> Script {
    let shape = Shape { control_plane: 3, workers: 3, version: "v1.35.0", domains: 2 };
    let acts = [
        Create,
        ScaleWorkers(4),
        ScaleWorkers(2),
        Upgrade("v1.36.0"),
        Destroy { control_plane: false },
        Destroy { control_plane: true },
        ScaleControlPlane(1),
        ScaleControlPlane(3),
        Delete,
    ];
    Script { shape, ..Script::of(&acts) }
}
