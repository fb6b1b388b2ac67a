//! `cargo xtask picture`: draws `capstan demo` on a terminal as a picture for the README.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::bed::{Workdir, capstan};
use crate::first_use::demo::{Cell, Demo, Screen};

/// Columns of the terminal, and size of a character.
const COLUMNS: usize = 132;
const WIDTH: f64 = 8.0;
const HEIGHT: f64 = 17.0;
const MARGIN: f64 = 14.0;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// File to write
    #[arg(long, default_value = "docs/demo.svg")]
    to: PathBuf,
    /// Draw the picture when the screen contains this text
    #[arg(long, default_value = "▸ Workers")]
    when: String,
}

/// Runs a demo until the screen contains the text, and draws it.
pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("picture")?;
    let mut demo = Demo::new(&workdir.folder("demo")?, &binary)?;
    let mut terminal = demo.on_a_terminal(COLUMNS)?;
    terminal.shows(&options.when).await?;
    let screen = terminal.screen()?;
    terminal.interrupt().await?;
    let to = crate::cargo::root().join(&options.to);
    std::fs::write(&to, svg("capstan demo", &screen))?;
    println!("{}", to.display());
    workdir.passed();
    Ok(())
}

/// The screen from the tree on, below the command.
fn svg(command: &str, screen: &Screen) -> String {
    let from = screen.lines.iter().position(|line| text(line).starts_with("Cluster/")).unwrap_or_default();
    let drawn: Vec<&Vec<Cell>> = screen.lines[from..].iter().filter(|line| !line.is_empty()).collect();
    let (width, height) =
        (WIDTH * COLUMNS as f64 + 2.0 * MARGIN, HEIGHT * (drawn.len() + 2) as f64 + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{command} on a terminal\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1f27\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d5dae3\" \
         xml:space=\"preserve\">\n"
    );
    let _ = writeln!(
        out,
        "{}",
        row(0, &format!("<tspan fill=\"#8a93a3\">$ </tspan>{command}"), command.len() + 2)
    );
    for (at, line) in drawn.iter().enumerate() {
        let mut spans = String::new();
        for run in line.chunk_by(|a, b| a.colour == b.colour) {
            let _ = match run[0].colour.and_then(colour) {
                Some(fill) => write!(spans, "<tspan fill=\"{fill}\">{}</tspan>", escaped(run)),
                None => write!(spans, "{}", escaped(run)),
            };
        }
        let _ = writeln!(out, "{}", row(at + 2, &spans, line.len()));
    }
    out + "</g>\n</svg>\n"
}

/// A line with an explicit width, since fonts differ.
fn row(at: usize, spans: &str, characters: usize) -> String {
    let (y, length) = (MARGIN + HEIGHT * (at + 1) as f64 - 4.0, WIDTH * characters as f64);
    format!("<text x=\"{MARGIN}\" y=\"{y}\" textLength=\"{length}\">{spans}</text>")
}

fn text(line: &[Cell]) -> String {
    line.iter().map(|cell| cell.character).collect()
}

fn escaped(cells: &[Cell]) -> String {
    text(cells).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn colour(number: u8) -> Option<&'static str> {
    match number {
        31 => Some("#f0717a"),
        32 => Some("#8fd18a"),
        33 => Some("#e8c06c"),
        90 => Some("#8a93a3"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_becomes_a_picture_with_its_colours() {
        let screen = Screen::of("talk\r\nCluster/demo  \u{1b}[32mReady <1s\u{1b}[0m\r\n").unwrap();
        let picture = svg("capstan demo", &screen);
        assert!(picture.contains("<tspan fill=\"#8fd18a\">Ready &lt;1s</tspan>"), "{picture}");
        assert!(!picture.contains("talk"), "{picture}");
    }
}
