//! Units: read from `/etc/systemd/system`, started at boot or by `systemctl`.

use futures::future::BoxFuture;

use super::Guest;
use super::shell::{Io, Shell};

/// Directory of user units.
pub(super) const UNITS: &str = "/etc/systemd/system";
/// Units of the image.
const KNOWN: [&str; 18] = [
    "apparmor",
    "chrony",
    "chronyd",
    "containerd",
    "cron",
    "firewalld",
    "multipathd",
    "ntp",
    "ntpd",
    "rsyslog",
    "snapd",
    "ssh",
    "sshd",
    "systemd-networkd",
    "systemd-resolved",
    "systemd-sysctl",
    "systemd-timesyncd",
    "ufw",
];

/// A service unit.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Unit {
    /// Paths that must exist, or must not if the flag is set.
    conditions: Vec<(String, bool)>,
    environment: Vec<(String, String)>,
    environment_files: Vec<String>,
    commands: Vec<String>,
    oneshot: bool,
    /// Units that start before it.
    pub(super) after: Vec<String>,
}

impl Unit {
    /// Parses a unit with its drop-ins.
    pub(super) fn parse(text: &str) -> Self {
        let mut unit = Self::default();
        let joined = text.replace("\\\n", " ");
        for line in joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '['])) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.trim();
            match key.trim() {
                "ConditionPathExists" | "ConditionFileNotEmpty" | "ConditionPathIsDirectory" => {
                    let negated = value.starts_with('!');
                    unit.conditions.push((value.trim_start_matches(['!', '|']).to_owned(), negated));
                }
                "Environment" => {
                    for setting in words(value) {
                        if let Some((name, value)) = setting.split_once('=') {
                            unit.environment.push((name.to_owned(), value.to_owned()));
                        }
                    }
                }
                "EnvironmentFile" => unit.environment_files.push(value.to_owned()),
                // An empty value resets the list.
                "ExecStart" if value.is_empty() => unit.commands.clear(),
                "ExecStartPre" | "ExecStart" | "ExecStartPost" => unit.commands.push(value.to_owned()),
                "Type" => unit.oneshot = value == "oneshot",
                "After" => unit.after.extend(value.split_whitespace().map(str::to_owned)),
                _ => {}
            }
        }
        unit
    }
}

/// Words of a setting; quotes group.
fn words(text: &str) -> Vec<String> {
    let (mut out, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => {
                if !word.is_empty() {
                    out.push(std::mem::take(&mut word));
                }
            }
            None => word.push(c),
        }
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

/// The name with its suffix.
fn full_name(name: &str) -> String {
    if name
        .rsplit('.')
        .next()
        .is_some_and(|kind| matches!(kind, "service" | "mount" | "timer" | "path" | "target" | "socket"))
    {
        name.to_owned()
    } else {
        format!("{name}.service")
    }
}

impl Guest<'_> {
    /// The unit of a name, if the user wrote one.
    pub(super) fn unit(&self, name: &str) -> Option<Unit> {
        let path = format!("{UNITS}/{name}");
        let mut text = self.files.text(&path).ok();
        let drop_ins = format!("{path}.d");
        for drop_in in self.files.list(&drop_ins).unwrap_or_default() {
            if let (Some(text), Ok(more)) = (&mut text, self.files.text(&format!("{drop_ins}/{drop_in}"))) {
                text.push('\n');
                text.push_str(&more);
            }
        }
        text.map(|text| Unit::parse(&text))
    }

    fn knows_unit(&self, name: &str) -> bool {
        let base = name.trim_end_matches(".service");
        KNOWN.contains(&base) || (base == "kubelet" && self.vm.image.kubernetes.is_some())
    }

    /// Starts a unit; `Err` is systemd's message.
    pub(super) fn start_unit<'s>(
        &'s mut self,
        name: &'s str,
        io: &'s Io,
    ) -> BoxFuture<'s, Result<(), String>> {
        Box::pin(async move {
            let Some(unit) = self.unit(name) else {
                if self.knows_unit(name) || name.ends_with(".target") {
                    self.services.insert(name.to_owned());
                    return Ok(());
                }
                return Err(format!("Failed to start {name}: Unit {name} not found."));
            };
            if let Some((path, _)) =
                unit.conditions.iter().find(|(path, not)| self.files.exists(path) == *not)
            {
                let line = format!(
                    "{name} was skipped because of an unmet condition check (ConditionPathExists={path})."
                );
                self.print(&io.out, &line);
                return Ok(());
            }
            let mut environment = unit.environment;
            for file in &unit.environment_files {
                let text = match (self.files.text(file.trim_start_matches('-')), file.starts_with('-')) {
                    (Ok(text), _) => text,
                    (Err(_), true) => continue,
                    (Err(_), false) => {
                        return Err(format!(
                            "{name}: Failed to load environment files: No such file or directory"
                        ));
                    }
                };
                let settings = text.lines().filter_map(|line| line.split_once('='));
                environment.extend(settings.map(|(name, value)| {
                    (name.trim().to_owned(), value.trim().trim_matches('"').to_owned())
                }));
            }
            for command in &unit.commands {
                let tolerated = command.starts_with('-');
                let command = command.trim_start_matches(['-', '@', '+', '!', ':']).replace("$$", "$");
                let program = command.split_whitespace().next().unwrap_or_default();
                let simulated = self.files.exists(program)
                    || !matches!(program.rsplit('/').next(), Some("kubelet" | "containerd"));
                if !simulated {
                    continue;
                }
                let mut shell = Shell::new(self, "systemd");
                for (name, value) in &environment {
                    shell.export(name, value);
                }
                let status = shell.run(&command, io).await;
                if status != 0 && !tolerated {
                    let line = format!("{name}: Main process exited, code=exited, status={status}/FAILURE");
                    self.print(&io.err, &line);
                    return Err(format!("{name}: Failed with result 'exit-code'."));
                }
            }
            if !unit.oneshot {
                self.services.insert(name.to_owned());
            }
            Ok(())
        })
    }
}

