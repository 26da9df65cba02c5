//! The functions of `cpp/shim.cpp`, found in a library that is opened when they are first asked for.
//!
//! The shim is a shared library of some hundred kilobytes whose bytes are part of the program: opening it from memory
//! needs no file beside the program, and the program itself never links libtorch. libtorch is opened before it by its
//! absolute path; its own search path finds what it needs in turn.

#![allow(unsafe_code, reason = "a foreign binding; every block says why it is sound")]

use crate::error::Error;
use crate::find;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The shim's bytes and the folder it was built with; none where the crate was built without libtorch.
const BUILT: Option<(&[u8], &str)> = include!(concat!(env!("OUT_DIR"), "/shim.rs"));

/// What a [`RawValue`] holds.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Not given: the schema's default.
    Absent,
    /// `None`.
    None,
    /// A tensor's handle in `pointer`.
    Tensor,
    /// `integer`.
    Int,
    /// `real`.
    Float,
    /// `integer`.
    Bool,
    /// `count` bytes at `pointer`.
    Str,
    /// `count` values at `pointer`.
    List,
    /// `real` and `imaginary`.
    Complex,
}

/// A value on its way into or out of a call; the twin of the shim's `Value`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawValue {
    /// A [`Tag`]'s number.
    pub tag: i32,
    /// Padding.
    pub unused: i32,
    /// See [`Tag`].
    pub integer: i64,
    /// See [`Tag`].
    pub real: f64,
    /// See [`Tag`].
    pub imaginary: f64,
    /// See [`Tag`].
    pub pointer: *const c_void,
    /// See [`Tag`].
    pub count: usize,
}

impl RawValue {
    /// A value of a kind without contents.
    pub const fn of(tag: Tag) -> RawValue {
        RawValue {
            tag: tag as i32,
            unused: 0,
            integer: 0,
            real: 0.0,
            imaginary: 0.0,
            pointer: std::ptr::null(),
            count: 0,
        }
    }
}

/// What the shim tells of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// PyTorch's number of the dtype.
    pub dtype: i32,
    /// Whether it is strided and on the CPU.
    pub is_dense: i32,
    /// How many dimensions it has.
    pub rank: usize,
    /// `rank` sizes.
    pub sizes: *const i64,
    /// `rank` strides, in elements, if it is dense.
    pub strides: *const i64,
    /// The first element, if it is dense.
    pub data: *const c_void,
    /// How many elements it has.
    pub count: i64,
    /// How often it was written in place.
    pub version: i64,
}

/// The state of autocast that a region changed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Autocast {
    device: i32,
    was_enabled: i32,
    was_dtype: i32,
    was_cached: i32,
}

