//! The bytes behind a record's `data`: files of the stream, mapped once, and views into them.
//!
//! A range inside a `.pt2` is checked against its archive entry's CRC the first time that a byte of that entry is
//! asked for, so that whoever reads weights finds a flipped bit.

use crate::layout;
use crate::map::MappedFile;
use crate::safetensors::Header;
use m2m_record::{ByteOrder, DType, Data, File, Scalar};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

/// Why a tensor's bytes cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened.
    #[error("{path}: {error}")]
    Open {
        /// Its path.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A file is not the one that the stream names.
    #[error("{path}: {found} bytes; the stream says {expected}, so this is another file")]
    Changed {
        /// Its path.
        path: String,
        /// Its size.
        found: u64,
        /// The size in the `file` record.
        expected: u64,
    },
    /// Data names a file that no record introduced.
    #[error("data names file {0:?}, which no file record introduces")]
    UnknownFile(String),
    /// A file is damaged or not of its format.
    #[error("{path}: {message}")]
    Format {
        /// Its path.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// Type and data disagree.
    #[error("{0}")]
    Mismatch(String),
    /// The program came without this tensor.
    #[error("the program came without this tensor's data; supply it")]
    Missing,
    /// Writing failed.
    #[error("{0}")]
    Write(#[from] io::Error),
}

/// A mapped file with what has been learned of it.
struct Source {
    path: String,
    map: MappedFile,
    is_archive: bool,
    header: OnceCell<Header>,
    entries: OnceCell<Vec<m2m_zip::Entry>>,
    checked: RefCell<HashSet<u64>>,
}

/// The files of one stream.
#[derive(Default)]
pub struct Files {
    sources: HashMap<String, Source>,
    is_private: bool,
}

/// A tensor's elements in a mapped file or in memory.
pub struct View<'a> {
    dtype: DType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    swap: bool,
    bytes: Cow<'a, [u8]>,
    pointer: Option<*mut u8>,
}

impl Files {
    /// No files yet.
    pub fn new() -> Self {
        Files::default()
    }

    /// No files yet; those that are opened are mapped so that foreign code may write to the mapping.
    pub fn private() -> Self {
        Files { is_private: true, ..Files::default() }
    }

    /// Maps the file of a record; a later one with the same id replaces it. `root` is what relative paths are relative
    /// to, the working directory if none.
    pub fn open(&mut self, file: &File, root: Option<&Path>) -> Result<(), Error> {
        let path = root.map_or_else(|| Path::new(&file.path).to_owned(), |root| root.join(&file.path));
        let shown = path.display().to_string();
        let open = if self.is_private { MappedFile::open_private } else { MappedFile::open };
        let map = open(&path).map_err(|error| Error::Open { path: shown.clone(), error })?;
        if map.bytes().len() as u64 != file.bytes {
            return Err(Error::Changed { path: shown, found: map.bytes().len() as u64, expected: file.bytes });
        }
        let is_archive = file.format == "pt2";
        let (header, entries, checked) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        let source = Source { path: shown, map, is_archive, header, entries, checked };
        self.sources.insert(file.id.clone(), source);
        Ok(())
    }

    /// The elements of a tensor of static `shape`. Contents of archives are checked first.
    pub fn view(&self, data: &Data, dtype: DType, shape: &[i64]) -> Result<View<'_>, Error> {
        let strides = layout::contiguous_strides(shape)
            .filter(|_| layout::bytes(dtype, shape).is_some())
            .ok_or_else(|| Error::Mismatch(format!("{dtype} {shape:?} is too large")))?;
        let view = |bytes, strides, swap| View { dtype, shape: shape.to_vec(), strides, swap, bytes, pointer: None };
        match data {
            Data::Missing => Err(Error::Missing),
            Data::Inline(items) => Ok(view(inline(items, dtype, shape)?.into(), strides, false)),
            Data::Splat(x) => {
                let one = element(x, dtype)?;
                Ok(view(one.into(), vec![0; shape.len()], false))
            }
            Data::Tensor { file, tensor } => {
                let range = self.named(file, tensor, dtype, shape)?;
                let pointer = self.pointer(file, range.0);
                Ok(View { pointer, ..view(self.bytes(file, range)?.into(), strides, false) })
            }
            Data::Range { file, offset, bytes, strides: stated, byteorder, .. } => {
                let strides = stated.clone().unwrap_or(strides);
                let needed = needed_bytes(dtype, shape, &strides)?;
                if needed > *bytes {
                    return Err(Error::Mismatch(format!("{dtype} {shape:?} needs {needed} bytes; data has {bytes}")));
                }
                self.check_archive(file, *offset, needed)?;
                let swap = *byteorder == ByteOrder::Big;
                let pointer = self.pointer(file, *offset);
                Ok(View { pointer, ..view(self.bytes(file, (*offset, needed))?.into(), strides, swap) })
            }
        }
    }

    /// Lets the system drop the pages of a tensor that has been read.
    pub fn forget(&self, data: &Data) {
        if let Data::Range { file, offset, bytes, .. } = data
            && let Some(source) = self.sources.get(file)
        {
            source.map.forget(*offset as usize, *bytes as usize);
        }
    }

    fn source(&self, file: &str) -> Result<&Source, Error> {
        self.sources.get(file).ok_or_else(|| Error::UnknownFile(file.to_owned()))
    }

    fn bytes(&self, file: &str, (offset, length): (u64, u64)) -> Result<&[u8], Error> {
        let source = self.source(file)?;
        let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
        end.and_then(|end| source.map.bytes().get(offset as usize..end)).ok_or_else(|| Error::Format {
            path: source.path.clone(),
            message: format!("bytes {offset}..+{length} are outside the file of {} bytes", source.map.bytes().len()),
        })
    }

    fn pointer(&self, file: &str, offset: u64) -> Option<*mut u8> {
        self.sources.get(file)?.map.private_pointer(usize::try_from(offset).ok()?)
    }

    /// Position and size of a tensor of a safetensors file.
    fn named(&self, file: &str, tensor: &str, dtype: DType, shape: &[i64]) -> Result<(u64, u64), Error> {
        let source = self.source(file)?;
        let fail = |message: String| source.fail(message);
        let entry = source.header()?.tensors.get(tensor);
        let entry = entry.ok_or_else(|| fail(format!("no tensor {tensor:?}")))?;
        let same_shape = entry.shape.len() == shape.len()
            && entry.shape.iter().zip(shape).all(|(a, b)| u64::try_from(*b).is_ok_and(|b| b == *a));
        if entry.dtype != dtype || !same_shape {
            let (d, s) = (entry.dtype, &entry.shape);
            return Err(fail(format!("tensor {tensor:?} is {d} {s:?}; expected {dtype} {shape:?}")));
        }
        Ok((entry.offset, entry.bytes))
    }

    /// Compares the archive entry that holds a range with its CRC, once.
    fn check_archive(&self, file: &str, offset: u64, length: u64) -> Result<(), Error> {
        let source = self.source(file)?;
        if !source.is_archive || length == 0 {
            return Ok(());
        }
        let fail = |message: String| source.fail(message);
        let entries = source.entries()?;
        let after = entries.partition_point(|e| e.start <= offset);
        let entry = after.checked_sub(1).and_then(|k| entries.get(k)).filter(|e| offset + length <= e.start + e.len);
        let entry = entry.ok_or_else(|| fail(format!("bytes {offset}..+{length} are not inside one archive entry")))?;
        if source.checked.borrow_mut().insert(entry.start) {
            m2m_zip::check(source.map.bytes(), entry).map_err(|e| fail(e.to_string()))?;
        }
        Ok(())
    }
}

