//! Validation of any object of any built-in kind terminates without a panic. `cargo xtask fuzz` runs this for longer,
//! with random seeds.

use std::sync::Arc;

use capstan_builtin::{decode, defaults, kinds, protobuf, quantity, schema, strategy, validation};
use capstan_schema::Schema;
use capstan_schema::patch::strategic;
use capstan_schema::schema::{Additional, TypeName};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Map, Value, json};

fn config(default_cases: u32) -> Config {
    let default = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { default_cases };
    Config { cases, failure_persistence: None, ..default }
}

/// Strings with a special meaning somewhere.
const TEXTS: &[&str] = &[
    "",
    "a",
    "a-b",
    "A_b",
    "kube-system",
    "é",
    "\u{0}",
    "a/b",
    "a/b/c",
    "1",
    "-1",
    "1Gi",
    "1e400",
    "100m",
    "0.5",
    "50%",
    "101%",
    "Always",
    "Never",
    "Recreate",
    "RollingUpdate",
    "ClusterIP",
    "NodePort",
    "ExternalName",
    "None",
    "TCP",
    "http",
    "10.0.0.1",
    "::1",
    "fe80::1%eth0",
    "10.0.0.0/8",
    "*/5 * * * *",
    "TZ=UTC * * * * *",
    "@daily",
    "2026-01-01T00:00:00Z",
    "2026-13-01T00:00:00.123456Z",
    "aGVsbG8=",
    "not base64!",
    "Group",
    "User",
    "ServiceAccount",
    "rbac.authorization.k8s.io",
    "*",
    "In",
    "NotIn",
    "Exists",
    "Gt",
    "Equal",
    "NoSchedule",
    "kubernetes.io/tls",
    "IPv4",
    "SingleStack",
    "self.a == 1",
    "replace",
    "$(VAR)",
    "/var/../etc",
];
const NUMBERS: &[i64] =
    &[0, 1, -1, 2, 80, 443, 65_535, 65_536, 1_000_000, i32::MAX as i64, i64::MAX, i64::MIN];

/// Generates objects that mostly follow a schema. SplitMix64 over a counter is random enough.
struct Maker(u64);

impl Maker {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % limit
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn scalar(&mut self) -> Value {
        match self.below(5) {
            0 => Value::Null,
            1 => self.one_in(2).into(),
            2 => NUMBERS[self.below(NUMBERS.len())].into(),
            3 => json!(self.below(1000) as f64 / 7.0),
            _ => TEXTS[self.below(TEXTS.len())].into(),
        }
    }

    fn value(&mut self, schema: &Schema, depth: usize) -> Value {
        if self.one_in(40) {
            return match self.below(4) {
                0 => json!({}),
                1 => json!([]),
                2 => json!([{}, null]),
                _ => self.scalar(),
            };
        }
        match schema.kind {
            Some(TypeName::String) => TEXTS[self.below(TEXTS.len())].into(),
            Some(TypeName::Integer) => NUMBERS[self.below(NUMBERS.len())].into(),
            Some(TypeName::Boolean) => self.one_in(2).into(),
            Some(TypeName::Array) if depth > 0 => {
                let items = schema.items.clone();
                let count = self.below(3);
                (0..count)
                    .map(|_| items.as_ref().map_or(Value::Null, |items| self.value(items, depth - 1)))
                    .collect()
            }
            Some(TypeName::Object) if depth > 0 => self.object(schema, depth),
            Some(TypeName::Array) => json!([]),
            Some(TypeName::Object) => json!({}),
            _ => self.scalar(),
        }
    }

    fn object(&mut self, schema: &Schema, depth: usize) -> Value {
        let mut map = Map::new();
        let sparse = 2 + schema.properties.len() / 6;
        let properties: Vec<(String, Arc<Schema>)> =
            schema.properties.iter().map(|(key, child)| (key.clone(), child.clone())).collect();
        for (key, child) in properties {
            if self.one_in(sparse) {
                let value = self.value(&child, depth - 1);
                map.insert(key, value);
            }
        }
        if let Additional::Schema(child) = &schema.additional {
            for _ in 0..self.below(3) {
                let key = TEXTS[self.below(TEXTS.len())].to_owned();
                let value = self.value(child, depth - 1);
                map.insert(key, value);
            }
        }
        if self.one_in(30) {
            let value = self.scalar();
            map.insert("unknown".into(), value);
        }
        Value::Object(map)
    }

    fn of(&mut self, kind: &kinds::Kind, schema: &Schema) -> Value {
        let mut object = self.object(schema, 9);
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.into();
        object
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn any_object_of_a_built_in_kind_is_validated(seed in any::<u64>(), pick in any::<prop::sample::Index>()) {
        let all = kinds();
        let kind = &all[pick.index(all.len())];
        let (group, version) = (kind.group, kind.version);
        let Some(schema) = schema(group, version, kind.kind) else { return Ok(()) };
        let mut maker = Maker(seed);
        let (mut new, mut old) = (maker.of(kind, &schema), maker.of(kind, &schema));
        let patch = maker.object(&schema, 6);

        _ = protobuf::encode(&new);
        let settled = [&mut new, &mut old].map(|object| decode::settle(group, version, kind.kind, object).is_ok());
        if settled != [true, true] {
            return Ok(());
        }
        for object in [&mut new, &mut old] {
            defaults::apply(group, version, kind.kind, object);
            strategy::prepare_create(group, kind.kind, object);
        }
        _ = validation::validate(group, kind.kind, "", &new, None);
        for subresource in ["", "status", "scale"] {
            let mut updated = new.clone();
            strategy::prepare_update(group, kind.kind, subresource, &mut updated, &old);
            strategy::stamp_update(group, kind.kind, subresource, &mut updated, &old, "2026-01-01T00:00:00Z");
            _ = validation::validate(group, kind.kind, subresource, &updated, Some(&old));
        }
        if let Some(bytes) = protobuf::encode(&new) {
            let back = protobuf::decode(&bytes);
            prop_assert!(back.is_ok(), "{:?}", back);
        }
        if let Ok(mut patched) = strategic::apply(new, patch, &schema) {
            _ = decode::settle(group, version, kind.kind, &mut patched);
        }
    }

    #[test]
    fn any_text_is_a_quantity_or_rejected(text in "[-+]?[0-9.]{0,8}([eE][-+]?[0-9]{0,10}|[numkKMGTPEi]{0,2})|.{0,8}") {
        if let Ok(quantity) = quantity::Quantity::parse(&text) {
            _ = (quantity.milli(), quantity.value(), quantity.rounded_to_milli());
            let shown = quantity.to_string();
            prop_assert!(quantity::Quantity::parse(&shown).is_ok(), "{shown}");
        }
    }
}
