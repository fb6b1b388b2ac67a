use super::*;

/// kubeadm's default since CoreDNS 1.7.
const DEFAULT: &str = "\
.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30 {
        disable success cluster.local
        disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
";

#[test]
fn the_default_corefile_is_unchanged() {
    assert_eq!(migrate(DEFAULT, "1.11.3", "1.14.6").as_deref(), Ok(DEFAULT));
    assert_eq!(migrate(DEFAULT, "1.8.0", "1.12.1").as_deref(), Ok(DEFAULT));
}

#[test]
fn the_same_version_changes_nothing() {
    let odd = ".:53{ # as I like it\n}";
    assert_eq!(migrate(odd, "1.11.3", "1.11.3").as_deref(), Ok(odd));
}

#[test]
fn versions_must_be_known_and_ascending() {
    let error = |from: &str, to: &str| migrate(DEFAULT, from, to).expect_err("refused").to_string();
    assert_eq!(error("1.0.0", "1.11.3"), "start version '1.0.0' not supported");
    assert_eq!(error("1.11.3", "1.99.0"), "cannot migrate up to '1.99.0' from '1.11.3'");
    assert_eq!(error("1.11.3", "1.10.1"), "cannot migrate up to '1.10.1' from '1.11.3'");
    // An image without a release, as 1.8.1 was.
    assert_eq!(error("1.8.0", "1.8.1"), "cannot migrate up to '1.8.1' from '1.8.0'");
}

#[test]
fn releases_are_in_order() {
    let numbers = |release: &&str| -> Vec<u32> { release.split('.').flat_map(str::parse).collect() };
    assert!(RELEASES.is_sorted_by_key(numbers));
    assert!(RELEASES.iter().all(|release| numbers(release).len() == 3));
}

/// The plugins of `.` after a migration.
fn plugins(before: &str, from: &str, to: &str) -> String {
    let migrated = migrate(&format!(". {{\n{before}\n}}"), from, to).expect("migrated");
    migrated.strip_prefix(". {\n").and_then(|rest| rest.strip_suffix("}\n")).expect("one server").to_owned()
}

#[test]
fn releases_drop_and_add_plugins_and_options() {
    let table = [
        ("proxies are reported to forward", "proxy . 1.1.1.1", "1.4.0", "1.5.0", "    forward . 1.1.1.1\n"),
        (
            "what only proxies knew is dropped",
            "proxy . 1.1.1.1 {\nmax_fails 3\nexcept a.b\nprotocol force_tcp x\n}",
            "1.4.0",
            "1.5.0",
            "    forward . 1.1.1.1 {\n        except a.b\n        force_tcp\n    }\n",
        ),
        ("deprecated is not gone", "proxy . 1.1.1.1", "1.3.1", "1.4.0", "    proxy . 1.1.1.1\n"),
        (
            "google is not asked over https",
            "proxy . 8.8.8.8 {\nprotocol https_google\n}",
            "1.2.1",
            "1.2.2",
            "    proxy . 8.8.8.8\n",
        ),
        (
            "loop is added where something is forwarded",
            "errors\nforward . 1.1.1.1",
            "1.2.0",
            "1.2.1",
            "    errors\n    forward . 1.1.1.1\n    loop\n",
        ),
        ("and nowhere else", "errors", "1.2.0", "1.2.1", "    errors\n"),
        (
            "readiness is reported where Kubernetes is served",
            "kubernetes c.l {\nupstream\nresyncperiod 5m\n}",
            "1.4.0",
            "1.5.0",
            "    kubernetes c.l {\n        resyncperiod 5m\n    }\n    ready\n",
        ),
        (
            "resyncing goes later",
            "kubernetes c.l {\nresyncperiod 5m\n}",
            "1.5.2",
            "1.6.0",
            "    kubernetes c.l\n",
        ),
        (
            "one endpoint is enough",
            "kubernetes c.l {\nendpoint a b c\n}",
            "1.13.0",
            "1.13.1",
            "    kubernetes c.l {\n        endpoint a\n    }\n",
        ),
        (
            "servers limp before they go",
            "health",
            "1.6.4",
            "1.6.5",
            "    health {\n        lameduck 5s\n    }\n",
        ),
        (
            "as long as they were reported to",
            "health {\nlameduck 9s\n}",
            "1.6.4",
            "1.6.5",
            "    health {\n        lameduck 9s\n    }\n",
        ),
        (
            "queries that wait are limited",
            "forward . 1.1.1.1",
            "1.6.9",
            "1.7.0",
            "    forward . 1.1.1.1 {\n        max_concurrent 1000\n    }\n",
        ),
        (
            "transfers are a plugin",
            "kubernetes c.l {\ntransfer to 1.1.1.1 2.2.2.2\n}\nerrors",
            "1.7.1",
            "1.8.0",
            "    kubernetes c.l\n    errors\n    transfer c.l {\n        to 1.1.1.1 2.2.2.2\n    }\n",
        ),
        (
            "also without a zone of its own",
            "kubernetes {\ntransfer to *\n}",
            "1.7.1",
            "1.8.0",
            "    kubernetes\n    transfer {\n        to *\n    }\n",
        ),
    ];
    for (what, before, from, to, after) in table {
        assert_eq!(plugins(before, from, to), after, "{what}");
    }
}

