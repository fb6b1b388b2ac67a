//! Two replies, field by field.

use serde_json::Value;

use crate::Answer;
use crate::case::Case;
use crate::names::{Names, is_address, is_id, is_mac};

/// Headers that clients read.
const HEADERS: &[&str] = &[
    "content-type",
    "location",
    "x-subject-token",
    "www-authenticate",
    "vary",
    "openstack-api-version",
    "x-openstack-nova-api-version",
    "retry-after",
    "allow",
    "openstack-image-import-methods",
    "openstack-image-store-ids",
    "content-md5",
];
/// Fields whose values are the services' own counting, or random.
const VOLATILE: &[&str] = &[
    "revision_number",
    "standard_attr_id",
    "generation",
    "private_key",
    "public_key",
    "fingerprint",
    "adminPass",
    "secret",
    "audit_ids",
    "hostId",
    "reservation_id",
    "request_id",
    "OS-EXT-SRV-ATTR:instance_name",
    "provider:segmentation_id",
    "OS-EXT-SRV-ATTR:host",
    "OS-EXT-SRV-ATTR:hypervisor_hostname",
    "binding:host_id",
    "checksum",
    "os_hash_value",
    "content-md5",
    "size",
    "virtual_size",
    "vif_details",
    "expires_at",
    "updated",
    "traits",
];

pub struct Comparison<'a> {
    names: &'a mut Names,
    ordered: bool,
    pub differences: Vec<String>,
}

impl<'a> Comparison<'a> {
    pub fn new(names: &'a mut Names, ordered: bool) -> Self {
        Self { names, ordered, differences: Vec::new() }
    }

    fn differ(&mut self, at: &str, text: String) {
        self.differences.push(format!("{at}: {text}"));
    }

    pub fn compare(&mut self, case: &Case, answer: &Answer) {
        if case.http_status != answer.status {
            let recorded = short(&case.response);
            self.differ(
                "status",
                format!(
                    "recorded {} {recorded}, ours {} {}",
                    case.http_status,
                    answer.status,
                    short(&answer.body)
                ),
            );
            return;
        }
        for name in HEADERS {
            match (case.headers.get(*name), answer.headers.get(*name)) {
                (Some(theirs), Some(ours)) => self.text(&format!("header {name}"), theirs, ours),
                (Some(theirs), None) => {
                    self.differ(&format!("header {name}"), format!("recorded {theirs}, ours none"))
                }
                // Bodies without content have no type here.
                (None, Some(ours)) if *name != "content-type" => {
                    self.differ(&format!("header {name}"), format!("recorded none, ours {ours}"));
                }
                _ => {}
            }
        }
        let theirs = match &case.response {
            Value::String(text) if text == "null" => Value::Null,
            other => other.clone(),
        };
        if case.method != "HEAD" {
            self.values("", &theirs, &answer.body);
        }
    }

    fn values(&mut self, at: &str, theirs: &Value, ours: &Value) {
        let field = at.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
        match (theirs, ours) {
            (Value::Object(theirs), Value::Object(ours)) => self.objects(at, theirs, ours),
            (Value::Array(_), Value::Array(_)) if VOLATILE.contains(&field) => {}
            (Value::Array(theirs), Value::Array(ours)) => self.lists(at, theirs, ours),
            (Value::String(theirs), Value::String(ours)) if !VOLATILE.contains(&field) => {
                self.text(at, theirs, ours);
            }
            _ if kind(theirs) != kind(ours) => {
                self.differ(at, format!("recorded {}, ours {}", short(theirs), short(ours)));
            }
            _ if theirs != ours && !VOLATILE.contains(&field) => {
                self.differ(at, format!("recorded {theirs}, ours {ours}"));
            }
            _ => {}
        }
    }

    fn objects(
        &mut self,
        at: &str,
        theirs: &serde_json::Map<String, Value>,
        ours: &serde_json::Map<String, Value>,
    ) {
        let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        for (name, value) in theirs {
            // Objects may be keyed by ids.
            let name_here = self.names.get(name).map_or_else(|| name.clone(), str::to_owned);
            match ours.get(&name_here) {
                Some(held) => self.values(&below(name), value, held),
                None if is_id(name) => {}
                None => self.differ(&below(name), format!("recorded {}, ours absent", short(value))),
            }
        }
        for (name, value) in ours {
            if !theirs.contains_key(name) && !is_id(name) {
                self.differ(&below(name), format!("recorded absent, ours {}", short(value)));
            }
        }
    }

