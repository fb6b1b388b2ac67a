//! Decisions about OpenStackFloatingIPPools, as tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use capstan_object::{Conditions as _, Key, Object as _, ObjectMeta};
use capstan_openstack_client::network::FloatingIp;
use capstan_openstack_types::names::finalizer;
use capstan_openstack_types::v1alpha1::OpenStackFloatingIPPool;
use capstan_openstack_types::v1beta2::NetworkStatus;
use capstan_provider_kit::testing::{best_efforts, deleted, effects, look};

use super::decide::decide;
use super::observe::held;
use super::observed::{Held, PoolState};
use super::{OpenStackFloatingIPPools, Seen, pool_of_claim};
use crate::code;
use crate::condition::POOL_READY;
use crate::error::CloudError;
use crate::mark;

type Decision = capstan_controller::Decision<OpenStackFloatingIPPools>;

fn pool(policy: &str) -> OpenStackFloatingIPPool {
    let mut pool = OpenStackFloatingIPPool { metadata: ObjectMeta::named("ns", "p"), ..Default::default() };
    pool.metadata.uid = "u".to_owned();
    pool.metadata.finalizers.push(finalizer::FLOATING_IP_POOL.to_owned());
    pool.spec.reclaim_policy = policy.to_owned();
    pool
}

fn claim(name: &str, given: &str) -> Arc<IPAddressClaim> {
    let mut claim = IPAddressClaim { metadata: ObjectMeta::named("ns", name), ..Default::default() };
    claim.status.address_ref.name = given.to_owned();
    Arc::new(claim)
}

fn address(name: &str, address: &str) -> IPAddress {
    let mut object = IPAddress { metadata: ObjectMeta::named("ns", name), ..Default::default() };
    object.metadata.finalizers.push(finalizer::DELETE_FLOATING_IP.to_owned());
    object.spec.claim_ref.name = name.to_owned();
    object.spec.address = address.to_owned();
    object
}

/// A tagged floating IP that was created for the pool.
fn created(id: &str) -> Held {
    let tags = vec!["cluster-api-provider-openstack-fip-pool-p".to_owned()];
    Held { id: id.to_owned(), created: true, is_used: false, tags }
}

fn seen(claims: Vec<Arc<IPAddressClaim>>, addresses: Vec<IPAddress>, ips: &[(&str, Held)]) -> Seen {
    let network = NetworkStatus { id: "n".to_owned(), ..NetworkStatus::default() };
    let held: BTreeMap<String, Held> =
        ips.iter().map(|(address, held)| ((*address).to_owned(), held.clone())).collect();
    let addresses = addresses.into_iter().map(Arc::new).collect();
    Seen { claims, addresses, cloud: Ok(PoolState { next_round: None, network: Ok(network), held }) }
}

fn decided(pool: OpenStackFloatingIPPool, seen: Seen) -> Decision {
    decide(&look::<OpenStackFloatingIPPools>(pool, seen))
}

fn ready(decision: &Decision) -> (bool, String) {
    let condition = decision.object.status.conditions.condition(POOL_READY).expect("a condition");
    (condition.is_true(), condition.reason.clone())
}

#[test]
fn a_claim_gets_a_free_address_or_a_new_one_and_then_its_status() {
    let new = decided(pool("Delete"), seen(vec![claim("c", "")], Vec::new(), &[]));
    assert_eq!(effects(&new), ["create-address in n"]);
    assert_eq!(new.object.status.floating_ip_network.as_ref().map(|it| it.id.as_str()), Some("n"));
    let free = decided(pool("Delete"), seen(vec![claim("c", "")], Vec::new(), &[("1.1.1.1", created("f"))]));
    let [effect] = effects(&free).try_into().expect("one effect");
    assert!(effect.starts_with("create ") && effect.ends_with(" c"), "{effect}");
    let given = vec![address("c", "1.1.1.1")];
    let decision = decided(pool("Delete"), seen(vec![claim("c", "")], given, &[("1.1.1.1", created("f"))]));
    let [effect] = effects(&decision).try_into().expect("one effect");
    assert!(effect.ends_with("/status"), "{effect}");
    let given = vec![address("c", "1.1.1.1")];
    let done = decided(pool("Delete"), seen(vec![claim("c", "c")], given, &[("1.1.1.1", created("f"))]));
    assert_eq!(effects(&done), [""; 0]);
    assert_eq!(done.object.status.claimed_ips, ["1.1.1.1"]);
    assert_eq!(ready(&done), (true, "Ready".to_owned()));
}

