//! Checks whether some rules allow everything that others allow.
//!
//! A rule stands for every combination of its verbs, groups, resources and names, and each of them must be covered by
//! some held rule. A rule of 5 kB can stand for a hundred million combinations, so they are never expanded. What one
//! rule covers of another is a block: all combinations of some of its verbs, groups, resources and names. Blocks are
//! subtracted from the whole until nothing is left, or the rest is missing.

use std::collections::HashMap;

use super::rule::{ALL, PolicyRule, prefix_matches};

/// Limit of steps of one comparison: entries visited and words of blocks compared. Handwritten rules take thousands.
const MAX_WORK: usize = 20_000_000;

/// The comparison exceeds the limit of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooComplex;

/// Combinations that are not covered.
#[derive(Debug, Default)]
pub(super) struct Missing<'w> {
    blocks: Vec<(WantedRule<'w>, Vec<Block>)>,
}

/// What no rule of `held` covers of the `wanted` ones.
pub(super) fn uncovered<'h, 'w>(
    held: impl IntoIterator<Item = &'h PolicyRule>,
    wanted: &'w [PolicyRule],
) -> Result<Missing<'w>, TooComplex> {
    let mut work = Work { left: MAX_WORK };
    let held = HeldRules::new(held.into_iter().collect(), &mut work)?;
    let mut blocks = Vec::new();
    for rule in wanted {
        for whole in [WantedRule::resources(rule), WantedRule::paths(rule)].into_iter().flatten() {
            let missing = held.missing(&whole, &mut work)?;
            if !missing.is_empty() {
                blocks.push((whole, missing));
            }
        }
    }
    Ok(Missing { blocks })
}

impl Missing<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Number of missing combinations.
    pub(super) fn count(&self) -> usize {
        self.blocks.iter().flat_map(|(_, blocks)| blocks).map(Block::count).fold(0, usize::saturating_add)
    }

    /// The missing combinations as rules with one verb and one resource each, at most `limit` of them.
    pub(super) fn atoms(&self, limit: usize) -> Vec<PolicyRule> {
        let mut out = Vec::new();
        for (whole, blocks) in &self.blocks {
            let room = limit - out.len();
            let mut combinations: Vec<_> = blocks.iter().flat_map(Block::combinations).take(room).collect();
            combinations.sort_unstable();
            out.extend(combinations.iter().map(|combination| whole.atom(combination)));
        }
        out
    }
}

/// Remaining steps.
struct Work {
    left: usize,
}

impl Work {
    fn spend(&mut self, steps: usize) -> Result<(), TooComplex> {
        self.left = self.left.checked_sub(steps).ok_or(TooComplex)?;
        Ok(())
    }
}

/// A set of indexes of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn none(length: usize) -> Self {
        Self(vec![0; length.div_ceil(64)])
    }

    fn all(length: usize) -> Self {
        let mut out = Self::none(length);
        (0..length).for_each(|position| out.set(position));
        out
    }

    fn set(&mut self, position: usize) {
        if let Some(word) = self.0.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
    }

    fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    fn without(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & !b).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn positions(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let words = self.0.iter().enumerate();
        words.flat_map(|(index, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit)
        })
    }
}

/// The dimensions of a rule, in the order in which combinations are listed: groups, resources, verbs and names. For
/// paths only paths and verbs are used, as resources and verbs.
const DIMENSIONS: usize = 4;
const GROUPS: usize = 0;
const RESOURCES: usize = 1;
const VERBS: usize = 2;
const NAMES: usize = 3;

/// All combinations of some entries in every dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block([Bits; DIMENSIONS]);

impl Block {
    fn words(&self) -> usize {
        self.0.iter().map(|dimension| dimension.0.len()).sum()
    }

    fn count(&self) -> usize {
        self.0.iter().map(Bits::count).fold(1, usize::saturating_mul)
    }

    /// This block without another one, as blocks that do not overlap.
    fn without(self, other: &Self, out: &mut Vec<Self>) {
        if self.0.iter().zip(&other.0).any(|(own, other)| own.and(other).is_empty()) {
            out.push(self);
            return;
        }
        let mut inside = self;
        for dimension in 0..DIMENSIONS {
            let outside = inside.0[dimension].without(&other.0[dimension]);
            if !outside.is_empty() {
                let mut left = inside.clone();
                left.0[dimension] = outside;
                out.push(left);
                inside.0[dimension] = inside.0[dimension].and(&other.0[dimension]);
            }
        }
    }

