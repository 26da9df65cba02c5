_m2m__etdump() {
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
                cmd="m2m__etdump"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        m2m__etdump)
            opts="-o -q -h -V --etrecord --trace --method --method-option --source-time-scale --target-time-scale --occurrences --debug-buffer --tensors --format --by-module --html --raw --compare --threshold --output --quiet --color --generate --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --etrecord)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --method)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --method-option)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source-time-scale)
                    COMPREPLY=($(compgen -W "ns us ms s cycles" -- "${cur}"))
                    return 0
                    ;;
                --target-time-scale)
                    COMPREPLY=($(compgen -W "ns us ms s cycles" -- "${cur}"))
                    return 0
                    ;;
                --occurrences)
                    COMPREPLY=($(compgen -W "last all" -- "${cur}"))
                    return 0
                    ;;
                --debug-buffer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "ndjson tsv csv md chrome-trace pprof model-explorer" -- "${cur}"))
                    return 0
                    ;;
                --compare)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threshold)
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
    complete -F _m2m__etdump -o nosort -o bashdefault -o default m2m-etdump
else
    complete -F _m2m__etdump -o bashdefault -o default m2m-etdump
fi
