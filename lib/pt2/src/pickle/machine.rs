//! The stack machine: opcodes of protocols 2 to 5 that pickles of tensors use.
//!
//! Each opcode consumes at least one byte and makes at most one value, so time and memory are linear in the input.

use std::collections::HashMap;

use super::{Error, Global, Id, MAX_PICKLE_BYTES, Object, Pickle, Policy, Value, globals};

/// Elements that calls may copy for each byte of pickle, and in any case.
const COPIES_PER_BYTE: usize = 4;
const COPIES: usize = 4096;

/// Interprets a pickle.
///
/// # Errors
/// See [`Error`]; each names the byte of the opcode.
pub fn load(bytes: &[u8], policy: Policy) -> Result<Pickle<'_>, Error> {
    if bytes.len() > MAX_PICKLE_BYTES {
        return Err(Error::TooLarge { len: bytes.len() });
    }
    let mut machine = Machine {
        bytes,
        pos: 0,
        at: 0,
        policy,
        package: None,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        budget: bytes.len().saturating_mul(COPIES_PER_BYTE) + COPIES,
    };
    let root = machine.run()?;
    Ok(Pickle { values: machine.values, root })
}

pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Offset of the opcode at work, for errors.
    pub(super) at: usize,
    policy: Policy,
    /// The first package outside the allow-list that was named, under [`Policy::Subclass`].
    package: Option<&'a str>,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    /// How many elements calls may still copy: a call can name a long list again and again.
    budget: usize,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<Id, Error> {
        loop {
            self.at = self.pos;
            let code = self.take(1, "an opcode")?[0];
            match code {
                b'.' => return self.pop(),
                0x80 => self.protocol()?,
                0x95 => drop(self.take(8, "FRAME")?),
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop()?),
                b'N' | 0x88 | 0x89 | b'K' | b'M' | b'J' | 0x8a | b'G' => self.scalar(code)?,
                b'X' | 0x8c | 0x8d | b'U' | b'T' | b'C' | b'B' | 0x8e => self.text(code)?,
                b')' | b't' | 0x85..=0x87 => self.tuple(code)?,
                b']' => self.push(Value::List(Vec::new())),
                b'}' => self.push(Value::Dict(Vec::new())),
                b'a' | b'e' => self.append(code)?,
                b's' | b'u' => self.set_items(code)?,
                b'q' | b'r' | 0x94 => self.put(code)?,
                b'h' | b'j' => self.get(code)?,
                b'c' | 0x93 => self.global(code)?,
                b'Q' => self.persistent()?,
                b'R' => self.reduce()?,
                0x81 => self.new_object()?,
                b'b' => self.build()?,
                _ => return Err(Error::Opcode { at: self.at, code }),
            }
        }
    }

    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Error> {
        let end = self.pos.checked_add(len).ok_or(Error::Truncated { at: self.at, what })?;
        let bytes = self.bytes.get(self.pos..end).ok_or(Error::Truncated { at: self.at, what })?;
        self.pos = end;
        Ok(bytes)
    }

    /// A little-endian unsigned number of up to eight bytes.
    fn number(&mut self, len: usize) -> Result<u64, Error> {
        let bytes = self.take(len, "a number")?;
        Ok(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    pub(super) fn operand(&self, what: &'static str, found: impl Into<String>) -> Error {
        Error::Operand { at: self.at, what, found: found.into() }
    }

    /// Accounts for `count` elements that a call copies.
    pub(super) fn spend(&mut self, count: usize) -> Result<(), Error> {
        match self.budget.checked_sub(count) {
            Some(left) => self.budget = left,
            None => return Err(self.operand("calls that copy about as much as the pickle holds", "endless copies")),
        }
        Ok(())
    }

    pub(super) fn push(&mut self, value: Value<'a>) {
        // The input is at most 32 MiB and each value costs a byte, so the count fits.
        let id = Id(self.values.len() as u32);
        self.values.push(value);
        self.stack.push(id);
    }

    /// Takes the top of the stack, never reaching below the last mark.
    pub(super) fn pop(&mut self) -> Result<Id, Error> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(self.operand("a value on the stack", "an empty one"));
        }
        self.stack.pop().ok_or(Error::Truncated { at: self.at, what: "the stack" })
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>, Error> {
        let floor = self.marks.pop().ok_or_else(|| self.operand("a mark on the stack", "none"))?;
        Ok(self.stack.split_off(floor))
    }

    pub(super) fn value(&self, id: Id) -> &Value<'a> {
        self.values.get(id.0 as usize).unwrap_or(&Value::None)
    }

    fn top(&mut self) -> Result<&mut Value<'a>, Error> {
        let id = self.pop()?;
        self.stack.push(id);
        let at = self.at;
        self.values.get_mut(id.0 as usize).ok_or(Error::Truncated { at, what: "the stack" })
    }

    fn protocol(&mut self) -> Result<(), Error> {
        let version = self.number(1)?;
        if (2..=5).contains(&version) {
            return Ok(());
        }
        Err(self.operand("pickle protocol 2 to 5", version.to_string()))
    }

    fn scalar(&mut self, code: u8) -> Result<(), Error> {
        let value = match code {
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'K' => Value::Int(self.number(1)? as i64),
            b'M' => Value::Int(self.number(2)? as i64),
            b'J' => Value::Int(i64::from(self.number(4)? as u32 as i32)),
            0x8a => Value::Int(self.long()?),
            _ => {
                let bytes = self.take(8, "BINFLOAT")?;
                Value::Float(f64::from_be_bytes(bytes.try_into().expect("`take` gave eight bytes")))
            }
        };
        self.push(value);
        Ok(())
    }

    /// LONG1: a two's complement number of stated length.
    fn long(&mut self) -> Result<i64, Error> {
        let len = self.number(1)? as usize;
        if len > 8 {
            return Err(self.operand("an integer of at most 64 bits", format!("{len} bytes")));
        }
        let raw = self.number(len)?;
        let unused = 64 - 8 * len as u32;
        Ok(if len == 0 { 0 } else { ((raw << unused) as i64) >> unused })
    }

    fn text(&mut self, code: u8) -> Result<(), Error> {
        let width = match code {
            b'U' | b'C' | 0x8c => 1,
            b'X' | b'T' | b'B' => 4,
            _ => 8,
        };
        let len = self.number(width)?;
        let len = usize::try_from(len).map_err(|_| Error::Truncated { at: self.at, what: "a string" })?;
        let bytes = self.take(len, "a string")?;
        let value = match code {
            b'C' | b'B' | 0x8e => Value::Bytes(bytes),
            _ => Value::Str(std::str::from_utf8(bytes).map_err(|e| self.operand("UTF-8 text", e.to_string()))?),
        };
        self.push(value);
        Ok(())
    }

    fn tuple(&mut self, code: u8) -> Result<(), Error> {
        let items = match code {
            b')' => Vec::new(),
            b't' => self.pop_mark()?,
            _ => {
                let mut items = Vec::new();
                for _ in 0x85..=code {
                    items.push(self.pop()?);
                }
                items.reverse();
                items
            }
        };
        self.push(Value::Tuple(items));
        Ok(())
    }

    fn append(&mut self, code: u8) -> Result<(), Error> {
        let items = if code == b'e' { self.pop_mark()? } else { vec![self.pop()?] };
        if let Value::List(list) = self.top()? {
            list.extend(items);
            return Ok(());
        }
        Err(self.operand("a list to append to", "another value"))
    }

    fn set_items(&mut self, code: u8) -> Result<(), Error> {
        let items = if code == b'u' {
            self.pop_mark()?
        } else {
            let value = self.pop()?;
            vec![self.pop()?, value]
        };
        if items.len() % 2 != 0 {
            return Err(self.operand("keys and values in pairs", format!("{} values", items.len())));
        }
        if let Value::Dict(dict) = self.top()? {
            dict.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            return Ok(());
        }
        Err(self.operand("a dict to fill", "another value"))
    }

    fn put(&mut self, code: u8) -> Result<(), Error> {
        let slot = match code {
            b'q' => self.number(1)? as u32,
            b'r' => self.number(4)? as u32,
            _ => self.memo.len() as u32,
        };
        let id = self.pop()?;
        self.stack.push(id);
        self.memo.insert(slot, id);
        Ok(())
    }

    fn get(&mut self, code: u8) -> Result<(), Error> {
        let slot = self.number(if code == b'h' { 1 } else { 4 })? as u32;
        let id = *self.memo.get(&slot).ok_or_else(|| self.operand("a memo slot that was filled", slot.to_string()))?;
        self.stack.push(id);
        Ok(())
    }

    fn global(&mut self, code: u8) -> Result<(), Error> {
        let global = if code == b'c' {
            Global { module: self.line()?, name: self.line()? }
        } else {
            let (name, module) = (self.pop()?, self.pop()?);
            match (self.value(module), self.value(name)) {
                (Value::Str(module), Value::Str(name)) => Global { module, name },
                (module, _) => return Err(self.operand("two strings for a global", module.kind())),
            }
        };
        if !globals::is_plain(global) && !self.admit(global.module) {
            return Err(Error::Code { at: self.at, global: global.to_string() });
        }
        self.push(Value::Global(Box::new(global)));
        Ok(())
    }

    /// Under [`Policy::Subclass`], names of one package beyond the list are let in as inert words.
    fn admit(&mut self, module: &'a str) -> bool {
        let package = module.split('.').next().unwrap_or(module);
        let innocent =
            self.policy == Policy::Subclass && !matches!(package, "builtins" | "__builtin__" | "os" | "posix");
        innocent && *self.package.get_or_insert(package) == package
    }

    fn line(&mut self) -> Result<&'a str, Error> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let len = rest.iter().position(|&b| b == b'\n').ok_or(Error::Truncated { at: self.at, what: "GLOBAL" })?;
        let line = self.take(len + 1, "GLOBAL")?;
        std::str::from_utf8(&line[..len]).map_err(|e| self.operand("UTF-8 text", e.to_string()))
    }

    fn new_object(&mut self) -> Result<(), Error> {
        let (args, class) = (self.pop()?, self.pop()?);
        match (self.value(class), self.value(args)) {
            (Value::Global(class), Value::Tuple(_)) if !globals::is_plain(**class) => {
                let object = Object { class: **class, args, state: None };
                self.push(Value::Object(Box::new(object)));
                Ok(())
            }
            (Value::Global(class), _) => Err(Error::Code { at: self.at, global: class.to_string() }),
            (other, _) => Err(self.operand("a class to make an object of", other.kind())),
        }
    }

    /// BUILD sets attributes. Those of an `OrderedDict` (`_metadata` of a state dict) say nothing about tensors.
    fn build(&mut self) -> Result<(), Error> {
        let state = self.pop()?;
        match self.top()? {
            Value::Dict(_) => Ok(()),
            Value::Object(object) => {
                object.state = Some(state);
                Ok(())
            }
            _ => Err(self.operand("a dict or an object to set attributes of", "another value")),
        }
    }
}
