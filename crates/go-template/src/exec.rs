//! Renders a parsed template.

use std::ops::ControlFlow;

use crate::TemplateError;
use crate::functions;
use crate::parse::{Branch, Node, NodeKind, Operand, Pipe, Tree};
use crate::print;
use crate::value::Value;

/// Bounds of a template: authors of ClusterClasses are not trusted with the process.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of the template.
    pub template: usize,
    /// Bytes of the result, and of every text on the way.
    pub output: usize,
    /// Nodes, operands and list elements that are evaluated.
    pub steps: usize,
    /// Calls of templates within templates.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { template: 1 << 20, output: 1 << 20, steps: 200_000, depth: 50 }
    }
}

pub fn render(
    tree: &Tree,
    data: &serde_json::Value,
    missing_key_is_error: bool,
    limits: &Limits,
) -> Result<String, TemplateError> {
    let data = Value::from(data);
    let mut renderer = Renderer {
        tree,
        limits,
        missing_key_is_error,
        steps: 0,
        depth: 0,
        line: 0,
        variables: vec![(String::new(), data.clone())],
        out: String::new(),
    };
    match renderer.nodes(&tree.root, &data) {
        Ok(_) => Ok(renderer.out),
        Err(message) => Err(TemplateError::new(renderer.line, message)),
    }
}

/// How a loop goes on.
#[derive(Debug, PartialEq)]
enum Loop {
    Break,
    Continue,
}

struct Renderer<'t> {
    tree: &'t Tree,
    limits: &'t Limits,
    missing_key_is_error: bool,
    steps: usize,
    depth: usize,
    line: usize,
    variables: Vec<(String, Value)>,
    out: String,
}

type Flow = Result<ControlFlow<Loop>, String>;

