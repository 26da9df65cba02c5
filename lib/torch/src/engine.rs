//! Calls of operators by name and overload, through PyTorch's own dispatcher: no operator has a rule here.

#![allow(unsafe_code, reason = "a foreign binding; every block says why it is sound")]

use crate::error::Error;
use crate::ffi::{self, Api, Autocast, RawValue, Tag};
use crate::tensor::{Tensor, code};
use crate::value::Value;
use m2m_record::DType;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::rc::Rc;

/// libtorch, ready on this thread.
pub struct Engine {
    api: &'static Api,
    operators: RefCell<HashMap<String, Option<Rc<Operator>>>>,
    /// Gradients are off on the thread that started it only, so it stays there.
    stays: PhantomData<*const ()>,
}

/// An operator of the dispatcher.
pub struct Operator {
    raw: *mut c_void,
    api: &'static Api,
    arguments: Vec<String>,
}

/// Memory of arguments while a call lasts, kept for the next one.
#[derive(Default)]
pub struct Scratch {
    arguments: Vec<RawValue>,
    lists: Vec<Box<[RawValue]>>,
}

impl Engine {
    /// Loads libtorch, if this process has not yet, and turns gradients off. Uses so many threads, or as many as it likes.
    pub fn start(threads: Option<usize>) -> Result<Engine, Error> {
        let api = ffi::load()?;
        let threads = threads.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
        // SAFETY: the function takes any number.
        unsafe { (api.start)(threads) };
        Ok(Engine { api, operators: RefCell::default(), stays: PhantomData })
    }

    /// Seeds the generator of random operators.
    pub fn seed(&self, seed: u64) -> Result<(), Error> {
        // SAFETY: the function takes any number.
        if unsafe { (self.api.seed)(seed) } == 0 { Ok(()) } else { Err(self.api.failure()) }
    }

    /// The operator of a record's name, `aten.add.Tensor`; none where the dispatcher lacks it.
    pub fn operator(&self, op: &str) -> Option<Rc<Operator>> {
        if let Some(known) = self.operators.borrow().get(op) {
            return known.clone();
        }
        let found = self.find(op).map(Rc::new);
        self.operators.borrow_mut().insert(op.to_owned(), found.clone());
        found
    }

    fn find(&self, op: &str) -> Option<Operator> {
        let (name, overload) = op.rsplit_once('.')?;
        let (namespace, name) = name.split_once('.')?;
        let name = CString::new(format!("{namespace}::{name}")).ok()?;
        let overload = CString::new(if overload == "default" { "" } else { overload }).ok()?;
        // SAFETY: both are strings that end.
        let raw = unsafe { (self.api.find)(name.as_ptr(), overload.as_ptr()) };
        if raw.is_null() {
            return None;
        }
        // SAFETY: the handle is valid from here on.
        let count = unsafe { (self.api.argument_count)(raw) };
        let argument = |k| self.api.text(|length| unsafe { (self.api.argument_name)(raw, k, length) });
        Some(Operator { raw, api: self.api, arguments: (0..count).map(argument).collect() })
    }

    /// Names of all operators, `aten.add.Tensor`, sorted.
    pub fn operators(&self) -> Vec<String> {
        // SAFETY: the function takes only the place for the length.
        let text = self.api.text(|length| unsafe { (self.api.operators)(length) });
        let mut names: Vec<String> = text.lines().map(|line| line.replacen("::", ".", 1)).collect();
        names.sort();
        names
    }

    /// Calls an operator that must be there, with all or the first of its arguments; its results, one a return.
    pub fn call(&self, op: &str, arguments: &[Value]) -> Result<Vec<Value>, Error> {
        let operator = self.operator(op).ok_or_else(|| Error::value(format!("libtorch has no operator {op}")))?;
        let mut results = Vec::new();
        Scratch::default().call(&operator, &mut results, |scratch, raws| {
            raws.extend(arguments.iter().map(|value| scratch.value(value)));
            Ok(())
        })?;
        Ok(results)
    }

    /// The only result of a call, which must be a tensor.
    pub fn tensor(&self, op: &str, arguments: &[Value]) -> Result<Tensor, Error> {
        match self.call(op, arguments)?.pop() {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            other => Err(Error::value(format!("{op} gave {other:?}; expected a tensor"))),
        }
    }

    /// A new tensor with these row-major little-endian elements.
    pub fn copied(&self, dtype: DType, shape: &[i64], bytes: &[u8]) -> Result<Tensor, Error> {
        Tensor::copied(self.api, dtype, shape, bytes)
    }

