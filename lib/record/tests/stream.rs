//! Framing, digests and exactness of the record stream.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use m2m_record::{
    Arg, Body, DType, Dim, End, File, Float, Graph, Input, InputRole, Node, Output, OutputItem, OutputRole, Pipe,
    Reader, Return, Scalar, Status, TensorType, Type, TypedValue, Writer,
};
use proptest::prelude::*;

fn sample() -> Vec<u8> {
    let mut w = Writer::begin(Vec::new()).unwrap();
    let (id, name) = ("f0".to_owned(), "m.pt2".to_owned());
    w.write(&File { id, path: name.clone(), name, format: "pt2".into(), bytes: 7 }).unwrap();
    let g = || "original".to_owned();
    w.write(&Graph { graph: g(), stage: g(), entry: Some("forward".into()), parent: None }).unwrap();
    let ty = Type::Tensor(TensorType::new(DType::F32, vec![Dim::Int(2), Dim::Expr("s0".into())]));
    w.write(&Input::new("original", "x", InputRole::UserInput, ty.clone())).unwrap();
    w.write(&Node {
        graph: g(),
        stage: g(),
        node: "original:0".into(),
        op: "aten.relu.default".into(),
        args: vec![Arg::value("x")],
        results: vec![TypedValue { value: Some("relu".into()), ty }],
        ..Node::default()
    })
    .unwrap();
    let item = OutputItem { value: Some("relu".into()), literal: None, role: OutputRole::UserOutput, target: None };
    w.write(&Output { graph: g(), outputs: vec![item] }).unwrap();
    w.seal().unwrap();
    w.finish(Status::Ok).unwrap()
}

/// Passes a stream and returns what came out, or the error.
fn pass(bytes: &[u8]) -> Result<Vec<u8>, (String, Vec<u8>)> {
    let mut out = Vec::new();
    let mut pipe = Pipe::new(Reader::new(bytes), &mut out);
    loop {
        match pipe.next_line() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(e) => {
                drop(pipe);
                return Err((e.to_string(), out));
            }
        }
    }
    pipe.into_writer().finish(Status::Ok).unwrap();
    Ok(out)
}

#[test]
fn passing_through_changes_nothing() {
    assert_eq!(pass(&sample()).unwrap(), sample());
}

