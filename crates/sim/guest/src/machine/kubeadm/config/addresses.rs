//! Addresses, networks and endpoints as Go's libraries parse them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capstan_schema::meta::dns1123_subdomain;

/// Parses an address; its numbers may have leading zeros.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let dotted = |text: &str| text.split('.').map(plain).collect::<Vec<_>>().join(".");
    text.split(':').map(dotted).collect::<Vec<_>>().join(":").parse().ok()
}

/// The address of the API server's Service: the second of the first network.
pub(in super::super) fn of_api_service(subnets: &str) -> Option<IpAddr> {
    Some(match Subnet::parse(subnets.split(',').next()?)?.first {
        IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().checked_add(1)?).into(),
        IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits().checked_add(1)?).into(),
    })
}

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subnet {
    first: IpAddr,
    mask: u32,
}

impl Subnet {
    /// The network of an address and a prefix length.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (given, bits) = text.split_once('/')?;
        let (given, mask) = (address(given)?, bits.parse::<u32>().ok()?);
        let is_number = bits.bytes().all(|byte| byte.is_ascii_digit());
        let first = match given {
            IpAddr::V4(held) => {
                let ones = u32::MAX.checked_shl(32_u32.checked_sub(mask)?).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(held.to_bits() & ones))
            }
            IpAddr::V6(held) => {
                let ones = u128::MAX.checked_shl(128_u32.checked_sub(mask)?).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(held.to_bits() & ones))
            }
        };
        is_number.then_some(Self { first, mask })
    }

    pub(super) fn is_ipv6(&self) -> bool {
        self.first.is_ipv6()
    }

    /// Length of the prefix.
    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    /// Length of an address.
    pub(super) fn width(&self) -> u32 {
        if self.is_ipv6() { 128 } else { 32 }
    }

    /// Number of addresses, as Kubernetes counts: 0 if it overflows.
    pub(super) fn size(&self) -> u64 {
        let host_bits = self.width() - self.mask;
        match host_bits {
            bits if bits >= self.width() - 1 => 0,
            bits => 1_u64.checked_shl(bits).map_or(i64::MAX.unsigned_abs(), |size| size),
        }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.mask)
    }
}

/// Splits `host:port`, with Go's errors.
pub(super) fn split_host_port(endpoint: &str) -> Result<(&str, &str), String> {
    let fails = |why: &str| Err(format!("address {endpoint}: {why}"));
    let Some((host, port)) = endpoint.rsplit_once(':') else {
        return fails("missing port in address");
    };
    let Some(inner) = endpoint.strip_prefix('[') else {
        return if host.contains(':') { fails("too many colons in address") } else { Ok((host, port)) };
    };
    match inner.split_once(']') {
        None => fails("missing ']' in address"),
        Some((_, "")) => fails("missing port in address"),
        Some((host, rest)) if rest.len() == port.len() + 1 => Ok((host, port)),
        Some((_, rest)) if rest.starts_with(':') => fails("too many colons in address"),
        Some(_) => fails("missing port in address"),
    }
}

/// Why a text is not an endpoint: a host name or address, with or without a port.
pub(super) fn endpoint_fault(text: &str) -> Option<String> {
    let host = match split_host_port(text) {
        Ok((_, port)) if port.parse::<u16>().ok().is_none_or(|port| port == 0) => {
            return Some(format!(
                "hostport {text}: port {port} must be a valid number between 1 and 65535, inclusive"
            ));
        }
        Ok((host, _)) => host,
        Err(_) => text,
    };
    let is_host = address(host).is_some() || dns1123_subdomain(host).is_empty();
    (!is_host).then(|| {
        format!("hostport {text}: host '{host}' must be a valid IP address or a valid RFC-1123 DNS subdomain")
    })
}

/// The scheme of a URL, empty if it has none; an error if it is not a URL.
pub(super) fn scheme(url: &str) -> Result<&str, String> {
    let fails = |why: &str| Err(format!("parse {url:?}: {why}"));
    let Some((scheme, _)) = url.split_once(':').filter(|(before, _)| !before.contains('/')) else {
        return Ok("");
    };
    let mut letters = scheme.chars();
    match letters.next() {
        None => fails("missing protocol scheme"),
        Some(first)
            if first.is_ascii_alphabetic()
                && letters.all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it)) =>
        {
            Ok(scheme)
        }
        Some(_) => fails("first path segment in URL cannot contain colon"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_shown_by_their_first_address_and_counted() {
        for (text, shown, size) in [
            ("10.96.0.5/24", "10.96.0.0/24", 256),
            ("010.96.0.0/29", "10.96.0.0/29", 8),
            ("0.0.0.0/0", "0.0.0.0/0", 0),
            ("10.0.0.1/32", "10.0.0.1/32", 1),
            ("fd00::7/112", "fd00::/112", 65_536),
            ("0fd00::7/0112", "fd00::/112", 65_536),
            ("fd00::/48", "fd00::/48", i64::MAX.unsigned_abs()),
        ] {
            let subnet = Subnet::parse(text).expect(text);
            assert_eq!((subnet.to_string().as_str(), subnet.size()), (shown, size), "{text}");
        }
        for text in ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", " 10.0.0.0/8", "fd00::/129", "10.0.0/8", "/8"]
        {
            assert_eq!(Subnet::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_api_service_has_the_second_address_of_its_network() {
        for (text, expected) in [
            ("10.96.0.0/12", Some("10.96.0.1")),
            ("10.96.0.7/24,fd00::/112", Some("10.96.0.1")),
            ("010.096.0.0/16", Some("10.96.0.1")),
            ("fd00::/112", Some("fd00::1")),
            ("everything", None),
        ] {
            let address = of_api_service(text).map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn hosts_and_ports_are_split_as_go_does() {
        for (endpoint, expected) in [
            ("10.0.0.1:6443", Ok(("10.0.0.1", "6443"))),
            ("[fd00::1]:6443", Ok(("fd00::1", "6443"))),
            (":6443", Ok(("", "6443"))),
            ("a:http", Ok(("a", "http"))),
            ("a", Err("address a: missing port in address")),
            ("fd00::1", Err("address fd00::1: too many colons in address")),
            ("[fd00::1]", Err("address [fd00::1]: missing port in address")),
            ("[fd00::1", Err("address [fd00::1: missing ']' in address")),
            ("[a]:b:c", Err("address [a]:b:c: too many colons in address")),
        ] {
            assert_eq!(split_host_port(endpoint), expected.map_err(str::to_owned), "{endpoint}");
        }
    }
}