    /// A tensor over memory that it does not own.
    ///
    /// # Safety
    /// As for `Tensor::over`.
    pub(crate) unsafe fn over(
        &self,
        at: *mut u8,
        dtype: DType,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Tensor, Error> {
        // SAFETY: the caller vouches for it.
        unsafe { Tensor::over(self.api, at, dtype, shape, strides) }
    }

    /// Runs `body` with autocast as a region of the graph states it.
    pub fn with_autocast<T>(
        &self,
        device: &str,
        dtype: Option<DType>,
        is_enabled: bool,
        is_cached: bool,
        body: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let name = CString::new(device).map_err(|_| Error::value(format!("device {device:?}")))?;
        let dtype = dtype.map_or(Ok(-1), code)?;
        let mut saved = Autocast::default();
        // SAFETY: the name ends, and the struct is the shim's.
        if unsafe { (self.api.autocast_enter)(name.as_ptr(), dtype, is_enabled.into(), is_cached.into(), &mut saved) }
            != 0
        {
            return Err(self.api.failure());
        }
        let result = body();
        // SAFETY: the struct is what the shim filled.
        unsafe { (self.api.autocast_exit)(&saved) };
        result
    }
}

impl Scratch {
    /// Calls an operator with the arguments that `fill` appends; absent ones take their defaults. Appends its results, one a
    /// return.
    pub fn call(
        &mut self,
        operator: &Operator,
        results: &mut Vec<Value>,
        fill: impl FnOnce(&mut Scratch, &mut Vec<RawValue>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.lists.clear();
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.clear();
        let called = fill(self, &mut arguments).and_then(|()| operator.call(&arguments, results));
        self.arguments = arguments;
        called
    }

    /// A list that lasts until the next call.
    pub fn list(&mut self, items: Vec<RawValue>) -> RawValue {
        let items = items.into_boxed_slice();
        let raw = RawValue { pointer: items.as_ptr().cast(), count: items.len(), ..RawValue::of(Tag::List) };
        self.lists.push(items);
        raw
    }

    /// The same of one that may be absent.
    pub fn given(&mut self, value: Option<&Value>) -> RawValue {
        value.map_or(RawValue::of(Tag::Absent), |value| self.value(value))
    }

    /// A value as it is given to a call; it must outlive the call.
    pub fn value(&mut self, value: &Value) -> RawValue {
        match value {
            Value::None => RawValue::of(Tag::None),
            Value::Bool(b) => RawValue { integer: (*b).into(), ..RawValue::of(Tag::Bool) },
            Value::Int(n) => RawValue { integer: *n, ..RawValue::of(Tag::Int) },
            Value::Float(x) => RawValue { real: *x, ..RawValue::of(Tag::Float) },
            Value::Complex(re, im) => RawValue { real: *re, imaginary: *im, ..RawValue::of(Tag::Complex) },
            Value::Str(s) => RawValue { pointer: s.as_ptr().cast(), count: s.len(), ..RawValue::of(Tag::Str) },
            Value::Tensor(t) => RawValue { pointer: t.raw(), ..RawValue::of(Tag::Tensor) },
            Value::List(items) => {
                let items = items.iter().map(|item| self.value(item)).collect();
                self.list(items)
            }
        }
    }
}

impl Operator {
    /// The names of its arguments.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Its schema in PyTorch's text.
    pub fn schema(&self) -> String {
        // SAFETY: the handle is valid.
        self.api.text(|length| unsafe { (self.api.schema)(self.raw, length) })
    }

    /// Calls it and appends its results.
    fn call(&self, arguments: &[RawValue], results: &mut Vec<Value>) -> Result<(), Error> {
        let (mut given, mut count) = (std::ptr::null(), 0);
        // SAFETY: the arguments and what they point to live until the call returns; the shim checks their kinds.
        let called = unsafe { (self.api.call)(self.raw, arguments.as_ptr(), arguments.len(), &mut given, &mut count) };
        let mut failed = None;
        for k in 0..count {
            // SAFETY: the shim returned so many values, which stay until the next call. All are taken, so that none leaks.
            match taken(unsafe { &*given.add(k) }, self.api) {
                Ok(value) => results.push(value),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(error),
            None if called == 0 => Ok(()),
            None => Err(self.api.failure()),
        }
    }
}

/// A result, whose tensors become the caller's.
fn taken(raw: &RawValue, api: &'static Api) -> Result<Value, Error> {
    const TAGS: [Tag; 9] =
        [Tag::Absent, Tag::None, Tag::Tensor, Tag::Int, Tag::Float, Tag::Bool, Tag::Str, Tag::List, Tag::Complex];
    let tag = usize::try_from(raw.tag).ok().and_then(|tag| TAGS.get(tag)).unwrap_or(&Tag::None);
    Ok(match tag {
        Tag::Absent | Tag::None => Value::None,
        Tag::Tensor => Value::Tensor(Tensor::owned(raw.pointer.cast_mut(), api)?),
        Tag::Int => Value::Int(raw.integer),
        Tag::Float => Value::Float(raw.real),
        Tag::Bool => Value::Bool(raw.integer != 0),
        Tag::Complex => Value::Complex(raw.real, raw.imaginary),
        Tag::Str => {
            // SAFETY: the shim keeps so many bytes until the next call.
            let bytes = if raw.count == 0 {
                &[][..]
            } else {
                unsafe { std::slice::from_raw_parts(raw.pointer.cast(), raw.count) }
            };
            Value::Str(String::from_utf8_lossy(bytes).into_owned())
        }
        Tag::List => {
            let items = raw.pointer.cast::<RawValue>();
            // SAFETY: the shim keeps so many values until the next call.
            Value::List((0..raw.count).map(|k| taken(unsafe { &*items.add(k) }, api)).collect::<Result<_, _>>()?)
        }
    })
}
