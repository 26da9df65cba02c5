//! A position in bytecode, and its numbers.

/// Something could not be read: where, and why.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    pub at: usize,
    pub message: String,
}

pub(super) type Read<T> = Result<T, Wrong>;

/// A part of the file that is read from front to back. Positions are those of the whole file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    file: &'a [u8],
    pub at: usize,
    pub end: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(file: &'a [u8]) -> Self {
        Cursor { file, at: 0, end: file.len() }
    }

    pub fn wrong<T>(&self, message: impl Into<String>) -> Read<T> {
        Err(Wrong { at: self.at, message: message.into() })
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// Bytes that are left.
    pub fn len(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    pub fn byte(&mut self) -> Read<u8> {
        match self.file.get(self.at).filter(|_| self.at < self.end) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => self.wrong("the bytes end here"),
        }
    }

    /// The next `count` bytes as a part of their own.
    pub fn part(&mut self, count: u64) -> Read<Cursor<'a>> {
        match usize::try_from(count).ok().filter(|count| *count <= self.len()) {
            Some(count) => {
                let part = Cursor { file: self.file, at: self.at, end: self.at + count };
                self.at += count;
                Ok(part)
            }
            None => self.wrong(format!("{count} bytes are to follow and {} are left", self.len())),
        }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.file.get(self.at..self.end).unwrap_or_default()
    }

    /// A number of up to 64 bits: the low bits of its first byte say how many bytes it has.
    pub fn varint(&mut self) -> Read<u64> {
        let first = self.byte()?;
        if first & 1 == 1 {
            return Ok(u64::from(first >> 1));
        }
        let more = if first == 0 { 8 } else { first.trailing_zeros() as usize };
        let mut value = if first == 0 { 0 } else { u64::from(first) };
        let shift = if first == 0 { 0 } else { 8 };
        for place in 0..more {
            value |= u64::from(self.byte()?) << (shift + 8 * place);
        }
        Ok(if first == 0 { value } else { value >> (more + 1) })
    }

    /// A number whose lowest bit is a flag.
    pub fn flagged(&mut self) -> Read<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// A signed number: its magnitude's bits shifted by one, the sign lowest.
    pub fn signed(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A count of things of which each takes a byte or more.
    pub fn count(&mut self) -> Read<usize> {
        let count = self.varint()?;
        match usize::try_from(count).ok().filter(|count| *count <= self.len()) {
            Some(count) => Ok(count),
            None => self.wrong(format!("{count} entries in {} bytes", self.len())),
        }
    }

    /// A string that ends in a zero byte.
    pub fn terminated(&mut self) -> Read<&'a str> {
        let rest = self.bytes();
        let Some(length) = rest.iter().position(|byte| *byte == 0) else {
            return self.wrong("a string without its end");
        };
        let text = std::str::from_utf8(rest.get(..length).unwrap_or_default());
        match text {
            Ok(text) => {
                self.at += length + 1;
                Ok(text)
            }
            Err(_) => self.wrong("a string that is not UTF-8"),
        }
    }

    /// A section: its number and its content.
    pub fn section(&mut self) -> Read<(u8, Cursor<'a>)> {
        let id = self.byte()?;
        let length = self.varint()?;
        if id & 0x80 != 0 {
            let alignment = self.varint()?;
            if !alignment.is_power_of_two() || alignment > 1 << 20 {
                return self.wrong(format!("a section aligned to {alignment} bytes"));
            }
            while !(self.at as u64).is_multiple_of(alignment) {
                if self.byte()? != 0xCB {
                    return self.wrong("padding before a section is not 0xCB");
                }
            }
        }
        Ok((id & 0x7F, self.part(length)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_every_width() {
        let read = |bytes: &[u8]| Cursor::new(bytes).varint().map_err(|wrong| wrong.message);
        assert_eq!(read(&[0x01]), Ok(0));
        assert_eq!(read(&[0xFF]), Ok(127));
        assert_eq!(read(&[0x02, 0x02]), Ok(128));
        assert_eq!(read(&[0xFE, 0xFF]), Ok(16383));
        assert_eq!(read(&[0x00, 1, 2, 3, 4, 5, 6, 7, 8]), Ok(0x0807_0605_0403_0201));
        assert_eq!(read(&[0x80, 1, 0, 0, 0, 0, 0, 0]), Ok(1));
        assert!(read(&[0x02]).is_err());
        let signed = |bytes: &[u8]| Cursor::new(bytes).signed().map_err(|wrong| wrong.message);
        assert_eq!(signed(&[0x03]), Ok(-1));
        assert_eq!(signed(&[0x05]), Ok(1));
        assert_eq!(signed(&[0, 255, 255, 255, 255, 255, 255, 255, 255]), Ok(i64::MIN));
    }
}