#[test]
fn a_zone_that_is_forwarded_elsewhere_gets_a_server() {
    let before =
        ".:53 {\n errors\n forward stub.example 10.0.0.1 {\n  force_tcp\n }\n forward . 1.1.1.1\n}\n";
    let after = "\
.:53 {
    errors
    forward . 1.1.1.1
}

stub.example {
    forward . 10.0.0.1 {
        force_tcp
    }
    loop
    errors
    cache 30
}
";
    assert_eq!(migrate(before, "1.3.1", "1.4.0").as_deref(), Ok(after));
    let error = |before: &str| migrate(before, "1.3.1", "1.4.0").expect_err("refused").to_string();
    for (before, why) in [
        ("a b {\nforward x 1\n}", "unhandled migration of multi-domain/port server block"),
        ("a {\nforward x 1\n}", "unhandled migration of non-default domain/port server block"),
        (". {\nforward\n}", "found invalid forward plugin declaration"),
        (". {\nforward x 1\nforward y 2\n}", "unhandled migration of neighbouring forward plugins"),
    ] {
        assert_eq!(error(before), why, "{before}");
    }
}

#[test]
fn tokens_are_split_as_coredns_does() {
    let table = [
        ("a b # c d\n", "a b"),
        ("a # c\nb", "a\nb"),
        // Inside a token only the rest of the token is a comment.
        ("a#b c", "a c"),
        ("\"a b\" c", "\"a b\" c"),
        ("x \"a \\\" b\"", "x \"a \\\" b\""),
        ("x \"a\\nb c\"", "x \"a\\nb c\""),
        ("x \"\" y", "x  y"),
        ("x \"a\nb\" y\nz", "x \"a\nb\" y\nz"),
        ("\u{feff}a\r\nb", "a\nb"),
        ("a \"never ends", "a \"never ends\""),
    ];
    for (before, after) in table {
        assert_eq!(migrate(before, "1.14.4", "1.14.6").as_deref(), Ok(after), "{before:?}");
    }
}

#[test]
fn unbalanced_braces_are_tolerated() {
    for (before, after) in [
        ("}\na", Ok("")),
        ("a {\np {\no {\ndeep\n}\n}\n}", Ok("a {\n    p {\n        o\n    }\n}\n")),
        ("{\np", Err(MigrateError::Malformed("a plugin is outside of a server block"))),
        ("a {\n{\no", Err(MigrateError::Malformed("an option is outside of a plugin"))),
        ("", Ok("")),
    ] {
        assert_eq!(migrate(before, "1.14.4", "1.14.6"), after.map(str::to_owned), "{before:?}");
    }
}
