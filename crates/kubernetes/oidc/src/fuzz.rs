//! Any token and any set of keys: refused, or a signature of a known key. `cargo xtask fuzz` sets the number of cases
//! and the seed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::keys;
use crate::token::Token;

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

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// A value that a document may have anywhere.
    fn value(&mut self) -> Value {
        let encoded = URL_SAFE_NO_PAD.encode(self.bytes(100));
        let texts = [
            "", "RS256", "ES256", "ES384", "EdDSA", "none", "HS256", "RSA", "EC", "OKP", "P-256", "P-384",
            "Ed25519", "sig", "enc", "AQAB", "one",
        ];
        let text = self.pick(&texts);
        let number = self.next();
        self.pick(&[
            json!(null),
            json!(true),
            json!(number),
            json!(-1.5e300),
            json!(encoded),
            json!(text),
            json!([]),
            json!({}),
        ])
    }

    /// An object in which some fields are exchanged, or gone.
    fn changed(&mut self, mut object: Value) -> Value {
        for _ in 0..self.below(4) {
            let Some(fields) = object.as_object_mut().filter(|fields| !fields.is_empty()) else { break };
            let name = fields.keys().nth(self.below(fields.len())).cloned().unwrap_or_default();
            match self.below(4) {
                0 => fields.remove(&name),
                _ => fields.insert(name, self.value()),
            };
        }
        if self.below(20) == 0 { self.value() } else { object }
    }

    /// Text with a few other bytes in it, or cut off.
    fn torn(&mut self, text: String) -> String {
        let mut bytes = text.into_bytes();
        for _ in 0..self.below(3) {
            if !bytes.is_empty() {
                let at = self.below(bytes.len());
                bytes[at] = self.pick(b".=-_ A\xff\0");
            }
        }
        if self.below(4) == 0 {
            bytes.truncate(self.below(bytes.len() + 1));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn key_sets(random: &mut Random) -> Value {
    let (x, y) = (random.bytes(60), random.bytes(60));
    let full = [vec![7; 32], vec![7; 48], x, vec![]];
    let coordinate = |random: &mut Random| URL_SAFE_NO_PAD.encode(random.pick(&full));
    let (a, b, n) =
        (coordinate(random), coordinate(random), URL_SAFE_NO_PAD.encode([vec![0x80; 256], y].concat()));
    let all = [
        json!({"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": n, "e": "AQAB"}),
        json!({"kty": "EC", "crv": "P-256", "x": a, "y": b}),
        json!({"kty": "EC", "crv": "P-384", "kid": "two", "x": a, "y": b}),
        json!({"kty": "OKP", "crv": "Ed25519", "x": a}),
    ];
    let keys: Vec<Value> = (0..random.below(5))
        .map(|_| {
            let key = random.pick(&all);
            random.changed(key)
        })
        .collect();
    let set = json!({"keys": keys});
    random.changed(set)
}

#[test]
fn fuzz_no_token_is_signed_by_keys_that_nobody_has() {
    let seed = setting("PROPTEST_RNG_SEED", 1);
    for case in 0..setting("PROPTEST_CASES", 500) {
        let mut random = Random(seed ^ case.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let set = key_sets(&mut random);
        let keys = keys::read(&set);
        assert!(keys.len() <= 100);
        let header = random.changed(json!({"alg": "RS256", "kid": "one", "typ": "JWT"}));
        let claims =
            random.changed(json!({"iss": "https://id.example", "aud": ["a"], "sub": "ada", "exp": 1}));
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signature = URL_SAFE_NO_PAD.encode(random.bytes(300));
        let text = random.torn(format!("{}.{}.{signature}", part(&header), part(&claims)));
        let Some(token) = Token::parse(&text) else { continue };
        let _ = token.issuer();
        let signed = keys.iter().any(|key| key.may_be_of(&token) && key.signed(&token));
        assert!(!signed, "seed {seed}, case {case}: {text} is signed by a key of {set}");
        assert!(token.into_claims().is_object());
    }
}
