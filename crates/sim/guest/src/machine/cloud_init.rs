//! cloud-init: the modules that boot data uses, in the order in which they run.
//!
//! ```text
//!   init     bootcmd, write_files, disk_setup, mounts, set_hostname, ca_certs, groups, users
//!   config   ntp, runcmd (writes a script)
//!   final    write_files_deferred, scripts_user (runs the script)
//! ```

mod modules;
mod write_files;

use capstan_user_data::{Failed, UserData, script};
use serde_json::{Map, Value};

use super::Guest;
use super::shell::{Io, Shell};

/// Version that is printed.
const VERSION: &str = "25.2";
/// The script that `runcmd` becomes.
const RUNCMD: &str = "/var/lib/cloud/instance/scripts/runcmd";
/// A script that is the user data itself.
const PART: &str = "/var/lib/cloud/instance/scripts/part-001";

type Config = Map<String, Value>;

/// Executes user data.
pub(super) async fn run(guest: &mut Guest<'_>, data: UserData, warnings: &[String]) {
    let mut config = Config::new();
    begin(guest);
    for warning in warnings {
        warn(guest, warning);
    }
    match data {
        UserData::CloudConfig(given) => config = given,
        UserData::Script(text) => {
            if let Err(error) = guest.files.write_deep(PART, text.as_bytes(), 0o700) {
                guest.fail(&format!(
                    "util.py[WARNING]: Failed to write {PART}: [Errno {}] {error}",
                    error.number()
                ));
            }
        }
        UserData::Empty | UserData::Ignition(_) => {}
    }
    hide_passwords(guest, &config);

    boot_commands(guest, &config).await;
    module(guest, "write_files", |guest| write_files::run(guest, &config, false));
    module(guest, "disk_setup", |guest| modules::disk_setup(guest, &config));
    module(guest, "mounts", |guest| modules::mounts(guest, &config));
    module(guest, "set_hostname", |guest| modules::set_hostname(guest, &config));
    module(guest, "ca_certs", |guest| modules::ca_certs(guest, &config));
    module(guest, "users_groups", |guest| modules::users_groups(guest, &config));

    stage(guest, "modules:config");
    module(guest, "ntp", |guest| modules::ntp(guest, &config));
    module(guest, "runcmd", |guest| {
        let Some(script) = script(config.get("runcmd"), "runcmd")? else { return Ok(()) };
        modules::put(guest, RUNCMD, script.as_bytes(), 0o700)
    });

    stage(guest, "modules:final");
    module(guest, "write_files_deferred", |guest| write_files::run(guest, &config, true));
    user_scripts(guest).await;
    finish(guest);
}

/// A boot whose user data cannot be read: cloud-init continues without it.
pub(super) fn without_user_data(guest: &mut Guest<'_>, why: &str) {
    begin(guest);
    let line = format!("{} - {why}", stamp(guest));
    guest.fail(&line);
    stage(guest, "modules:config");
    stage(guest, "modules:final");
    finish(guest);
}

fn begin(guest: &mut Guest<'_>) {
    guest.screen.written_by("cloud-init[612]");
    stage(guest, "init");
}

fn date(guest: &Guest<'_>) -> String {
    guest.env.now().strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

/// The time as cloud-init's log has it.
fn stamp(guest: &Guest<'_>) -> String {
    guest.env.now().strftime("%Y-%m-%d %H:%M:%S,%3f").to_string()
}

fn stage(guest: &mut Guest<'_>, stage: &str) {
    let line = format!(
        "Cloud-init v. {VERSION} running '{stage}' at {}. Up {:.2} seconds.",
        date(guest),
        guest.screen.uptime()
    );
    guest.screen.line(&line);
}

fn finish(guest: &mut Guest<'_>) {
    let line = format!(
        "Cloud-init v. {VERSION} finished at {}. Datasource DataSourceNoCloud.  Up {:.2} seconds",
        date(guest),
        guest.screen.uptime()
    );
    guest.screen.line(&line);
}

fn warn(guest: &mut Guest<'_>, warning: &str) {
    let line = format!("{} - {warning}", stamp(guest));
    guest.screen.line(&line);
}

/// Runs a module; the next ones run even if it fails.
fn module(guest: &mut Guest<'_>, name: &str, run: impl FnOnce(&mut Guest<'_>) -> Result<(), Failed>) {
    if let Err(why) = run(guest) {
        module_failed(guest, name, &why);
    }
}

fn module_failed(guest: &mut Guest<'_>, name: &str, why: &str) {
    let line =
        format!("{} - util.py[WARNING]: Running module {name} (cc_{name}.py) failed: {why}", stamp(guest));
    guest.fail(&line);
}

async fn boot_commands(guest: &mut Guest<'_>, config: &Config) {
    let script = match script(config.get("bootcmd"), "bootcmd") {
        Ok(Some(script)) => script,
        Ok(None) => return,
        Err(why) => return module_failed(guest, "bootcmd", &why),
    };
    let mut shell = Shell::new(guest, "/tmp/bootcmd.sh");
    shell.export("INSTANCE_ID", &shell.guest.vm.id.clone());
    let status = shell.run(&script, &Io::console()).await;
    if status != 0 {
        let why = format!(
            "Unexpected error while running command. Command: ['/bin/sh', '/tmp/bootcmd.sh'] Exit code: {status}"
        );
        module_failed(guest, "bootcmd", &why);
    }
}

/// Runs the scripts of modules and user data.
async fn user_scripts(guest: &mut Guest<'_>) {
    let mut failed = 0;
    let mut tried = 0;
    for path in [PART, RUNCMD] {
        let Ok(text) = guest.files.text(path) else { continue };
        tried += 1;
        let io = Io::console();
        let status = Shell::new(guest, path).run(&text, &io).await;
        if status != 0 {
            failed += 1;
            let name = path.rsplit('/').next().unwrap_or(path);
            let line =
                format!("{} - subp.py[WARNING]: Failed running {path} [{status}] ({name})", stamp(guest));
            guest.fail(&line);
        }
    }
    if failed > 0 {
        let line = format!(
            "{} - cc_scripts_user.py[WARNING]: Failed to run module scripts_user (scripts in {})",
            stamp(guest),
            "/var/lib/cloud/instance/scripts"
        );
        guest.fail(&line);
        module_failed(
            guest,
            "scripts_user",
            &format!("Runparts: {failed} failures ({tried} attempted commands)"),
        );
    }
}

/// Hides passwords and their hashes.
fn hide_passwords(guest: &mut Guest<'_>, config: &Config) {
    for user in config.get("users").and_then(Value::as_array).into_iter().flatten() {
        for field in ["passwd", "hashed_passwd", "plain_text_passwd"] {
            if let Some(password) = user.get(field).and_then(Value::as_str) {
                guest.screen.hide(password);
            }
        }
    }
    if let Some(password) = config.get("password").and_then(Value::as_str) {
        guest.screen.hide(password);
    }
}
