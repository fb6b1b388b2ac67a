//! RSA keys, which ring can use but not generate.

use crypto_bigint::{NonZero, Odd, Uint};
use crypto_primes::hazmat::{SetBits, SmallFactorsSieveFactory};
use crypto_primes::{Flavor, is_prime, sieve_and_find};

use crate::{Stream, der};

/// The public exponent.
const EXPONENT: u32 = 65_537;

/// Generates a key of 2048, 3072 or 4096 bits as PKCS#1 DER; `None` for other sizes. Deterministic for a stream.
///
/// Primes follow FIPS 186-5 (the two highest bits are set, so that the product has full length) and are tested with
/// Baillie-PSW. Readers of the key, such as ring, check its consistency.
pub fn rsa_key(stream: &mut Stream, bits: usize) -> Option<Vec<u8>> {
    // 64-bit words of a prime, and of the product of two.
    match bits {
        2048 => key::<16, 32>(stream),
        3072 => key::<24, 48>(stream),
        4096 => key::<32, 64>(stream),
        _ => None,
    }
}

fn key<const HALF: usize, const FULL: usize>(stream: &mut Stream) -> Option<Vec<u8>> {
    let (p, q) = loop {
        let (one, other) = (prime::<HALF>(stream)?, prime::<HALF>(stream)?);
        if one != other {
            break (one.max(other), one.min(other));
        }
    };
    let one = Uint::<HALF>::ONE;
    let (p_less, q_less) = (p.wrapping_sub(&one), q.wrapping_sub(&one));
    let product = |a: &Uint<HALF>, b: &Uint<HALF>| a.resize::<FULL>().wrapping_mul(&b.resize::<FULL>());
    let common = NonZero::new(p_less.gcd(&q_less)).into_option()?;
    let order = product(&p_less, &q_less.div_exact(&common).into_option()?);
    let order = NonZero::new(order).into_option()?;
    let d = Uint::<FULL>::from_u32(EXPONENT).invert_mod(&order).into_option()?;
    let d_p = d.rem(&NonZero::new(p_less).into_option()?);
    let d_q = d.rem(&NonZero::new(q_less).into_option()?);
    let q_inverse = q.invert_odd_mod(&Odd::new(p).into_option()?).into_option()?;
    Some(der::sequence(&[
        der::integer(&[0]),
        integer(&product(&p, &q)),
        der::integer(&EXPONENT.to_be_bytes()),
        integer(&d),
        integer(&p),
        integer(&q),
        integer(&d_p),
        integer(&d_q),
        integer(&q_inverse),
    ]))
}

/// A prime that is compatible with the exponent.
fn prime<const WORDS: usize>(stream: &mut Stream) -> Option<Uint<WORDS>> {
    let sieve = SmallFactorsSieveFactory::new(Flavor::Any, Uint::<WORDS>::BITS, SetBits::TwoMsb).ok()?;
    let exponent = NonZero::<Uint<1>>::new_unwrap(Uint::from_u32(EXPONENT));
    sieve_and_find(stream, sieve, |_, candidate: &Uint<WORDS>| {
        is_prime(Flavor::Any, candidate) && candidate.rem(&exponent) != Uint::ONE
    })
    .ok()?
}

fn integer<const WORDS: usize>(number: &Uint<WORDS>) -> Vec<u8> {
    der::integer(number.to_be_bytes().as_ref())
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{
        KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
    };

    use super::*;

    #[test]
    fn signatures_of_a_generated_key_verify() {
        for bits in [2048, 3072, 4096] {
            let key = rsa_key(&mut Stream::new([bits as u8; 32]), bits).expect("a key");
            let key = RsaKeyPair::from_der(&key).expect("ring takes it");
            assert_eq!(key.public().modulus_len() * 8, bits);
            let mut signature = vec![0; bits / 8];
            key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), b"text", &mut signature).expect("a signature");
            let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key());
            public.verify(b"text", &signature).expect("it verifies");
            public.verify(b"test", &signature).expect_err("of another text it does not");
        }
    }

    #[test]
    fn keys_are_deterministic_per_seed() {
        let key = |seed| rsa_key(&mut Stream::new([seed; 32]), 2048);
        assert_eq!(key(1), key(1));
        assert_ne!(key(1), key(2));
        assert_eq!(rsa_key(&mut Stream::new([1; 32]), 1024), None);
    }
}
