//! Selects the suites of a run: a fixed smoke set, those whose subject changed, and the others in rotation, within a
//! time budget.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::history::{Pass, Passes, Repository, Since};
use super::suites::{EVERY_SUITE_USES, SUITES, Suite, matches};
use crate::peers::catalog::{self, Family};
use crate::text::{human_duration, table};
use anyhow::Result;

/// Time limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// For the suites alone.
    pub suites: Duration,
    /// For the suites and for building what they need.
    pub with_peers: Duration,
}

/// A suite, or a part of one, that can be selected.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub suite: &'static Suite,
    /// Zero-based part, if the suite has several.
    pub part: Option<u32>,
    standing: Standing,
    /// The pass that the standing is about.
    last: Option<Pass>,
    estimate: Duration,
}

/// The last recorded pass of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// No pass is recorded at an ancestor of this commit.
    Unknown,
    Passed {
        commits_ago: u64,
        /// How many paths of the suite's subject changed, and one of them.
        about: Option<(usize, String)>,
        /// A changed path that it depends on.
        uses: Option<String>,
    },
}

#[derive(Debug)]
pub struct Chosen {
    pub candidate: Candidate,
    pub why: String,
}

/// The selected suites in order, and those left for later runs.
#[derive(Debug)]
pub struct Plan {
    pub chosen: Vec<Chosen>,
    pub left: Vec<Candidate>,
    budget: Budget,
    suites: Duration,
    builds: Duration,
}

impl Candidate {
    /// Its name in plans, records and reports.
    pub fn name(&self) -> String {
        match self.part {
            Some(part) => format!("{} {}/{}", self.suite.name, part + 1, self.suite.parts),
            None => self.suite.name.to_owned(),
        }
    }

    /// The command line after `cargo xtask`.
    pub fn command(&self) -> Vec<String> {
        let mut line: Vec<String> = vec![self.suite.name.to_owned()];
        line.extend(self.suite.arguments.iter().map(|one| (*one).to_owned()));
        match self.part {
            Some(part) => {
                line.extend(["--part".to_owned(), format!("{}/{}", part + 1, self.suite.parts)]);
            }
            None => line.extend(self.suite.whole.iter().map(|one| (*one).to_owned())),
        }
        line
    }

    /// Every candidate, without its record.
    fn unrecorded() -> impl Iterator<Item = Self> {
        SUITES.iter().flat_map(|suite| {
            let parts = if suite.parts == 1 { vec![None] } else { (0..suite.parts).map(Some).collect() };
            parts.into_iter().map(move |part| Self {
                suite,
                part,
                standing: Standing::Unknown,
                last: None,
                estimate: Duration::from_secs(suite.seconds),
            })
        })
    }

    /// Every suite once, with all its parts, without its record.
    fn whole_unrecorded() -> impl Iterator<Item = Self> {
        let firsts = Self::unrecorded().filter(|one| one.part.is_none_or(|part| part == 0));
        firsts.map(|one| Self { part: None, estimate: one.estimate * one.suite.parts, ..one })
    }

    /// A suite that passed and that nothing has changed since.
    #[cfg(test)]
    pub fn passed(name: &str, pass: Pass) -> Self {
        let mut all = Self::whole_unrecorded();
        let one = all.find(|one| one.suite.name == name).expect("a suite");
        let standing = Standing::Passed { commits_ago: 0, about: None, uses: None };
        Self { standing, last: Some(pass), ..one }
    }

    /// Every candidate, with its record.
    pub fn all(repository: &Repository, passes: &Passes) -> Result<Vec<Self>> {
        Self::unrecorded().map(|one| one.consulted(repository, passes)).collect()
    }

    /// Every suite once, with all its parts, and with its record. Passes of all parts are a pass of the suite.
    pub fn whole(repository: &Repository, passes: &Passes) -> Result<Vec<Self>> {
        let parts = Self::all(repository, passes)?;
        let whole = Self::whole_unrecorded().map(|one| one.consulted(repository, passes));
        whole.map(|one| Ok(one?.or_of_parts(&parts))).collect()
    }

    /// Takes the passes of its parts for its own, if each of them still holds and its own does not.
    fn or_of_parts(self, all: &[Self]) -> Self {
        let parts = || all.iter().filter(|part| part.suite.name == self.suite.name && part.part.is_some());
        let held: Vec<_> = parts().filter_map(|part| part.still_passes().map(|pass| (part, pass))).collect();
        if self.still_passes().is_some() || held.len() != parts().count() {
            return self;
        }
        let Some((oldest, first)) = held.iter().max_by_key(|(part, _)| part.standing.age()) else {
            return self;
        };
        let took = held.iter().map(|(_, pass)| pass.took).sum();
        let last = Some(Pass { commit: first.commit.clone(), took });
        Self { standing: oldest.standing.clone(), last, estimate: took, ..self }
    }

