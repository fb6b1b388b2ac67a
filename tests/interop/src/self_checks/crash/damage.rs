//! Deletes, empties or truncates files of the store between two rounds. The server must refuse to start and name the
//! file.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rand::Rng as _;
use rand::rngs::StdRng;

/// Timeout until the server has refused to start.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Damages one file of a data directory, expects the server to refuse it, and restores the file.
pub async fn round(data: &Path, binary: &Path, rng: &mut StdRng) -> Result<()> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if name == "MANIFEST" || name.ends_with(".log") || name.ends_with(".bin") {
            names.push(name);
        }
    }
    names.sort();
    let manifest = std::fs::read_to_string(data.join("MANIFEST"))?;
    // Temporary files of a crash are not part of the store.
    names.retain(|name| name == "MANIFEST" || manifest.contains(name.as_str()));
    ensure!(names.len() > 1, "no store in {}", data.display());
    let name = &names[rng.random_range(0..names.len())];
    let path = data.join(name);
    let kept = std::fs::read(&path)?;
    let what = match rng.random_range(0..3) {
        0 => {
            std::fs::remove_file(&path)?;
            "deleted".to_owned()
        }
        1 => {
            std::fs::write(&path, b"")?;
            "emptied".to_owned()
        }
        _ => {
            let length = rng.random_range(0..kept.len().max(1));
            std::fs::write(&path, &kept[..length])?;
            format!("cut off after {length} of {} bytes", kept.len())
        }
    };
    let said = refusal(data, binary).await.with_context(|| format!("{name} was {what}"))?;
    ensure!(said.contains(name.as_str()), "{name} was {what}, and the server says: {said}");
    std::fs::write(&path, kept)?;
    Ok(())
}

/// Output of a server that refuses to start.
async fn refusal(data: &Path, binary: &Path) -> Result<String> {
    let mut process = Command::new(binary)
        .args(["server", "--api-only", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = process.try_wait()? {
            let said = process.wait_with_output()?.stderr;
            ensure!(!status.success(), "the server exited with success");
            return Ok(String::from_utf8_lossy(&said).into_owned());
        }
        if Instant::now() > deadline {
            process.kill()?;
            process.wait()?;
            bail!("the server starts despite the damage");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
