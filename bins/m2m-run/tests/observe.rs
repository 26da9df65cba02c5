//! `--observe`: a record for every float value over all files of inputs, whatever their order.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_record::{Body, DType, Float, Observation, Reader};
use tool::{f32s, is_there, run, tensors, text};

/// y = relu(x), z = y as integers.
const STREAM: &str = r#"{"record":"begin","schema":"m2m.stream.v1"}
{"record":"graph","graph":"original","stage":"original","entry":"forward"}
{"record":"input","graph":"original","value":"x","role":"user_input","type":{"tensor":"f32","shape":[4]}}
{"record":"node","graph":"original","stage":"original","node":"original:0","op":"aten.relu.default","args":[{"v":"x"}],"results":[{"value":"y","type":{"tensor":"f32","shape":[4]}}]}
{"record":"node","graph":"original","stage":"original","node":"original:1","op":"aten.to.dtype","args":[{"v":"y"},{"dtype":"i32"}],"results":[{"value":"z","type":{"tensor":"i32","shape":[4]}}]}
{"record":"output","graph":"original","outputs":[{"value":"z","role":"user_output"}]}
"#;

/// The stream with its seal and end.
fn stream() -> Vec<u8> {
    let mut lines = STREAM.lines().skip(1);
    let mut writer = m2m_record::Writer::begin(Vec::new()).unwrap();
    macro_rules! next {
        ($($kind:ty),*) => {
            $(writer.write(&m2m_record::reader::parse_line::<$kind>(lines.next().unwrap().as_bytes()).unwrap()).unwrap();)*
        };
    }
    next!(m2m_record::Graph, m2m_record::Input, m2m_record::Node, m2m_record::Node, m2m_record::Output);
    writer.seal().unwrap();
    writer.finish(m2m_record::Status::Ok).unwrap()
}

fn observations(stdout: &[u8]) -> Vec<Observation> {
    let mut reader = Reader::new(stdout);
    let mut found = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        if line.kind == Observation::KIND {
            found.push(line.parse().unwrap());
        }
    }
    found
}

#[test]
fn every_float_value_is_observed_over_all_sets() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, values: &[f32]| {
        tensors(&folder.path().join(name), &[("in_0", DType::F32, &[4], f32s(values))]);
    };
    file("a.safetensors", &[-1.0, 0.0, 1.0, 3.0]);
    file("b.safetensors", &[-2.0, 5.0, 6.0, f32::NAN]);
    let flags = |first: &str, second: &str, what: &str| {
        let names = ["--engine", "torch", "--inputs", first, "--inputs", second, "--observe", what, "--bins", "4"];
        let output = run(folder.path(), &names, &stream());
        assert!(output.status.success(), "{}", text(&output.stderr));
        observations(&output.stdout)
    };
    let found = flags("a.safetensors", "b.safetensors", "histogram");
    let names: Vec<&str> = found.iter().map(|observation| observation.value.as_str()).collect();
    assert_eq!(names, ["x", "y"]);
    let x = &found[0];
    assert_eq!((x.sets, x.count, x.nonfinite), (2, 7, 1));
    assert_eq!((x.min, x.max), (Some(Float(-2.0)), Some(Float(6.0))));
    // From -2 to 6 in at most 4 bins: of 4 wide there are -1, 0 and 1, of 2 wide there would be 5.
    let histogram = x.histogram.as_ref().unwrap();
    assert_eq!((histogram.width, histogram.first, histogram.counts.as_slice()), (Float(4.0), -1, &[2, 3, 2][..]));
    assert_eq!(found[1].min, Some(Float(0.0)));
    assert_eq!(found, flags("b.safetensors", "a.safetensors", "histogram"));
    let ranges = flags("a.safetensors", "b.safetensors", "minmax");
    assert_eq!((ranges[0].histogram.is_none(), ranges[0].percentile.is_none()), (true, true));
    let percentile = flags("a.safetensors", "b.safetensors", "percentile")[0].percentile.clone().unwrap();
    assert_eq!((percentile.percent, percentile.low, percentile.high), (Float(99.99), Float(-2.0), Float(6.0)));
}

#[test]
fn several_inputs_are_for_observing_only() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--engine", "mlir", "--inputs", "a", "--inputs", "b", "--refuse-nan"];
    let output = run(folder.path(), &flags, &stream());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--inputs is repeated, which only --observe can use"));
    let output = run(folder.path(), &["--engine", "mlir", "--inputs", "a", "--observe", "minmax"], &stream());
    assert!(text(&output.stderr).contains("--observe needs the engine torch"), "{}", text(&output.stderr));
}
