complete -c m2m-run -l engine -d 'What executes' -r -f -a "mlir\t'The module, compiled through MLIR in this process'
torch\t'The current graph, through libtorch'"
complete -c m2m-run -l module -d 'Execute this MLIR file instead, all of whose arguments are inputs' -r -F
complete -c m2m-run -l entry -d 'The function to call in the file of --module' -r
complete -c m2m-run -l inputs -d 'safetensors file with in_0, in_1, ...' -r -F
complete -c m2m-run -l scalar -d 'A scalar input: `in_2=5`, `in_0=0.5`, `in_1=true`; may be repeated' -r
complete -c m2m-run -l golden -d 'Write the outputs to a safetensors file' -r -F
complete -c m2m-run -l compare -d 'Compare the outputs with those of a safetensors file' -r -F
complete -c m2m-run -l rtol -d 'Relative tolerance for floats, instead of the one of the output\'s dtype' -r
complete -c m2m-run -l atol -d 'Absolute tolerance for floats, instead of the one of the output\'s dtype' -r
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
complete -c m2m-run -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-run -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-run -s V -l version -d 'Print version'