    fn combinations(&self) -> impl Iterator<Item = [usize; DIMENSIONS]> + '_ {
        let [groups, resources, verbs, names] = &self.0;
        groups.positions().flat_map(move |group| {
            resources.positions().flat_map(move |resource| {
                verbs
                    .positions()
                    .flat_map(move |verb| names.positions().map(move |name| [group, resource, verb, name]))
            })
        })
    }
}

/// The entries of one dimension of a wanted rule, without duplicates.
#[derive(Debug)]
struct Dimension<'w> {
    entries: Vec<&'w str>,
    positions: HashMap<&'w str, usize>,
}

impl<'w> Dimension<'w> {
    fn new(list: &'w [String]) -> Self {
        let mut out = Self { entries: Vec::new(), positions: HashMap::new() };
        for entry in list {
            if !out.positions.contains_key(entry.as_str()) {
                out.positions.insert(entry, out.entries.len());
                out.entries.push(entry);
            }
        }
        out
    }

    /// A single entry: no restriction in this dimension.
    fn unrestricted() -> Self {
        Self { entries: vec![""], positions: HashMap::new() }
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries that are also in a list.
    fn named_in(&self, list: &[String]) -> Bits {
        let mut out = Bits::none(self.len());
        list.iter().filter_map(|entry| self.positions.get(entry.as_str())).for_each(|at| out.set(*at));
        out
    }
}

/// A wanted rule, or one half of it: a rule may have both resources and paths.
#[derive(Debug)]
struct WantedRule<'w> {
    dimensions: [Dimension<'w>; DIMENSIONS],
    about: About<'w>,
    /// Whether it is limited to names.
    named: bool,
}

#[derive(Debug)]
enum About<'w> {
    /// Resources that have a subresource, by its name.
    Resources(HashMap<&'w str, Vec<usize>>),
    /// Sorted paths with their indexes.
    Paths(Vec<(&'w str, usize)>),
}

impl<'w> WantedRule<'w> {
    fn resources(rule: &'w PolicyRule) -> Option<Self> {
        let named = !rule.resource_names.is_empty();
        let names = if named { Dimension::new(&rule.resource_names) } else { Dimension::unrestricted() };
        let resources = Dimension::new(&rule.resources);
        let mut by_subresource: HashMap<&str, Vec<usize>> = HashMap::new();
        for (position, resource) in resources.entries.iter().enumerate() {
            if let Some((_, subresource)) = resource.split_once('/') {
                by_subresource.entry(subresource).or_default().push(position);
            }
        }
        let dimensions = [Dimension::new(&rule.api_groups), resources, Dimension::new(&rule.verbs), names];
        Self { dimensions, about: About::Resources(by_subresource), named }.unless_empty()
    }

    fn paths(rule: &'w PolicyRule) -> Option<Self> {
        let paths = Dimension::new(&rule.non_resource_urls);
        let mut sorted: Vec<_> = paths.entries.iter().enumerate().map(|(at, path)| (*path, at)).collect();
        sorted.sort_unstable();
        let dimensions =
            [Dimension::unrestricted(), paths, Dimension::new(&rule.verbs), Dimension::unrestricted()];
        Self { dimensions, about: About::Paths(sorted), named: false }.unless_empty()
    }

    fn unless_empty(self) -> Option<Self> {
        self.dimensions.iter().all(|dimension| dimension.len() > 0).then_some(self)
    }

    fn block(&self) -> Block {
        Block(self.dimensions.each_ref().map(|dimension| Bits::all(dimension.len())))
    }

    fn atom(&self, combination: &[usize; DIMENSIONS]) -> PolicyRule {
        let entry =
            |dimension: usize| vec![self.dimensions[dimension].entries[combination[dimension]].to_owned()];
        match self.about {
            About::Resources(_) => PolicyRule {
                verbs: entry(VERBS),
                api_groups: entry(GROUPS),
                resources: entry(RESOURCES),
                resource_names: if self.named { entry(NAMES) } else { Vec::new() },
                ..PolicyRule::default()
            },
            About::Paths(_) => PolicyRule {
                verbs: entry(VERBS),
                non_resource_urls: entry(RESOURCES),
                ..PolicyRule::default()
            },
        }
    }

    /// The entries of one dimension that a list covers, where `*` covers all.
    fn covered(&self, dimension: usize, list: &[String]) -> Bits {
        match list.iter().any(|entry| entry == ALL) {
            true => Bits::all(self.dimensions[dimension].len()),
            false => self.dimensions[dimension].named_in(list),
        }
    }

    /// What a held rule covers; `None` if nothing.
    fn covered_by(&self, held: &PolicyRule, work: &mut Work) -> Result<Option<Block>, TooComplex> {
        let lists = [&held.api_groups, &held.resources, &held.verbs, &held.resource_names];
        work.spend(1 + lists.iter().map(|list| list.len()).sum::<usize>() + held.non_resource_urls.len())?;
        let names = match held.resource_names.is_empty() {
            true => Bits::all(self.dimensions[NAMES].len()),
            false if self.named => self.dimensions[NAMES].named_in(&held.resource_names),
            false => return Ok(None),
        };
        let verbs = self.covered(VERBS, &held.verbs);
        if verbs.is_empty() || names.is_empty() {
            return Ok(None);
        }
        let (groups, things) = match &self.about {
            About::Resources(by_subresource) => {
                let mut resources = self.covered(RESOURCES, &held.resources);
                let subresources = held.resources.iter().filter_map(|entry| entry.strip_prefix("*/"));
                for positions in subresources.filter_map(|subresource| by_subresource.get(subresource)) {
                    work.spend(positions.len())?;
                    positions.iter().for_each(|position| resources.set(*position));
                }
                (self.covered(GROUPS, &held.api_groups), resources)
            }
            About::Paths(sorted) => {
                let mut paths = self.dimensions[RESOURCES].named_in(&held.non_resource_urls);
                for prefix in held.non_resource_urls.iter().filter(|path| path.ends_with('*')) {
                    let start = sorted.partition_point(|(path, _)| *path < prefix.trim_end_matches('*'));
                    let below = sorted[start..].iter().take_while(|(path, _)| prefix_matches(prefix, path));
                    for (_, position) in below {
                        work.spend(1)?;
                        paths.set(*position);
                    }
                }
                (Bits::all(1), paths)
            }
        };
        let block = Block([groups, things, verbs, names]);
        work.spend(block.words())?;
        Ok(block.0.iter().all(|dimension| !dimension.is_empty()).then_some(block))
    }
}

/// HeldRules rules, indexed by their entries.
struct HeldRules<'h> {
    rules: Vec<&'h PolicyRule>,
    groups: Postings<'h>,
    resources: Postings<'h>,
    names: Postings<'h>,
    paths: Vec<usize>,
}

/// The rules that name an entry, and those that have `*`.
#[derive(Default)]
struct Postings<'h> {
    by_entry: HashMap<&'h str, Vec<usize>>,
    all: Vec<usize>,
}

impl<'h> Postings<'h> {
    fn add(&mut self, position: usize, entries: &'h [String], is_all: impl Fn(&str) -> bool) {
        if entries.iter().any(|entry| is_all(entry)) {
            self.all.push(position);
            return;
        }
        for entry in entries {
            let positions = self.by_entry.entry(entry).or_default();
            if positions.last() != Some(&position) {
                positions.push(position);
            }
        }
    }

