//! What JSON takes in memory once it is decoded.
//!
//! `{"":0},` is seven bytes of text and about seven hundred as a map, so a limit on text alone bounds nothing.

use std::io;

/// A map with one entry: one leaf of a B-tree, with room for eleven.
const OBJECT: usize = 640;
/// A list with one element: room for four is made.
const ARRAY: usize = 128;
/// One more entry or element: leaves are half full as a rule.
const ENTRY: usize = 120;
/// Where a string is kept, beside its bytes.
const STRING: usize = 16;

/// Adds up what a JSON text may take at most, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Weight {
    bytes: usize,
    in_string: bool,
    escaped: bool,
}

impl Weight {
    /// Bytes that decoding the text may take.
    pub fn of_text(text: &[u8]) -> usize {
        let mut weight = Self::default();
        weight.add(text);
        weight.bytes
    }

    /// Bytes that an object takes, by what it would be written as.
    pub fn of(object: &impl serde::Serialize) -> usize {
        let mut weight = Self::default();
        // Nothing here fails to be written but what cannot be written as JSON at all, and that weighs nothing.
        let _ = serde_json::to_writer(&mut weight, object);
        weight.bytes
    }

    fn add(&mut self, text: &[u8]) {
        for byte in text {
            self.bytes += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => {
                    self.in_string = !self.in_string;
                    self.bytes += if self.in_string { STRING } else { 0 };
                }
                _ if self.in_string => {}
                b'{' => self.bytes += OBJECT,
                b'[' => self.bytes += ARRAY,
                b',' => self.bytes += ENTRY,
                _ => {}
            }
        }
    }
}

impl io::Write for Weight {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.add(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tiny_objects_weigh_what_they_become_and_text_weighs_what_it_is() {
        let tiny = format!("[{}]", vec![r#"{"":0}"#; 1000].join(","));
        assert!(Weight::of_text(tiny.as_bytes()) > 90 * tiny.len());
        let text = json!({"message": "a {[,\\\" b ".repeat(1000)}).to_string();
        assert!(Weight::of_text(text.as_bytes()) < text.len() + 1000);
    }

    #[test]
    fn a_map_weighs_no_less_than_the_leaf_it_is_kept_in() {
        let leaf = 11 * (size_of::<String>() + size_of::<Value>());
        assert!(Weight::of_text(br#"{"":0}"#) >= leaf);
        assert!(Weight::of_text(b"[0]") >= 4 * size_of::<Value>());
        assert_eq!(Weight::of(&json!({"a": [1, "b"]})), Weight::of_text(br#"{"a":[1,"b"]}"#));
    }
}