impl Source {
    fn fail(&self, message: String) -> Error {
        Error::Format { path: self.path.clone(), message }
    }

    /// The header of a safetensors file, read once.
    fn header(&self) -> Result<&Header, Error> {
        if let Some(header) = self.header.get() {
            return Ok(header);
        }
        let header = Header::read(self.map.bytes()).map_err(|e| self.fail(e.to_string()))?;
        Ok(self.header.get_or_init(|| header))
    }

    /// The entries of an archive in the order of their places, read once: that touches a page of each.
    fn entries(&self) -> Result<&[m2m_zip::Entry], Error> {
        if let Some(entries) = self.entries.get() {
            return Ok(entries);
        }
        let zip = m2m_zip::Zip::open(self.map.bytes()).map_err(|e| self.fail(e.to_string()))?;
        let mut entries = zip.entries().to_vec();
        entries.sort_by_key(|e| e.start);
        Ok(self.entries.get_or_init(|| entries))
    }
}

/// Bytes from the first element to the end of the last.
fn needed_bytes(dtype: DType, shape: &[i64], strides: &[i64]) -> Result<u64, Error> {
    let bad = || Error::Mismatch(format!("{dtype} {shape:?} with strides {strides:?} cannot be addressed"));
    if strides.len() != shape.len() {
        return Err(bad());
    }
    layout::span(shape, strides).and_then(|n| dtype.bytes_of(n)).ok_or_else(bad)
}

