//! `runcmd` and `bootcmd`: commands as one script.

use serde_json::Value;

use crate::Failed;

/// Commands as one script: texts as they are, lists with every word quoted. There is no `set -e`.
pub fn script(commands: Option<&Value>, name: &str) -> Result<Option<String>, Failed> {
    let commands = match commands {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(commands)) => commands,
        Some(Value::String(command)) => return Ok(Some(format!("#!/bin/sh\n{command}\n"))),
        Some(_) => return Err(format!("Input to shellify was type '{name}'. Expected list or tuple.")),
    };
    let mut out = String::from("#!/bin/sh\n");
    for command in commands {
        match command {
            Value::String(text) => out.push_str(text),
            Value::Array(words) => {
                let mut quoted = Vec::new();
                for word in words {
                    let word = match word {
                        Value::String(word) => word.clone(),
                        Value::Number(word) => word.to_string(),
                        Value::Bool(word) => if *word { "True" } else { "False" }.to_owned(),
                        _ => {
                            return Err(format!(
                                "Unable to shellify type '{name}'. Expected list, string, tuple."
                            ));
                        }
                    };
                    quoted.push(format!("'{}'", word.replace('\'', "'\\''")));
                }
                out.push_str(&quoted.join(" "));
            }
            Value::Null => continue,
            _ => {
                return Err(
                    "Unable to shellify type. Expected list, string, tuple. Got something else".to_owned()
                );
            }
        }
        out.push('\n');
    }
    Ok(Some(out))
}
