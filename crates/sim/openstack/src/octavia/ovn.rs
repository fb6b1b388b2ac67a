//! What the provider `ovn` cannot. It balances in Neutron's switches: there is no amphora, connections are chosen by their
//! addresses alone, and releases differ in whether they check members. The simulated one does not.

use serde_json::Value;

use crate::table::{Fields as _, Object};
use crate::wire::Fail;

/// Name of the provider.
pub(super) const NAME: &str = "ovn";

fn unsupported(what: &str) -> Fail {
    Fail::new(501, "", format!("Provider 'ovn' does not support a requested option: {what}"))
}

/// Refuses what a part asks for, of a create or a change.
pub(super) fn check(what: &str, given: &Object) -> Result<(), Fail> {
    let protocol = |fail: &str| match given.text("protocol") {
        "" | "TCP" | "UDP" | "SCTP" => Ok(()),
        other => Err(unsupported(&format!("OVN provider does not support {other} {fail}"))),
    };
    match what {
        "listener" => {
            protocol("protocol")?;
            match given.texts("allowed_cidrs").is_empty() {
                true => Ok(()),
                false => Err(unsupported("OVN provider does not support allowed_cidrs option")),
            }
        }
        "pool" => {
            protocol("protocol")?;
            match given.text("lb_algorithm") {
                "" | "SOURCE_IP_PORT" => Ok(()),
                other => Err(unsupported(&format!("OVN provider does not support {other} algorithm"))),
            }
        }
        "member" if given.flag("backup") => Err(unsupported("OVN provider does not support backup members")),
        "healthmonitor" => Err(unsupported("OVN provider does not support health monitors")),
        "l7policy" => Err(unsupported("OVN provider does not support L7 policies")),
        _ => Ok(()),
    }
}

/// The same for a tree that is made at once.
pub(super) fn tree(balancer: &Object) -> Result<(), Fail> {
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut pools: Vec<Object> = balancer.list("pools").iter().map(object).collect();
    for listener in balancer.list("listeners").iter().map(object) {
        check("listener", &listener)?;
        if !listener.list("l7policies").is_empty() {
            check("l7policy", &Object::new())?;
        }
        pools.extend(listener.get("default_pool").map(object).filter(|pool| !pool.is_empty()));
    }
    for pool in pools {
        check("pool", &pool)?;
        if pool.has("healthmonitor") {
            check("healthmonitor", &Object::new())?;
        }
        for member in pool.list("members").iter().map(object) {
            check("member", &member)?;
        }
    }
    Ok(())
}
