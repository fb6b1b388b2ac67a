//! Tokens, and sets of them as error messages list them.

use std::fmt;

/// A kind of token, in the order in which messages list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tok {
    Eof,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LBracket,
    RBracket,
    LBrace,
    RBrace,
    LParen,
    RParen,
    Dot,
    Comma,
    Minus,
    Exclam,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscIdent,
}

const NAMES: [(Tok, &str); 36] = [
    (Tok::Eof, "<EOF>"),
    (Tok::Equals, "'=='"),
    (Tok::NotEquals, "'!='"),
    (Tok::In, "'in'"),
    (Tok::Less, "'<'"),
    (Tok::LessEquals, "'<='"),
    (Tok::GreaterEquals, "'>='"),
    (Tok::Greater, "'>'"),
    (Tok::And, "'&&'"),
    (Tok::Or, "'||'"),
    (Tok::LBracket, "'['"),
    (Tok::RBracket, "']'"),
    (Tok::LBrace, "'{'"),
    (Tok::RBrace, "'}'"),
    (Tok::LParen, "'('"),
    (Tok::RParen, "')'"),
    (Tok::Dot, "'.'"),
    (Tok::Comma, "','"),
    (Tok::Minus, "'-'"),
    (Tok::Exclam, "'!'"),
    (Tok::Question, "'?'"),
    (Tok::Colon, "':'"),
    (Tok::Plus, "'+'"),
    (Tok::Star, "'*'"),
    (Tok::Slash, "'/'"),
    (Tok::Percent, "'%'"),
    (Tok::True, "'true'"),
    (Tok::False, "'false'"),
    (Tok::Null, "'null'"),
    (Tok::Float, "NUM_FLOAT"),
    (Tok::Int, "NUM_INT"),
    (Tok::Uint, "NUM_UINT"),
    (Tok::String, "STRING"),
    (Tok::Bytes, "BYTES"),
    (Tok::Ident, "IDENTIFIER"),
    (Tok::EscIdent, "ESC_IDENTIFIER"),
];

/// A token and where its text is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Tok,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A set of token kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokSet(u64);

impl TokSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) const fn of(kinds: &[Tok]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < kinds.len() {
            bits |= 1 << kinds[i] as u8;
            i += 1;
        }
        Self(bits)
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn contains(self, kind: Tok) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl fmt::Display for TokSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            NAMES.iter().filter(|(kind, _)| self.contains(*kind)).map(|(_, name)| *name).collect();
        match names.as_slice() {
            [name] => f.write_str(name),
            names => write!(f, "{{{}}}", names.join(", ")),
        }
    }
}

/// What an operand can start with.
pub(crate) const OPERAND: TokSet = TokSet::of(&[
    Tok::LBracket,
    Tok::LBrace,
    Tok::LParen,
    Tok::Dot,
    Tok::Minus,
    Tok::Exclam,
    Tok::True,
    Tok::False,
    Tok::Null,
    Tok::Float,
    Tok::Int,
    Tok::Uint,
    Tok::String,
    Tok::Bytes,
    Tok::Ident,
]);