    fn consulted(mut self, repository: &Repository, passes: &Passes) -> Result<Self> {
        let name = self.name();
        let mut nearest: Option<(Since, Pass)> = None;
        let whole = if self.suite.sampled { name.as_str() } else { self.suite.name };
        for pass in passes.of(whole, &name) {
            let Some(since) = repository.since(&pass.commit)? else { continue };
            if nearest.as_ref().is_none_or(|(known, _)| since.commits <= known.commits) {
                nearest = Some((since, pass.clone()));
            }
        }
        if let Some((since, pass)) = nearest {
            self.standing = Standing::of(self.suite, &since);
            // A row of the page covers all parts.
            if self.part.is_none() {
                self.estimate = pass.took;
            }
            self.last = Some(pass);
        }
        Ok(self)
    }

    /// Its last pass, if nothing that the suite depends on has changed since.
    pub fn still_passes(&self) -> Option<&Pass> {
        match &self.standing {
            Standing::Passed { about: None, uses: None, .. } => self.last.as_ref(),
            _ => None,
        }
    }
}

impl Standing {
    fn of(suite: &Suite, since: &Since) -> Self {
        let about = |path: &&String| suite.about.iter().any(|pattern| matches(pattern, path));
        let uses = |path: &&String| {
            let patterns = suite.uses.iter().copied().flatten().chain(EVERY_SUITE_USES);
            patterns.into_iter().any(|pattern| matches(pattern, path))
        };
        let first = since.paths.iter().find(about).cloned();
        Self::Passed {
            commits_ago: since.commits,
            about: first.map(|path| (since.paths.iter().filter(about).count(), path)),
            uses: since.paths.iter().find(uses).cloned(),
        }
    }

    /// Commits since it passed. A candidate without a record is the oldest.
    fn age(&self) -> u64 {
        match self {
            Self::Unknown => u64::MAX,
            Self::Passed { commits_ago, .. } => *commits_ago,
        }
    }

    fn last_passed(&self) -> String {
        match self {
            Self::Unknown => "no pass is recorded".to_owned(),
            Self::Passed { commits_ago: 0, .. } => "passed at this commit".to_owned(),
            Self::Passed { commits_ago: 1, .. } => "passed one commit ago".to_owned(),
            Self::Passed { commits_ago, .. } => format!("passed {commits_ago} commits ago"),
        }
    }
}

/// Why a candidate is selected, most urgent first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Smoke,
    About,
    /// The least recently passed, whatever changed.
    Rotation,
    Uses,
    Rest,
}

/// Fills the budget. `seed` orders candidates of equal age, so that runs of one commit select the same suites and
/// later commits select others.
pub fn choose(all: Vec<Candidate>, is_built: &dyn Fn(&str) -> bool, budget: Budget, seed: u64) -> Plan {
    let mut plan =
        Plan { chosen: Vec::new(), left: all, budget, suites: Duration::ZERO, builds: Duration::ZERO };
    // Parts of one suite alternate with other suites instead of running as a block.
    plan.left.sort_by_cached_key(|one| mixed(seed, &one.name()));
    let mut built: BTreeSet<&'static str> =
        catalog::PEERS.iter().map(|peer| peer.name).filter(|name| is_built(name)).collect();
    // A fifth is reserved for the rotation, or large changes would starve it.
    let most = Budget { suites: budget.suites * 4 / 5, with_peers: budget.with_peers * 4 / 5 };
    plan.fill(Round::Smoke, Budget { suites: Duration::MAX, with_peers: Duration::MAX }, &mut built);
    plan.fill(Round::About, most, &mut built);
    plan.fill(Round::Rotation, budget, &mut built);
    plan.fill(Round::Uses, budget, &mut built);
    plan.fill(Round::Rest, budget, &mut built);
    // Cheap suites first, so that failures show early.
    plan.chosen.sort_by_key(|chosen| chosen.candidate.estimate);
    plan
}

