//! Membership of the cluster's etcd. Data is in the API server's store.

use std::net::Ipv4Addr;

use capstan_env::Env;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdMember {
    pub id: u64,
    /// Name of its Node.
    pub name: String,
    pub peer_url: String,
    pub client_url: String,
    /// A learner has no vote.
    pub learner: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtcdAlarm {
    /// The database is full.
    NoSpace,
    /// Its data differs from the other members'.
    Corrupt,
}

/// A member and its machine. A replaced Node may have the same name; machine ids are never reused.
struct PlacedMember {
    member: EtcdMember,
    vm: String,
    alarms: Vec<EtcdAlarm>,
}

/// Members and their leader.
pub(super) struct Etcd {
    pub(super) cluster_id: u64,
    held: Vec<PlacedMember>,
    leader: Option<u64>,
    /// Number of elections.
    pub(super) term: u64,
}

/// Why etcd refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    NoSuchMember,
    /// Too few members would remain.
    NotEnoughStarted,
    /// Too few running members would remain.
    Unhealthy,
}

impl Etcd {
    pub(super) fn new(env: &Env) -> Self {
        Self { cluster_id: random(env), held: Vec::new(), leader: None, term: 1 }
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &EtcdMember> {
        self.held.iter().map(|held| &held.member)
    }

    pub(super) fn leader(&self) -> Option<u64> {
        self.leader
    }

    /// The member on a machine.
    pub(super) fn on(&self, vm: &str) -> Option<&EtcdMember> {
        self.held.iter().find(|held| held.vm == vm).map(|held| &held.member)
    }

    /// The machine of a member.
    pub(super) fn machine_of(&self, id: u64) -> Option<&str> {
        self.held.iter().find(|held| held.member.id == id).map(|held| held.vm.as_str())
    }

    /// Members whose machine does not run.
    pub(super) fn dead(&self, runs: impl Fn(&str) -> bool) -> Vec<&EtcdMember> {
        self.held.iter().filter(|held| !runs(&held.vm)).map(|held| &held.member).collect()
    }

    pub(super) fn add(&mut self, env: &Env, vm: &str, name: &str, address: Ipv4Addr, learner: bool) {
        let member = EtcdMember {
            id: random(env),
            name: name.to_owned(),
            peer_url: format!("https://{address}:2380"),
            client_url: format!("https://{address}:2379"),
            learner,
        };
        self.held.push(PlacedMember { member, vm: vm.to_owned(), alarms: Vec::new() });
    }

    pub(super) fn raise(&mut self, name: &str, alarm: EtcdAlarm) -> bool {
        let Some(held) = self.held.iter_mut().find(|held| held.member.name == name) else { return false };
        if !held.alarms.contains(&alarm) {
            held.alarms.push(alarm);
        }
        true
    }

    /// Active alarms with the member they concern.
    pub(super) fn alarms(&self) -> impl Iterator<Item = (u64, EtcdAlarm)> {
        self.held.iter().flat_map(|held| held.alarms.iter().map(|alarm| (held.member.id, *alarm)))
    }

    pub(super) fn promote(&mut self, vm: &str) {
        for held in self.held.iter_mut().filter(|held| held.vm == vm) {
            held.member.learner = false;
        }
    }

    /// Removes a member, unless the remaining members could not form a cluster.
    pub(super) fn remove(&mut self, id: u64, runs: impl Fn(&str) -> bool) -> Result<(), Refused> {
        let held = self.held.iter().find(|held| held.member.id == id).ok_or(Refused::NoSuchMember)?;
        if !held.member.learner {
            let voters = self.voters().count();
            if voters == 1 {
                return Err(Refused::NotEnoughStarted);
            }
            let running = self.voters().filter(|voter| runs(&voter.vm)).count();
            // A member that is down does not count for the quorum and may always be removed.
            if runs(&held.vm) && running - 1 < 1 + (voters - 1) / 2 {
                return Err(Refused::Unhealthy);
            }
        }
        self.held.retain(|held| held.member.id != id);
        Ok(())
    }

    /// Makes a voter the leader.
    pub(super) fn lead(&mut self, id: u64) {
        self.leader = Some(id);
        self.term += 1;
    }

    fn voters(&self) -> impl Iterator<Item = &PlacedMember> {
        self.held.iter().filter(|held| !held.member.learner)
    }

    /// The member on a machine has a vote.
    pub(super) fn votes(&self, vm: &str) -> bool {
        self.voters().any(|voter| voter.vm == vm)
    }

    /// More than half of the voters run.
    pub(super) fn has_quorum(&self, runs: impl Fn(&str) -> bool) -> bool {
        let (all, running) = self
            .voters()
            .fold((0, 0), |(all, running), voter| (all + 1, running + usize::from(runs(&voter.vm))));
        running * 2 > all
    }

    /// Keeps the leader if it runs, else elects the oldest running voter; no leader without a quorum.
    pub(super) fn elect(&mut self, runs: impl Fn(&str) -> bool) {
        if !self.has_quorum(&runs) {
            self.leader = None;
            return;
        }
        let standing: Vec<u64> =
            self.voters().filter(|voter| runs(&voter.vm)).map(|voter| voter.member.id).collect();
        if self.leader.is_some_and(|leader| standing.contains(&leader)) {
            return;
        }
        if let Some(oldest) = standing.first() {
            self.lead(*oldest);
        }
    }
}

fn random(env: &Env) -> u64 {
    u64::from_str_radix(&env.uuid().replace('-', "")[..16], 16).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etcd(names: &[&str]) -> Etcd {
        let env = Env::simulated(|| jiff::Timestamp::UNIX_EPOCH, 1);
        let mut etcd = Etcd::new(&env);
        for name in names {
            etcd.add(&env, name, name, Ipv4Addr::LOCALHOST, false);
        }
        etcd
    }

    fn id(etcd: &Etcd, vm: &str) -> u64 {
        etcd.on(vm).expect("a member").id
    }

    #[test]
    fn a_dead_leader_is_replaced_while_a_quorum_exists() {
        let mut etcd = etcd(&["a", "b", "c"]);
        for (running, expected) in [
            (vec!["a", "b", "c"], Some("a")),
            (vec!["b", "c"], Some("b")),
            (vec!["a", "b", "c"], Some("b")),
            (vec!["c"], None),
            (vec!["a", "c"], Some("a")),
        ] {
            etcd.elect(|vm| running.contains(&vm));
            assert_eq!(etcd.leader().and_then(|id| etcd.machine_of(id)), expected, "{running:?}");
        }
    }

    #[test]
    fn a_learner_does_not_count_for_the_quorum() {
        let env = Env::simulated(|| jiff::Timestamp::UNIX_EPOCH, 1);
        let mut etcd = etcd(&["a"]);
        etcd.add(&env, "b", "b", Ipv4Addr::LOCALHOST, true);
        assert!(etcd.has_quorum(|vm| vm == "a"));
        assert!(!etcd.has_quorum(|vm| vm == "b"));
        etcd.promote("b");
        assert!(!etcd.has_quorum(|vm| vm == "a"));
    }

    #[test]
    fn a_member_is_removed_only_if_the_rest_keeps_a_quorum() {
        for (members, running, removed, expected) in [
            (vec!["a"], vec!["a"], "a", Err(Refused::NotEnoughStarted)),
            (vec!["a", "b"], vec!["a", "b"], "b", Ok(())),
            (vec!["a", "b", "c"], vec!["a", "b", "c"], "c", Ok(())),
            (vec!["a", "b", "c"], vec!["a", "b"], "b", Err(Refused::Unhealthy)),
            (vec!["a", "b", "c"], vec!["a", "b"], "c", Ok(())),
        ] {
            let mut etcd = etcd(&members);
            let id = id(&etcd, removed);
            assert_eq!(etcd.remove(id, |vm| running.contains(&vm)), expected, "{members:?} {running:?}");
        }
        assert_eq!(etcd(&["a"]).remove(7, |_| true), Err(Refused::NoSuchMember));
    }
}
