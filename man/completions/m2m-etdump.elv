
use builtin;
use str;

set edit:completion:arg-completer[m2m-etdump] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'm2m-etdump'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'m2m-etdump'= {
            cand --etrecord 'The ETRecord of the export: graphs, debug handles and delegate maps'
            cand --trace 'A stream of records whose `instruction` and `handle` records carry the debug handles; it is passed through'
            cand --method 'Which method of a program with several; the dump itself does not say'
            cand --method-option 'What messages call the option that names a method, for programs that have another name for it'
            cand --source-time-scale 'What a tick of the runtime''s clock is: ns, us, ms, s or cycles'
            cand --target-time-scale 'What times are told in: ns, us, ms, s or cycles'
            cand --occurrences 'What to do with an event that repeats within a run: keep the last, as ExecuTorch''s own inspector does, or all'
            cand --debug-buffer 'The buffer with the tensors that the runtime logged'
            cand --tensors 'Write the logged tensors to a safetensors FILE, to which the records then point'
            cand --format 'How to tell it'
            cand --compare 'Compare two dumps event by event, and end with 1 when something became slower'
            cand --threshold 'Differences of medians below this many percent are not worth a verdict'
            cand -o 'Write to FILE, whole or not at all, instead of stdout'
            cand --output 'Write to FILE, whole or not at all, instead of stdout'
            cand --color 'Colour diagnostics: auto, always or never'
            cand --generate 'Write the manual page or a shell''s completions to stdout'
            cand --by-module 'One row or record for each module of the source model instead of each event; each instant of a run counts once'
            cand --html 'A page with a flame chart, which needs nothing but a browser'
            cand --raw 'Every field of the files as they are stored, unjoined'
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
