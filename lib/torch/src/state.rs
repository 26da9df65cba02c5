//! Parameters, buffers and constants as tensors over the files that hold them.
//!
//! Files are mapped privately: no byte is copied, a write in place copies only the pages that it touches and never
//! reaches the file, and tensors that share bytes in the file share them here. Bytes that libtorch cannot use where they
//! are (misaligned or big-endian ones) are copied, those of one storage together.

#![allow(unsafe_code, reason = "tensors over mapped memory; every block says why it is sound")]

use crate::engine::Engine;
use crate::error::Error;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::{Data, File, Input, InputRole, Type};
use m2m_tensor::source::{Files, View};
use std::collections::HashMap;
use std::path::Path;

/// Gives the tensor of a name, for state that the stream lacks.
pub type Supply<'a> = dyn Fn(&str) -> Result<Option<Tensor>, Error> + 'a;

/// The state of a program, in memory that lives as long as this.
///
/// Tensors are dropped before the memory, since fields are dropped in their order; whoever clones one out keeps this.
pub struct State {
    tensors: HashMap<String, Tensor>,
    blocks: HashMap<(String, u64), Block>,
    files: Files,
}

/// A copy of a storage's bytes, aligned for every dtype.
struct Block {
    words: Vec<u128>,
    start: u64,
}

/// One piece of state: the name of its value or tensor, its type, its data.
pub struct Piece<'a> {
    /// Unique among the pieces.
    pub name: &'a str,
    /// What an error calls it.
    pub shown: &'a str,
    /// Its type.
    pub ty: &'a Type,
    /// Where it is.
    pub data: &'a Data,
}

impl<'a> Piece<'a> {
    /// The state of an input; none for inputs that users give, and for those whose tensors are records of their own.
    pub fn of(input: &'a Input) -> Option<Piece<'a>> {
        let is_state = matches!(input.role, InputRole::Parameter | InputRole::Buffer | InputRole::TensorConstant);
        let data = input.data.as_ref().filter(|_| is_state)?;
        let shown = input.target.as_deref().unwrap_or(&input.value);
        Some(Piece { name: &input.value, shown, ty: &input.ty, data })
    }

    fn wrong(&self, message: impl ToString) -> Error {
        Error::Input { name: self.shown.to_owned(), message: message.to_string() }
    }

    fn shape(&self) -> Result<(m2m_record::DType, Vec<i64>), Error> {
        let tensor = self.ty.as_tensor().ok_or_else(|| self.wrong("state that is not a tensor"))?;
        let shape = tensor.static_shape().ok_or_else(|| self.wrong("state with a symbolic shape"))?;
        Ok((tensor.dtype, shape))
    }

    fn view<'f>(&self, files: &'f Files) -> Result<View<'f>, Error> {
        let (dtype, shape) = self.shape()?;
        files.view(self.data, dtype, &shape).map_err(|error| self.wrong(error))
    }
}

impl State {
    /// Makes tensors of all pieces. `supply` is asked for those whose data is missing.
    pub fn load(
        engine: &Engine,
        pieces: &[Piece<'_>],
        files: &[&File],
        root: Option<&Path>,
        supply: &Supply<'_>,
    ) -> Result<State, Error> {
        let mut state = State { tensors: HashMap::new(), blocks: HashMap::new(), files: Files::private() };
        open(&mut state.files, pieces, files, root)?;
        for piece in pieces {
            let tensor = match piece.data {
                Data::Missing => supply(piece.shown)?.ok_or_else(|| piece.wrong(m2m_tensor::source::Error::Missing))?,
                _ => state.tensor(engine, piece, pieces)?,
            };
            state.tensors.insert(piece.name.to_owned(), tensor);
        }
        Ok(state)
    }

    /// The tensor of a piece.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.tensors.get(name).map(Value::from)
    }

