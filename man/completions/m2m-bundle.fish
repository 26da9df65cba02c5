complete -c m2m-bundle -s o -l output -d 'Folder to write; it must not exist, or be empty' -r -F
complete -c m2m-bundle -l root -d 'Folder that relative paths in the stream start from, instead of the working directory' -r -F
complete -c m2m-bundle -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-bundle -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-bundle -l force -d 'Replace DIR with all that is in it'
complete -c m2m-bundle -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-bundle -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-bundle -s V -l version -d 'Print version'
