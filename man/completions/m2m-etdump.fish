complete -c m2m-etdump -l etrecord -d 'The ETRecord of the export: graphs, debug handles and delegate maps' -r -F
complete -c m2m-etdump -l trace -d 'A stream of records whose `instruction` and `handle` records carry the debug handles; it is passed through' -r -F
complete -c m2m-etdump -l method -d 'Which method of a program with several; the dump itself does not say' -r
complete -c m2m-etdump -l method-option -d 'What messages call the option that names a method, for programs that have another name for it' -r
complete -c m2m-etdump -l source-time-scale -d 'What a tick of the runtime\'s clock is: ns, us, ms, s or cycles' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'
s\t'Seconds'
cycles\t'Cycles of a clock, which convert to nothing else'"
complete -c m2m-etdump -l target-time-scale -d 'What times are told in: ns, us, ms, s or cycles' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'
s\t'Seconds'
cycles\t'Cycles of a clock, which convert to nothing else'"
complete -c m2m-etdump -l occurrences -d 'What to do with an event that repeats within a run: keep the last, as ExecuTorch\'s own inspector does, or all' -r -f -a "last\t'The last'
all\t'All, numbered'"
complete -c m2m-etdump -l debug-buffer -d 'The buffer with the tensors that the runtime logged' -r -F
complete -c m2m-etdump -l tensors -d 'Write the logged tensors to a safetensors FILE, to which the records then point' -r -F
complete -c m2m-etdump -l format -d 'How to tell it' -r -f -a "ndjson\t''
tsv\t''
csv\t''
md\t''
chrome-trace\t''
pprof\t''
model-explorer\t''"
complete -c m2m-etdump -l compare -d 'Compare two dumps event by event, and end with 1 when something became slower' -r -F
complete -c m2m-etdump -l threshold -d 'Differences of medians below this many percent are not worth a verdict' -r
complete -c m2m-etdump -s o -l output -d 'Write to FILE, whole or not at all, instead of stdout' -r -F
complete -c m2m-etdump -l color -d 'Colour diagnostics: auto, always or never' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c m2m-etdump -l generate -d 'Write the manual page or a shell\'s completions to stdout' -r -f -a "man\t'The manual page, section 1'
bash\t'Completions for bash'
zsh\t'Completions for zsh'
fish\t'Completions for fish'
elvish\t'Completions for elvish'"
complete -c m2m-etdump -l by-module -d 'One row or record for each module of the source model instead of each event; each instant of a run counts once'
complete -c m2m-etdump -l html -d 'A page with a flame chart, which needs nothing but a browser'
complete -c m2m-etdump -l raw -d 'Every field of the files as they are stored, unjoined'
complete -c m2m-etdump -s q -l quiet -d 'Say nothing but warnings and errors'
complete -c m2m-etdump -s h -l help -d 'Print help (see more with \'--help\')'
complete -c m2m-etdump -s V -l version -d 'Print version'
