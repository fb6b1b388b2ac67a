//! The endpoint of an API server, as a manifest writes it: a host with an optional port.

/// The port of an API server without another.
pub const DEFAULT_PORT: u16 = 6443;

/// Host and port of `host` or `host:port`.
pub fn parse(text: &str) -> Result<(&str, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        None => (text, DEFAULT_PORT),
        Some((host, port)) => {
            let number = port.parse::<u16>().ok().filter(|number| *number != 0);
            let number =
                number.ok_or_else(|| format!("{port:?} is not a port: use a number from 1 to 65535"))?;
            (host, number)
        }
    };
    // kube-vip announces IPv4 addresses, and networks of CloudStack have them.
    match host.parse::<std::net::Ipv4Addr>().is_ok() || is_name(host) {
        true => Ok((host, port)),
        false => Err("use an IPv4 address or a domain name, with an optional port".to_owned()),
    }
}

pub fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

/// A domain name: labels of letters, digits and dashes.
pub fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (1..=63).contains(&label.len()) && inner && !label.starts_with('-') && !label.ends_with('-')
    };
    // Digits and dots alone are an address with a mistake.
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    text.len() <= 253 && letters && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_port_is_optional_and_checked() {
        assert_eq!(parse("10.0.0.1"), Ok(("10.0.0.1", 6443)));
        assert_eq!(parse("10.0.0.1:443"), Ok(("10.0.0.1", 443)));
        assert_eq!(parse("api.example.org:8443"), Ok(("api.example.org", 8443)));
        for wrong in ["", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0", "a_b", "-a", ":6443", "a b"]
            .into_iter()
            .chain(["fd00::1", "fd00::1:6443", "[fd00::1]", "[fd00::1]:6443"])
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