fn inline(items: &[Scalar], dtype: DType, shape: &[i64]) -> Result<Vec<u8>, Error> {
    if layout::count(shape) != Some(items.len() as u64) {
        return Err(Error::Mismatch(format!("{} inline elements for shape {shape:?}", items.len())));
    }
    items.iter().map(|x| element(x, dtype)).collect::<Result<Vec<_>, _>>().map(|parts| parts.concat())
}

/// The bytes of one element.
fn element(x: &Scalar, dtype: DType) -> Result<Vec<u8>, Error> {
    let bad = || Error::Mismatch(format!("{x:?} is not a value of {dtype}"));
    let int = |x: &Scalar| match x {
        Scalar::Int(n) => Ok(*n),
        Scalar::Bool(b) => Ok(i128::from(*b)),
        _ => Err(bad()),
    };
    let float = |x: &Scalar| match x {
        Scalar::Float(f) => Ok(f.0),
        Scalar::Int(n) => Ok(*n as f64),
        _ => Err(bad()),
    };
    Ok(match dtype {
        DType::Bool => vec![u8::from(int(x)? != 0)],
        DType::U8 => u8::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::U16 => u16::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::U32 => u32::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::U64 => u64::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::I8 => i8::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::I16 => i16::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::I32 => i32::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::I64 => i64::try_from(int(x)?).map_err(|_| bad())?.to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(float(x)?).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(float(x)?).to_le_bytes().to_vec(),
        DType::F32 => (float(x)? as f32).to_le_bytes().to_vec(),
        DType::F64 => float(x)?.to_le_bytes().to_vec(),
        _ => return Err(Error::Mismatch(format!("inline data of {dtype} cannot be read; use a file"))),
    })
}

impl View<'_> {
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// In elements, as the bytes lie.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The bytes from the first element to the end of the last, gaps of strides included.
    pub fn raw(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the first element lies in a private mapping, if the bytes are little-endian.
    pub fn pointer(&self) -> Option<*mut u8> {
        self.pointer.filter(|_| !self.swap)
    }

    /// The mapped bytes as they are, when they are already row-major and little-endian.
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        let plain = !self.swap && layout::is_contiguous(&self.shape, &self.strides);
        plain.then_some(self.bytes.as_ref()).filter(|b| layout::bytes(self.dtype, &self.shape) == Some(b.len() as u64))
    }

    /// Writes the elements row-major and little-endian, a block at a time.
    pub fn write_contiguous(&self, out: &mut dyn Write) -> Result<(), Error> {
        if let Some(bytes) = self.as_contiguous() {
            return Ok(out.write_all(bytes)?);
        }
        let size =
            self.dtype.size().ok_or_else(|| Error::Mismatch(format!("{} cannot be read with strides", self.dtype)))?
                as usize;
        let part = if self.dtype.is_complex() { size / 2 } else { size };
        let total = layout::count(&self.shape).unwrap_or(0);
        let mut index = vec![0i64; self.shape.len()];
        let mut at = 0usize;
        let mut block = Vec::with_capacity(BLOCK_BYTES + size);
        for _ in 0..total {
            let element = self
                .bytes
                .get(at * size..(at + 1) * size)
                .ok_or_else(|| Error::Mismatch("strides leave the tensor's bytes".into()))?;
            push_element(&mut block, element, part, self.swap);
            if block.len() >= BLOCK_BYTES {
                out.write_all(&block)?;
                block.clear();
            }
            at = step(&mut index, &self.shape, &self.strides, at);
        }
        Ok(out.write_all(&block)?)
    }

    /// The elements row-major and little-endian, borrowed where they already are.
    pub fn to_contiguous(&self) -> Result<Cow<'_, [u8]>, Error> {
        if let Some(bytes) = self.as_contiguous() {
            return Ok(bytes.into());
        }
        let mut out = Vec::new();
        self.write_contiguous(&mut out)?;
        Ok(out.into())
    }
}

/// How much is gathered before it is written.
const BLOCK_BYTES: usize = 1 << 16;

fn push_element(block: &mut Vec<u8>, element: &[u8], part: usize, swap: bool) {
    if swap {
        element.chunks(part).for_each(|p| block.extend(p.iter().rev()));
    } else {
        block.extend_from_slice(element);
    }
}

/// Moves to the next element in row-major order and gives its position, in elements.
fn step(index: &mut [i64], shape: &[i64], strides: &[i64], mut at: usize) -> usize {
    for k in (0..index.len()).rev() {
        index[k] += 1;
        at += strides[k] as usize;
        if index[k] < shape[k] {
            break;
        }
        at -= (strides[k] * shape[k]) as usize;
        index[k] = 0;
    }
    at
}
