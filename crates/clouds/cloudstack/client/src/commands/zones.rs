//! Zones.

use serde::Serialize;

use crate::Stable;
use crate::command::lists;
use crate::id::ZoneId;
use crate::model::Zone;

/// Zones that can be used.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListZones {
    /// The zone with this id.
    pub id: Option<ZoneId>,
    /// The zone with this name, in any case.
    pub name: Option<String>,
    /// False: only those where the account has machines.
    pub available: Option<bool>,
}

lists! { ListZones: "listZones" => "zone" Zone; }
impl Stable for ListZones {}