    fn tensor(&mut self, engine: &Engine, piece: &Piece<'_>, pieces: &[Piece<'_>]) -> Result<Tensor, Error> {
        let (dtype, shape) = piece.shape()?;
        let align = (dtype.size().unwrap_or(1) as usize).min(8);
        let view = piece.view(&self.files)?;
        let place = view.pointer().map(|pointer| (pointer, view.strides().to_vec()));
        match place {
            Some((pointer, strides)) if pointer.addr() % align == 0 => {
                // SAFETY: the view checked that all elements lie inside the private mapping, which outlives the tensor.
                unsafe { engine.over(pointer, dtype, &shape, &strides) }
            }
            Some((_, strides)) if storage(piece.data).is_some() => {
                let pointer = self.copied(piece, pieces)?;
                if pointer.addr() % align != 0 {
                    let bytes =
                        piece.view(&self.files)?.to_contiguous().map_err(|error| piece.wrong(error))?.into_owned();
                    return engine.copied(dtype, &shape, &bytes);
                }
                // SAFETY: the block holds the whole range of the piece, is never resized, and outlives the tensor.
                unsafe { engine.over(pointer, dtype, &shape, &strides) }
            }
            _ => {
                let bytes = view.to_contiguous().map_err(|error| piece.wrong(error))?;
                engine.copied(dtype, &shape, &bytes)
            }
        }
    }

    /// Where a piece lies in the copy of its storage, which is made when it is first asked for.
    fn copied(&mut self, piece: &Piece<'_>, pieces: &[Piece<'_>]) -> Result<*mut u8, Error> {
        let (key, offset, length) = storage(piece.data).ok_or_else(|| piece.wrong("data without a storage"))?;
        if !self.blocks.contains_key(&key) {
            let ranges = pieces.iter().filter_map(|other| storage(other.data)).filter(|(other, ..)| *other == key);
            let (start, end) = ranges.fold((offset, offset + length), |(start, end), (_, at, len)| {
                (start.min(at), end.max(at.saturating_add(len)))
            });
            let words = vec![0u128; usize::try_from((end - start).div_ceil(16)).unwrap_or(0)];
            self.blocks.insert(key.clone(), Block { words, start });
        }
        let Some(block) = self.blocks.get_mut(&key) else { return Err(piece.wrong("no block")) };
        let bytes = piece.view(&self.files)?.raw().to_vec();
        let at = usize::try_from(offset - block.start).unwrap_or(usize::MAX);
        if at.saturating_add(bytes.len()) > block.words.len() * 16 {
            return Err(piece.wrong("data outside of its storage"));
        }
        // SAFETY: the range was just checked against the block's size.
        unsafe {
            let target = block.words.as_mut_ptr().cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
            Ok(target)
        }
    }
}

/// Opens the files that pieces need.
fn open(opened: &mut Files, pieces: &[Piece<'_>], files: &[&File], root: Option<&Path>) -> Result<(), Error> {
    let mut done: Vec<&str> = Vec::new();
    for piece in pieces {
        let (Data::Tensor { file: id, .. } | Data::Range { file: id, .. }) = piece.data else { continue };
        if done.contains(&id.as_str()) {
            continue;
        }
        let file = files.iter().find(|file| file.id == *id);
        let file =
            file.ok_or_else(|| piece.wrong(format!("its data names file {id:?}, which no file record introduces")))?;
        opened.open(file, root).map_err(|error| piece.wrong(error))?;
        done.push(id);
    }
    Ok(())
}

/// The storage that data is part of, its offset in the file and its length.
fn storage(data: &Data) -> Option<((String, u64), u64, u64)> {
    match data {
        Data::Range { file, offset, bytes, storage: Some(storage), .. } => {
            Some(((file.clone(), *storage), *offset, *bytes))
        }
        _ => None,
    }
}

/// The bytes that pieces had before the program ran.
pub struct Original {
    files: Files,
}

impl Original {
    /// Opens the files again, apart from the mappings that the program may have written to.
    pub fn open(pieces: &[Piece<'_>], files: &[&File], root: Option<&Path>) -> Result<Original, Error> {
        let mut original = Original { files: Files::new() };
        open(&mut original.files, pieces, files, root)?;
        Ok(original)
    }

    /// Row-major little-endian bytes of a piece; none where its data was supplied from elsewhere.
    pub fn bytes(&self, piece: &Piece<'_>) -> Result<Option<Vec<u8>>, Error> {
        if *piece.data == Data::Missing {
            return Ok(None);
        }
        let bytes = piece.view(&self.files)?.to_contiguous().map_err(|error| piece.wrong(error))?.into_owned();
        Ok(Some(bytes))
    }
}