#[test]
fn a_stream_cut_anywhere_is_refused_and_passed_on_without_end() {
    let whole = sample();
    for cut in 0..whole.len() {
        let (_, out) = pass(&whole[..cut]).expect_err("a cut stream is refused");
        assert!(!out.windows(14).any(|w| w == b"\"record\":\"end\""), "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let whole = sample();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(pass(&bytes).is_err(), "byte {at}");
    }
}

#[test]
fn edits_are_allowed_where_digests_are_left_out() {
    let text = String::from_utf8(sample()).unwrap();
    let (head, _) = text.split_once("{\"record\":\"end\"").unwrap();
    let home_made = format!("{head}{{\"record\":\"end\",\"status\":\"ok\"}}\n");
    assert_eq!(pass(home_made.as_bytes()).unwrap(), sample());
}

#[test]
fn failed_streams_are_not_gone_on_from() {
    let mut w = Writer::begin(Vec::new()).unwrap();
    w.write(&File { id: "f".into(), name: "n".into(), path: "p".into(), format: "x".into(), bytes: 0 }).unwrap();
    let bytes = w.finish(Status::Failed).unwrap();
    assert!(pass(&bytes).unwrap_err().0.contains("status failed"));
    let mut reader = Reader::new(bytes.as_slice()).accept_failed();
    while reader.next_line().unwrap().is_some() {}
    assert_eq!(reader.end().map(|e: &End| e.status), Some(Status::Failed));
}

#[test]
fn unknown_fields_and_misplaced_records_name_the_line() {
    let text = String::from_utf8(sample()).unwrap();
    for (from, to, expected) in [
        ("\"op\":", "\"operator\":", "unknown field `operator`"),
        ("\"record\":\"node\"", "\"record\":\"tool\"", "inside graph"),
        ("m2m.stream.v1", "m2m.stream.v2", "m2m.stream.v2"),
        ("\"args\":[", "\"args\":[{\"w\":1},", "unknown field `w`"),
    ] {
        let edited = text.replacen(from, to, 1);
        let mut reader = Reader::new(edited.as_bytes());
        let error = loop {
            match reader.next_line() {
                Ok(Some(line)) if line.kind == "node" => {
                    if let Err(e) = line.parse::<Node>() {
                        break e;
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => panic!("{from} to {to} was accepted"),
                Err(e) => break e,
            }
        };
        assert!(error.line().is_some() && error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn record_may_stand_anywhere_in_its_line() {
    let line = br#"{"graph":"g","record":"graph","stage":"g"}"#;
    let graph: Graph = m2m_record::reader::parse_line(line).unwrap();
    assert_eq!(graph.graph, "g");
    let twice = br#"{"graph":"g","record":"graph","graph":"h","stage":"g"}"#;
    assert!(m2m_record::reader::parse_line::<Graph>(twice).unwrap_err().contains("duplicate"));
}

#[test]
fn numbers_are_exact_and_tagged() {
    let args = [
        (Arg::Float(Float(2.0)), r#"{"float":2}"#),
        (Arg::Float(Float(-0.0)), r#"{"float":-0.0}"#),
        (Arg::Float(Float(f64::NAN)), r#"{"float":"nan"}"#),
        (Arg::Float(Float(f64::NEG_INFINITY)), r#"{"float":"-inf"}"#),
        (Arg::Float(Float(0.1)), "0.1"),
        (Arg::Float(Float(1e300)), r#"{"float":1e+300}"#),
        (Arg::Int(i64::MAX), r#"{"int":"9223372036854775807"}"#),
        (Arg::Int(-(1 << 53)), "-9007199254740992"),
        (Arg::Map([("k".to_owned(), Arg::Null)].into_iter().collect()), r#"{"map":{"k":null}}"#),
        (Arg::Object { name: "o".into(), class: "c".into() }, r#"{"object":"o","class":"c"}"#),
    ];
    for (arg, text) in args {
        assert_eq!(serde_json::to_string(&arg).unwrap(), text);
        assert_eq!(serde_json::from_str::<Arg>(text).unwrap(), arg);
    }
    assert_eq!(serde_json::from_str::<Arg>("2.0").unwrap(), Arg::Int(2));
    assert_eq!(
        serde_json::from_str::<Scalar>("{\"int\":\"18446744073709551615\"}").unwrap(),
        Scalar::Int(u64::MAX.into())
    );
    for bad in ["{}", "{\"v\":\"a\",\"sym\":\"b\"}", "{\"map\":{\"a\":1,\"a\":2}}", "{\"float\":\"big\"}", "1e300"] {
        assert!(serde_json::from_str::<Arg>(bad).is_err(), "{bad}");
    }
}

#[test]
fn returns_keep_their_grouping() {
    let text = r#"[1,["list",3]]"#;
    let returns: Vec<Return> = serde_json::from_str(text).unwrap();
    assert_eq!(returns, [Return::One, Return::List(3)]);
    assert_eq!(serde_json::to_string(&returns).unwrap(), text);
    assert!(serde_json::from_str::<Vec<Return>>("[2]").is_err());
}

#[test]
fn predicates_select_nodes() {
    let node =
        |op: &str| Node { node: "original:0".into(), op: op.into(), scope: Some("head.fc".into()), ..Node::default() };
    let p = m2m_record::select::Predicate::new(r#"(.op|startswith("aten.linear")) and (.scope|test("head"))"#).unwrap();
    assert!(p.selects(&node("aten.linear.default")).unwrap());
    assert!(!p.selects(&node("aten.relu.default")).unwrap());
    assert!(m2m_record::select::Predicate::new(".op | (").is_err());
    let error = m2m_record::select::Predicate::new("nope(1)").err().unwrap().to_string();
    assert!(error.contains("nope"), "{error}");
}

proptest! {
    #[test]
    fn every_double_comes_back(bits in any::<u64>()) {
        let x = Float(f64::from_bits(bits));
        let text = serde_json::to_string(&Arg::Float(x)).unwrap();
        prop_assert_eq!(serde_json::from_str::<Arg>(&text).unwrap(), Arg::Float(x));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        m2m_record::fuzz::stream(&bytes);
    }
}

#[test]
fn kinds_are_distinct_words() {
    assert_eq!(Node::KIND, "node");
    assert_eq!(End::KIND, "end");
}
