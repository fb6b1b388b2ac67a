//! Names of created objects: deterministic, and never reused.
//!
//! A name is the owner's name and a short hash of the owner's uid and a number. The number comes from a counter on
//! the owner (an annotation, so that `move` and backups keep it). It is incremented once an object with the name was
//! observed, so a creation whose response was lost is retried with the same name and conflicts instead of creating a
//! second object; and before another name is assigned, so that names are not reused.

use capstan_object::ObjectMeta;
use sha2::{Digest, Sha256};

/// The owner's counter: the number of the next name.
pub const COUNTER: &str = "capstan.dev/next-child";

/// The alphabet of Kubernetes' generated names: no vowels, so no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of the generated part, as upstream.
const LENGTH: usize = 5;

/// Maximum length of a name.
const LONGEST: usize = 63;

/// Assigns names to objects of one owner.
#[derive(Debug, Clone)]
pub struct Names {
    uid: String,
    next: u64,
}

impl Names {
    /// Reads the owner's counter and advances it past existing names. `exists` returns whether an object with a
    /// suffix exists.
    pub fn of(owner: &ObjectMeta, exists: impl Fn(&str) -> bool) -> Self {
        let counter = owner.annotations.get(COUNTER).and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut names = Self { uid: owner.uid.clone(), next: counter };
        // Several may have been created from one counter, and some of them deleted since.
        for n in counter..counter + LOOK_AHEAD {
            if exists(&names.suffix(n)) {
                names.next = n + 1;
            }
        }
        names
    }

    /// Writes the counter back, if it moved.
    pub fn record(&self, owner: &mut ObjectMeta) {
        if self.next > 0 {
            owner.annotations.insert(COUNTER.to_owned(), self.next.to_string());
        }
    }

    /// The next suffixes. They are not recorded until objects with them were observed.
    pub fn upcoming(&self) -> impl Iterator<Item = String> + '_ {
        (self.next..self.next + LOOK_AHEAD).map(|n| self.suffix(n))
    }

    fn suffix(&self, n: u64) -> String {
        let digest =
            Sha256::new().chain_update(&self.uid).chain_update([0]).chain_update(n.to_be_bytes()).finalize();
        let letters = digest.iter().take(LENGTH).map(|byte| ALPHABET[usize::from(*byte) % ALPHABET.len()]);
        letters.map(char::from).collect()
    }
}

/// Maximum number of objects created from one counter.
pub const LOOK_AHEAD: u64 = 256;

/// `base-suffix`, truncated to a valid name.
pub fn joined(base: &str, suffix: &str) -> String {
    shortened(format!("{base}-{suffix}"), suffix)
}

/// A name that is too long is truncated and ends with the suffix, so that it stays unique.
pub fn shortened(mut name: String, suffix: &str) -> String {
    if name.len() <= LONGEST {
        return name;
    }
    let mut kept = LONGEST.saturating_sub(suffix.len());
    while !name.is_char_boundary(kept) {
        kept -= 1;
    }
    name.truncate(kept);
    name + suffix
}

/// A name from a template such as `{{ .cluster.name }}-{{ .random }}`, where `.random` is the suffix.
pub fn from_template(template: &str, values: &[(&str, &str)], suffix: &str) -> String {
    let mut name = String::new();
    let mut rest = template;
    // Admission rejects templates with unknown variables.
    while let Some((before, (inner, after))) =
        rest.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        name.push_str(before);
        match inner.trim() {
            ".random" => name.push_str(suffix),
            inner => name.push_str(values.iter().find(|(key, _)| *key == inner).map_or("", |(_, v)| v)),
        }
        rest = after;
    }
    name.push_str(rest);
    shortened(name, suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(counter: Option<&str>) -> ObjectMeta {
        let mut meta = ObjectMeta { uid: "u1".to_owned(), ..ObjectMeta::named("ns", "md") };
        meta.annotations.extend(counter.map(|counter| (COUNTER.to_owned(), counter.to_owned())));
        meta
    }

    #[test]
    fn a_creation_with_a_lost_response_is_retried_with_the_same_name() {
        let first = Names::of(&owner(None), |_| false).upcoming().next();
        assert_eq!(first, Names::of(&owner(None), |_| false).upcoming().next());
    }

    #[test]
    fn an_observed_name_is_never_reused() {
        let names = Names::of(&owner(None), |_| false);
        let made: Vec<_> = names.upcoming().take(2).collect();
        let after = Names::of(&owner(None), |suffix| suffix == made[1]);
        let mut recorded = owner(None);
        after.record(&mut recorded);
        assert_eq!(recorded.annotations[COUNTER], "2");
        let later = Names::of(&recorded, |_| false).upcoming().next().expect("a suffix");
        assert!(!made.contains(&later));
    }

    #[test]
    fn different_owners_get_different_names() {
        let other = ObjectMeta { uid: "u2".to_owned(), ..owner(None) };
        assert_ne!(
            Names::of(&owner(None), |_| false).upcoming().next(),
            Names::of(&other, |_| false).upcoming().next()
        );
    }

    #[test]
    fn children_of_an_owner_with_a_long_name_have_valid_names() {
        let name = joined(&"a".repeat(80), "bcdfg");
        assert_eq!((name.len(), name.ends_with("bcdfg")), (63, true));
    }
}
