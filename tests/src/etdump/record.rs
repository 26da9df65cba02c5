//! ETRecords: programs as torch.export spells them, the maps beside them, and the archive around all.

use std::fmt::Write as _;

/// A node: name, operator, inputs, outputs, handle (0 for none), module, line.
type Node = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], u32, &'static str, u32);

/// A method: its name, its nodes, its inputs, and its maps as JSON.
#[derive(Clone, Copy)]
pub struct Method {
    pub(super) name: &'static str,
    pub(super) inputs: &'static [&'static str],
    pub(super) nodes: &'static [Node],
    pub(super) handles: &'static str,
    pub(super) delegates: &'static str,
    pub(super) outputs: &'static str,
}

/// A network with a tuple, shared handles, and two delegates that recorded ids.
pub const NET: Method = Method {
    name: "forward",
    inputs: &["p_conv_weight", "b_bias", "x"],
    nodes: &[
        (
            "aten_convolution_default",
            "aten.convolution.default",
            &["x", "p_conv_weight"],
            &["aten_convolution_default"],
            11,
            "stem.conv",
            12,
        ),
        ("aten_max_default", "aten.max.dim", &["aten_convolution_default"], &["getitem", "getitem_1"], 12, "stem", 13),
        ("aten_sin_default", "aten.sin.default", &["getitem"], &["aten_sin_default"], 13, "stem", 14),
        (
            "aten_permute_copy_default",
            "aten.permute_copy.default",
            &["b_bias"],
            &["aten_permute_copy_default"],
            14,
            "head.fc",
            21,
        ),
        (
            "aten_addmm_default",
            "aten.addmm.default",
            &["b_bias", "aten_sin_default", "aten_permute_copy_default", "aten_sin_default"],
            &["aten_addmm_default"],
            14,
            "head.fc",
            21,
        ),
        ("aten_tanh_default", "aten.tanh.default", &["aten_addmm_default"], &["aten_tanh_default"], 15, "head", 22),
        ("aten_neg_default", "aten.neg.default", &["aten_tanh_default"], &["aten_neg_default"], 16, "", 30),
    ],
    handles: r#"{"0": 11, "1": [12, 12, 13], "2": 14, "3": [15, 16]}"#,
    delegates: r#"{"1": {"name": "IntBackend", "delegate_map": {"0": [12], "9": [13, 12]}}, "3": {"name": "TextBackend", "delegate_map": {"gemm": [15]}}}"#,
    outputs: r#"{"1": 1, "3": 2}"#,
};

/// The first of two methods.
pub const ENCODE: Method = Method {
    name: "encode",
    inputs: &["x"],
    nodes: &[(
        "aten_convolution_default",
        "aten.convolution.default",
        &["x"],
        &["aten_convolution_default"],
        1,
        "enc",
        3,
    )],
    handles: r#"{"0": 1}"#,
    delegates: "{}",
    outputs: "{}",
};

/// The second of two methods, whose handles overlap with those of the first.
pub const DECODE: Method = Method {
    name: "decode",
    inputs: &["y"],
    nodes: &[
        ("aten_addmm_default", "aten.addmm.default", &["y"], &["aten_addmm_default"], 1, "dec", 7),
        ("aten_tanh_default", "aten.tanh.default", &["aten_addmm_default"], &["aten_tanh_default"], 2, "dec", 8),
    ],
    handles: r#"{"0": 1, "1": 2}"#,
    delegates: "{}",
    outputs: "{}",
};

