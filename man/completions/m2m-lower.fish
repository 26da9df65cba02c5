complete -c m2m-lower -l to -d 'Target dialect' -r -f -a "linalg\t'linalg on tensors, with tensor, arith, math, scf, cf and func'
torch\t'The torch dialect of torch-mlir, as iree-compile --iree-input-type=torch takes it'
lattice\t'The sparse dialect lattice, IR version 2'"
complete -c m2m-lower -l emit -d 'What to write' -r -f -a "records\t'The record stream with the module in it'
mlir\t'The module alone'"
complete -c m2m-lower -l form -d 'How to write the module' -r -f -a "generic\t'Text that every LLVM release reads'
pretty\t'Text in the dialects\' own syntax, for people and for LLVM 22'
bytecode\t'MLIR bytecode, version 4'"
complete -c m2m-lower -l bind-weights -d 'How weights reach the function' -r -f -a "args\t'As its first arguments'
iree\t'As globals that iree-run-module binds with --parameters=model=FILE'"
complete -c m2m-lower -l locations -d 'Where operations say they come from' -r -f -a "source\t'Module path, file and line'
none\t'Nowhere'"
complete -c m2m-lower -l packed-for -d 'The machine that packed the program\'s matrices of 4-bit weights (aten._weight_int4pack_mm_for_cpu), whose layout it decides [default: avx512, with a warning]' -r -f -a "avx512\t'x86 with AVX-512'
avx2\t'x86 with AVX2'
sve256\t'Arm with SVE of 256 bits'
neon\t'Arm without'
default\t'x86 without either, or ATEN_CPU_CAPABILITY=default'"
complete -c m2m-lower -l module -d 'File for a module that is bytecode or over 1 MiB [default: MODEL.m2m-lower.mlir or .mlirbc]' -r -F
complete -c m2m-lower -s o -l output -d 'Write to FILE, whole or not at all, instead of stdout' -r -F
complete -c m2m-lower -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-lower -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-lower -l opaque -d 'Call functions that are only declared for what no rule covers; the module\'s record lists them'
complete -c m2m-lower -l trace -d 'Name the prepared node on every operation, as the attribute m2m.node'
complete -c m2m-lower -l force -d 'Replace that file if it holds something else'
complete -c m2m-lower -l list-ops -d 'List the operators that are lowered directly or by decomposition, and stop'
complete -c m2m-lower -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-lower -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-lower -s V -l version -d 'Print version'
