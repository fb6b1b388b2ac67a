//! Replies as XML, which is what one gets who does not ask for JSON.

use serde_json::Value;

/// A whole document.
pub(super) fn document(wrapper: &str, body: &Value) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><{wrapper} cloud-stack-version=\"{}\">",
        crate::VERSION
    );
    if let Value::Object(fields) = body {
        for (name, value) in fields {
            element(&mut text, name, value);
        }
    }
    text.push_str(&format!("</{wrapper}>"));
    text
}

/// Lists repeat their element; empty ones are not there.
fn element(text: &mut String, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Array(entries) => entries.iter().for_each(|entry| element(text, name, entry)),
        Value::Object(fields) => {
            text.push_str(&format!("<{name}>"));
            for (name, value) in fields {
                element(text, name, value);
            }
            text.push_str(&format!("</{name}>"));
        }
        Value::String(content) => {
            let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            text.push_str(&format!("<{name}>{content}</{name}>"));
        }
        plain => text.push_str(&format!("<{name}>{plain}</{name}>")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_repeat_their_element_and_empty_ones_vanish() {
        let body = serde_json::json!({"count": 2, "tags": [], "zone": [{"name": "a<b"}, {"name": "c"}]});
        assert_eq!(
            document("listzonesresponse", &body),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><listzonesresponse cloud-stack-version=\"4.22.1.1\"><count>2</count>\
             <zone><name>a&lt;b</name></zone><zone><name>c</name></zone></listzonesresponse>"
        );
    }
}