/// The program of a method as JSON.
pub fn program(method: &Method) -> String {
    let tensors = |names: &[&str]| {
        let all: Vec<String> = names.iter().map(|name| format!(r#"{{"as_tensor":{{"name":"{name}"}}}}"#)).collect();
        all.join(",")
    };
    let mut nodes = String::new();
    for (number, (name, operator, inputs, outputs, handle, module, line)) in method.nodes.iter().enumerate() {
        let arguments: Vec<String> = inputs
            .iter()
            .enumerate()
            .map(|(at, input)| format!(r#"{{"name":"a{at}","arg":{{"as_tensor":{{"name":"{input}"}}}}}}"#))
            .collect();
        let separator = if number == 0 { "" } else { "," };
        let mut stack = "L__self__,,net.Net".to_owned();
        let mut path = String::new();
        for part in module.split('.').filter(|part| !part.is_empty()) {
            path = if path.is_empty() { part.to_owned() } else { format!("{path}.{part}") };
            let _ = write!(stack, ";L__self___{path},{path},net.{}", part.to_uppercase());
        }
        let handle = if *handle == 0 { String::new() } else { format!(r#""debug_handle":"{handle}","#) };
        let from = operator.split('.').nth(1).unwrap_or_default();
        let _ = write!(
            nodes,
            r#"{separator}{{"name":"{name}","target":"executorch.exir.dialects.edge.ops.{operator}","inputs":[{},{{"name":"k","arg":{{"as_int":3}}}}],"outputs":[{}],"metadata":{{{handle}"nn_module_stack":"{stack}","stack_trace":"File \"/src/net.py\", line {line}, in forward\n  y","from_node":"[{{\"name\":\"late\",\"from_node\":[{{\"name\":\"{from}\",\"from_node\":[]}}]}}]"}}}}"#,
            arguments.join(","),
            tensors(outputs),
        );
    }
    let last = method.nodes.last().map_or("x", |node| node.3[0]);
    format!(
        r#"{{"graph_module":{{"graph":{{"inputs":[{}],"outputs":[{}],"nodes":[{nodes}],"tensor_values":{{}}}},"signature":{{"input_specs":[],"output_specs":[]}},"module_call_graph":[]}},"schema_version":{{"major":8,"minor":20}}}}"#,
        tensors(method.inputs),
        tensors(&[last]),
    )
}

/// Entries of a record by name.
type Entries = Vec<(String, Vec<u8>)>;

/// The entries of a record of some methods.
pub fn record(methods: &[Method]) -> Entries {
    let mut entries: Entries = vec![("ETRECORD_V0".into(), Vec::new())];
    for method in methods {
        let name = format!("edge_dialect_exported_program/{}", method.name);
        entries.push((format!("{name}_state_dict"), b"weights".to_vec()));
        entries.push((name, program(method).into_bytes()));
    }
    let map = |part: fn(&Method) -> &'static str| {
        let all: Vec<String> = methods.iter().map(|method| format!("\"{}\": {}", method.name, part(method))).collect();
        format!("{{{}}}", all.join(", ")).into_bytes()
    };
    entries.push(("debug_handle_map".into(), map(|method| method.handles)));
    entries.push(("delegate_map".into(), map(|method| method.delegates)));
    entries.push(("instruction_id_to_num_outs_map".into(), map(|method| method.outputs)));
    entries.push(("export_graph_id".into(), b"140438918150096".to_vec()));
    entries
}

/// A record of one method whose graph has another name than its maps, as a lone method's graph has.
pub(super) fn renamed() -> Entries {
    let mut entries = record(&[Method { name: "encode", ..NET }]);
    for (name, _) in &mut entries {
        *name = name.replace("/encode", "/forward");
    }
    entries
}

/// The record of [`NET`] without an entry.
pub(super) fn without(name: &str) -> Entries {
    record(&[NET]).into_iter().filter(|entry| entry.0 != name).collect()
}

/// The record of two methods without the graph of one.
pub(super) fn graphless() -> Entries {
    record(&[ENCODE, DECODE]).into_iter().filter(|entry| !entry.0.contains("/decode")).collect()
}

/// An archive of stored entries.
pub fn stored(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    archive(entries, 0, |bytes| bytes.to_vec())
}

/// An archive of deflated entries, whose only block is one that DEFLATE calls stored.
pub fn deflated(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    archive(entries, 8, |bytes| {
        let len = u16::try_from(bytes.len()).expect("the fixtures are small");
        [[1].as_slice(), &len.to_le_bytes(), &(!len).to_le_bytes(), bytes].concat()
    })
}

fn archive(entries: &[(String, Vec<u8>)], method: u16, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let packed = pack(bytes);
        let offset = out.len() as u32;
        let mut common = Vec::new();
        common.extend([20u16, 0, method, 0, 33].iter().flat_map(|x| x.to_le_bytes()));
        let sizes = [crc32fast::hash(bytes), packed.len() as u32, bytes.len() as u32];
        common.extend(sizes.iter().flat_map(|x| x.to_le_bytes()));
        common.extend([name.len() as u16, 0].iter().flat_map(|x| x.to_le_bytes()));
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0u8; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, count) = (out.len() as u32, entries.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}
