
use builtin;
use str;

set edit:completion:arg-completer[m2m-lower] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'm2m-lower'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'m2m-lower'= {
            cand --to 'Target dialect'
            cand --emit 'What to write'
            cand --form 'How to write the module'
            cand --bind-weights 'How weights reach the function'
            cand --locations 'Where operations say they come from'
            cand --packed-for 'The machine that packed the program''s matrices of 4-bit weights (aten._weight_int4pack_mm_for_cpu), whose layout it decides [default: avx512, with a warning]'
            cand --module 'File for a module that is bytecode or over 1 MiB [default: MODEL.m2m-lower.mlir or .mlirbc]'
            cand -o 'Write to FILE, whole or not at all, instead of stdout'
            cand --output 'Write to FILE, whole or not at all, instead of stdout'
            cand --color 'Colour diagnostics: auto, always or never'
            cand --generate 'Write the manual page or a shell''s completions to stdout'
            cand --opaque 'Call functions that are only declared for what no rule covers; the module''s record lists them'
            cand --trace 'Name the prepared node on every operation, as the attribute m2m.node'
            cand --force 'Replace that file if it holds something else'
            cand --list-ops 'List the operators that are lowered directly or by decomposition, and stop'
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
