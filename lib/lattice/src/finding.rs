//! What is found in a graph: stable codes, places, words.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The graph is refused.
    Error,
    /// The graph can be run, but is probably not what was meant; refused by a strict check.
    Warning,
    /// For information.
    Note,
}

macro_rules! codes {
    ($($variant:ident $name:literal $severity:ident $meaning:literal),* $(,)?) => {
        /// Which rule a finding is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $meaning] $variant),* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// Its stable name.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            /// How bad its findings are.
            pub const fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity),* }
            }

            /// The rule in words.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    Encoding "encoding" Error "the text is UTF-8, and so is every string in it",
    Syntax "syntax" Error "the text is MLIR",
    Nesting "nesting" Error "brackets are nested at most 256 deep",
    NumberRange "number-range" Error "a number fits its type",
    UnknownAlias "unknown-alias" Error "an alias is defined before it is used",
    Redefinition "redefinition" Error "a name is defined once",
    DuplicateAttribute "duplicate-attribute" Error "a key stands once in a dictionary",
    UndefinedValue "undefined-value" Error "a value that is used is defined",
    UseBeforeDefinition "use-before-definition" Error "a value is defined before it is used",
    ValueType "value-type" Error "a value has one type",
    Bytecode "bytecode" Error "the bytes are MLIR bytecode",
    TooMany "too-many" Error "a graph has fewer defects than are worth listing",

    Module "module" Error "the file is one module",
    IrVersion "ir-version" Error "lattice.ir_version is 2",
    SchemaDigest "schema-digest" Error "lattice.schema_digest is that of IR version 2",
    WeightFile "weight-file" Error "lattice.weight_file is weights.safetensors",
    EntryCount "entry-count" Error "the module has exactly one function",
    EntryName "entry-name" Error "the function is @forward",
    EntryResults "entry-results" Error "the function returns at least one value",
    EntryBody "entry-body" Error "the function has a body of one block",
    AbiNames "abi-names" Error "every argument and result has a name that is not empty and not taken",
    AbiRoles "abi-roles" Error "every argument and result has one of the roles",
    RoleType "role-type" Error "a role of a sparse value or part stands with a type that can be one",
    ArgumentType "argument-type" Error "an argument is a ranked tensor, which a caller can bind",
    ReturnTypes "return-types" Error "what is returned has the types that the function declares",
    ForeignOp "foreign-op" Error "the body holds only operations of lattice and func.return",

    Regions "regions" Error "an operation of lattice holds no regions",
    OperandCount "operand-count" Error "an operation has as many operands as it takes",
    ResultCount "result-count" Error "an operation has as many results as it gives",
    OperandClass "operand-class" Error "an operand is of the class that its operation takes",
    ResultClass "result-class" Error "a result is of the class that its operation gives",
    MissingAttribute "missing-attribute" Error "an operation has all of its attributes",
    AttributeKind "attribute-kind" Error "an attribute holds what its operation wants there",
    UnknownAttribute "unknown-attribute" Error "an operation has no other attributes, which the plan would refuse",
    Keyword "keyword" Error "a keyword is one of its set",

    Convention "convention" Error "a sparse type has rank 3, coordinates batch_x_y_z, features row_channel and a number as element",
    SameConvention "same-convention" Error "sparse values that meet agree in rank, coordinates and features",
    WeightFamily "weight-family" Error "a weight operand is of the family that its operation takes",
    Rank "rank" Error "a tensor has the rank that its operation wants",
    AxisSize "axis-size" Error "an axis has the static size that its operation wants",
    SameRows "same-rows" Error "tensors that go row by row have as many rows",
    Element "element" Error "a tensor has the element that its operation wants",
    SameElement "same-element" Error "values that meet have the same element",
    Positive "positive" Error "a number is above zero and finite",
    NonNegative "non-negative" Error "a number is zero or more, and finite",
    Finite "finite" Error "a number is finite",
    Odd "odd" Error "a submanifold kernel is odd along every axis",
    Value "value" Error "an attribute has one of the values that are allowed",
    EmptyString "empty-string" Error "a storage key is not empty",
    ForbiddenAttribute "forbidden-attribute" Error "an operation that fixes an attribute does not carry it",
    CoordOrder "coord-order" Error "coord_order is that of the result's type",
    WeightLayout "weight-layout" Error "a weight's layout is that of its family",
    Packing "packing" Error "a packed weight is conv3d or linear, int4 or int8, affine, in groups of 32, 64 or 128",

    KernelVolume "kernel-volume" Error "kernel, stride, padding and dilation fit 32-bit coordinates",
    PackedOperand "packed-operand" Error "an operation that takes a packed weight can unpack it",
    DenseElement "dense-element" Error "a dense convolution or linear weight has the element of the features",
    StrideDivision "stride-division" Error "a transposed operation divides the stride of its input",
    StrideMatch "stride-match" Error "sparse values that meet have the same stride",
    Channels "channels" Error "channel counts agree along the graph",

    WeightsFormat "weights-format" Error "the weights file is safetensors",
    WeightMissing "weight-missing" Error "every storage key is in the weights file",
    WeightDtype "weight-dtype" Error "a stored tensor has the element that the graph declares",
    WeightShape "weight-shape" Error "a stored tensor has the shape of its layout, and of its kernel",

    StrayOp "stray-op" Warning "nothing stands beside the function",
    DuplicateSymbol "duplicate-symbol" Warning "two weights have two symbols",
    LooseRole "loose-role" Warning "a sparse value or part has a role that says so",
    UnusedOp "unused-op" Warning "what an operation gives reaches a result of the function",
    ShiftedWindow "shifted-window" Warning "an odd kernel, which is centred, has no padding to shift it",
    RepeatedRows "repeated-rows" Warning "a generative kernel is no larger than its stride",
    EmptyRows "empty-rows" Warning "a max pooling window covers its stride, so that no row is the maximum of nothing",
    More "more" Note "there are no more warnings and notes than are worth listing",
    UnusedTensor "unused-tensor" Note "every tensor of the weights file is bound",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Most errors that are kept, and most of all else: a text that is something else entirely would give one for every line.
