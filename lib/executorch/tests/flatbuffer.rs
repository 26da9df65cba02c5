//! Checked access: what the small writer made is read back, and whatever is broken afterwards is an error at its place.

use m2m_executorch::flatbuffer::write::{Object, Value, Vtables, finish};
use m2m_executorch::flatbuffer::{Buffer, Cause, Error, Field, MAX_DEPTH, Table};

const SMALL: Field = Field(0, "small");
const LARGE: Field = Field(1, "large");
const NAME: Field = Field(2, "name");
const NUMBERS: Field = Field(3, "numbers");
const BYTES: Field = Field(4, "bytes");
const CHILD: Field = Field(5, "child");
const CHILDREN: Field = Field(6, "children");
const NAMES: Field = Field(7, "names");
const KIND: Field = Field(8, "val_type");
const VALUE: Field = Field(9, "val");
const ABSENT: Field = Field(10, "absent");

fn sample() -> Object {
    Object::new()
        .with(0, -3i8)
        .with(1, u64::MAX - 1)
        .with(2, "naïve")
        .with(3, [1i64, -2, i64::MIN])
        .with(4, Value::Bytes(16, vec![9, 8, 7]))
        .with(5, Object::new().with(0, 5i8))
        .with(6, vec![Object::new(), Object::new().with(0, 1i8).with(1, 2u64)])
        .with(7, Value::Texts(vec!["a".into(), String::new()]))
        .with(8, 2u8)
        .with(9, Object::new().with(0, 7i8))
}

/// Everything that the sample holds, as text, or the first error.
fn dump(bytes: &[u8]) -> Result<String, Error> {
    let buffer = Buffer::new(bytes, 0);
    let root = buffer.root("Root", b"TEST")?;
    let mut out = format!("{} {}", root.scalar(SMALL, 0i8)?, root.scalar(LARGE, 0u64)?);
    out +=
        &format!(" {:?} {:?}", root.string(NAME)?, root.scalars::<i64>(NUMBERS)?.map(|v| v.iter().collect::<Vec<_>>()));
    out += &format!(" {:?}", root.bytes(BYTES)?.map(|(_, bytes)| bytes));
    let small = |table: Table<'_, '_>| table.scalar(SMALL, 0i8);
    out += &format!(" {:?}", root.table(CHILD, "Child")?.map(small).transpose()?);
    for child in root.tables(CHILDREN, "Child")?.iter().flat_map(|all| all.iter()) {
        let child = child?;
        out += &format!(" [{} {}]", child.scalar(SMALL, 0i8)?, child.scalar(LARGE, 44u64)?);
    }
    for name in root.strings(NAMES)?.iter().flat_map(|all| all.iter()) {
        out += &format!(" {:?}", name?);
    }
    let named = |kind| (kind == 2).then_some("Two");
    let union = root.union(KIND, VALUE, named)?;
    out += &format!(" {:?}", union.map(|(kind, value)| value.map(small).transpose().map(|x| (kind, x))).transpose()?);
    out += &format!(" {:?} {}", root.string(ABSENT)?, root.scalar(ABSENT, 1.5f64)?);
    Ok(out)
}

const SAMPLE: &str = "-3 18446744073709551614 Some(\"naïve\") Some([1, -2, -9223372036854775808]) Some([9, 8, 7]) Some(5) \
                      [0 44] [1 2] \"a\" \"\" Some((2, Some(7))) None 1.5";

#[test]
fn what_is_written_is_read() {
    for vtables in [Vtables::Before, Vtables::After] {
        for gap in [0, 32] {
            let bytes = finish(&sample(), b"TEST", gap, vtables);
            assert_eq!(dump(&bytes).unwrap(), SAMPLE, "{vtables:?}, gap {gap}");
        }
    }
}

#[test]
fn any_address_will_do() {
    let bytes = finish(&sample(), b"TEST", 0, Vtables::Before);
    let mut shifted = vec![0xff; 3];
    shifted.extend_from_slice(&bytes);
    assert_eq!(dump(&shifted[3..]).unwrap(), SAMPLE);
}

#[test]
fn scalars_and_bytes_lie_at_multiples_of_their_size() {
    let bytes = finish(&sample(), b"TEST", 0, Vtables::After);
    let buffer = Buffer::new(&bytes, 0);
    let root = buffer.root("Root", b"TEST").unwrap();
    assert_eq!(root.bytes(BYTES).unwrap().unwrap().0 % 16, 0);
    let large = (u64::MAX - 1).to_le_bytes();
    assert_eq!(bytes.windows(8).position(|eight| eight == large).unwrap() % 8, 0);
}

#[test]
fn a_size_prefix_is_compared() {
    let inner = finish(&sample(), b"TEST", 0, Vtables::After);
    let mut bytes = (inner.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&inner);
    let buffer = Buffer::size_prefixed(&bytes, "Root").unwrap();
    let root = buffer.root("Root", b"TEST").unwrap();
    let (at, found) = root.bytes(BYTES).unwrap().unwrap();
    assert_eq!(&bytes[at as usize..at as usize + 3], found, "positions are those of the file");
    bytes.push(0);
    let error = Buffer::size_prefixed(&bytes, "Root").unwrap_err();
    let (stated, found) = (inner.len() as u64, inner.len() as u64 + 1);
    assert_eq!(error, Error { at: 0, table: "Root", field: "", cause: Cause::SizePrefix { stated, found } });
    assert!(matches!(Buffer::size_prefixed(&[1, 2], "Root").unwrap_err().cause, Cause::Truncated { need: 4, end: 2 }));
}