impl Plan {
    fn fill(&mut self, round: Round, budget: Budget, built: &mut BTreeSet<&'static str>) {
        if round == Round::About {
            self.left.sort_by_key(|one| match &one.standing {
                Standing::Passed { about: Some((count, _)), .. } => std::cmp::Reverse(*count),
                _ => std::cmp::Reverse(0),
            });
        } else {
            // A suite waits since any of its parts ran; or suites of many parts would leave no turn to others. The sort
            // is stable: candidates of equal age keep their shuffled order.
            let mut suites: BTreeMap<&'static str, u64> = BTreeMap::new();
            for one in &self.left {
                let age = suites.entry(one.suite.name).or_insert(u64::MAX);
                *age = one.standing.age().min(*age);
            }
            self.left.sort_by_key(|one| {
                let suite = suites.get(one.suite.name).copied().unwrap_or(u64::MAX);
                (std::cmp::Reverse(suite), std::cmp::Reverse(one.standing.age()))
            });
        }
        let mut left = Vec::new();
        let mut taken = 0;
        for candidate in std::mem::take(&mut self.left) {
            let Some(why) = reason(&candidate, round) else {
                left.push(candidate);
                continue;
            };
            let done = round == Round::Rotation && taken > 0;
            // One part of a long suite is enough for one run.
            let another_part = candidate.part.is_some()
                && self.chosen.iter().any(|one| one.candidate.suite.name == candidate.suite.name);
            let builds = build_time(candidate.suite, built);
            let suites = self.suites + candidate.estimate;
            let all = suites + self.builds + builds;
            if done || another_part || suites > budget.suites || all > budget.with_peers {
                left.push(candidate);
                continue;
            }
            self.suites = suites;
            self.builds += builds;
            built.extend(candidate.suite.peer_names());
            taken += 1;
            self.chosen.push(Chosen { candidate, why });
        }
        self.left = left;
    }

    /// The named suites, or all of them.
    pub fn of(all: Vec<Candidate>, names: &[String], why: &str) -> Self {
        let (chosen, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| {
            names.is_empty() || names.iter().any(|name| name == one.suite.name || *name == one.name())
        });
        let suites = chosen.iter().map(|one| one.estimate).sum();
        let chosen = chosen.into_iter().map(|candidate| Chosen { candidate, why: why.to_owned() }).collect();
        let budget = Budget { suites: Duration::MAX, with_peers: Duration::MAX };
        Self { chosen, left, budget, suites, builds: Duration::ZERO }
    }

    /// Names of all peers that its suites run.
    pub fn peers(&self) -> Vec<String> {
        let names: BTreeSet<_> =
            self.chosen.iter().flat_map(|one| one.candidate.suite.peer_names()).collect();
        names.into_iter().map(String::from).collect()
    }

    pub fn print(&self) {
        let mut rows = vec![["suite", "estimate", "why"].map(String::from).to_vec()];
        for Chosen { candidate, why } in &self.chosen {
            rows.push(vec![candidate.name(), human_duration(candidate.estimate), why.clone()]);
        }
        println!("{}", table(&rows));
        let limit = |limit: Duration| match limit {
            Duration::MAX => String::new(),
            limit => format!(" of {}", human_duration(limit)),
        };
        println!(
            "{} suites, about {}{}; with peers that are not built yet about {}{}",
            self.chosen.len(),
            human_duration(self.suites),
            limit(self.budget.suites),
            human_duration(self.suites + self.builds),
            limit(self.budget.with_peers),
        );
        let mut left: Vec<String> = Vec::new();
        for candidate in &self.left {
            let parts = self.left.iter().filter(|one| one.suite.name == candidate.suite.name).count();
            let name = if parts > 1 {
                format!("{} ({parts} parts)", candidate.suite.name)
            } else {
                candidate.name()
            };
            let line = format!("{name}: {}", candidate.standing.last_passed());
            if !left.iter().any(|known| known.starts_with(&name)) {
                left.push(line);
            }
        }
        if !left.is_empty() {
            println!("left for later runs:\n  {}", left.join("\n  "));
        }
    }
}

/// Why a candidate belongs to a round, or `None` if it does not.
fn reason(candidate: &Candidate, round: Round) -> Option<String> {
    let standing = &candidate.standing;
    match (round, standing) {
        (Round::Smoke, _) => candidate.suite.smoke.then(|| "smoke".to_owned()),
        (Round::About, Standing::Passed { about: Some((1, path)), .. }) => Some(format!("{path} changed")),
        (Round::About, Standing::Passed { about: Some((count, path)), .. }) => {
            Some(format!("{path} and {} more changed", count - 1))
        }
        (Round::About, _) => None,
        (Round::Rotation, _) => Some(format!("rotation: {}", standing.last_passed())),
        (Round::Uses, Standing::Passed { uses: Some(path), .. }) => {
            Some(format!("depends on {path}, which changed"))
        }
        (Round::Uses, Standing::Unknown) => Some(standing.last_passed()),
        (Round::Uses, _) => None,
        (Round::Rest, _) => Some(format!("budget left: {}", standing.last_passed())),
    }
}

