//! Corefiles to migrate.

use capstan_capi_kubeadm::corefile::releases;
use rand::Rng;
use rand::rngs::StdRng;

/// Corefiles that kubeadm has deployed over the years, and common modifications.
pub const KNOWN: &[&str] = &[
    ".:53 {\n    errors\n    health\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n        \
     upstream\n        fallthrough in-addr.arpa ip6.arpa\n    }\n    prometheus :9153\n    proxy . /etc/resolv.conf\n    \
     cache 30\n    loop\n    reload\n    loadbalance\n}\n",
    ".:53 {\n    errors\n    health {\n        lameduck 5s\n    }\n    ready\n    kubernetes cluster.local in-addr.arpa \
     ip6.arpa {\n        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n        ttl 30\n    }\n    \
     prometheus :9153\n    forward . /etc/resolv.conf {\n        max_concurrent 1000\n    }\n    cache 30\n    loop\n    \
     reload\n    loadbalance\n}\n",
    "# ours\n.:53 {\n  errors\n  health\n  kubernetes cluster.local {\n    resyncperiod 1m\n    endpoint a b c\n    \
     upstream 1.1.1.1\n    transfer to 10.0.0.1 10.0.0.2\n  }\n  proxy stub.example 10.1.1.1 {\n    policy least_conn\n    \
     protocol force_tcp x\n    spray\n  }\n  proxy . 8.8.8.8 {\n    protocol https_google\n    max_fails 1\n  }\n  hosts \
     {\n    10.0.0.1 a.example # one\n    fallthrough\n  }\n  rewrite name regex \"(.*) x\" y\n}\nother.example:5353 {\n  \
     log\n  forward . tls://1.1.1.1 {\n    tls_servername one.one\n  }\n}\n",
];

const PLUGINS: &[&str] = &[
    "errors",
    "health",
    "ready",
    "kubernetes",
    "kubernetes",
    "proxy",
    "forward",
    "forward",
    "cache",
    "loop",
    "reload",
    "loadbalance",
    "hosts",
    "rewrite",
    "log",
    "transfer",
    "autopath",
    "k8s_external",
    "import",
    "template",
];
const OPTIONS: &[&str] = &[
    "upstream",
    "resyncperiod",
    "endpoint",
    "transfer",
    "lameduck",
    "max_concurrent",
    "policy",
    "protocol",
    "fail_timeout",
    "max_fails",
    "health_check",
    "spray",
    "except",
    "pods",
    "ttl",
    "fallthrough",
    "10.0.0.1",
    "fd00::1:2",
];
const WORDS: &[&str] = &[
    ".",
    ".",
    "/etc/resolv.conf",
    "cluster.local",
    "stub.example",
    "1.1.1.1",
    "to",
    "least_conn",
    "force_tcp",
    "https_google",
    "30",
    "5s",
    "\"two words\"",
    "\"a \\\" quote x\"",
    "\"\"",
    "\"back\\slash x\"",
    "a#b",
    "ö",
    "\"over\nlines\"",
];
const ZONES: &[&str] = &[".", ".:53", ".:53", ".:53", "example.org", "cluster.local:53", "(snippet)"];

/// A release, or rarely an invalid one.
pub fn version(rng: &mut StdRng) -> String {
    match rng.random_range(0..40) {
        0 => "1.8.1".to_owned(),
        _ => releases()[rng.random_range(0..releases().len())].to_owned(),
    }
}

/// A Corefile, rarely one with unbalanced braces.
pub fn corefile(rng: &mut StdRng) -> String {
    let mut text = String::new();
    for _ in 0..rng.random_range(0..4) {
        let mut domains = vec![pick(rng, ZONES)];
        if rng.random_range(0..8) == 0 {
            domains.push(pick(rng, ZONES));
        }
        text += &domains.join(" ");
        open(rng, &mut text);
        for _ in 0..rng.random_range(0..6) {
            text += pick(rng, PLUGINS);
            arguments(rng, &mut text);
            if rng.random_range(0..2) == 0 {
                open(rng, &mut text);
                for _ in 0..rng.random_range(0..4) {
                    text += pick(rng, OPTIONS);
                    arguments(rng, &mut text);
                    end_of_line(rng, &mut text);
                }
                text += "}";
            }
            end_of_line(rng, &mut text);
        }
        text += "}";
        end_of_line(rng, &mut text);
    }
    if rng.random_range(0..30) == 0 {
        let at = rng.random_range(0..=text.len());
        if text.is_char_boundary(at) {
            text.insert_str(at, pick(rng, &["{", "}", "\"", "#", "\n", " { "]));
        }
    }
    text
}

fn open(rng: &mut StdRng, text: &mut String) {
    text.push_str(pick(rng, &[" {\n", " {\n", " {\r\n", "\t{ # open\n", " {\n\n"]));
}

fn arguments(rng: &mut StdRng, text: &mut String) {
    for _ in 0..rng.random_range(0..4) {
        text.push_str(pick(rng, &[" ", " ", "\t", "  "]));
        text.push_str(pick(rng, WORDS));
    }
}

fn end_of_line(rng: &mut StdRng, text: &mut String) {
    text.push_str(pick(rng, &["\n", "\n", "\n\n", " # why\n", "\r\n"]));
}

fn pick<'a>(rng: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[rng.random_range(0..from.len())]
}
