//! `/version`.

use bytes::Bytes;
use serde_json::json;

/// The Kubernetes release whose behaviour is matched, with our build metadata.
pub const GIT_VERSION: &str = "v1.36.3+capstan";

/// The `version.Info` document, always indented as upstream.
pub fn version() -> Bytes {
    let info = json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        // Clients only print these; there is no Go here.
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    });
    format!("{info:#}").into()
}

/// Go's names of architectures.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
