complete -c m2m-capture -s p -l program -d 'Which program of an archive with several' -r
complete -c m2m-capture -l weights -d 'Also write all weights and constants to a safetensors FILE, to which the records then point' -r -F
complete -c m2m-capture -l sample-inputs -d 'Also write the sample inputs to a safetensors FILE, as in_0, in_1, ...' -r -F
complete -c m2m-capture -l python -d 'The interpreter that runs a loader' -r -F
complete -c m2m-capture -l save-pt2 -d 'Where to save the archive of a loader; without it LOADER.pt2 in the working directory, if that is not there yet' -r -F
complete -c m2m-capture -l dynamic -d 'A dimension of a loader\'s input that is dynamic: `x:0=batch:1..64`, `x:0=batch`, or `x:0` for what export finds out' -r
complete -c m2m-capture -s o -l output -d 'Write to FILE, whole or not at all, instead of stdout' -r -F
complete -c m2m-capture -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-capture -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-capture -l strict -d 'Export a loader\'s model in torch.export\'s strict mode'
complete -c m2m-capture -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-capture -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-capture -s V -l version -d 'Print version'
