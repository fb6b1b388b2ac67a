//! Membership of the cluster's etcd. There is no data: that is in the API server's store.

use capstan_apiserver::env::Env;

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdMember {
    /// Its id.
    pub id: u64,
    /// Its name, which is that of its Node.
    pub name: String,
    /// Where other members reach it.
    pub peer_url: String,
    /// Where clients reach it.
    pub client_url: String,
    /// It follows without a vote.
    pub learner: bool,
}

/// Members and their leader.
pub(super) struct Etcd {
    pub(super) cluster_id: u64,
    members: Vec<EtcdMember>,
    leader: Option<u64>,
    /// Elections so far.
    pub(super) term: u64,
}

impl Etcd {
    pub(super) fn new(env: &Env) -> Self {
        Self { cluster_id: random(env), members: Vec::new(), leader: None, term: 1 }
    }

    pub(super) fn members(&self) -> &[EtcdMember] {
        &self.members
    }

    pub(super) fn leader(&self) -> Option<u64> {
        self.leader
    }

    pub(super) fn named(&self, name: &str) -> Option<&EtcdMember> {
        self.members.iter().find(|member| member.name == name)
    }

    pub(super) fn add(&mut self, env: &Env, name: &str, address: std::net::Ipv4Addr, learner: bool) {
        self.members.push(EtcdMember {
            id: random(env),
            name: name.to_owned(),
            peer_url: format!("https://{address}:2380"),
            client_url: format!("https://{address}:2379"),
            learner,
        });
    }

    pub(super) fn promote(&mut self, name: &str) {
        if let Some(member) = self.members.iter_mut().find(|member| member.name == name) {
            member.learner = false;
        }
    }

    /// Removes a member; false if there is none of the id.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let before = self.members.len();
        self.members.retain(|member| member.id != id);
        before != self.members.len()
    }

    /// Makes a voter the leader.
    pub(super) fn lead(&mut self, id: u64) {
        self.leader = Some(id);
        self.term += 1;
    }

    /// A member of this name has a vote.
    pub(super) fn votes(&self, name: &str) -> bool {
        self.named(name).is_some_and(|member| !member.learner)
    }

    /// More than half of the voters run.
    pub(super) fn has_quorum(&self, runs: impl Fn(&str) -> bool) -> bool {
        let voters = self.members.iter().filter(|member| !member.learner);
        let (all, running) =
            voters.fold((0, 0), |(all, running), voter| (all + 1, running + usize::from(runs(&voter.name))));
        running * 2 > all
    }

    /// Keeps the leader if it runs, and elects the oldest running voter otherwise; nobody without a quorum.
    pub(super) fn elect(&mut self, runs: impl Fn(&str) -> bool) {
        if !self.has_quorum(&runs) {
            self.leader = None;
            return;
        }
        let stands = |member: &&EtcdMember| !member.learner && runs(&member.name);
        let leads = |member: &EtcdMember| Some(member.id) == self.leader;
        if self.members.iter().filter(stands).any(leads) {
            return;
        }
        if let Some(next) = self.members.iter().find(stands).map(|member| member.id) {
            self.lead(next);
        }
    }
}

/// A number that is unlikely to come again.
fn random(env: &Env) -> u64 {
    u64::from_str_radix(&env.uuid().replace('-', "")[..16], 16).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_leader_is_replaced_while_a_quorum_lives() {
        let env = Env::simulated(|| jiff::Timestamp::UNIX_EPOCH, 1);
        let mut etcd = Etcd::new(&env);
        for name in ["a", "b", "c"] {
            etcd.add(&env, name, std::net::Ipv4Addr::LOCALHOST, false);
        }
        let leader = |etcd: &Etcd| {
            etcd.leader().and_then(|id| etcd.members.iter().find(|m| m.id == id)).map(|m| m.name.clone())
        };
        for (running, expected) in [
            (vec!["a", "b", "c"], Some("a")),
            (vec!["b", "c"], Some("b")),
            (vec!["a", "b", "c"], Some("b")),
            (vec!["c"], None),
            (vec!["a", "c"], Some("a")),
        ] {
            etcd.elect(|name| running.contains(&name));
            assert_eq!(leader(&etcd).as_deref(), expected, "{running:?}");
        }
    }

    #[test]
    fn a_learner_counts_for_nothing() {
        let env = Env::simulated(|| jiff::Timestamp::UNIX_EPOCH, 1);
        let mut etcd = Etcd::new(&env);
        etcd.add(&env, "a", std::net::Ipv4Addr::LOCALHOST, false);
        etcd.add(&env, "b", std::net::Ipv4Addr::LOCALHOST, true);
        assert!(etcd.has_quorum(|name| name == "a"));
        assert!(!etcd.has_quorum(|name| name == "b"));
        etcd.promote("b");
        assert!(!etcd.has_quorum(|name| name == "a"));
    }
}
