complete -c m2m-hash -s o -l output -d 'Write to FILE, whole or not at all, instead of stdout' -r -F
complete -c m2m-hash -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-hash -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-hash -s c -l check -d 'Check a bundle, a stream, or a list of digests and its FOLDER'
complete -c m2m-hash -l canonical-json -d 'Print a JSON file in canonical form (RFC 8785, 64-bit integers exact)'
complete -c m2m-hash -l seal -d 'Rewrite the seals and the end of a stream that was edited on purpose'
complete -c m2m-hash -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-hash -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-hash -s V -l version -d 'Print version'