#[test]
fn given_addresses_come_first_and_those_in_use_elsewhere_are_not_free() {
    let mut pool = pool("Retain");
    pool.spec.pre_allocated_floating_ips = ["9.9.9.9", "8.8.8.8", "7.7.7.7"].map(str::to_owned).to_vec();
    let given = Held { id: "g".to_owned(), ..Held::default() };
    let used = Held { is_used: true, ..given.clone() };
    let ips = [("1.1.1.1", created("f")), ("8.8.8.8", used), ("9.9.9.9", given)];
    let decision = decided(pool, seen(Vec::new(), Vec::new(), &ips));
    assert_eq!(decision.object.status.available_ips, ["9.9.9.9", "1.1.1.1"]);
    assert_eq!(decision.object.status.failed_ips, ["7.7.7.7"]);
    assert_eq!(effects(&decision), [""; 0]);
}

#[test]
fn no_more_than_max_ips_are_given_and_claims_that_wait_are_reported() {
    let mut pool = pool("Delete");
    pool.spec.max_ips = Some(2);
    let claims = vec![claim("a", "a"), claim("b", ""), claim("c", "")];
    let ips = [("1.1.1.1", created("f"))];
    let decision = decided(pool, seen(claims, vec![address("a", "1.1.1.1")], &ips));
    assert_eq!(effects(&decision), ["create-address in n"], "for b");
    assert_eq!(ready(&decision), (false, "MaxIPsReached".to_owned()));
    let condition = decision.object.status.conditions.condition(POOL_READY).expect("a condition");
    assert!(condition.message.ends_with("claims that wait: c"), "{}", condition.message);
}

#[test]
fn an_address_is_released_when_its_claim_is_gone_and_its_floating_ip_as_the_policy_says() {
    let ips = [("1.1.1.1", created("f"))];
    let gone = decided(pool("Delete"), seen(Vec::new(), vec![address("c", "1.1.1.1")], &ips));
    assert!(effects(&gone)[0].starts_with("delete "), "{:?}", effects(&gone));
    let released = || vec![deleted(address("c", "1.1.1.1"))];
    let delete = decided(pool("Delete"), seen(Vec::new(), released(), &ips));
    assert_eq!(effects(&delete), ["delete-address f"], "the finalizer stays until it is gone");
    let deleted = decided(pool("Delete"), seen(Vec::new(), released(), &[]));
    assert!(effects(&deleted)[0].starts_with("patch "), "{:?}", effects(&deleted));
    let retain = decided(pool("Retain"), seen(Vec::new(), released(), &ips));
    assert!(effects(&retain)[0].starts_with("patch "), "{:?}", effects(&retain));
    let given = Held { created: false, ..created("f") };
    let kept = decided(pool("Delete"), seen(Vec::new(), released(), &[("1.1.1.1", given)]));
    assert!(effects(&kept)[0].starts_with("patch "), "a given address stays: {:?}", effects(&kept));
}

#[test]
fn claims_and_addresses_do_not_wait_for_others_that_fail() {
    let claims = vec![claim("a", ""), claim("b", ""), claim("c", "")];
    let released = deleted(address("d", "2.2.2.2"));
    let addresses = vec![address("c", "3.3.3.3"), address("e", "4.4.4.4"), released];
    let ips = ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"].map(|ip| (ip, created(ip)));
    let decision = decided(pool("Delete"), seen(claims, addresses, &ips));
    let all = effects(&decision);
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!(all[4], "create-address in n", "for b, last");
    assert_eq!(best_efforts(&decision), all[..4]);
}