impl Renderer<'_> {
    fn step(&mut self, count: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(count);
        match self.steps > self.limits.steps {
            true => Err(format!("rendering takes more than {} steps", self.limits.steps)),
            false => Ok(()),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        if self.out.len() + text.len() > self.limits.output {
            return Err(format!("the result is longer than {} bytes", self.limits.output));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Flow {
        for node in nodes {
            self.step(1)?;
            self.line = node.line;
            match &node.kind {
                NodeKind::Text(text) => self.write(text)?,
                NodeKind::Action(pipe) => {
                    let value = self.pipe(pipe, dot)?;
                    if pipe.variables.is_empty() {
                        let text = print::printed(&value)?;
                        self.write(&text)?;
                    }
                }
                NodeKind::If(branch) => {
                    let flow = self.choose(branch, dot, false)?;
                    if flow.is_break() {
                        return Ok(flow);
                    }
                }
                NodeKind::With(branch) => {
                    let flow = self.choose(branch, dot, true)?;
                    if flow.is_break() {
                        return Ok(flow);
                    }
                }
                NodeKind::Range(branch) => {
                    let flow = self.range(branch, dot)?;
                    if flow.is_break() {
                        return Ok(flow);
                    }
                }
                NodeKind::Template { name, data } => self.template(name, data.as_ref(), dot)?,
                NodeKind::Break => return Ok(ControlFlow::Break(Loop::Break)),
                NodeKind::Continue => return Ok(ControlFlow::Break(Loop::Continue)),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn choose(&mut self, branch: &Branch, dot: &Value, with: bool) -> Flow {
        let scope = self.variables.len();
        let value = self.pipe(&branch.pipe, dot)?;
        let flow = match value.holds() {
            true if with => self.nodes(&branch.then, &value),
            true => self.nodes(&branch.then, dot),
            false => self.nodes(&branch.otherwise, dot),
        };
        self.variables.truncate(scope);
        flow
    }

    fn range(&mut self, branch: &Branch, dot: &Value) -> Flow {
        let scope = self.variables.len();
        let over = self.pipe_value(&branch.pipe, dot)?;
        let items: Vec<(Value, Value)> = match &over {
            Value::Nil => Vec::new(),
            Value::List(items) => {
                let index = |at: usize| Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
                items.iter().enumerate().map(|(at, item)| (index(at), item.clone())).collect()
            }
            Value::Map(fields) => {
                let fields = fields.borrow();
                fields.iter().map(|(key, value)| (Value::text(key.as_str()), value.clone())).collect()
            }
            Value::Int(count) => {
                self.step(usize::try_from(*count).unwrap_or(0))?;
                (0..*count).map(|at| (Value::Int(at), Value::Int(at))).collect()
            }
            other => return Err(format!("range can't iterate over {}", print::printed(other)?)),
        };
        if items.is_empty() {
            let flow = self.nodes(&branch.otherwise, dot);
            self.variables.truncate(scope);
            return flow;
        }
        for (key, item) in items {
            self.step(1)?;
            let declared = match branch.pipe.variables.as_slice() {
                [] => Vec::new(),
                [value] => vec![(value.clone(), item.clone())],
                [index, value, ..] => vec![(index.clone(), key), (value.clone(), item.clone())],
            };
            for (name, value) in declared {
                if branch.pipe.assigns {
                    self.assign(&name, value)?;
                } else {
                    self.variables.push((name, value));
                }
            }
            let flow = self.nodes(&branch.then, &item)?;
            self.variables.truncate(scope);
            if flow == ControlFlow::Break(Loop::Break) {
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn template(&mut self, name: &str, data: Option<&Pipe>, dot: &Value) -> Result<(), String> {
        let tree = self.tree;
        let body = tree.defined.get(name).ok_or_else(|| format!("template {name:?} not defined"))?;
        let data = match data {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Value::Nil,
        };
        if self.depth >= self.limits.depth {
            return Err(format!("templates call each other more than {} deep", self.limits.depth));
        }
        self.depth += 1;
        let outer = std::mem::replace(&mut self.variables, vec![(String::new(), data.clone())]);
        let rendered = self.nodes(body, &data);
        self.variables = outer;
        self.depth -= 1;
        rendered.map(drop)
    }

    /// The value of a pipeline, which its variable gets.
    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let value = self.pipe_value(pipe, dot)?;
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push((name.clone(), value.clone()));
            }
        }
        Ok(value)
    }

    fn assign(&mut self, name: &str, value: Value) -> Result<(), String> {
        let known = self.variables.iter_mut().rev().find(|(known, _)| known == name);
        known.ok_or_else(|| format!("undefined variable: ${name}"))?.1 = value;
        Ok(())
    }

    fn pipe_value(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, dot, last)?);
        }
        Ok(last.unwrap_or(Value::Nil))
    }

    /// A command; `last` is the value of the command before it and becomes the last argument.
    fn command(&mut self, operands: &[Operand], dot: &Value, last: Option<Value>) -> Result<Value, String> {
        self.step(1)?;
        let [first, arguments @ ..] = operands else { return Err("an empty command".to_owned()) };
        let Operand::Function(name) = first else {
            if !arguments.is_empty() || last.is_some() {
                return Err("can't give argument to non-function".to_owned());
            }
            return self.operand(first, dot);
        };
        if matches!(name.as_str(), "and" | "or") {
            return self.short_circuit(name == "and", arguments, dot, last);
        }
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for argument in arguments {
            values.push(self.operand(argument, dot)?);
        }
        values.extend(last);
        self.call(name, &values)
    }

    fn call(&mut self, name: &str, values: &[Value]) -> Result<Value, String> {
        let value = functions::call(name, values, self.limits)
            .map_err(|error| format!("error calling {name}: {error}"))?;
        match &value {
            Value::List(items) => self.step(items.len())?,
            Value::Text(text) if text.len() > self.limits.output => {
                return Err(format!("{name} makes a text longer than {} bytes", self.limits.output));
            }
            _ => {}
        }
        Ok(value)
    }

    /// `and` and `or` evaluate no more arguments than they need.
    fn short_circuit(
        &mut self,
        and: bool,
        arguments: &[Operand],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, String> {
        let mut value = None;
        for argument in arguments {
            let next = self.operand(argument, dot)?;
            let decided = next.holds() != and;
            value = Some(next);
            if decided {
                return Ok(value.unwrap_or(Value::Nil));
            }
        }
        let value = last.or(value);
        value.ok_or_else(|| format!("wrong number of args for {}", if and { "and" } else { "or" }))
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, String> {
        self.step(1)?;
        Ok(match operand {
            Operand::Dot => dot.clone(),
            Operand::Nil => Value::Nil,
            Operand::Bool(value) => Value::Bool(*value),
            Operand::Int(number) => Value::Int(*number),
            Operand::Float(number) => Value::Float(*number),
            Operand::Text(text) => Value::text(text.as_str()),
            Operand::Field(names) => self.fields(dot.clone(), names)?,
            Operand::Variable(name, names) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                let value = known.ok_or_else(|| format!("undefined variable: ${name}"))?.1.clone();
                self.fields(value, names)?
            }
            Operand::Function(name) => self.call(name, &[])?,
            Operand::Pipe(pipe, names) => {
                let value = self.pipe(pipe, dot)?;
                self.fields(value, names)?
            }
        })
    }

    fn fields(&self, value: Value, names: &[String]) -> Result<Value, String> {
        let mut value = value;
        for name in names {
            value = match &value {
                Value::Map(fields) => match fields.borrow().get(name) {
                    Some(field) => field.clone(),
                    None if self.missing_key_is_error => {
                        return Err(format!("map has no entry for key {name:?}"));
                    }
                    // As Go: what follows a missing key is missing too, and only a null has no fields.
                    None => return Ok(Value::Nil),
                },
                Value::Nil => return Err(format!("nil pointer evaluating interface {{}}.{name}")),
                other => return Err(format!("can't evaluate field {name} in type {}", other.kind())),
            };
        }
        Ok(value)
    }
}
