
use builtin;
use str;

set edit:completion:arg-completer[m2m-run] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'm2m-run'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'m2m-run'= {
            cand --engine 'What executes; without it torch where libtorch is found, else mlir'
            cand --module 'Execute this MLIR file instead, all of whose arguments are inputs'
            cand --entry 'The function to call in the file of --module'
            cand --inputs 'safetensors or npz file with in_0, in_1, ... or the inputs'' names; with --observe it may be repeated'
            cand --random 'Make the inputs: typed, in the ranges that the graph allows, the same for the same seed'
            cand --seed 'Seed of the random operators; the numbers of the two engines differ'
            cand --weights 'safetensors file with weights under their qualified names, for a program that came without them'
            cand --scalar 'A scalar input: `in_2=5`, `in_0=0.5`, `in_1=true`; may be repeated'
            cand --golden 'Write the outputs to a safetensors file'
            cand --trace-values 'Also write every intermediate of the graph to a safetensors file, by the name of its value (engine torch)'
            cand --observe 'Record what every float value is over all files of --inputs, and pass the stream on (engine torch)'
            cand --bins 'The most bins of a histogram'
            cand --percentile 'How many percent of the elements are within each end of the range of --observe percentile'
            cand --against 'Compare with what this gives on the same inputs: mlir or torch, or with --bisect a file of --trace-values'
            cand --bisect 'Find the first node whose value differs from that of --against, and write a stream of it alone'
            cand --compare 'Compare the outputs with those of a safetensors or npz file, or with the stream''s last golden record'
            cand --rtol 'Relative tolerance for floats, instead of the one of the output''s dtype'
            cand --atol 'Absolute tolerance for floats, instead of the one of the output''s dtype'
            cand --repeat 'Execute so many times, and say on stderr what compiling and the fastest execution took'
            cand --threads 'Threads of the engines torch and lattice; as many as they like if absent'
            cand --memory 'Most memory that compiled code may allocate, in MiB'
            cand --root 'Folder that relative paths in the stream start from, instead of the working directory'
            cand -o 'Write to FILE, whole or not at all, instead of stdout'
            cand --output 'Write to FILE, whole or not at all, instead of stdout'
            cand --color 'Colour diagnostics: auto, always or never'
            cand --generate 'Write the manual page or a shell''s completions to stdout'
            cand --refuse-nan 'An output that has a NaN is wrong, whatever it is compared with'
            cand --exact 'Floats must be equal too'
            cand -q 'Say nothing but warnings and errors'
            cand --quiet 'Say nothing but warnings and errors'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
    ]
    $completions[$command]
}
