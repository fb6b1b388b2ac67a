//! Named string formats, compatible with upstream's `strfmt` registry.

mod email;
mod net;
mod text;

/// A string format.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    name: &'static str,
    check: fn(&str) -> bool,
}

/// By normalised name, without dashes.
const FORMATS: [Format; 26] = [
    Format { name: "bsonobjectid", check: text::is_bson_object_id },
    Format { name: "byte", check: text::is_base64 },
    Format { name: "cidr", check: net::is_cidr },
    Format { name: "creditcard", check: text::is_credit_card },
    Format { name: "date", check: text::is_date },
    Format { name: "datetime", check: text::is_date_time },
    Format { name: "duration", check: text::is_duration },
    Format { name: "email", check: email::is_email },
    Format { name: "hexcolor", check: text::is_hex_color },
    Format { name: "hostname", check: net::is_hostname },
    Format { name: "ipv4", check: net::is_ipv4 },
    Format { name: "ipv6", check: net::is_ipv6 },
    Format { name: "isbn", check: text::is_isbn },
    Format { name: "isbn10", check: text::is_isbn10 },
    Format { name: "isbn13", check: text::is_isbn13 },
    Format { name: "k8slongname", check: text::is_long_name },
    Format { name: "k8sshortname", check: text::is_short_name },
    Format { name: "mac", check: net::is_mac },
    Format { name: "password", check: |_| true },
    Format { name: "rgbcolor", check: text::is_rgb_color },
    Format { name: "ssn", check: text::is_ssn },
    Format { name: "uri", check: net::is_request_uri },
    Format { name: "uuid", check: |t| text::is_uuid(t, None) },
    Format { name: "uuid3", check: |t| text::is_uuid(t, Some('3')) },
    Format { name: "uuid4", check: |t| text::is_uuid(t, Some('4')) },
    Format { name: "uuid5", check: |t| text::is_uuid(t, Some('5')) },
];

impl Format {
    /// The format of that name, if it is supported.
    pub fn find(name: &str) -> Option<&'static Self> {
        let position = if name.contains('-') {
            let name = name.replace('-', "");
            FORMATS.binary_search_by(|format| format.name.cmp(&name))
        } else {
            FORMATS.binary_search_by(|format| format.name.cmp(name))
        };
        position.ok().map(|index| &FORMATS[index])
    }

    /// Whether a string has this format.
    pub fn accepts(self, text: &str) -> bool {
        (self.check)(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_accepted_as_upstream_accepts_them() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77bcf86cd79943901", "x"]),
            ("byte", &["YQ==", "YWI=", "YWJj"], &["", "YQ=", "YQ", "a b="]),
            (
                "cidr",
                &["10.0.0.0/8", "10.0.0.01/08", "::/0", "fe80::1/128"],
                &["10.0.0.0", "10.0.0.0/33", "::/129"],
            ),
            ("creditcard", &["4111-1111-1111-1111"], &["4111111111111112", "1"]),
            ("date", &["2020-02-29"], &["2021-02-29", "2020-2-9", "2020-02-29x"]),
            (
                "date-time",
                &["2020-01-01T00:00:00Z", "2020-01-01t23:59:59.123+02:00", "2020-01-01T00:00:00Ztrailing"],
                &["2020-01-01", "2020-01-01 00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"],
            ),
            (
                "duration",
                &["1h30m", "5 seconds", "0", "-1.5h", "1d", "3 weeks", "2 hours and 4 minutes", "1µs"],
                &["", "1", "x", "1 year", "h"],
            ),
            ("email", &["a@b", "A B <a@b.c>", "\"q q\"@b"], &["", "a", "a@", "a@b@c", "a..b@c"]),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ff", "#ggg"]),
            ("hostname", &["a", "a.bc", "a-b.com", "müller.de"], &["", "-a", "a..b", "a.b1"]),
            ("ipv4", &["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], &["1.2.3", "1.2.3.256", "::1"]),
            ("ipv6", &["::1", "::ffff:1.2.3.4", "2001:db8::"], &["1.2.3.4", "::1%eth0", ":::"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044", "x"]),
            ("isbn10", &["0-321-75104-3"], &["9780321751041"]),
            ("isbn13", &["9780321751041"], &["0321751043"]),
            ("k8s-long-name", &["a", "a.b-c"], &["A", "a..b", "-a"]),
            ("k8s-short-name", &["a-b"], &["a.b", ""]),
            ("mac", &["00:11:22:33:44:55", "0011.2233.4455", "001122334455"], &["00:11:22:33:44", "x"]),
            ("password", &["", "anything"], &[]),
            ("rgbcolor", &["rgb(0, 255,1)"], &["rgb(256,0,0)", "rgb(01,0,0)"]),
            ("ssn", &["111-22-3333", "111 22 3333"], &["111223333", "x"]),
            (
                "uri",
                &["http://a/b?c#d", "/path", "urn:x", "https://[::1]:80/", "http://u:p@h"],
                &["", "a/b", "http://a b/", "http://[::1", "http://a:x/", "/%zz", ":x"],
            ),
            ("uuid", &["F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6", "f81d4fae7dec11d0a76500a0c91e6bf6"], &["x"]),
            ("uuid3", &["f81d4fae-7dec-31d0-a765-00a0c91e6bf6"], &["f81d4fae-7dec-11d0-a765-00a0c91e6bf6"]),
            ("uuid4", &["f81d4fae-7dec-41d0-a765-00a0c91e6bf6"], &["f81d4fae-7dec-41d0-c765-00a0c91e6bf6"]),
            ("uuid5", &["f81d4fae-7dec-51d0-b765-00a0c91e6bf6"], &["f81d4fae-7dec-41d0-a765-00a0c91e6bf6"]),
        ];
        for (name, good, bad) in table {
            let format = Format::find(name).expect(name);
            for text in *good {
                assert!(format.accepts(text), "{name} should accept {text:?}");
            }
            for text in *bad {
                assert!(!format.accepts(text), "{name} should refuse {text:?}");
            }
        }
        assert!(Format::find("int32").is_none());
        assert!(FORMATS.is_sorted_by_key(|f| f.name));
    }
}
