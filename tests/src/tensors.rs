//! Small tensors written out in a test: one a line, `NAME DTYPE [SHAPE] VALUES`, into the bytes of a safetensors file.

use serde_json::{Map, json};

/// The safetensors file of the tensors that `text` lists, in the order it lists them.
pub fn from_text(text: &str) -> Result<Vec<u8>, String> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let start = data.len();
        let (name, dtype, shape) =
            one(line, &mut data).ok_or_else(|| format!("not `NAME DTYPE [SHAPE] VALUES`: {line:?}"))?;
        let value = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, data.len()]});
        if header.insert(name.to_owned(), value).is_some() {
            return Err(format!("the tensor {name:?} is listed twice"));
        }
    }
    let mut text = serde_json::Value::Object(header).to_string();
    let padded = (text.len() + 8).next_multiple_of(64) - 8;
    text.extend(std::iter::repeat_n(' ', padded - text.len()));
    Ok([&(text.len() as u64).to_le_bytes(), text.as_bytes(), &data].concat())
}

/// Reads a line, appends the elements to `data`, and returns name, safetensors dtype and shape.
fn one<'a>(line: &'a str, data: &mut Vec<u8>) -> Option<(&'a str, &'static str, Vec<usize>)> {
    let (head, values) = line.split_once(']')?;
    let (head, shape) = head.split_once('[')?;
    let mut words = head.split_whitespace();
    let (name, dtype) = (words.next()?, words.next()?);
    let dims = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let shape = dims.map(|dim| dim.parse().ok()).collect::<Option<Vec<usize>>>()?;
    let start = data.len();
    let (spelling, width) = match dtype {
        "f32" => ("F32", each(values, data, |value: f32| value.to_le_bytes())?),
        "f64" => ("F64", each(values, data, |value: f64| value.to_le_bytes())?),
        "f16" => ("F16", each(values, data, |value: f32| half::f16::from_f32(value).to_le_bytes())?),
        "bf16" => ("BF16", each(values, data, |value: f32| half::bf16::from_f32(value).to_le_bytes())?),
        "i64" => ("I64", each(values, data, |value: i64| value.to_le_bytes())?),
        "i32" => ("I32", each(values, data, |value: i32| value.to_le_bytes())?),
        "i8" => ("I8", each(values, data, |value: i8| value.to_le_bytes())?),
        "u8" => ("U8", each(values, data, |value: u8| value.to_le_bytes())?),
        "bool" => ("BOOL", each(values, data, |value: u8| [value])?),
        _ => return None,
    };
    (data.len() - start == width * shape.iter().product::<usize>()).then_some((name, spelling, shape))
}

/// Appends every value, and returns how many bytes one takes.
fn each<T: std::str::FromStr, const N: usize>(
    values: &str,
    data: &mut Vec<u8>,
    bytes: impl Fn(T) -> [u8; N],
) -> Option<usize> {
    for word in values.split_whitespace() {
        data.extend(bytes(word.parse().ok()?));
    }
    Some(N)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_a_file_and_wrong_counts_are_refused() {
        let file = from_text("x f32 [2,1] 1.5 -2\ny bool [] 1\n").unwrap();
        let len_bytes = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        assert_eq!((8 + len_bytes) % 64, 0);
        assert_eq!(file[8 + len_bytes..], [0, 0, 0xC0, 0x3F, 0, 0, 0, 0xC0, 1]);
        assert!(from_text("x f32 [2,2] 1 2 3\n").is_err());
        assert!(from_text("x f32 [1] 1\nx f32 [1] 1\n").is_err());
        assert!(from_text("x f99 [1] 1\n").is_err());
    }
}
