complete -c m2m-lattice-verify -l weights -d 'The weights of a graph that is given alone' -r -F
complete -c m2m-lattice-verify -l list -d 'List the operations with their rules, or the codes of findings, and end' -r -f -a "ops\t'Every operation: what it takes, gives and must satisfy'
codes\t'Every code of a finding: how bad it is and what it means'"
complete -c m2m-lattice-verify -s o -l output -d 'Write to FILE, whole or not at all, instead of stdout' -r -F
complete -c m2m-lattice-verify -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-lattice-verify -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-lattice-verify -l strict -d 'Refuse what is only warned of, too: loose roles, unused operations, shifted windows'
complete -c m2m-lattice-verify -l native -d 'Write the one JSON document that the contract\'s own runtime takes, instead of records'
complete -c m2m-lattice-verify -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-lattice-verify -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-lattice-verify -s V -l version -d 'Print version'
