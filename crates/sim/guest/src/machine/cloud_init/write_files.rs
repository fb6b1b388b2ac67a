//! `write_files`.

use capstan_user_data::{File, files};

use super::{Config, Failed, modules, warn};
use crate::machine::Guest;

/// Writes the deferred files, or the others. The first failure ends the module.
pub(super) fn run(guest: &mut Guest<'_>, config: &Config, deferred: bool) -> Result<(), Failed> {
    files(config, deferred, |file| match file {
        Ok(file) => write(guest, &file),
        Err(skipped) => {
            warn(guest, &skipped.0);
            Ok(())
        }
    })
}

fn write(guest: &mut Guest<'_>, file: &File) -> Result<(), Failed> {
    let (path, content) = (&file.path, &file.content);
    let text = String::from_utf8_lossy(content);
    // The lines of a script are not secret, and its errors quote them.
    if file.mode & 0o077 == 0 && !text.starts_with("#!") {
        guest.screen.hide(&text);
    }
    if file.append {
        modules::append(guest, path, content)?;
        guest.files.set_mode(path, file.mode).map_err(|error| modules::errno(error, path))?;
    } else {
        modules::put(guest, path, content, file.mode)?;
    }
    let user = file.owner.split(':').next().unwrap_or_default();
    if !guest.users.contains(user) && user.parse::<u32>().is_err() {
        return Err(format!("Unknown user or group: \"getpwnam(): name not found: '{user}'\""));
    }
    guest.files.set_owner(path, &file.owner).map_err(|error| modules::errno(error, path))
}