/// `systemctl`.
pub(super) async fn control(guest: &mut Guest<'_>, arguments: &[String], io: &Io) -> i32 {
    let mut words = arguments.iter().filter(|argument| !argument.starts_with('-'));
    let flag = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let Some(verb) = words.next() else { return 0 };
    let names: Vec<String> = words.map(|name| full_name(name)).collect();
    let mut status = 0;
    for name in &names {
        let known = guest.knows_unit(name) || guest.unit(name).is_some() || name.ends_with(".target");
        let starts = match verb.as_str() {
            "start" | "restart" | "reload-or-restart" | "try-restart" | "reload" => true,
            "enable" | "reenable" => flag("--now"),
            _ => false,
        };
        match verb.as_str() {
            "is-active" => {
                let active = guest.services.contains(name);
                if !flag("--quiet") && !flag("-q") {
                    guest.print(&io.out, if active { "active" } else { "inactive" });
                }
                status = if active { status } else { 3 };
                continue;
            }
            "is-enabled" => {
                guest.print(&io.out, if known { "enabled" } else { "not-found" });
                status = if known { status } else { 4 };
                continue;
            }
            "stop" | "disable" | "mask" | "unmask" | "kill" => {
                guest.services.remove(name);
                if !known && matches!(verb.as_str(), "stop" | "disable") {
                    guest.print(&io.err, &format!("Failed to {verb} {name}: Unit {name} not loaded."));
                    status = 5;
                }
                continue;
            }
            "status" => {
                let active = guest.services.contains(name);
                guest.print(
                    &io.out,
                    &format!("{name} - {}", if active { "active (running)" } else { "inactive (dead)" }),
                );
                status = if active { status } else { 3 };
                continue;
            }
            _ if !known => {
                guest.print(&io.err, &format!("Failed to {verb} {name}: Unit {name} not found."));
                status = 5;
                continue;
            }
            _ => {}
        }
        if starts && let Err(why) = guest.start_unit(name, io).await {
            guest.print(&io.err, &format!("Job for {name} failed: {why}"));
            status = 1;
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_with_their_drop_ins() {
        let unit = Unit::parse(
            "[Unit]\nAfter=network.target a.service\nConditionPathExists=!/done\n[Service]\nType=oneshot\n\
             Environment=\"A=1 2\" B=3\nEnvironmentFile=-/run/metadata/flatcar\nExecStart=/bin/first \\\n  now\n\
             # drop-in\n[Service]\nExecStart=\nExecStart=-/bin/second\n",
        );
        assert_eq!(
            unit,
            Unit {
                conditions: vec![("/done".to_owned(), true)],
                environment: vec![("A".to_owned(), "1 2".to_owned()), ("B".to_owned(), "3".to_owned())],
                environment_files: vec!["-/run/metadata/flatcar".to_owned()],
                commands: vec!["-/bin/second".to_owned()],
                oneshot: true,
                after: vec!["network.target".to_owned(), "a.service".to_owned()],
            }
        );
        assert_eq!(full_name("kubelet"), "kubelet.service");
        assert_eq!(full_name("var-lib-etcd.mount"), "var-lib-etcd.mount");
    }
}
