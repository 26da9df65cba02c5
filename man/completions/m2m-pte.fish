complete -c m2m-pte -l extract-delegates -d 'Write delegate payloads to DIR, which is made whole or not at all' -r -F
complete -c m2m-pte -s m -l method -d 'Only this method' -r
complete -c m2m-pte -l delegate -d 'When extracting: only delegates of this index' -r
complete -c m2m-pte -l backend -d 'When extracting: only delegates of this backend' -r
complete -c m2m-pte -l format -d 'Write `records`, or a `table` for people' -r -f -a "records\t'A record stream'
table\t'Tables for people'"
complete -c m2m-pte -s o -l output -d 'Write to FILE, whole or not at all, instead of stdout' -r -F
complete -c m2m-pte -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-pte -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-pte -l diff -d 'Print in what two programs differ, wherever things lie in the files'
complete -c m2m-pte -l raw -d 'Print every field as stored, as one JSON object'
complete -c m2m-pte -l single -d 'When extracting: refuse what does not stand for the whole program'
complete -c m2m-pte -l force -d 'When extracting: replace a DIR that is there'
complete -c m2m-pte -l digests -d 'Add SHA-256 digests of segments, constants, named data and payloads'
complete -c m2m-pte -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-pte -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-pte -s V -l version -d 'Print version'
