//! Regular expressions: RE2 in Go, and the same language here.

use regex::Regex;

use super::{Limits, Outcome, Value, size, texts};

pub fn call(name: &str, values: &[Value], limits: &Limits) -> Option<Outcome> {
    Some(match (name, values) {
        ("regexQuoteMeta", [Value::Text(text)]) => Ok(Value::text(regex::escape(text))),
        ("regexMatch", [Value::Text(pattern), Value::Text(text)]) => {
            compiled(pattern).map(|regex| Value::Bool(regex.is_match(text)))
        }
        ("regexFind", [Value::Text(pattern), Value::Text(text)]) => {
            compiled(pattern).map(|regex| Value::text(regex.find(text).map_or("", |found| found.as_str())))
        }
        ("regexFindAll", [Value::Text(pattern), Value::Text(text), Value::Int(most)]) => compiled(pattern)
            .map(|regex| {
                let most = if *most < 0 { usize::MAX } else { size(*most) };
                Value::list(
                    regex.find_iter(text).take(most).map(|found| Value::text(found.as_str())).collect(),
                )
            }),
        ("regexReplaceAll" | "regexReplaceAllLiteral", [pattern, text, with]) => {
            let replaced = texts(&[pattern.clone(), text.clone(), with.clone()]).and_then(|all| {
                let regex = compiled(&all[0])?;
                let matches = regex.find_iter(&all[1]).count();
                if matches.saturating_mul(all[2].len() + 1).saturating_add(all[1].len()) > limits.output {
                    return Err(format!("the result is longer than {} bytes", limits.output));
                }
                Ok(match name {
                    "regexReplaceAll" => regex.replace_all(&all[1], &*all[2]).into_owned(),
                    _ => regex.replace_all(&all[1], regex::NoExpand(&all[2])).into_owned(),
                })
            });
            replaced.map(Value::text)
        }
        ("regexSplit", [Value::Text(pattern), Value::Text(text), Value::Int(most)]) => {
            compiled(pattern).map(|regex| match *most {
                0 => Value::list(Vec::new()),
                most if most < 0 => Value::list(regex.split(text).map(Value::text).collect()),
                most => Value::list(regex.splitn(text, size(most)).map(Value::text).collect()),
            })
        }
        _ => return None,
    })
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|_| format!("error parsing regexp {pattern:?}"))
}