pub const MAX_FINDINGS: usize = 200;

/// A place in the graph's bytes.
pub type Offset = u32;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule.
    pub code: Code,
    /// Where in the graph's text; `None` for bytecode and for what has no place there.
    pub at: Option<Offset>,
    /// What was found and what would be right, with the operation's name first where it is about one.
    pub message: String,
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// Findings as they come, up to [`MAX_FINDINGS`] errors and as many others.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    errors: usize,
    dropped_errors: usize,
    dropped_others: usize,
}

impl Findings {
    /// Adds one.
    pub fn push(&mut self, code: Code, at: impl Into<Option<Offset>>, message: impl Into<String>) {
        let is_error = code.severity() == Severity::Error;
        let count = if is_error { self.errors } else { self.list.len() - self.errors };
        if count < MAX_FINDINGS {
            self.errors += usize::from(is_error);
            self.list.push(Finding { code, at: at.into(), message: message.into() });
        } else if is_error {
            self.dropped_errors += 1;
        } else {
            self.dropped_others += 1;
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Forgets what came after the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.list.truncate(count);
        self.errors = self.list.iter().filter(|each| each.severity() == Severity::Error).count();
        (self.dropped_errors, self.dropped_others) = (0, 0);
    }

    /// Whether no more errors are kept.
    pub fn is_full(&self) -> bool {
        self.errors >= MAX_FINDINGS
    }

    /// Whether one of them refuses the graph.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All of them, in the order of the text; those without a place come last.
    pub fn into_sorted(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|each| each.at.unwrap_or(Offset::MAX));
        for (code, dropped) in [(Code::TooMany, self.dropped_errors), (Code::More, self.dropped_others)] {
            if dropped > 0 {
                let what = if code == Code::More { "warnings and notes" } else { "errors" };
                self.list.push(Finding { code, at: None, message: format!("{dropped} more {what} are not listed") });
            }
        }
        self.list
    }
}

/// Line and column of an offset, both counted from 1; columns are bytes, as MLIR counts them.
pub fn line_column(text: &[u8], at: Offset) -> (u64, u64) {
    let before = text.get(..at as usize).unwrap_or(text);
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
    let lines = before.iter().filter(|b| **b == b'\n').count();
    (lines as u64 + 1, (before.len() - start) as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        let names: std::collections::HashSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn many_warnings_do_not_hide_an_error() {
        let mut findings = Findings::default();
        (0..300).for_each(|at| findings.push(Code::UnusedOp, at, "x"));
        assert!(!findings.has_errors());
        findings.push(Code::Syntax, 300, "y");
        assert!(findings.has_errors());
        let found = findings.into_sorted();
        assert_eq!((found.len(), found[200].code, found[201].code), (202, Code::Syntax, Code::More));
    }

    #[test]
    fn columns_count_bytes() {
        assert_eq!(line_column(b"ab\ncd", 0), (1, 1));
        assert_eq!(line_column(b"ab\ncd", 4), (2, 2));
        assert_eq!(line_column(b"ab\ncd", 2), (1, 3));
    }
}
