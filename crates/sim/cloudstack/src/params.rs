//! Parameters of a request as they were sent, and the signature over them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use ring::hmac;

/// Parameters in the order of their arrival. Names are compared without case, as the server does everywhere but in the
/// signature.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads a query string and a form body.
    pub(crate) fn parse(query: &str, form: &str) -> Self {
        let mut params: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').chain(form.split('&')).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name), decode(value));
            // Of one name the last value counts, also in the signature.
            match params.iter_mut().find(|(held, _)| *held == name) {
                Some(held) => held.1 = value,
                None => params.push((name, value)),
            }
        }
        Self(params)
    }

    /// The value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(held, _)| held.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Entries of a list of maps, `name[0].a=1&name[0].b=2&name[1].a=3`, in the order of their numbers.
    pub(crate) fn maps(&self, name: &str) -> Vec<Vec<(String, String)>> {
        let mut entries = std::collections::BTreeMap::<u32, Vec<(String, String)>>::new();
        for (held, value) in self.iter() {
            let lower = held.to_ascii_lowercase();
            let Some(rest) = lower.strip_prefix(name).and_then(|rest| rest.strip_prefix('[')) else {
                continue;
            };
            let Some((number, _)) = rest.split_once("].") else { continue };
            let Ok(number) = number.parse() else { continue };
            // The key keeps the case it was sent in.
            let key = held.split_once("].").map_or("", |(_, key)| key);
            entries.entry(number).or_default().push((key.to_owned(), value.to_owned()));
        }
        entries.into_values().collect()
    }

    /// The text that a client signs: names in the order of their bytes as sent, then everything in lower case.
    pub(crate) fn text_to_sign(&self) -> String {
        let mut pairs: Vec<_> =
            self.0.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("signature")).collect();
        pairs.sort_by(|one, other| one.0.cmp(&other.0));
        let joined: Vec<String> =
            pairs.into_iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        joined.join("&").to_lowercase()
    }

    /// Whether the signature was made with this secret.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let Some(signature) = self.get("signature").and_then(|text| STANDARD.decode(text).ok()) else {
            return false;
        };
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
        hmac::verify(&key, self.text_to_sign().as_bytes(), &signature).is_ok()
    }
}

/// Signs a request's parameters, as a client does: the value of `signature` before it is escaped.
pub fn sign(parameters: &[(String, String)], secret: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    STANDARD.encode(hmac::sign(&key, Params(parameters.to_vec()).text_to_sign().as_bytes()))
}

/// Escapes a value as Java's `URLEncoder` does, but for spaces.
pub fn encode(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'*' => {
                text.push(char::from(byte))
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_developer_guide() {
        let request = Params::parse(
            "apiKey=test-key&command=deployVirtualMachine&details[0].memory=4096&expires=2026-01-01T00%3A15%3A00Z\
             &name=A%20b%2Bc*d%7Ee%2Ff&response=json&signatureversion=3&zoneid=z1\
             &signature=GfTCL8ij7CKXo0PjlKd5ueHOqXQ%3D",
            "",
        );
        assert_eq!(
            request.text_to_sign(),
            "apikey=test-key&command=deployvirtualmachine&details[0].memory=4096&expires=2026-01-01t00%3a15%3a00z\
             &name=a%20b%2bc*d%7ee%2ff&response=json&signatureversion=3&zoneid=z1"
        );
        assert!(request.is_signed_with("test-secret"));
        assert!(!request.is_signed_with("test-secrets"));
    }

    #[test]
    fn names_are_signed_in_the_order_of_their_bytes_as_sent() {
        let text = Params::parse("command=listZones&ID=1&apiKey=k", "").text_to_sign();
        assert_eq!(text, "id=1&apikey=k&command=listzones");
    }

    #[test]
    fn a_plus_in_a_query_is_a_space() {
        assert_eq!(Params::parse("a=x+y", "b=%2B").get("A"), Some("x y"));
        assert_eq!(Params::parse("", "b=%2B").get("b"), Some("+"));
    }

    #[test]
    fn maps_keep_their_numbers_apart() {
        let params = Params::parse("details[1].memory=2&details[0].cpuNumber=1&details[1].x=3", "");
        let maps = params.maps("details");
        assert_eq!(maps.len(), 2);
        assert_eq!(maps[0], vec![("cpuNumber".to_owned(), "1".to_owned())]);
        assert_eq!(maps[1].len(), 2);
    }
}
