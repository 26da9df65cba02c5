//! Convolutions, against values that PyTorch computes; and which named operation each kind becomes.

mod support;

use m2m_record::{Arg, DType, Type};
use support::{Tensor, assert_close, elements, graph, pretty, refusal, result, run, tensor, x};

const CONV: &str = "aten.convolution.default";

/// What a convolution is called with, after its tensors.
struct Call {
    bias: bool,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    transposed: bool,
    output_padding: Vec<i64>,
    groups: i64,
}

impl Call {
    fn plain(rank: usize) -> Self {
        let ones = vec![1; rank];
        let (zeros, dilation) = (vec![0; rank], ones.clone());
        let (padding, output_padding) = (zeros.clone(), zeros);
        Call { bias: false, stride: ones, padding, dilation, transposed: false, output_padding, groups: 1 }
    }

    fn args(self) -> Vec<Arg> {
        let bias = if self.bias { x(2) } else { Arg::Null };
        let lists = [self.stride, self.padding, self.dilation].map(Arg::ints);
        let [stride, padding, dilation] = lists;
        let transposed = Arg::Bool(self.transposed);
        vec![
            x(0),
            x(1),
            bias,
            stride,
            padding,
            dilation,
            transposed,
            Arg::ints(self.output_padding),
            Arg::Int(self.groups),
        ]
    }
}

fn counted(dims: &[i64]) -> Tensor {
    let count: i64 = dims.iter().product();
    tensor(dims, &(0..count).map(|k| (k + 1) as f32).collect::<Vec<_>>())
}

fn values(call: Call, inputs: &[Tensor], shape: &[&str]) -> Vec<f32> {
    elements(&run(CONV, call.args(), inputs, &[result(DType::F32, shape)])[0])
}

#[test]
fn strides_padding_dilation_and_bias() {
    let (stride, padding, dilation) = (vec![2, 1], vec![1, 0], vec![1, 2]);
    let inputs = [counted(&[1, 1, 4, 4]), tensor(&[1, 1, 2, 2], &[1.0f32, -1.0, 2.0, 0.5]), tensor(&[1], &[10.0f32])];
    let call = Call { bias: true, stride, padding, dilation, ..Call::plain(2) };
    assert_close(&values(call, &inputs, &["1", "1", "3", "2"]), &[13.5, 16.0, 31.5, 34.0, 8.0, 8.0]);
}

#[test]
fn sizes_known_only_when_it_runs() {
    let input = counted(&[1, 1, 4, 4]).declared(&["n", "c", "h", "w"]);
    let inputs = [input, tensor(&[1, 1, 2, 2], &[1.0f32, -1.0, 2.0, 0.5]).declared(&["f", "c", "2", "2"])];
    let call = Call { stride: vec![2, 1], padding: vec![1, 0], dilation: vec![1, 2], ..Call::plain(2) };
    let found = values(call, &inputs, &["n", "f", "h//2+1", "w-2"]);
    assert_close(&found, &[3.5, 6.0, 21.5, 24.0, -2.0, -2.0]);
}

#[test]
fn transposed_with_stride_padding_and_output_padding() {
    let inputs = || [counted(&[1, 1, 2, 2]), tensor(&[1, 1, 2, 2], &[1.0f32, -1.0, 2.0, 0.5])];
    let (stride, padding, output_padding) = (vec![2, 2], vec![1, 1], vec![1, 0]);
    let call = Call { stride, padding, output_padding, transposed: true, ..Call::plain(2) };
    assert_close(&values(call, &inputs(), &["1", "1", "3", "2"]), &[0.5, 4.0, -3.0, 4.0, 1.5, 8.0]);
    let call = Call { stride: vec![3, 1], transposed: true, ..Call::plain(2) };
    let expected = [1.0, 1.0, -2.0, 2.0, 4.5, 1.0, 0.0, 0.0, 0.0, 3.0, 1.0, -4.0, 6.0, 9.5, 2.0];
    assert_close(&values(call, &inputs(), &["1", "1", "5", "3"]), &expected);
}

#[test]
fn groups_see_their_part_of_the_channels() {
    let weight = tensor(&[2, 2, 2], &[1.0f32, 2.0, -1.0, 1.0, 0.5, -0.5, 3.0, 1.0]);
    let call = Call { groups: 2, ..Call::plain(1) };
    let found = values(call, &[counted(&[1, 4, 3]), weight], &["1", "2", "2"]);
    assert_close(&found, &[6.0, 9.0, 40.5, 44.5]);
    let call = Call { groups: 2, transposed: true, ..Call::plain(1) };
    let found = values(call, &[counted(&[1, 4, 3]), counted(&[4, 1, 2])], &["1", "2", "4"]);
    assert_close(&found, &[13.0, 35.0, 45.0, 30.0, 105.0, 239.0, 265.0, 150.0]);
}

#[test]
fn no_images_give_no_results() {
    let call = Call { padding: vec![1, 1], ..Call::plain(2) };
    let inputs = [tensor::<f32>(&[0, 1, 4, 4], &[]), counted(&[1, 1, 3, 3])];
    assert!(values(call, &inputs, &["0", "1", "4", "4"]).is_empty());
}

/// The module of a convolution of `dims` by a weight.
fn text(call: Call, input: &[i64], weight: &[i64], shape: &[&str]) -> String {
    let results: [Type; 1] = [result(DType::F32, shape)];
    let graph = graph(CONV, call.args(), &[counted(input), counted(weight)], &results);
    pretty(&graph)
}

#[test]
fn named_operations_where_there_are_any() {
    let groups = |groups, rank| Call { groups, ..Call::plain(rank) };
    let cases = [
        (text(groups(1, 1), &[1, 2, 5], &[3, 2, 2], &["1", "3", "4"]), "linalg.conv_1d_ncw_fcw"),
        (text(groups(1, 2), &[1, 2, 5, 4], &[3, 2, 2, 1], &["1", "3", "4", "4"]), "linalg.conv_2d_nchw_fchw"),
        (text(groups(4, 2), &[1, 4, 5, 4], &[4, 1, 2, 1], &["1", "4", "4", "4"]), "linalg.depthwise_conv_2d_nchw_chw"),
        (text(groups(2, 2), &[1, 4, 5, 4], &[4, 2, 2, 1], &["1", "4", "4", "4"]), "linalg.conv_2d_ngchw_gfchw"),
        (text(groups(2, 2), &[1, 2, 5, 4], &[4, 1, 2, 1], &["1", "4", "4", "4"]), "linalg.conv_2d_ngchw_gfchw"),
    ];
    for (text, name) in cases {
        assert!(text.contains(&format!("{name} ")), "no {name} in {text}");
    }
}

#[test]
fn refused_with_the_reason() {
    let results = [result(DType::F32, &["1", "1", "3", "3"])];
    let inputs = [counted(&[1, 1, 4, 4]), tensor(&[1, 1, 2, 2], &[0f64; 4])];
    assert_eq!(refusal(CONV, Call::plain(2).args(), &inputs, &results), "a convolution of f32 with a weight of f64");
    let inputs = [counted(&[1, 1, 4, 4]), counted(&[1, 1, 2, 2])];
    let call = Call { stride: vec![0, 1], ..Call::plain(2) };
    assert_eq!(refusal(CONV, call.args(), &inputs, &results), "stride of 0; 1 to 2147483648 is covered");
}
