
use builtin;
use str;

set edit:completion:arg-completer[m2m-lattice-verify] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'm2m-lattice-verify'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'m2m-lattice-verify'= {
            cand --weights 'The weights of a graph that is given alone'
            cand --list 'List the operations with their rules, or the codes of findings, and end'
            cand -o 'Write to FILE, whole or not at all, instead of stdout'
            cand --output 'Write to FILE, whole or not at all, instead of stdout'
            cand --color 'Colour diagnostics: auto, always or never'
            cand --generate 'Write the manual page or a shell''s completions to stdout'
            cand --strict 'Refuse what is only warned of, too: loose roles, unused operations, shifted windows'
            cand --native 'Write the one JSON document that the contract''s own runtime takes, instead of records'
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
