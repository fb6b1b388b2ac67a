//! Formats values as cel-go does.

use capstan_cel::Value;

pub fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Uint(u) => format!("{u}u"),
        Value::Double(d) if d.is_nan() => "double(\"NaN\")".to_owned(),
        Value::Double(d) if d.is_infinite() => {
            format!("double(\"{}Infinity\")", if *d < 0.0 { "-" } else { "" })
        }
        Value::Double(d) => {
            let text = d.to_string();
            if text.contains('.') { text } else { format!("{text}.0") }
        }
        Value::String(s) => quote(s),
        Value::Bytes(bytes) => {
            format!("b\"{}\"", bytes.iter().map(|byte| format!("\\{byte:03o}")).collect::<String>())
        }
        Value::Duration(_) => format!("duration({})", value.to_json().unwrap()),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| show(&item.unwrap())).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries: Vec<(String, String)> =
                map.iter().map(|(key, value)| (show(&key), show(&value.unwrap()))).collect();
            entries.sort();
            let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(Some(value)) => format!("optional.of({})", show(value)),
        Value::Optional(None) => "optional.none()".to_owned(),
        other => other.to_string(),
    }
}

fn quote(s: &str) -> String {
    let mut text = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() && (c as u32) < 0x80 => text.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() || c == '\u{a0}' => text.push_str(&format!("\\u{:04x}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
