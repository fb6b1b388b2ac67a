//! Names of created things: deterministic, so that a retried create collides instead of doubling, and never used
//! twice, so that what is still going away cannot meet its successor.

use capstan_object::ObjectMeta;
use sha2::{Digest, Sha256};

/// Annotation with the number of the next child: not status, which `move` drops.
pub const NEXT_CHILD: &str = "capstan.dev/next-child";

/// Letters and digits without vowels and look-alikes, as generated names use.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Longest name that is also a label value and a host name.
const MOST: usize = 63;
const SUFFIX: usize = 6;

/// The name of the n-th child of an owner.
pub fn child_name(owner: &str, uid: &str, n: u64) -> String {
    let digest = Sha256::digest(format!("{uid}/{n}"));
    let suffix: String = digest
        .iter()
        .take(SUFFIX)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect();
    let mut end = owner.len().min(MOST - SUFFIX - 1);
    while !owner.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{suffix}", owner[..end].trim_end_matches(['-', '.']))
}

/// Takes the next number of an owner. The owner must be written, as a decision's own object is, before the child is
/// created.
pub fn next_child(owner: &mut ObjectMeta) -> u64 {
    let next = owner.annotations.get(NEXT_CHILD).and_then(|text| text.parse().ok()).unwrap_or(0);
    owner.annotations.insert(NEXT_CHILD.to_owned(), (next + 1).to_string());
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_for_a_retry_and_another_for_a_successor() {
        let mut owner = ObjectMeta::named("default", "pool");
        let (first, second) = (next_child(&mut owner), next_child(&mut owner));
        let name = |n| child_name("pool", "uid-1", n);
        assert_eq!(name(first), child_name("pool", "uid-1", first));
        assert_ne!(name(first), name(second));
        assert_ne!(
            name(first),
            child_name("pool", "uid-2", first),
            "an owner of the same name has other children"
        );
    }

    #[test]
    fn long_owners_are_cut_to_a_host_name() {
        let name = child_name(&"x.".repeat(60), "uid", 7);
        assert!(name.len() <= MOST && !name.contains(".-"), "{name}");
    }
}
