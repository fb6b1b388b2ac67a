//! Go's `text/template` on JSON data, with the hermetic functions of sprig: what patches and names of ClusterClasses
//! and files of KubeadmConfigs are written in.
//!
//! ```text
//! text ── lex ──▶ tokens ── parse ──▶ nodes ── exec (data, functions) ──▶ text
//! ```
//!
//! Numbers in the data are Go's float64, as `encoding/json` reads them; numbers in a template are integers unless they
//! have a fraction. Rendering is bounded: see [`Limits`]. No clock, no randomness, no environment.

mod exec;
mod functions;
mod lex;
mod parse;
mod print;
mod value;

pub use exec::Limits;

/// Why a template could not be parsed or rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// Line in the template, from 1; 0 if it is not known.
    pub line: usize,
    pub message: String,
}

impl TemplateError {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl std::fmt::Display for TemplateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}: {}", self.message),
        }
    }
}

impl std::error::Error for TemplateError {}

/// A parsed template.
#[derive(Debug, Clone)]
pub struct Template {
    tree: parse::Tree,
    missing_key_is_error: bool,
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let limits = Limits::default();
        if text.len() > limits.template {
            let message = format!("the template is longer than {} bytes", limits.template);
            return Err(TemplateError::new(0, message));
        }
        Ok(Self { tree: parse::parse(text)?, missing_key_is_error: false })
    }

    /// A key that is missing in a map is an error, not `<no value>`.
    #[must_use]
    pub fn missing_key_is_error(self) -> Self {
        Self { missing_key_is_error: true, ..self }
    }

    pub fn render(&self, data: &serde_json::Value) -> Result<String, TemplateError> {
        exec::render(&self.tree, data, self.missing_key_is_error, &Limits::default())
    }
}

/// Parses and renders.
pub fn render(text: &str, data: &serde_json::Value) -> Result<String, TemplateError> {
    Template::parse(text)?.render(data)
}

#[cfg(test)]
mod tests;
