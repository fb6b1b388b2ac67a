//! IPAddresses and IPAddressClaims.

use super::*;

#[test]
fn addresses() {
    let pool = json!({ "apiGroup": "ipam.example", "kind": "Pool", "name": "one" });
    let address = json!({
        "metadata": { "name": "one" },
        "spec": { "claimRef": { "name": "one" }, "poolRef": pool, "address": "10.0.0.4", "prefix": 24, "gateway": "10.0.0.1" },
    });
    created(
        IPAM,
        "IPAddress",
        &address,
        &[
            (json!({ "spec": { "address": "fd00::4", "prefix": 64 } }), &[]),
            (
                json!({ "spec": { "address": "10.0.0" } }),
                &["spec.address: Invalid value: \"10.0.0\": not a valid IP address"],
            ),
            (
                json!({ "spec": { "prefix": -1 } }),
                &["spec.prefix: Invalid value: -1: prefix cannot be negative"],
            ),
            (
                json!({ "spec": { "prefix": 33 } }),
                &["spec.prefix: Invalid value: 33: prefix is too large for an IPv4 address"],
            ),
            (
                json!({ "spec": { "address": "fd00::4", "prefix": 129 } }),
                &["spec.prefix: Invalid value: 129: prefix is too large for an IPv6 address"],
            ),
            (
                json!({ "spec": { "gateway": "none" } }),
                &["spec.gateway: Invalid value: \"none\": not a valid IP address"],
            ),
        ],
    );
    updated(
        IPAM,
        "IPAddress",
        &address,
        &[
            (json!({ "metadata": { "labels": { "a": "b" } } }), &[]),
            (json!({ "spec": { "prefix": 25 } }), &["spec: Forbidden: IPAddress spec is immutable."]),
        ],
    );
    let claim = json!({ "metadata": { "name": "one" }, "spec": { "poolRef": pool } });
    created(IPAM, "IPAddressClaim", &claim, &[]);
    updated(
        IPAM,
        "IPAddressClaim",
        &claim,
        &[(
            json!({ "spec": { "poolRef": { "name": "two" } } }),
            &["spec: Forbidden: IPAddressClaim spec is immutable."],
        )],
    );
    let address: IPAddress = serde_json::from_value(address).expect("an address");
    let mut claim: IPAddressClaim = serde_json::from_value(claim).expect("a claim");
    assert_eq!(pool_differs_from_claim(&address, &claim), None);
    claim.spec.pool_ref.name = "two".to_owned();
    assert_eq!(
        pool_differs_from_claim(&address, &claim).map(|error| error.to_string()).as_deref(),
        Some(
            "spec.poolRef: Invalid value: {\"apiGroup\":\"ipam.example\",\"kind\":\"Pool\",\"name\":\"one\"}: the referenced pool is different from the pool referenced by the claim this address should fulfill"
        )
    );
}
