//! What happened, line by line: the same for the same seed and commit.

use std::sync::Arc;

use capstan_controller::EffectOf;
use parking_lot::Mutex;
use serde_json::Value;

/// Every effect of a run in order, with its time and number. Clones are the same trace.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    text: String,
    effects: usize,
    exposed: usize,
}

impl Trace {
    /// Takes the next number for an effect.
    pub(crate) fn number(&self) -> usize {
        let mut lines = self.0.lock();
        lines.effects += 1;
        lines.effects - 1
    }

    /// How many effects there have been.
    pub fn effects(&self) -> usize {
        self.0.lock().effects
    }

    /// The number of the first effect that is to be disturbed.
    pub fn exposed(&self) -> usize {
        self.0.lock().exposed
    }

    /// The next effect is the first one to be disturbed.
    pub(crate) fn expose(&self) {
        let mut lines = self.0.lock();
        lines.exposed = lines.effects;
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
        let body = body(effect).map(|body| format!(" {body}")).unwrap_or_default();
        self.line(seconds, &format!("#{number} {actor}: {effect}{body} -> {result}"));
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.0.lock().text.clone()
    }
}

/// What is written, without what must not be read by everybody.
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
