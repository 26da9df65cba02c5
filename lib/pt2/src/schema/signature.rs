//! What inputs and outputs mean, and the calling conventions of the program and of preserved submodules.

use super::argument::{Argument, CustomObjArgument, TensorArgument};
use super::{Ignored, Real, Text};

object! {
    /// One spec for each graph input and each graph output, in order.
    GraphSignature {
        /// Inputs.
        need input_specs: Vec<InputSpec<'a>>,
        /// Outputs.
        need output_specs: Vec<OutputSpec<'a>>,
    }
}

union! {
    /// What an input is.
    InputSpec<'a> {
        user_input => UserInput(ArgumentSpec<'a>),
        parameter => Parameter(ParameterSpec<'a>),
        buffer => Buffer(BufferSpec<'a>),
        tensor_constant => TensorConstant(TensorConstantSpec<'a>),
        custom_obj => CustomObj(CustomObjSpec<'a>),
        token => Token(NameSpec<'a>),
        constant_input => ConstantInput(ConstantInputSpec<'a>),
    }
}

union! {
    /// What an output is.
    OutputSpec<'a> {
        user_output => UserOutput(ArgumentSpec<'a>),
        loss_output => LossOutput(NameSpec<'a>),
        buffer_mutation => BufferMutation(BufferMutationSpec<'a>),
        parameter_mutation => ParameterMutation(ParameterSpec<'a>),
        gradient_to_parameter => GradientToParameter(ParameterSpec<'a>),
        gradient_to_user_input => GradientToUserInput(UserInputSpec<'a>),
        user_input_mutation => UserInputMutation(UserInputSpec<'a>),
        token => Token(NameSpec<'a>),
    }
}

object! {
    /// Any argument.
    ArgumentSpec {
        /// The argument.
        need arg: Argument<'a>,
    }
}

object! {
    /// A value and nothing else.
    NameSpec {
        /// The value.
        need arg: TensorArgument<'a>,
    }
}

object! {
    /// A value and a parameter.
    ParameterSpec {
        /// The value.
        need arg: TensorArgument<'a>,
        /// Qualified name.
        need parameter_name: Text<'a>,
    }
}

object! {
    /// A value and a buffer.
    BufferSpec {
        /// The value.
        need arg: TensorArgument<'a>,
        /// Qualified name.
        need buffer_name: Text<'a>,
        /// Whether it is part of the state dict.
        need persistent: bool,
    }
}

object! {
    /// A value that a buffer takes after the call.
    BufferMutationSpec {
        /// The value.
        need arg: TensorArgument<'a>,
        /// Qualified name.
        need buffer_name: Text<'a>,
    }
}

object! {
    /// A value and a lifted constant.
    TensorConstantSpec {
        /// The value.
        need arg: TensorArgument<'a>,
        /// Qualified name.
        need tensor_constant_name: Text<'a>,
    }
}

object! {
    /// A value and a torchbind object.
    CustomObjSpec {
        /// The value.
        need arg: CustomObjArgument<'a>,
        /// Qualified name.
        need custom_obj_name: Text<'a>,
    }
}

object! {
    /// A value and the user input it belongs to.
    UserInputSpec {
        /// The value.
        need arg: TensorArgument<'a>,
        /// The input's value name.
        need user_input_name: Text<'a>,
    }
}

object! {
    /// An input whose value was fixed at export.
    ConstantInputSpec {
        /// Its name.
        need name: Text<'a>,
        /// Its value.
        need value: ConstantValue<'a>,
    }
}

union! {
    /// A constant that is no tensor.
    ConstantValue<'a> {
        as_none => None(Ignored),
        as_int => Int(i64),
        as_float => Float(Real),
        as_string => Str(Text<'a>),
        as_bool => Bool(bool),
    }
}

object! {
    /// A module, and its signature if it was preserved.
    ModuleCallEntry {
        /// Qualified name; empty for the program itself.
        may fqn: Text<'a>,
        /// How it is called.
        may signature: Option<ModuleCallSignature<'a>>,
    }
}

object! {
    /// How a module is called.
    ModuleCallSignature {
        /// Flat inputs.
        may inputs: Vec<Argument<'a>>,
        /// Flat outputs.
        may outputs: Vec<Argument<'a>>,
        /// Pytree of `(args, kwargs)`, as JSON text.
        need in_spec: Text<'a>,
        /// Pytree of the result, as JSON text.
        need out_spec: Text<'a>,
        /// Names of the arguments.
        may forward_arg_names: Option<Vec<Text<'a>>>,
    }
}
