//! Arguments of nodes, graph inputs and graph outputs.

use super::tensor::Device;
use super::{Graph, Ignored, Pairs, Real, Text};

union! {
    /// An argument, by kind.
    Argument<'a> {
        as_none => None(Ignored),
        as_tensor => Tensor(TensorArgument<'a>),
        as_tensors => Tensors(Vec<TensorArgument<'a>>),
        as_optional_tensor => OptionalTensor(OptionalTensor<'a>),
        as_optional_tensors => OptionalTensors(Vec<OptionalTensor<'a>>),
        as_nested_tensors => NestedTensors(Vec<Vec<TensorArgument<'a>>>),
        as_int => Int(i64),
        as_ints => Ints(Vec<i64>),
        as_int_lists => IntLists(Vec<Vec<i64>>),
        as_float => Float(Real),
        as_floats => Floats(Vec<Real>),
        as_float_lists => FloatLists(Vec<Vec<Real>>),
        as_bool => Bool(bool),
        as_bools => Bools(Vec<bool>),
        as_string => Str(Text<'a>),
        as_strings => Strs(Vec<Text<'a>>),
        as_complex => Complex(Complex<'a>),
        as_sym_int => SymInt(SymIntArgument<'a>),
        as_sym_ints => SymInts(Vec<SymIntArgument<'a>>),
        as_sym_float => SymFloat(SymFloatArgument<'a>),
        as_sym_floats => SymFloats(Vec<SymFloatArgument<'a>>),
        as_sym_bool => SymBool(SymBoolArgument<'a>),
        as_sym_bools => SymBools(Vec<SymBoolArgument<'a>>),
        as_scalar_type => ScalarType(i64),
        as_memory_format => MemoryFormat(i64),
        as_layout => Layout(i64),
        as_device => Device(Device<'a>),
        as_graph => Graph(Box<GraphArgument<'a>>),
        as_custom_obj => CustomObj(CustomObjArgument<'a>),
        as_operator => Operator(Text<'a>),
        as_string_to_argument => Map(Pairs<'a, Argument<'a>>),
    }
}

object! {
    /// A tensor value by name.
    TensorArgument {
        /// Its name.
        need name: Text<'a>,
    }
}

union! {
    /// A tensor or nothing, as in the indices of `index`.
    OptionalTensor<'a> { as_tensor => Tensor(TensorArgument<'a>), as_none => None(Ignored) }
}

union! {
    /// An int value by name, or an int.
    SymIntArgument<'a> { as_name => Name(Text<'a>), as_int => Int(i64) }
}

union! {
    /// A float value by name, or a float.
    SymFloatArgument<'a> { as_name => Name(Text<'a>), as_float => Float(Real) }
}

union! {
    /// A bool value by name, or a bool.
    SymBoolArgument<'a> { as_name => Name(Text<'a>), as_bool => Bool(bool) }
}

object! {
    /// A complex number.
    Complex {
        /// Real part.
        need real: Real,
        /// Imaginary part.
        need imag: Real,
    }
}

object! {
    /// A nested graph.
    GraphArgument {
        /// The attribute that held it.
        need name: Text<'a>,
        /// Its body.
        need graph: Graph<'a>,
    }
}

object! {
    /// A torchbind object by the name of its value.
    CustomObjArgument {
        /// Its value's name.
        need name: Text<'a>,
        /// Its class.
        may class_fqn: Text<'a>,
    }
}