    fn lists<'p>(&'p self, dimension: &'p Dimension<'_>) -> impl Iterator<Item = &'p Vec<usize>> + Clone {
        let named = dimension.entries.iter().filter_map(|entry| self.by_entry.get(*entry));
        named.chain(std::iter::once(&self.all))
    }
}

impl<'h> HeldRules<'h> {
    fn new(rules: Vec<&'h PolicyRule>, work: &mut Work) -> Result<Self, TooComplex> {
        let (mut groups, mut resources, mut names) =
            (Postings::default(), Postings::default(), Postings::default());
        let mut paths = Vec::new();
        for (position, rule) in rules.iter().enumerate() {
            work.spend(1 + rule.api_groups.len() + rule.resources.len() + rule.resource_names.len())?;
            groups.add(position, &rule.api_groups, |entry| entry == ALL);
            // `*/scale` covers resources of any name.
            resources.add(position, &rule.resources, |entry| entry == ALL || entry.starts_with("*/"));
            match rule.resource_names.is_empty() {
                true => names.all.push(position),
                false => names.add(position, &rule.resource_names, |_| false),
            }
            if !rule.non_resource_urls.is_empty() {
                paths.push(position);
            }
        }
        Ok(Self { rules, groups, resources, names, paths })
    }

    /// Rules that may cover something: those found in the dimension that leaves the fewest.
    fn candidates(&self, whole: &WantedRule<'_>, work: &mut Work) -> Result<Vec<usize>, TooComplex> {
        let About::Resources(_) = whole.about else { return Ok(self.paths.clone()) };
        let dimensions = [
            (&self.groups, &whole.dimensions[GROUPS]),
            (&self.resources, &whole.dimensions[RESOURCES]),
            (&self.names, &whole.dimensions[NAMES]),
        ];
        work.spend(dimensions.iter().map(|(_, dimension)| dimension.len()).sum())?;
        let found = |(postings, dimension): &(&Postings<'_>, &Dimension<'_>)| -> usize {
            postings.lists(dimension).map(Vec::len).sum()
        };
        let Some((postings, dimension)) = dimensions.iter().min_by_key(|dimension| found(dimension)) else {
            return Ok(Vec::new());
        };
        let mut out: Vec<usize> = Vec::new();
        for list in postings.lists(dimension) {
            work.spend(list.len())?;
            out.extend(list);
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// What no rule covers, as blocks that do not overlap.
    fn missing(&self, whole: &WantedRule<'_>, work: &mut Work) -> Result<Vec<Block>, TooComplex> {
        let everything = whole.block();
        let mut covered: Vec<Block> = Vec::new();
        for position in self.candidates(whole, work)? {
            if let Some(block) = whole.covered_by(self.rules[position], work)? {
                if block == everything {
                    return Ok(Vec::new());
                }
                covered.push(block);
            }
        }
        // Large ones first: the rest then has fewer parts.
        covered.sort_by_cached_key(|block| std::cmp::Reverse(block.count()));
        covered.dedup();
        let mut left = vec![everything];
        for block in covered {
            let mut next = Vec::new();
            for piece in left {
                work.spend(block.words())?;
                piece.without(&block, &mut next);
            }
            if next.is_empty() {
                return Ok(next);
            }
            left = next;
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::any_rule;
    use super::*;

    fn many(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{prefix}{n}")).collect()
    }

    fn rule(verbs: &[String], groups: &[String], resources: &[String], names: &[String]) -> PolicyRule {
        PolicyRule {
            verbs: verbs.to_vec(),
            api_groups: groups.to_vec(),
            resources: resources.to_vec(),
            resource_names: names.to_vec(),
            ..PolicyRule::default()
        }
    }

    /// Expands every combination and looks for each in every rule, as upstream does.
    fn naive(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
        wanted
            .iter()
            .flat_map(PolicyRule::atoms)
            .filter(|atom| !held.iter().any(|rule| rule.covers_atom(atom)))
            .collect()
    }

    fn found(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
        uncovered(held, wanted).expect("few rules").atoms(usize::MAX)
    }

    #[test]
    fn combinations_are_not_written_out() {
        let lists = [many("v", 300), many("g", 300), many("r", 300), many("n", 300)];
        let wanted = [rule(&lists[0], &lists[1], &lists[2], &lists[3])];
        assert!(uncovered(&wanted, &wanted).expect("little work").is_empty());

        let all = ["*".to_owned()];
        let held: Vec<PolicyRule> =
            lists[2].iter().map(|one| rule(&all, &all, std::slice::from_ref(one), &[])).collect();
        assert!(uncovered(&held, &wanted).expect("little work").is_empty());

        let missing = uncovered(&held[1..], &wanted).expect("little work");
        assert_eq!(missing.count(), 300 * 300 * 300);
        assert_eq!(missing.atoms(100).len(), 100);
        assert!(missing.atoms(100).iter().all(|atom| atom.resources == ["r0"]));
        assert_eq!(uncovered(&[], &wanted).expect("little work").count(), 8_100_000_000);
    }

    #[test]
    fn work_is_bounded_however_rules_overlap() {
        // Each held rule removes a corner of the wanted one, so that the rest is fragmented.
        let entries = many("e", 200);
        let held: Vec<PolicyRule> = (0..200)
            .map(|n| {
                let part = |offset: usize| -> Vec<String> {
                    (0..100)
                        .map(|i| entries[(n * 7 + offset * 31 + i * (offset + 1)) % 200].clone())
                        .collect()
                };
                rule(&part(0), &part(1), &part(2), &part(3))
            })
            .collect();
        let wanted = vec![rule(&entries, &entries, &entries, &entries); 50];
        assert_eq!(uncovered(&held, &wanted).err(), Some(TooComplex));
    }

    proptest! {
        #[test]
        fn what_is_missing_is_what_upstream_would_find_missing(
            held in proptest::collection::vec(any_rule(), 0..6),
            wanted in proptest::collection::vec(any_rule(), 0..3),
        ) {
            let mut expected = naive(&held, &wanted);
            let mut found = found(&held, &wanted);
            expected.sort();
            expected.dedup();
            found.sort();
            found.dedup();
            prop_assert_eq!(&found, &expected);
            let missing = uncovered(&held, &wanted).expect("few rules");
            prop_assert_eq!(missing.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn missing_combinations_come_in_the_order_they_are_written_in() {
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        let wanted =
            [rule(&list(&["get", "list"]), &list(&["", "b"]), &list(&["x", "y"]), &list(&["n", "m"]))];
        let held = [rule(&list(&["list"]), &list(&["b"]), &list(&["x"]), &list(&["m"]))];
        assert_eq!(found(&held, &wanted), naive(&held, &wanted));
    }
}