/// Time to build the missing peers of a suite on two idle cores.
fn build_time(suite: &Suite, built: &BTreeSet<&'static str>) -> Duration {
    let family = |name: &str| catalog::PEERS.iter().find(|peer| peer.name == name).map(|peer| peer.family);
    let mut begun: Vec<Family> = built.iter().filter_map(|name| family(name)).collect();
    let mut seconds = suite.needs.iter().map(|need| need.seconds()).sum();
    for name in suite.peer_names().filter(|name| !built.contains(name)) {
        let Some(peer) = catalog::PEERS.iter().find(|peer| peer.name == name) else { continue };
        seconds += peer.seconds;
        if !begun.contains(&peer.family) {
            begun.push(peer.family);
            seconds += peer.family.shared_seconds();
        }
    }
    Duration::from_secs(seconds)
}

/// FNV-1a of seed and name. The standard library's hashes may change between releases.
fn mixed(seed: u64, name: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Budget = Budget { suites: Duration::from_secs(900), with_peers: Duration::from_secs(1800) };

    fn candidates(change: impl Fn(&'static Suite) -> Standing) -> Vec<Candidate> {
        Candidate::unrecorded().map(|one| Candidate { standing: change(one.suite), ..one }).collect()
    }

    fn after(paths: &[&str]) -> Vec<Candidate> {
        let since = Since { commits: 3, paths: paths.iter().map(|path| (*path).to_owned()).collect() };
        candidates(|suite| Standing::of(suite, &since))
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.chosen.iter().map(|one| one.candidate.name()).collect()
    }

    #[test]
    fn the_smoke_set_is_in_every_plan_and_costs_less_than_a_third() {
        let plan = choose(after(&[]), &|_| true, ROOM, 1);
        let smoke = SUITES.iter().filter(|suite| suite.smoke);
        assert!(smoke.clone().all(|suite| names(&plan).contains(&suite.name.to_owned())));
        assert!(smoke.map(|suite| suite.seconds).sum::<u64>() * 3 <= ROOM.suites.as_secs());
    }

    #[test]
    fn a_suite_whose_subject_changed_is_selected_and_names_the_path() {
        let plan = choose(after(&["crates/kubernetes/store/src/log.rs"]), &|_| true, ROOM, 7);
        let crash = plan.chosen.iter().find(|one| one.candidate.suite.name == "crash").unwrap();
        assert_eq!(crash.why, "crates/kubernetes/store/src/log.rs changed");
    }

    #[test]
    fn passes_of_all_parts_are_a_pass_of_the_suite() {
        let pass = Pass { commit: "0123abc".to_owned(), took: Duration::from_secs(60) };
        let standing = Standing::Passed { commits_ago: 2, about: None, uses: None };
        let all = Candidate::unrecorded();
        let mut parts: Vec<_> = all
            .map(|one| Candidate { last: Some(pass.clone()), standing: standing.clone(), ..one })
            .collect();
        let crash = |parts: &[Candidate]| {
            let whole = Candidate::whole_unrecorded().find(|one| one.suite.name == "crash").unwrap();
            whole.or_of_parts(parts).still_passes().cloned()
        };
        assert_eq!(crash(&parts), Some(Pass { took: Duration::from_secs(300), ..pass }));
        let part = parts.iter_mut().find(|one| one.suite.name == "crash" && one.part == Some(3)).unwrap();
        part.standing = Standing::Unknown;
        assert_eq!(crash(&parts), None);
    }

    #[test]
    fn budgets_are_kept_and_no_suite_is_dropped() {
        for seed in 0..50 {
            let all = after(&["crates/kubernetes/apiserver/src/server.rs", "crates/capi/core/src/lib.rs"]);
            let count = all.len();
            for is_built in [true, false] {
                let plan = choose(all.clone(), &|_| is_built, ROOM, seed);
                assert!(plan.suites <= ROOM.suites, "{seed} {is_built}");
                assert!(plan.suites + plan.builds <= ROOM.with_peers, "{seed} {is_built}");
                assert_eq!(plan.chosen.len() + plan.left.len(), count);
            }
        }
    }

    #[test]
    fn every_suite_runs_within_a_dozen_runs() {
        // As in CI with a cache: passes are recorded, and each commit changes a path that every suite depends on.
        let mut age = std::collections::BTreeMap::new();
        for run in 0..12 {
            let all = after(&["Cargo.lock"])
                .into_iter()
                .map(|mut one| {
                    let since: u64 = age.get(&one.name()).map_or(1000, |ran| run - ran);
                    if let Standing::Passed { commits_ago, .. } = &mut one.standing {
                        *commits_ago = since;
                    }
                    one
                })
                .collect();
            for name in names(&choose(all, &|_| true, ROOM, run)) {
                age.insert(name, run);
            }
        }
        for suite in SUITES {
            assert!(age.keys().any(|name| name.starts_with(suite.name)), "{} never ran", suite.name);
        }
    }

    #[test]
    fn without_a_record_different_commits_take_different_suites() {
        let plan = |seed| names(&choose(candidates(|_| Standing::Unknown), &|_| true, ROOM, seed));
        assert_ne!(plan(1), plan(2));
        assert_eq!(plan(1), plan(1));
    }

    #[test]
    fn a_run_of_everything_takes_long_suites_whole() {
        let whole: Vec<_> = Candidate::whole_unrecorded().collect();
        let names: Vec<_> = whole.iter().map(Candidate::name).collect();
        assert_eq!(names, SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>());
        let faults = whole.iter().find(|one| one.suite.name == "cloudstack-faults").unwrap();
        assert_eq!(faults.command(), ["cloudstack-faults", "--all", "--every", "8"]);
    }

    #[test]
    fn a_sample_of_all_parts_is_no_pass_of_a_part() {
        let repository = Repository::new(crate::cargo::root());
        let head = repository.head().unwrap();
        let passes = Passes::parsed(&format!("cloudstack-faults\t{head}\t9\nmend\t{head}\t9\n"));
        let passed = |suite: &str, part| {
            let all = Candidate::unrecorded().filter(|one| one.suite.name == suite);
            let mut all = all.map(|one| Candidate { part, ..one });
            all.next().unwrap().consulted(&repository, &passes).unwrap().last.is_some()
        };
        assert!(passed("mend", Some(1)) && passed("mend", None) && passed("cloudstack-faults", None));
        assert!(!passed("cloudstack-faults", Some(1)));
    }

    #[test]
    fn a_pass_holds_until_something_changes_that_the_suite_depends_on() {
        let last = Some(Pass { commit: "0123abc".into(), took: Duration::from_secs(9) });
        let after = |path: &str| {
            let since = Since { commits: 2, paths: vec![path.to_owned()] };
            let all = Candidate::whole_unrecorded();
            let all = all.map(|one| Candidate { standing: Standing::of(one.suite, &since), ..one });
            all.map(|one| Candidate { last: last.clone(), ..one })
                .filter(|one| one.still_passes().is_some())
                .map(|one| one.suite.name)
                .collect::<Vec<_>>()
        };
        let kept = after("crates/clouds/kvm/src/lib.rs");
        assert!(kept.contains(&"crash") && !kept.contains(&"real-cluster"), "{kept:?}");
        assert_eq!(after("Cargo.lock"), Vec::<&str>::new());
        assert_eq!(after("docs/install.md").len(), SUITES.len());
        assert_eq!(Candidate::whole_unrecorded().filter(|one| one.still_passes().is_some()).count(), 0);
    }

    #[test]
    fn a_run_takes_one_part_of_a_long_suite() {
        for seed in 0..20 {
            let plan =
                choose(after(&["crates/clouds/cloudstack/provider/src/lib.rs"]), &|_| true, ROOM, seed);
            for suite in SUITES.iter().filter(|suite| suite.parts > 1) {
                let parts = plan.chosen.iter().filter(|one| one.candidate.suite.name == suite.name).count();
                assert!(parts <= 1, "{seed} {}", suite.name);
            }
            let is_about = |one: &&Chosen| one.candidate.suite.name == "cloudstack-faults";
            assert_eq!(plan.chosen.iter().filter(is_about).count(), 1, "{seed}");
        }
    }

    #[test]
    fn building_missing_peers_counts_towards_the_budget() {
        let suite = super::super::suites::find("kubectl-parity").unwrap();
        let all: BTreeSet<_> = catalog::PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(build_time(suite, &all), Duration::ZERO);
        let nothing = build_time(suite, &BTreeSet::new());
        let family = build_time(suite, &BTreeSet::from(["kubeadm"]));
        assert!(family < nothing && family > Duration::ZERO);
    }
}