macro_rules! api {
    ($($(#[$doc:meta])* $name:ident: fn($($arg:ty),*) $(-> $result:ty)?),* $(,)?) => {
        /// The shim's functions.
        pub struct Api {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        impl Api {
            fn of(library: &Library) -> Result<Api, libloading::Error> {
                Ok(Api {
                    // SAFETY: the shim defines each of these functions with this signature, and is never closed.
                    $($name: unsafe { *library.get(concat!("m2m_", stringify!($name)).as_bytes())? },)*
                })
            }
        }
    };
}

type Handle = *mut c_void;

api! {
    /// The last message of this thread.
    error: fn(*mut usize) -> *const c_char,
    /// Prepares this thread.
    start: fn(i32),
    /// Seeds the generator.
    seed: fn(u64) -> i32,
    /// An operator by name and overload.
    find: fn(*const c_char, *const c_char) -> Handle,
    /// How many arguments an operator has.
    argument_count: fn(Handle) -> usize,
    /// The name of an argument.
    argument_name: fn(Handle, usize, *mut usize) -> *const c_char,
    /// An operator's schema in text.
    schema: fn(Handle, *mut usize) -> *const c_char,
    /// All operators in text.
    operators: fn(*mut usize) -> *const c_char,
    /// Calls an operator.
    call: fn(Handle, *const RawValue, usize, *mut *const RawValue, *mut usize) -> i32,
    /// Describes a tensor.
    tensor_info: fn(*const c_void, *mut Info) -> i32,
    /// Another handle of the same tensor.
    tensor_clone: fn(*const c_void) -> Handle,
    /// Ends a handle.
    tensor_free: fn(Handle),
    /// A tensor over foreign memory.
    tensor_over: fn(*mut c_void, i32, usize, *const i64, *const i64) -> Handle,
    /// A tensor whose elements are not set.
    tensor_empty: fn(i32, usize, *const i64) -> Handle,
    /// A tensor with its elements row-major.
    tensor_plain: fn(*const c_void) -> Handle,
    /// Begins an autocast region.
    autocast_enter: fn(*const c_char, i32, i32, i32, *mut Autocast) -> i32,
    /// Ends it.
    autocast_exit: fn(*const Autocast),
}

/// The functions, loaded once a process.
static LOADED: OnceLock<Result<Api, String>> = OnceLock::new();

/// The folder of libtorch that would be loaded, without loading or running anything; none where there is none, or where
/// this crate was built without.
pub fn present() -> Option<PathBuf> {
    let (_, built_with) = BUILT?;
    if let Some(folder) = find::named() {
        return find::is_there(&folder).then_some(folder);
    }
    let built_with = Some(PathBuf::from(built_with)).filter(|folder| find::is_there(folder));
    built_with.or_else(find::beside_python).filter(|folder| find::is_of_release(folder))
}

/// The functions of the shim.
pub fn load() -> Result<&'static Api, Error> {
    let (shim, _) = BUILT.ok_or(Error::NotBuilt)?;
    let folder = folder()?;
    let loaded = LOADED.get_or_init(|| open(&folder, shim).map_err(|(what, message)| format!("{what}\n{message}")));
    loaded.as_ref().map_err(|text| {
        let (what, message) = text.split_once('\n').unwrap_or(("libtorch", text));
        Error::Load { what: what.to_owned(), message: message.to_owned() }
    })
}

fn folder() -> Result<PathBuf, Error> {
    if let Some(folder) = find::named().filter(|folder| !find::is_there(folder)) {
        return Err(Error::NotThere { folder });
    }
    let folder = present().or_else(find::ask_python).ok_or(Error::NotFound)?;
    match find::version(&folder) {
        Some(found) if !find::is_of_release(&folder) => Err(Error::Release { folder, found }),
        _ => Ok(folder),
    }
}

fn open(folder: &Path, shim: &[u8]) -> Result<Api, (String, String)> {
    let library = find::library(folder);
    // SAFETY: libtorch's initialisers register operators and start no thread; it is never closed.
    let torch = unsafe { Library::open(Some(&library), RTLD_LAZY | RTLD_LOCAL) };
    let torch = torch.map_err(|error| (library.display().to_string(), error.to_string()))?;
    std::mem::forget(torch);
    let failed = |message: String| ("the shim of libtorch".to_owned(), message);
    let memory = rustix::fs::memfd_create("libm2m_torch.so", rustix::fs::MemfdFlags::CLOEXEC);
    let memory = memory.map_err(|error| failed(error.to_string()))?;
    let mut file = std::fs::File::from(memory);
    std::io::Write::write_all(&mut file, shim).map_err(|error| failed(error.to_string()))?;
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    // SAFETY: the shim has no initialisers of its own; it is never closed.
    let shim =
        unsafe { Library::open(Some(&path), RTLD_LAZY | RTLD_LOCAL) }.map_err(|error| failed(error.to_string()))?;
    let api = Api::of(&shim).map_err(|error| failed(error.to_string()))?;
    std::mem::forget(shim);
    Ok(api)
}

impl Api {
    /// Text that the shim returned; empty for null.
    pub fn text(&self, give: impl FnOnce(*mut usize) -> *const c_char) -> String {
        let mut length = 0;
        let start = give(&mut length);
        if start.is_null() {
            return String::new();
        }
        // SAFETY: the shim returned so many bytes, which stay until the next call of this thread.
        let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The error that the shim has just left, as one line.
    pub fn failure(&self) -> Error {
        // SAFETY: the function only reads the message of this thread.
        let text = self.text(|length| unsafe { (self.error)(length) });
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Error::Torch(lines.join("; "))
    }
}
