complete -c m2m-run -l engine -d 'What executes; without it torch where libtorch is found, else mlir' -r -f -a "mlir\t'The module, compiled through MLIR in this process'
torch\t'The current graph, through libtorch'
lattice\t'The plan of a sparse model, on the CPU'"
complete -c m2m-run -l module -d 'Execute this MLIR file instead, all of whose arguments are inputs' -r -F
complete -c m2m-run -l entry -d 'The function to call in the file of --module' -r
complete -c m2m-run -l inputs -d 'safetensors or npz file with in_0, in_1, ... or the inputs\' names; with --observe it may be repeated' -r -F
complete -c m2m-run -l random -d 'Make the inputs: typed, in the ranges that the graph allows, the same for the same seed' -r
complete -c m2m-run -l seed -d 'Seed of the random operators; the numbers of the two engines differ' -r
complete -c m2m-run -l weights -d 'safetensors file with weights under their qualified names, for a program that came without them' -r -F
complete -c m2m-run -l scalar -d 'A scalar input: `in_2=5`, `in_0=0.5`, `in_1=true`; may be repeated' -r
complete -c m2m-run -l golden -d 'Write the outputs to a safetensors file' -r -F
complete -c m2m-run -l trace-values -d 'Also write every intermediate of the graph to a safetensors file, by the name of its value (engine torch)' -r -F
complete -c m2m-run -l observe -d 'Record what every float value is over all files of --inputs, and pass the stream on (engine torch)' -r -f -a "minmax\t'The least and the greatest element'
histogram\t'Also how often elements fell where'
percentile\t'Also the range without the tails, found through a histogram'"
complete -c m2m-run -l bins -d 'The most bins of a histogram' -r
complete -c m2m-run -l percentile -d 'How many percent of the elements are within each end of the range of --observe percentile' -r
complete -c m2m-run -l against -d 'Compare with what this gives on the same inputs: mlir or torch, or with --bisect a file of --trace-values' -r
complete -c m2m-run -l bisect -d 'Find the first node whose value differs from that of --against, and write a stream of it alone' -r -F
complete -c m2m-run -l compare -d 'Compare the outputs with those of a safetensors or npz file, or with the stream\'s last golden record' -r -F
complete -c m2m-run -l rtol -d 'Relative tolerance for floats, instead of the one of the output\'s dtype' -r
complete -c m2m-run -l atol -d 'Absolute tolerance for floats, instead of the one of the output\'s dtype' -r
complete -c m2m-run -l repeat -d 'Execute so many times, and say on stderr what compiling and the fastest execution took' -r
complete -c m2m-run -l threads -d 'Threads of the engines torch and lattice; as many as they like if absent' -r
complete -c m2m-run -l memory -d 'Most memory that compiled code may allocate, in MiB' -r
complete -c m2m-run -l root -d 'Folder that relative paths in the stream start from, instead of the working directory' -r -F
complete -c m2m-run -s o -l output -d 'Write to FILE, whole or not at all, instead of stdout' -r -F
complete -c m2m-run -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-run -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-run -l refuse-nan -d 'An output that has a NaN is wrong, whatever it is compared with'
complete -c m2m-run -l exact -d 'Floats must be equal too'
complete -c m2m-run -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-run -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-run -s V -l version -d 'Print version'
