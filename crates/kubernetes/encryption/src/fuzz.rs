//! Any bytes as a sealed value or a configuration: opened as they were sealed, or refused. `cargo xtask fuzz` sets the
//! number of cases and the seed.

use capstan_store::Cipher as _;
use zeroize::Zeroizing;

use crate::config::{Configuration, NamedKey, text};
use crate::envelope::Encryption;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or_default()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.byte()).collect()
    }

    /// Other bytes in a few positions, bytes added, or the end cut off.
    fn changed(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.byte()),
                // Lengths stand in the first bytes.
                2 if bytes.len() > 40 => bytes[at % 40] = self.byte(),
                _ if bytes.is_empty() => {}
                _ => bytes[at] = self.byte(),
            }
        }
        bytes
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn cases() -> impl Iterator<Item = (u64, Random)> {
    let seed = setting("PROPTEST_RNG_SEED", 1);
    (0..setting("PROPTEST_CASES", 500))
        .map(move |case| (case, Random(seed ^ case.wrapping_mul(0x2545_f491_4f6c_dd1d))))
}

fn configuration() -> String {
    let key =
        |name: &str, byte: u8| NamedKey { name: name.to_owned(), secret: Zeroizing::new(vec![byte; 32]) };
    text(&["secrets".to_owned()], &[key("one", 1), key("two", 2)]).expect("a configuration").to_string()
}

#[test]
fn fuzz_a_sealed_value_is_opened_as_it_was_or_refused() {
    let encryption =
        Encryption::new(&Configuration::parse(&configuration()).expect("it is valid")).expect("keys");
    for (case, mut random) in cases() {
        let value = random.bytes(200);
        let context = random.bytes(20);
        let mut sealed = Vec::new();
        encryption.seal("/secrets", &context, &value, &mut sealed);
        assert_eq!(encryption.open(&context, &sealed).ok().as_ref(), Some(&value), "case {case}");
        let changed = random.changed(sealed.clone());
        let any = random.bytes(100);
        for bytes in [changed, any] {
            let _ = (Encryption::key_of(&bytes), encryption.is_current(&bytes));
            let opened = encryption.open(&context, &bytes).ok();
            assert!(opened.is_none() || bytes == sealed, "case {case}: {bytes:?} was opened");
        }
    }
}

#[test]
fn fuzz_a_configuration_is_read_or_refused() {
    let valid = configuration().into_bytes();
    for (_, mut random) in cases() {
        for bytes in [random.changed(valid.clone()), random.bytes(100)] {
            if let Err(error) = Configuration::parse_or_key(&bytes) {
                let shown = error.to_string();
                assert!(!shown.contains("AQEBAQEB"), "{shown} has a key");
            }
        }
    }
}
