//! The reader against hand-made headers, the writer against the safetensors crate.

use m2m_record::DType;
use m2m_tensor::safetensors::{Header, Plan, WriteError};

fn file(header: &str, data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![7; data]].concat()
}

fn write(plan: &Plan) -> Vec<u8> {
    let mut out = Vec::new();
    plan.write::<_, WriteError>(&mut out, |name, sink| {
        let size = if name == "w" { 64 } else { 24 };
        Ok(sink.write_all(&vec![name.as_bytes()[0]; size])?)
    })
    .expect("a vector takes every byte");
    out
}

#[test]
fn writer_is_read_by_the_safetensors_crate_and_by_us() {
    let mut plan = Plan::new();
    plan.tensor("b", DType::F64, &[3]).unwrap();
    plan.tensor("a", DType::I8, &[24]).unwrap();
    plan.tensor("w", DType::F32, &[4, 4]).unwrap();
    plan.alias("tied", "w").unwrap();
    let bytes = write(&plan);
    assert_eq!(bytes.len() as u64, plan.file_bytes().unwrap());
    let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(theirs.tensor("w").unwrap().data(), [b'w'; 64]);
    assert_eq!(theirs.tensor("b").unwrap().shape(), [3]);
    let ours = Header::read(&bytes).unwrap();
    assert_eq!(ours.tensors["w"].offset % 64, 0);
    assert_eq!(ours.tensors["tied"], ours.tensors["w"]);
    assert_eq!(ours.tensors["b"].offset % 8, 0);
}

#[test]
fn types_the_format_lacks_come_back() {
    let mut plan = Plan::new();
    plan.tensor("c", DType::C128, &[2, 2]).unwrap();
    plan.tensor("n", DType::I4, &[3]).unwrap();
    let mut bytes = Vec::new();
    plan.write::<_, WriteError>(&mut bytes, |name, sink| {
        Ok(sink.write_all(&vec![1; if name == "c" { 64 } else { 2 }])?)
    })
    .unwrap();
    assert!(safetensors::SafeTensors::deserialize(&bytes).is_ok());
    let header = Header::read(&bytes).unwrap();
    assert_eq!((header.tensors["c"].dtype, header.tensors["c"].shape.as_slice()), (DType::C128, &[2, 2][..]));
    assert_eq!((header.tensors["n"].dtype, header.tensors["n"].shape.as_slice()), (DType::I4, &[3][..]));
}

#[test]
fn a_source_of_the_wrong_size_is_an_error() {
    let mut plan = Plan::new();
    plan.tensor("x", DType::F32, &[3]).unwrap();
    let error = plan.write::<_, WriteError>(&mut Vec::new(), |_, sink| Ok(sink.write_all(&[0; 8])?)).unwrap_err();
    assert_eq!(error.to_string(), "tensor \"x\" gave 8 bytes; its type takes 12");
}

#[test]
fn bad_headers_are_refused_by_name() {
    let x = r#""x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    for (header, data, expected) in [
        (format!("{{{x}}}"), 9, "data ends at byte"),
        (format!("{{{x},{x}}}"), 8, "duplicate key \"x\""),
        (r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#.into(), 12, "without holes"),
        (r#"{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#.into(), 8, "takes 12 bytes"),
        (r#"{"x":{"dtype":"Q7","shape":[3],"data_offsets":[0,8]}}"#.into(), 8, "dtype \"Q7\""),
        (r#"{"x":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#.into(), 8, "overflows"),
        ("[]".into(), 0, "expected a JSON object"),
        (r#"{"__metadata__":{"m2m":"{\"aliases\":{\"a\":\"gone\"}}"}}"#.into(), 0, "\"gone\""),
    ] {
        let error = Header::read(&file(&header, data)).unwrap_err().to_string();
        assert!(error.contains(expected), "{header}: {error}");
    }
    assert!(Header::read(&[1, 2]).unwrap_err().to_string().contains("at least 8"));
    assert!(Header::read(&u64::MAX.to_le_bytes()).is_err());
}

#[test]
fn metadata_may_be_null() {
    let header = br#"{"__metadata__":null,"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.push(7);
    let read = Header::read(&file).unwrap();
    assert_eq!((read.tensors.len(), read.metadata.len()), (1, 0));
}
