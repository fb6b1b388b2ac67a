//! Compares a value that was decoded and encoded by our types with the recording.

use serde_json::Value;

use super::Tally;

/// Compares every field that our type has. `owner` is the type's name, for the list of fields.
pub fn compare(tally: &mut Tally, owner: &str, place: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in ours {
                let recorded = theirs.get(name);
                // Keys of maps are not fields.
                if name != "details" || recorded.is_some() {
                    *tally.fields.entry(format!("{owner}.{name}")).or_default() |= recorded.is_some();
                }
                let place = format!("{place}.{name}");
                match recorded {
                    Some(recorded) if name == "details" => same_map(tally, &place, value, recorded),
                    Some(recorded) => compare(tally, part(owner, name), &place, value, recorded),
                    None if is_nothing(value) => {}
                    None => tally.faults.push(format!("{place}: {value} is not in the recording")),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                compare(tally, owner, &format!("{place}[{at}]"), ours, theirs);
            }
        }
        _ => {
            tally.values += 1;
            if !same(ours, theirs) {
                tally.faults.push(format!("{place}: {ours} is not the recorded {theirs}"));
            }
        }
    }
}

fn same_map(tally: &mut Tally, place: &str, ours: &Value, theirs: &Value) {
    tally.values += 1;
    if ours != theirs {
        tally.faults.push(format!("{place}: differs from the recording"));
    }
}

/// Type name of a nested field.
fn part<'a>(owner: &'a str, field: &str) -> &'a str {
    match field {
        "nic" => "Nic",
        "tags" => "Tag",
        "affinitygroup" => "GroupMembership",
        "secondaryip" => "SecondaryAddress",
        "service" => "NetworkService",
        "network" => "Network",
        "params" => "ApiParameter",
        "loadbalancerruleinstance" => "VirtualMachine",
        _ => owner,
    }
}

/// Whether a value is what our types produce for an absent field.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn same(ours: &Value, theirs: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (ours, theirs) = (text(ours), text(theirs));
    ours == theirs
        // Secrets are redacted, limits have two notations, empty means absent.
        || (ours == "[redacted]" && !theirs.is_empty())
        || (ours == "Unlimited" && theirs == "-1")
        || (ours == "null" && theirs.is_empty())
}