    fn lists(&mut self, at: &str, theirs: &[Value], ours: &[Value]) {
        let mut left: Vec<&Value> = ours.iter().collect();
        for (index, value) in theirs.iter().enumerate() {
            let found = match self.ordered && theirs.len() == ours.len() {
                true => Some(0),
                false => self.partner(value, &left).or_else(|| {
                    (theirs.len() == ours.len() && !left.is_empty() && !value.is_object()).then_some(0)
                }),
            };
            match found.filter(|at| *at < left.len()) {
                Some(position) => {
                    let ours = left.remove(position);
                    self.values(&format!("{at}[]"), value, ours);
                }
                None => self.differ(
                    &format!("{at}[]"),
                    format!("recorded item {index} {}, ours absent", short(value)),
                ),
            }
        }
        for value in left {
            self.differ(&format!("{at}[]"), format!("recorded absent, ours {}", short(value)));
        }
    }

    /// The item of ours that a recorded one is.
    fn partner(&self, theirs: &Value, ours: &[&Value]) -> Option<usize> {
        let find = |test: &dyn Fn(&Value) -> bool| ours.iter().position(|it| test(it));
        match theirs {
            Value::Object(fields) => {
                let id = fields.get("id").or(fields.get("uuid")).and_then(Value::as_str);
                let inner = fields.values().next().filter(|it| it.is_object() && fields.len() == 1);
                if let Some(known) = id.and_then(|id| self.names.get(id)) {
                    return find(&|it| it["id"] == known || it["uuid"] == known);
                }
                if let Some(id) = id.filter(|id| !is_id(id)) {
                    return find(&|it| it["id"] == id);
                }
                let free = |it: &Value| !it["id"].as_str().is_some_and(|id| self.names.is_taken(id));
                if let (Some(_), Some(name)) = (id, fields.get("name")) {
                    return find(&|it| it["name"] == *name && free(it));
                }
                let name = [
                    "name",
                    "type",
                    "interface",
                    "rel",
                    "zoneName",
                    "alias",
                    "action",
                    "ip_address",
                    "addr",
                    "address",
                ]
                .iter()
                .find_map(|field| Some((*field, fields.get(*field)?.as_str()?)));
                if let Some((field, value)) = name.filter(|(_, value)| !value.is_empty()) {
                    let value = self.names.translate(value);
                    let found = find(&|it| it[field] == value.as_str());
                    if found.is_some() {
                        return found;
                    }
                    // An address that was chosen at random.
                    return is_address(&value)
                        .then(|| find(&|it| it[field].as_str().is_some_and(is_address)))
                        .flatten();
                }
                if let Some(inner) = inner {
                    return find(&|it| {
                        it.as_object()
                            .and_then(|it| it.values().next())
                            .is_some_and(|it| it["name"] == inner["name"])
                    });
                }
                // Without a name, what agrees in most fields.
                let score =
                    |it: &Value| fields.iter().filter(|(name, value)| it.get(*name) == Some(value)).count();
                (0..ours.len()).max_by_key(|index| (score(ours[*index]), ours.len() - index))
            }
            Value::String(text) => {
                let text = self.names.translate(text);
                find(&|it| *it == text.as_str())
                    .or_else(|| is_id(&text).then(|| find(&|it| it.as_str().is_some_and(is_id))).flatten())
            }
            other => find(&|it| it == other),
        }
    }

    fn text(&mut self, at: &str, theirs: &str, ours: &str) {
        if theirs == ours || theirs.starts_with('<') {
            // The client may have chosen it.
            if theirs == ours && is_id(ours) {
                self.names.learn(theirs, ours);
            }
            return;
        }
        let random = (is_id(theirs) && is_id(ours))
            || (is_address(theirs) && is_address(ours))
            || (is_mac(theirs) && is_mac(ours));
        if random {
            match self.names.get(theirs) {
                None => return self.names.learn(theirs, ours),
                Some(known) if known == ours => return,
                Some(_) => {}
            }
        }
        let here = self.names.translate(theirs);
        let same = match here.split_once("<...") {
            Some((start, _)) => ours.starts_with(start),
            None => here == ours || normal(&here) == normal(ours),
        };
        if !same {
            self.differ(at, format!("recorded {here:?}, ours {ours:?}"));
        }
    }
}

/// A text without what cannot be equal: times, request ids, and the order of printed dictionaries.
fn normal(text: &str) -> String {
    let mut digits: String = String::new();
    let is_time =
        text.len() >= 19 && text.as_bytes().get(10) == Some(&b'T') && text.as_bytes().get(4) == Some(&b'-');
    if is_time {
        digits.extend(text.chars().map(|c| if c.is_ascii_digit() { 'd' } else { c }));
        return digits;
    }
    let replace = |pattern: &str, text: &str, with: &str| {
        regex::Regex::new(pattern)
            .map_or_else(|_| text.to_owned(), |it| it.replace_all(text, with).into_owned())
    };
    let text =
        replace(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}", text, "~");
    let text = replace(r"r-[0-9a-z]{8}", &text, "r-~");
    if text.contains("{'")
        || text.contains("should be one of")
        || text.contains("and ids")
        || text.contains("ports still")
        || text.contains("attached:")
    {
        let mut words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty()).collect();
        words.sort_unstable();
        return words.join(" ");
    }
    text
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
