
use builtin;
use str;

set edit:completion:arg-completer[m2m-pte] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'm2m-pte'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'m2m-pte'= {
            cand --extract-delegates 'Write delegate payloads to DIR, which is made whole or not at all'
            cand -m 'Only this method'
            cand --method 'Only this method'
            cand --delegate 'When extracting: only delegates of this index'
            cand --backend 'When extracting: only delegates of this backend'
            cand --format 'Write `records`, or a `table` for people'
            cand -o 'Write to FILE, whole or not at all, instead of stdout'
            cand --output 'Write to FILE, whole or not at all, instead of stdout'
            cand --color 'Colour diagnostics: auto, always or never'
            cand --generate 'Write the manual page or a shell''s completions to stdout'
            cand --diff 'Print in what two programs differ, wherever things lie in the files'
            cand --raw 'Print every field as stored, as one JSON object'
            cand --single 'When extracting: refuse what does not stand for the whole program'
            cand --force 'When extracting: replace a DIR that is there'
            cand --digests 'Add SHA-256 digests of segments, constants, named data and payloads'
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