#[test]
fn a_deleted_pool_waits_for_its_addresses_and_takes_what_it_created_with_it() {
    let ips = [("1.1.1.1", created("f")), ("9.9.9.9", Held { id: "g".to_owned(), ..Held::default() })];
    let held = vec![address("c", "1.1.1.1")];
    let waits = decided(deleted(pool("Retain")), seen(vec![claim("c", "c")], held, &ips));
    assert_eq!(effects(&waits), [""; 0]);
    assert_eq!(ready(&waits), (false, "AddressesInUse".to_owned()));
    let goes = decided(deleted(pool("Retain")), seen(Vec::new(), Vec::new(), &ips));
    assert_eq!(effects(&goes), ["delete-address f"]);
    assert!(!goes.object.metadata.finalizers.is_empty());
    let gone = decided(deleted(pool("Retain")), seen(Vec::new(), Vec::new(), &ips[1..]));
    assert_eq!(effects(&gone), [""; 0]);
    assert!(gone.object.metadata.finalizers.is_empty());
}

#[test]
fn a_pool_without_credentials_or_network_says_so_and_gives_nothing() {
    let missing = || CloudError::new(code::NOT_FOUND, "OpenStackError", "no network");
    let mut without = seen(vec![claim("c", "")], Vec::new(), &[]);
    without.cloud = Ok(PoolState { next_round: None, network: Err(missing()), held: BTreeMap::new() });
    let decision = decided(pool("Delete"), without);
    assert_eq!((effects(&decision).len(), ready(&decision).1.as_str()), (0, "UnableToFindNetwork"));
    let mut locked = seen(Vec::new(), Vec::new(), &[]);
    locked.cloud = Err(CloudError::new(code::SECRET, "SecretMissing", "there is no Secret"));
    let decision = decided(pool("Delete"), locked);
    let conditions = &decision.object.status.conditions;
    let accepted = conditions.condition("OpenStackAuthenticationSucceeded").expect("a condition");
    assert!(!accepted.is_true() && accepted.message.starts_with("E-OS-SECRET: "), "{accepted:?}");
}

#[test]
fn floating_ips_of_a_pool_have_its_mark_or_its_tag_and_never_anothers_mark() {
    let mut pool = pool("Delete");
    pool.spec.pre_allocated_floating_ips.push("9.9.9.9".to_owned());
    let ip = |address: &str, description: String, tag: bool| FloatingIp {
        id: address.into(),
        floating_ip_address: address.to_owned(),
        description,
        tags: tag.then(|| "cluster-api-provider-openstack-fip-pool-p".to_owned()).into_iter().collect(),
        ..FloatingIp::default()
    };
    let all = [
        ip("1.1.1.1", mark::with("ours", "u"), false),
        ip("2.2.2.2", "of CAPO".to_owned(), true),
        ip("3.3.3.3", mark::with("of a pool of this name elsewhere", "v"), true),
        ip("4.4.4.4", "theirs".to_owned(), false),
        ip("9.9.9.9", "given".to_owned(), false),
    ];
    let held: Vec<(String, bool)> =
        held(&pool, &all).into_iter().map(|(address, held)| (address, held.created)).collect();
    let expected = [("1.1.1.1", true), ("2.2.2.2", true), ("9.9.9.9", false)];
    assert_eq!(held, expected.map(|(address, created)| (address.to_owned(), created)));
}

#[test]
fn claims_of_pools_of_other_kinds_are_not_ours() {
    let mut ours = IPAddressClaim { metadata: ObjectMeta::named("ns", "c"), ..Default::default() };
    ours.spec.pool_ref.name = "p".to_owned();
    ours.spec.pool_ref.kind = "OpenStackFloatingIPPool".to_owned();
    ours.spec.pool_ref.api_group = "infrastructure.cluster.x-k8s.io".to_owned();
    assert_eq!(pool_of_claim(&ours), Some(Key::new("ns", "p")));
    assert_eq!(ours.metadata().name, "c");
    ours.spec.pool_ref.kind = "InClusterIPPool".to_owned();
    assert_eq!(pool_of_claim(&ours), None);
}
