
use builtin;
use str;

set edit:completion:arg-completer[m2m-capture] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'm2m-capture'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'m2m-capture'= {
            cand -p 'Which program of an archive with several'
            cand --program 'Which program of an archive with several'
            cand --weights 'Also write all weights and constants to a safetensors FILE, to which the records then point'
            cand --sample-inputs 'Also write the sample inputs to a safetensors FILE, as in_0, in_1, ...'
            cand --python 'The interpreter that runs a loader'
            cand --save-pt2 'Where to save the archive of a loader; without it LOADER.pt2 in the working directory, if that is not there yet'
            cand --dynamic 'A dimension of a loader''s input that is dynamic: `x:0=batch:1..64`, `x:0=batch`, or `x:0` for what export finds out'
            cand -o 'Write to FILE, whole or not at all, instead of stdout'
            cand --output 'Write to FILE, whole or not at all, instead of stdout'
            cand --color 'Colour diagnostics: auto, always or never'
            cand --generate 'Write the manual page or a shell''s completions to stdout'
            cand --strict 'Export a loader''s model in torch.export''s strict mode'
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
