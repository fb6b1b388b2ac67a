//! Execution of commands.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::syntax::{AndOr, Command, Connector, Form, List, Part, Pipeline, Redirect, Target, Word};
use super::{Flow, Input, Io, Shell, Sink, commands, parser, pattern};
use crate::machine::files::FileError;

/// Maximum commands of one boot: ends loops that wait forever.
const STEPS: usize = 20_000;
/// Maximum call depth of scripts and functions.
const DEPTH: usize = 32;

impl Shell<'_, '_> {
    /// Runs the text of a script.
    pub(super) fn run_text<'s>(&'s mut self, text: &'s str, io: &'s Io) -> BoxFuture<'s, Flow> {
        Box::pin(async move {
            let (list, error) = parser::script(text);
            if self.list(&list, io).await == Flow::Exit {
                return Flow::Exit;
            }
            if let Some(error) = error {
                self.state.line = error.line;
                self.print_error(io, &error.why);
                self.state.status = 2;
                return Flow::Exit;
            }
            Flow::Next
        })
    }

    /// Runs a script file in a new shell.
    pub(super) async fn run_script(&mut self, path: &str, text: &str, arguments: &[String], io: &Io) {
        if self.too_deep(io) {
            return;
        }
        let saved = self.state.clone();
        let exported = &saved.exported;
        self.state.variables.retain(|name, _| exported.contains(name) || name == "IFS");
        self.state.functions.clear();
        self.state.script = path.into();
        self.state.arguments = arguments.to_vec();
        (self.state.errexit, self.state.nounset, self.state.pipefail, self.state.trace) = Default::default();
        if let Some(flags) = text.strip_prefix("#!").and_then(|rest| rest.lines().next()?.split(" -").nth(1))
        {
            self.state.errexit = flags.contains('e');
            self.state.nounset = flags.contains('u');
            self.state.trace = flags.contains('x');
        }
        let guarded = std::mem::take(&mut self.guarded);
        self.depth += 1;
        self.run_text(text, io).await;
        self.depth -= 1;
        self.guarded = guarded;
        let status = self.state.status;
        self.state = saved;
        self.state.status = status;
    }

    fn too_deep(&mut self, io: &Io) -> bool {
        if self.depth >= DEPTH {
            self.print_error(io, "maximum nesting level exceeded");
            self.state.status = 1;
            return true;
        }
        false
    }

    /// Runs commands in a subshell.
    pub(super) async fn subshell(&mut self, list: &List, io: &Io) {
        let saved = self.state.clone();
        self.list(list, io).await;
        let status = self.state.status;
        self.state = saved;
        self.state.status = status;
    }

    pub(super) fn list<'s>(&'s mut self, list: &'s List, io: &'s Io) -> BoxFuture<'s, Flow> {
        Box::pin(async move {
            for and_or in list {
                let flow = self.and_or(and_or, io).await;
                if flow != Flow::Next {
                    return flow;
                }
            }
            Flow::Next
        })
    }

    async fn and_or(&mut self, and_or: &AndOr, io: &Io) -> Flow {
        if and_or.background {
            // Synchronously instead of in the background: its changes to the shell are discarded.
            let saved = self.state.clone();
            self.pipeline(&and_or.first, io, false).await;
            self.state = saved;
            self.state.status = 0;
            return Flow::Next;
        }
        let last = and_or.rest.len();
        let mut flow = self.pipeline(&and_or.first, io, last > 0).await;
        for (index, (joint, pipeline)) in and_or.rest.iter().enumerate() {
            if flow != Flow::Next {
                return flow;
            }
            if (*joint == Connector::And) == (self.state.status == 0) {
                flow = self.pipeline(pipeline, io, index + 1 < last).await;
            }
        }
        flow
    }

    async fn pipeline(&mut self, pipeline: &Pipeline, io: &Io, guarded: bool) -> Flow {
        let guard = usize::from(guarded || pipeline.negated);
        self.guarded += guard;
        let flow = match pipeline.commands.as_slice() {
            [command] => self.command(command, io).await,
            commands => self.pipe(commands, io).await,
        };
        self.guarded -= guard;
        if pipeline.negated {
            self.state.status = i32::from(self.state.status == 0);
            return flow;
        }
        if flow == Flow::Next && self.state.status != 0 && self.state.errexit && self.guarded == 0 && !guarded
        {
            return Flow::Exit;
        }
        flow
    }

    async fn pipe(&mut self, commands: &[Command], io: &Io) -> Flow {
        let mut input = io.input.clone();
        let mut failed = 0;
        for (index, command) in commands.iter().enumerate() {
            let saved = self.state.clone();
            let buffer = Arc::new(Mutex::new(Vec::new()));
            let out = if index + 1 < commands.len() { Sink::Buffer(buffer.clone()) } else { io.out.clone() };
            let inner = Io { input, out, err: io.err.clone() };
            self.command(command, &inner).await;
            let status = self.state.status;
            self.state = saved;
            self.state.status = status;
            if status != 0 {
                failed = status;
            }
            input = Input::new(std::mem::take(&mut *buffer.lock()));
        }
        if self.state.pipefail {
            self.state.status = failed;
        }
        Flow::Next
    }

    fn command<'s>(&'s mut self, command: &'s Command, io: &'s Io) -> BoxFuture<'s, Flow> {
        Box::pin(async move {
            self.guest.steps += 1;
            if self.guest.steps > STEPS {
                self.print_error(io, "Killed");
                self.state.status = 137;
                return Flow::Exit;
            }
            self.state.line = command.line;
            let io = match self.redirected(&command.redirects, io).await {
                Ok(io) => io,
                Err(()) => {
                    self.state.status = 1;
                    return Flow::Next;
                }
            };
            match &command.form {
                Form::Simple { assignments, words } => self.simple(assignments, words, &io).await,
                Form::Group(list) => self.list(list, &io).await,
                Form::Subshell(list) => {
                    self.subshell(list, &io).await;
                    Flow::Next
                }
                Form::Function { name, body } => {
                    self.state.functions.insert(name.clone(), body.clone());
                    self.state.status = 0;
                    Flow::Next
                }
                Form::If { branches, otherwise } => {
                    for (condition, body) in branches {
                        match self.condition(condition, &io).await {
                            Ok(true) => return self.list(body, &io).await,
                            Ok(false) => {}
                            Err(flow) => return flow,
                        }
                    }
                    self.state.status = 0;
                    match otherwise {
                        Some(body) => self.list(body, &io).await,
                        None => Flow::Next,
                    }
                }
                Form::Loop { until, condition, body } => self.repeat(*until, condition, body, &io).await,
                Form::For { name, words, body } => {
                    let values = match words {
                        None => self.state.arguments.clone(),
                        Some(words) => match self.fields(words, &io).await {
                            Ok(values) => values,
                            Err(_) => return self.failed(),
                        },
                    };
                    self.state.status = 0;
                    for value in values {
                        self.state.variables.insert(name.clone(), value);
                        if let Some(flow) = left(self.list(body, &io).await) {
                            return flow;
                        }
                    }
                    Flow::Next
                }
                Form::Case { word, arms } => {
                    let Ok(text) = self.text(word, &io).await else { return self.failed() };
                    for (patterns, body) in arms {
                        for held in patterns {
                            let Ok(held) = self.pattern(held, &io).await else { return self.failed() };
                            if pattern::matches(&held, &text) {
                                self.state.status = 0;
                                return self.list(body, &io).await;
                            }
                        }
                    }
                    self.state.status = 0;
                    Flow::Next
                }
            }
        })
    }

    fn failed(&mut self) -> Flow {
        self.state.status = 1;
        // A shell that runs a script exits if a word cannot be expanded.
        Flow::Exit
    }

    async fn condition(&mut self, condition: &List, io: &Io) -> Result<bool, Flow> {
        self.guarded += 1;
        let flow = self.list(condition, io).await;
        self.guarded -= 1;
        if flow == Flow::Next { Ok(self.state.status == 0) } else { Err(flow) }
    }

    async fn repeat(&mut self, until: bool, condition: &List, body: &List, io: &Io) -> Flow {
        let mut status = 0;
        loop {
            match self.condition(condition, io).await {
                Ok(held) if held != until => {}
                Ok(_) => {
                    self.state.status = status;
                    return Flow::Next;
                }
                Err(flow) => return left(flow).unwrap_or(Flow::Next),
            }
            if let Some(flow) = left(self.list(body, io).await) {
                return flow;
            }
            status = self.state.status;
        }
    }

    async fn simple(&mut self, assignments: &[(String, Word)], words: &[Word], io: &Io) -> Flow {
        let mut values = Vec::new();
        for (name, word) in assignments {
            let Ok(value) = self.text(word, io).await else { return self.failed() };
            values.push((name.clone(), value));
        }
        let Ok(fields) = self.fields(words, io).await else { return self.failed() };
        if self.state.trace {
            let shown: Vec<String> =
                values.iter().map(|(name, value)| format!("{name}={value}")).chain(fields.clone()).collect();
            self.guest.print(&io.err, &format!("+ {}", shown.join(" ")));
        }
        if fields.is_empty() {
            // The status is that of a command substitution, if there was one.
            let outputs = |word: &Word| word.iter().any(|part| matches!(part, Part::Output { .. }));
            if !assignments.iter().map(|(_, word)| word).chain(words).any(outputs) {
                self.state.status = 0;
            }
            self.state.variables.extend(values);
            return Flow::Next;
        }
        // Assignments before a command apply to that command only.
        let kept: Vec<_> = values
            .iter()
            .map(|(name, _)| {
                let exported = self.state.exported.contains(name);
                (name.clone(), self.state.variables.get(name).cloned(), exported)
            })
            .collect();
        for (name, value) in values {
            self.state.exported.insert(name.clone());
            self.state.variables.insert(name, value);
        }
        let flow = self.invoke(fields, io).await;
        for (name, value, exported) in kept {
            if !exported {
                self.state.exported.remove(&name);
            }
            match value {
                Some(value) => self.state.variables.insert(name, value),
                None => self.state.variables.remove(&name),
            };
        }
        flow
    }

    /// Runs a function, a command or a script by its name.
    pub(super) fn invoke<'s>(&'s mut self, words: Vec<String>, io: &'s Io) -> BoxFuture<'s, Flow> {
        Box::pin(async move {
            let Some((name, arguments)) = words.split_first() else { return Flow::Next };
            if let Some(body) = self.state.functions.get(name).cloned() {
                if self.too_deep(io) {
                    return Flow::Next;
                }
                let saved = std::mem::replace(&mut self.state.arguments, arguments.to_vec());
                self.depth += 1;
                let flow = self.command(&body, io).await;
                self.depth -= 1;
                self.state.arguments = saved;
                return if flow == Flow::Return { Flow::Next } else { flow };
            }
            commands::run(self, name, arguments, io).await
        })
    }

    /// The streams of a command with its redirections.
    async fn redirected(&mut self, redirects: &[Redirect], io: &Io) -> Result<Io, ()> {
        let mut io = io.clone();
        for Redirect { stream, target } in redirects {
            match target {
                Target::Read(word) => {
                    let name = self.text(word, &io).await.map_err(drop)?;
                    let path = self.path(&name);
                    let bytes = match path.as_str() {
                        "/dev/null" => Ok(Vec::new()),
                        // Enough for any script.
                        "/dev/urandom" | "/dev/random" => {
                            Ok((0..64).flat_map(|_| self.guest.env.uuid().into_bytes()).collect())
                        }
                        path => self.guest.files.read(path).map(<[u8]>::to_vec),
                    };
                    io.input = Input::new(self.opened(&name, bytes, &io)?);
                }
                Target::Text(word) => {
                    let text = self.text(word, &io).await.map_err(drop)?;
                    io.input = Input::new(text.into_bytes());
                }
                Target::Write(word) | Target::Append(word) => {
                    let name = self.text(word, &io).await.map_err(drop)?;
                    let path = self.path(&name);
                    let sink = match path.as_str() {
                        "/dev/null" => Sink::Nowhere,
                        "/dev/console" | "/dev/tty" | "/dev/ttyS0" | "/dev/kmsg" => Sink::Console,
                        "/dev/stdout" => io.out.clone(),
                        "/dev/stderr" => io.err.clone(),
                        path => {
                            let opened = match target {
                                Target::Append(_) => self.guest.files.append(path, b""),
                                _ => self.guest.files.write(path, b""),
                            };
                            self.opened(&name, opened, &io)?;
                            Sink::File(path.to_owned())
                        }
                    };
                    set(&mut io, *stream, sink);
                }
                Target::Duplicate(word) => {
                    let name = self.text(word, &io).await.map_err(drop)?;
                    let sink = match name.as_str() {
                        "1" => io.out.clone(),
                        "2" => io.err.clone(),
                        "-" => Sink::Nowhere,
                        "0" => continue,
                        other => {
                            self.print_error(&io, &format!("{other}: Bad file descriptor"));
                            return Err(());
                        }
                    };
                    set(&mut io, *stream, sink);
                }
            }
        }
        Ok(io)
    }

    fn opened<T>(&mut self, name: &str, opened: Result<T, FileError>, io: &Io) -> Result<T, ()> {
        opened.map_err(|error| self.print_error(io, &format!("{name}: {error}")))
    }
}

fn set(io: &mut Io, stream: u32, sink: Sink) {
    match stream {
        1 => io.out = sink,
        2 => io.err = sink,
        _ => {}
    }
}

/// How a loop continues after its body: `None` to continue, or the flow that ends it.
fn left(flow: Flow) -> Option<Flow> {
    match flow {
        Flow::Next | Flow::Continue(1) => None,
        Flow::Break(1) => Some(Flow::Next),
        Flow::Break(n) => Some(Flow::Break(n - 1)),
        Flow::Continue(n) => Some(Flow::Continue(n - 1)),
        flow => Some(flow),
    }
}
