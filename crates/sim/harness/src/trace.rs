//! The trace of a run: the same for the same seed and commit.

use std::sync::Arc;

use capstan_controller::EffectOf;
use parking_lot::Mutex;
use serde_json::Value;

/// Every effect of a run in order, with time and number. Clones share one trace.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    text: String,
    effects: usize,
    faults_from: usize,
    calls: Vec<usize>,
}

impl Trace {
    /// Assigns the next effect number.
    pub(crate) fn number(&self) -> usize {
        let mut lines = self.0.lock();
        lines.effects += 1;
        lines.effects - 1
    }

    /// Number of effects so far.
    pub fn effects(&self) -> usize {
        self.0.lock().effects
    }

    /// Number of the first effect that may get a fault.
    pub fn faults_from(&self) -> usize {
        self.0.lock().faults_from
    }

    /// Numbers of the calls outside the API, such as to a cloud.
    pub fn calls(&self) -> Vec<usize> {
        let mut calls = self.0.lock().calls.clone();
        calls.sort_unstable();
        calls
    }

    /// The next effect is the first that may get a fault.
    pub(crate) fn enable_faults(&self) {
        let mut lines = self.0.lock();
        lines.faults_from = lines.effects;
    }

    pub(crate) fn line(&self, seconds: f64, text: &str) {
        use std::fmt::Write;
        let _ = writeln!(self.0.lock().text, "{seconds:>10.3} {text}");
    }

    pub(crate) fn effect(
        &self,
        seconds: f64,
        number: usize,
        actor: &str,
        effect: &EffectOf<'_>,
        result: &str,
    ) {
        if let EffectOf::Call { .. } = effect {
            self.0.lock().calls.push(number);
        }
        let body = body(effect).map(|body| format!(" {body}")).unwrap_or_default();
        self.line(seconds, &format!("#{number} {actor}: {effect}{body} -> {result}"));
    }

    pub fn text(&self) -> String {
        self.0.lock().text.clone()
    }
}

/// The written body, with secrets redacted.
fn body(effect: &EffectOf<'_>) -> Option<String> {
    let (kind, body) = match effect {
        EffectOf::Create { kind, body, .. } | EffectOf::Replace { kind, body, .. } => (kind, *body),
        EffectOf::Patch { kind, patch, .. } => (kind, patch.body()),
        _ => return None,
    };
    let mut shown = body.clone();
    if kind.group.is_empty() && kind.kind == "Secret" {
        for field in ["data", "stringData"] {
            if let Some(Value::Object(values)) = shown.get_mut(field) {
                for value in values.values_mut() {
                    *value = "(hidden)".into();
                }
            }
        }
    }
    Some(shown.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_controller::KindName;
    use capstan_object::Key;

    #[test]
    fn secrets_are_not_shown() {
        let trace = Trace::default();
        let kind = KindName::namespaced("", "v1", "Secret", "secrets");
        let body = serde_json::json!({"metadata": {"name": "s"}, "data": {"key": "c2VjcmV0"}});
        trace.effect(
            0.0,
            0,
            "test",
            &EffectOf::Create { kind: &kind, key: &Key::new("a", "s"), body: &body },
            "ok",
        );
        assert!(!trace.text().contains("c2VjcmV0"), "{}", trace.text());
        assert!(trace.text().contains("create secrets a/s"));
    }
}
