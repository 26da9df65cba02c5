_m2m__lower() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="m2m__lower"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        m2m__lower)
            opts="-o -q -h -V --to --emit --form --bind-weights --locations --opaque --packed-for --trace --module --force --list-ops --output --quiet --color --generate --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --to)
                    COMPREPLY=($(compgen -W "linalg torch lattice" -- "${cur}"))
                    return 0
                    ;;
                --emit)
                    COMPREPLY=($(compgen -W "records mlir" -- "${cur}"))
                    return 0
                    ;;
                --form)
                    COMPREPLY=($(compgen -W "generic pretty bytecode" -- "${cur}"))
                    return 0
                    ;;
                --bind-weights)
                    COMPREPLY=($(compgen -W "args iree" -- "${cur}"))
                    return 0
                    ;;
                --locations)
                    COMPREPLY=($(compgen -W "source none" -- "${cur}"))
                    return 0
                    ;;
                --packed-for)
                    COMPREPLY=($(compgen -W "avx512 avx2 sve256 neon default" -- "${cur}"))
                    return 0
                    ;;
                --module)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --generate)
                    COMPREPLY=($(compgen -W "man bash zsh fish elvish" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _m2m__lower -o nosort -o bashdefault -o default m2m-lower
else
    complete -F _m2m__lower -o bashdefault -o default m2m-lower
fi