#[test]
fn every_truncation_is_noticed() {
    // Vtables after their tables and the string last: there is no byte at the end that nothing needs.
    let bytes = finish(&Object::new().with(0, -3i8).with(2, "end"), b"TEST", 0, Vtables::After);
    dump(&bytes).unwrap();
    for len in 0..bytes.len() {
        let error = dump(&bytes[..len]).unwrap_err();
        assert!(error.at <= len.max(4) as u64, "{len}: {error}");
    }
}

#[test]
fn no_flipped_byte_panics() {
    let bytes = finish(&sample(), b"TEST", 0, Vtables::Before);
    let mut refused = 0;
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, !bytes[at]] {
            let mut broken = bytes.clone();
            broken[at] = value;
            refused += usize::from(dump(&broken).is_err());
        }
    }
    assert!(refused > bytes.len(), "only {refused} of {} flips were refused", bytes.len() * 6);
}

/// The error of reading `bytes`, as it is shown.
fn refusal(bytes: &[u8]) -> String {
    dump(bytes).expect_err("it is broken").to_string()
}

#[test]
fn errors_name_byte_table_field_and_values() {
    let text = finish(&Object::new().with(2, "abc"), b"TEST", 0, Vtables::Before);
    let at = text.windows(3).position(|three| three == b"abc").unwrap();
    let mut open = text.clone();
    open[at + 3] = b'd';
    assert_eq!(
        refusal(&open),
        format!("byte {}: Root.name: a string of 3 bytes is not followed by a zero byte", at - 4)
    );
    let mut foreign = text.clone();
    foreign[at + 1] = 0xff;
    assert_eq!(
        refusal(&foreign),
        format!("byte {}: Root.name: a string of 3 bytes is not UTF-8 from its byte 1 on", at - 4)
    );
    let mut long = text.clone();
    long[at - 4] = 0xf0;
    assert_eq!(
        refusal(&long),
        format!("byte {}: Root.name: 240 elements of 1 bytes, but {} bytes are left", at - 4, text.len() - at)
    );
    let mut away = text.clone();
    away[at - 5] = 0x7f;
    assert_eq!(
        refusal(&away),
        format!(
            "byte {}: Root.name: offset 2130706436 leads out of the flatbuffer, which ends at byte {}",
            at - 8,
            text.len()
        )
    );
    assert_eq!(refusal(b"\x08\0\0\0FT01"), "byte 4: Root: file identifier \"FT01\"; expected \"TEST\"");
    assert_eq!(refusal(b""), "byte 4: Root: 4 bytes are needed, the flatbuffer ends at byte 0");
}

#[test]
fn a_union_needs_both_halves() {
    let without = finish(&Object::new().with(8, 2u8), b"TEST", 0, Vtables::Before);
    assert!(refusal(&without).ends_with("Root.val: a union of type 2 without its value"), "{}", refusal(&without));
    let untyped = finish(&Object::new().with(9, Object::new()), b"TEST", 0, Vtables::Before);
    assert!(refusal(&untyped).ends_with("Root.val: a union of type 0 with a value; type 0 has none"));
    let unknown = finish(&Object::new().with(8, 9u8).with(9, Object::new()), b"TEST", 0, Vtables::Before);
    assert!(dump(&unknown).unwrap().contains("Some((9, None))"), "a type of a newer schema is handed over");
}

#[test]
fn tables_end_at_the_depth_limit() {
    let mut object = Object::new();
    for _ in 0..=MAX_DEPTH {
        object = Object::new().with(5, object);
    }
    let bytes = finish(&object, b"TEST", 0, Vtables::Before);
    let buffer = Buffer::new(&bytes, 0);
    let mut table = buffer.root("Root", b"TEST").unwrap();
    let error = loop {
        match table.table(CHILD, "Child") {
            Ok(child) => table = child.expect("the chain is longer than the limit"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.cause, Cause::Depth { limit: MAX_DEPTH });
}

/// Counts the tables below one, each as often as it is reached.
fn count(table: Table<'_, '_>) -> Result<u64, Error> {
    let mut total = 1;
    for child in table.tables(CHILDREN, "Child")?.iter().flat_map(|all| all.iter()) {
        total += count(child?)?;
    }
    Ok(total)
}

#[test]
fn offsets_that_share_a_table_are_bounded() {
    // Eight levels of a vector of a hundred offsets that all lead to the next level: 10^16 tables in four kilobytes.
    let levels = 8u32;
    let width = 100u32;
    let mut bytes = b"\0\0\0\0TEST".to_vec();
    // One vtable at byte 8 for all: field 6 lies at byte 4 of a table of eight bytes.
    let vtable: Vec<u8> = [18u16, 8, 0, 0, 0, 0, 0, 0, 4].iter().flat_map(|x| x.to_le_bytes()).collect();
    bytes.extend_from_slice(&vtable);
    bytes.extend_from_slice(&[0, 0]);
    let first = bytes.len() as u32;
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    let stride = 8 + 4 + 4 * width;
    for level in 0..levels {
        let at = first + level * stride;
        bytes.extend_from_slice(&(at as i32 - 8).to_le_bytes());
        bytes.extend_from_slice(&4u32.to_le_bytes());
        bytes.extend_from_slice(&width.to_le_bytes());
        for i in 0..width {
            bytes.extend_from_slice(&(at + stride - (at + 12 + 4 * i)).to_le_bytes());
        }
    }
    let last = first + levels * stride;
    bytes.extend_from_slice(&(last as i32 - 8).to_le_bytes());
    bytes.extend_from_slice(&4u32.to_le_bytes());
    bytes.extend_from_slice(&0u32.to_le_bytes());
    let buffer = Buffer::new(&bytes, 0);
    let error = count(buffer.root("Root", b"TEST").unwrap()).unwrap_err();
    assert!(matches!(error.cause, Cause::Work { .. }), "{error}");
}
