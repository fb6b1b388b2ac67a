//! Changes by CoreDNS release.

use std::ops::RangeInclusive;

use super::{Corefile, MigrateError, Plugin, Server, Setting};

/// A release as comparable numbers.
type Release = (u16, u16, u16);

/// Later than every release.
const EVER: Release = (u16::MAX, 0, 0);

/// How a migration changes an option.
enum Fate {
    Dropped,
    FirstArgument,
    /// Dropped if its first argument is this.
    DroppedIf(&'static str),
    /// Becomes `force_tcp` if its first argument is this and it has this many arguments or, where it may have more, at
    /// least as many.
    ForceTcp {
        first: &'static str,
        args: RangeInclusive<usize>,
        otherwise_dropped: bool,
    },
}

/// A rule about an option of a plugin, in releases of a range.
struct OptionRule {
    plugin: &'static str,
    option: &'static str,
    releases: RangeInclusive<Release>,
    fate: Fate,
}

const fn rule(
    plugin: &'static str,
    option: &'static str,
    releases: RangeInclusive<Release>,
    fate: Fate,
) -> OptionRule {
    OptionRule { plugin, option, releases, fate }
}

/// The release that replaced the plugin `proxy` by `forward`.
const NO_PROXY: Release = (1, 5, 0);

const OPTIONS: &[OptionRule] = &[
    rule("proxy", "protocol", (1, 1, 4)..=(1, 3, 1), Fate::DroppedIf("https_google")),
    rule(
        "proxy",
        "protocol",
        NO_PROXY..=NO_PROXY,
        Fate::ForceTcp { first: "force_tcp", args: 2..=usize::MAX, otherwise_dropped: true },
    ),
    rule(
        "proxy",
        "policy",
        NO_PROXY..=NO_PROXY,
        Fate::ForceTcp { first: "least_conn", args: 1..=1, otherwise_dropped: false },
    ),
    rule("proxy", "fail_timeout", NO_PROXY..=NO_PROXY, Fate::Dropped),
    rule("proxy", "max_fails", NO_PROXY..=NO_PROXY, Fate::Dropped),
    rule("proxy", "health_check", NO_PROXY..=NO_PROXY, Fate::Dropped),
    rule("proxy", "spray", NO_PROXY..=NO_PROXY, Fate::Dropped),
    rule("kubernetes", "endpoint", (1, 4, 0)..=EVER, Fate::FirstArgument),
    rule("kubernetes", "upstream", (1, 5, 0)..=(1, 7, 1), Fate::Dropped),
    rule("kubernetes", "resyncperiod", (1, 6, 0)..=(1, 7, 1), Fate::Dropped),
    rule("kubernetes", "transfer", TRANSFER..=TRANSFER, Fate::Dropped),
];

/// Options that a release adds to plugins without them.
const NEW_OPTIONS: &[(Release, &str, &str, &str)] =
    &[((1, 6, 5), "health", "lameduck", "5s"), ((1, 7, 0), "forward", "max_concurrent", "1000")];

/// Plugins that a release adds to servers without them, if they have one of the given others.
const NEW_PLUGINS: &[(Release, &str, &[&str])] =
    &[((1, 2, 1), "loop", &["forward", "proxy"]), ((1, 5, 0), "ready", &["kubernetes"])];

/// Releases since which a server may forward one zone only.
const STUB_DOMAINS: [Release; 2] = [(1, 4, 0), (1, 5, 0)];

/// The release that made zone transfers a separate plugin.
const TRANSFER: Release = (1, 8, 0);

/// Migrates a Corefile from the previous release.
pub(super) fn apply(corefile: &mut Corefile, release: &str) -> Result<(), MigrateError> {
    let release = numbers(release);
    if release == TRANSFER {
        corefile.servers.iter_mut().for_each(move_transfer);
    }
    for server in &mut corefile.servers {
        let had = |name: &str| server.plugins.iter().any(|plugin| plugin.name == name);
        let new: Vec<_> =
            NEW_PLUGINS.iter().filter(|(since, name, _)| *since == release && !had(name)).collect();
        for plugin in &mut server.plugins {
            change(plugin, release);
        }
        for (_, name, beside) in new {
            if server.plugins.iter().any(|plugin| beside.contains(&plugin.name.as_str())) {
                server.plugins.push(Plugin::new(name, &[]));
            }
        }
    }
    if STUB_DOMAINS.contains(&release) {
        give_stub_domains_servers(corefile)?;
    }
    Ok(())
}

fn numbers(release: &str) -> Release {
    let mut parts = release.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

fn change(plugin: &mut Plugin, release: Release) {
    let had: Vec<String> = plugin.options.iter().map(|option| option.name.clone()).collect();
    let rules: Vec<_> =
        OPTIONS.iter().filter(|r| r.plugin == plugin.name && r.releases.contains(&release)).collect();
    plugin.options.retain_mut(|option| match rules.iter().find(|rule| rule.option == option.name) {
        Some(rule) => stays(option, &rule.fate),
        None => true,
    });
    if release == NO_PROXY && plugin.name == "proxy" {
        plugin.name = "forward".to_owned();
    }
    for (since, of, name, arg) in NEW_OPTIONS {
        if *since == release && plugin.name == *of && !had.iter().any(|had| had == name) {
            plugin.options.push(Setting { name: (*name).to_owned(), args: vec![(*arg).to_owned()] });
        }
    }
}

/// Returns false if the option is removed.
fn stays(option: &mut Setting, fate: &Fate) -> bool {
    let first = option.args.first().map(String::as_str);
    match fate {
        Fate::Dropped => false,
        Fate::DroppedIf(value) => first != Some(value),
        Fate::FirstArgument => {
            option.args.truncate(1);
            true
        }
        Fate::ForceTcp { first: wanted, args, otherwise_dropped } => {
            let becomes = first == Some(wanted) && args.contains(&option.args.len());
            if becomes {
                *option = Setting { name: "force_tcp".to_owned(), args: Vec::new() };
            }
            becomes || !otherwise_dropped
        }
    }
}

/// Adds the plugin that replaces the option `transfer` of `kubernetes`.
fn move_transfer(server: &mut Server) {
    let mut zone = None;
    let mut to: &[String] = &[];
    for plugin in server.plugins.iter().filter(|plugin| plugin.name == "kubernetes") {
        zone = plugin.args.first();
        for option in plugin.options.iter().filter(|option| option.name == "transfer") {
            to = &option.args;
        }
    }
    // `transfer to <address>…`
    if let [_, addresses @ ..] = to
        && !addresses.is_empty()
    {
        let options = vec![Setting { name: "to".to_owned(), args: addresses.to_vec() }];
        let args = zone.into_iter().cloned().collect();
        server.plugins.push(Plugin { name: "transfer".to_owned(), args, options });
    }
}

/// Moves zones that the default server forwards elsewhere to servers of their own.
fn give_stub_domains_servers(corefile: &mut Corefile) -> Result<(), MigrateError> {
    let mut new = Vec::new();
    for server in &mut corefile.servers {
        // Upstream removes plugins from the list while iterating: the next one is skipped and the last ones are visited
        // twice. The same iteration is needed for the same Corefile.
        let count = server.plugins.len();
        let mut seats: Vec<usize> = (0..count).collect();
        let mut left = count;
        for at in 0..count {
            let plugin = &mut server.plugins[seats[at]];
            if plugin.name != "forward" {
                continue;
            }
            let Some(zone) = plugin.args.first_mut() else {
                return Err(MigrateError::Unhandled("found invalid forward plugin declaration"));
            };
            if zone == "." {
                continue;
            }
            match server.domains.as_slice() {
                [domain] if domain == "." || domain == ".:53" => {}
                [_] => {
                    return Err(MigrateError::Unhandled(
                        "unhandled migration of non-default domain/port server block",
                    ));
                }
                _ => {
                    return Err(MigrateError::Unhandled(
                        "unhandled migration of multi-domain/port server block",
                    ));
                }
            }
            if at >= left {
                return Err(MigrateError::Unhandled("unhandled migration of neighbouring forward plugins"));
            }
            let domain = std::mem::replace(zone, ".".to_owned());
            let mut plugins = vec![plugin.clone()];
            plugins.extend([
                Plugin::new("loop", &[]),
                Plugin::new("errors", &[]),
                Plugin::new("cache", &["30"]),
            ]);
            new.push(Server { domains: vec![domain], plugins });
            seats.copy_within(at + 1..left, at);
            left -= 1;
        }
        seats.truncate(left);
        server.plugins = seats.into_iter().map(|seat| server.plugins[seat].clone()).collect();
    }
    corefile.servers.append(&mut new);
    Ok(())
}
