//! NumPy's archives of arrays, as `np.savez` writes them: stored, little-endian, row-major.

use indexmap::IndexMap;
use m2m_record::DType;
use m2m_tensor::safetensors::Entry;
use m2m_zip::Zip;

/// What a header of an array may hold at most; NumPy's own are below a hundred bytes.
const MAX_HEADER_BYTES: usize = 1 << 16;

/// Whether bytes begin as a zip archive does.
pub fn is_npz(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// The arrays by name, without `.npy`.
pub fn read(bytes: &[u8]) -> Result<IndexMap<String, Entry>, String> {
    let zip = Zip::open(bytes).map_err(|error| format!("{error}; np.savez writes what is read here"))?;
    let mut arrays = IndexMap::new();
    for entry in zip.entries() {
        let name = entry.name.strip_suffix(".npy").ok_or_else(|| format!("entry {:?} is not an array", entry.name))?;
        let content = zip.checked_bytes(entry).map_err(|error| error.to_string())?;
        let array = array(content, entry.start).map_err(|message| format!("{name}: {message}"))?;
        arrays.insert(name.to_owned(), array);
    }
    Ok(arrays)
}

/// One array at `start` of the file.
fn array(bytes: &[u8], start: u64) -> Result<Entry, String> {
    let version = bytes.strip_prefix(b"\x93NUMPY").and_then(|rest| rest.first()).ok_or("no NumPy array")?;
    let (from, length) = match (version, bytes.get(8..12)) {
        (1, Some(&[a, b, ..])) => (10, usize::from(u16::from_le_bytes([a, b]))),
        (2 | 3, Some(&[a, b, c, d])) => (12, u32::from_le_bytes([a, b, c, d]) as usize),
        _ => return Err(format!("version {version} of NumPy's format; 1, 2 and 3 are read")),
    };
    if length > MAX_HEADER_BYTES {
        return Err(format!("a header of {length} bytes; at most {MAX_HEADER_BYTES} are read"));
    }
    let header = bytes.get(from..from + length).ok_or("the header is cut")?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is not text")?;
    let (dtype, shape) = (dtype(&field(header, "descr")?)?, shape(&field(header, "shape")?)?);
    if field(header, "fortran_order")?.trim() != "False" && shape.iter().filter(|n| **n != 1).count() > 1 {
        return Err("the array is column-major; save np.ascontiguousarray of it".to_owned());
    }
    let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).and_then(|count| dtype.bytes_of(count));
    let data = (bytes.len() - from - length) as u64;
    if count != Some(data) {
        return Err(format!("{data} bytes of data for {dtype} {shape:?}"));
    }
    Ok(Entry { dtype, shape, offset: start + (from + length) as u64, bytes: data })
}

/// A value of the header, which is a Python dict with literal keys.
fn field(header: &str, key: &str) -> Result<String, String> {
    let wrong = || format!("the header has no {key}: {header:?}");
    let (_, rest) = header.split_once(&format!("'{key}':")).ok_or_else(wrong)?;
    let rest = rest.trim_start();
    let end = match rest.as_bytes().first() {
        Some(b'(') => rest.find(')').map(|end| end + 1),
        _ => rest.find([',', '}']),
    };
    end.and_then(|end| rest.get(..end)).map(str::to_owned).ok_or_else(wrong)
}

fn dtype(descr: &str) -> Result<DType, String> {
    Ok(match descr.trim_matches(['\'', '"']) {
        "|b1" => DType::Bool,
        "|u1" => DType::U8,
        "|i1" => DType::I8,
        "<u2" => DType::U16,
        "<i2" => DType::I16,
        "<u4" => DType::U32,
        "<i4" => DType::I32,
        "<u8" => DType::U64,
        "<i8" => DType::I64,
        "<f2" => DType::F16,
        "<f4" => DType::F32,
        "<f8" => DType::F64,
        "<c8" => DType::C64,
        "<c16" => DType::C128,
        other => {
            return Err(format!(
                "elements of {other}; little-endian bools, integers, floats and complex numbers are read"
            ));
        }
    })
}

fn shape(text: &str) -> Result<Vec<u64>, String> {
    let inside = text.trim_start_matches('(').trim_end_matches(')');
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes.map(|size| size.parse().map_err(|_| format!("size {size:?}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn an_array_is_found_behind_its_header() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
        let found = array(&npy(header, &[0; 8]), 100).unwrap();
        let offset = 100 + 10 + header.len() as u64;
        assert_eq!(found, Entry { dtype: DType::F32, shape: vec![2, 1], offset, bytes: 8 });
        let scalar = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", &[1]);
        assert_eq!(array(&scalar, 0).unwrap().shape, [0u64; 0]);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let fails = |header: &str, data: &[u8]| array(&npy(header, data), 0).unwrap_err();
        let short = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
        assert_eq!(fails(short, &[0; 8]), "8 bytes of data for f32 [3]");
        let columns = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }";
        assert!(fails(columns, &[0; 16]).starts_with("the array is column-major"));
        assert!(fails("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", &[0; 4]).contains(">f4"));
        assert!(array(b"not an array", 0).is_err());
    }
}
