//! Protobuf's wire format: tags, varints, lengths.

/// The value of a field on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Reads fields sequentially.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn varint(&mut self) -> Result<u64, &'static str> {
        let mut out = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or("unexpected EOF")?;
            self.rest = rest;
            out |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(out);
            }
        }
        Err("integer overflow")
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], &'static str> {
        let len = usize::try_from(len).map_err(|_| "negative length found during unmarshaling")?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("unexpected EOF")?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next field: its number and value.
    pub(super) fn field(&mut self) -> Result<Option<(u32, Scalar<'a>)>, &'static str> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| "illegal tag")?;
        if number == 0 {
            return Err("illegal tag 0");
        }
        let value = match tag & 7 {
            0 => Scalar::Varint(self.varint()?),
            1 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(self.take(8)?);
                Scalar::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => {
                let len = self.varint()?;
                Scalar::Bytes(self.take(len)?)
            }
            5 => {
                let mut bytes = [0; 4];
                bytes.copy_from_slice(self.take(4)?);
                Scalar::Fixed32(u32::from_le_bytes(bytes))
            }
            _ => return Err("illegal wireType"),
        };
        Ok(Some((number, value)))
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_integer(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

pub(super) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_length(out, number, value.len());
    out.extend_from_slice(value);
}

/// Begins a field of so many bytes.
pub(super) fn put_length(out: &mut Vec<u8>, number: u32, length: usize) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, length as u64);
}
