//! Emulates a terminal with only the control sequences that our programs use. Any other is an error, so that a
//! program that needs more is noticed.

use anyhow::{Result, bail};

/// A character and its colour, as the number of its control sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub character: char,
    pub colour: Option<u8>,
}

/// Lines from the top, including those that have scrolled out.
#[derive(Debug, Default)]
pub struct Screen {
    pub lines: Vec<Vec<Cell>>,
    row: usize,
    column: usize,
    colour: Option<u8>,
}

impl Screen {
    /// The screen after `text` was written to it.
    pub fn of(text: &str) -> Result<Self> {
        let mut screen = Self { lines: vec![Vec::new()], ..Self::default() };
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\r' => screen.column = 0,
                '\n' => screen.down(),
                '\u{1b}' => screen.control(&mut characters)?,
                // Terminals echo Ctrl-C; the bell is ignored.
                '\u{7}' => {}
                other if other.is_control() => bail!("the control character {other:?}"),
                other => screen.put(other),
            }
        }
        Ok(screen)
    }

    /// The content without colours.
    pub fn text(&self) -> String {
        let line = |line: &Vec<Cell>| line.iter().map(|cell| cell.character).collect::<String>();
        self.lines.iter().map(|cells| line(cells).trim_end().to_owned() + "\n").collect()
    }

    fn put(&mut self, character: char) {
        let line = &mut self.lines[self.row];
        while line.len() <= self.column {
            line.push(Cell { character: ' ', colour: None });
        }
        line[self.column] = Cell { character, colour: self.colour };
        self.column += 1;
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Vec::new());
        }
    }

    fn control(&mut self, characters: &mut std::str::Chars<'_>) -> Result<()> {
        let opened = characters.next();
        let mut arguments = String::new();
        let end = loop {
            match characters.next() {
                Some(digit @ ('0'..='9' | ';')) => arguments.push(digit),
                Some(end) => break end,
                // The sequence is incomplete so far.
                None => return Ok(()),
            }
        };
        match (opened, end, arguments.parse::<u8>().unwrap_or(1)) {
            (Some('['), 'A', lines) => self.row = self.row.saturating_sub(lines.into()),
            (Some('['), 'J', _) if arguments.is_empty() => {
                self.lines[self.row].truncate(self.column);
                self.lines.truncate(self.row + 1);
            }
            (Some('['), 'm', _) if arguments.is_empty() || arguments == "0" => self.colour = None,
            (Some('['), 'm', colour @ (30..=37 | 90..=97)) => self.colour = Some(colour),
            _ => bail!("the control sequence ESC {opened:?} {arguments} {end}"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_redrawn_in_place_appears_once() {
        let screen =
            Screen::of("head\r\n\u{1b}[33mone\u{1b}[0m\r\ntwo\r\n\u{1b}[2A\u{1b}[Jonce\r\n").unwrap();
        assert_eq!(screen.text(), "head\nonce\n\n");
        let coloured = Screen::of("\u{1b}[32mok\u{1b}[0m!").unwrap();
        let colours: Vec<_> = coloured.lines[0].iter().map(|cell| cell.colour).collect();
        assert_eq!(colours, [Some(32), Some(32), None]);
    }

    #[test]
    fn unknown_sequences_are_errors_and_incomplete_ones_are_not() {
        assert!(Screen::of("\u{1b}[2J").is_err());
        assert!(Screen::of("\u{1b}[5").is_ok());
    }
}
