# Bash completion for cudatrace and cudatraced. Source it, or install it in a folder of bash-completion. Commands, options,
# kinds of values and sections are read from the help texts. Tested by tests/e2e/completion.sh.

# Offers the words of $1 that begin with the current word.
_cudatrace_words()
{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Offers files (-f) or folders (-d).
_cudatrace_paths()
{
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

# Offers sessions: the names after the user in /dev/shm/cudatrace.UID.SESSION. They have no dot.
_cudatrace_sessions()
{
    local path names=() files=${CUDATRACE_SHM_DIR:-/dev/shm}/cudatrace.$EUID.
    for path in "$files"*; do
        [[ -e $path ]] || continue
        path=${path#"$files"}
        names+=("${path%%.*}")
    done
    mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$cur" | sort -u)
}

# Offers the processes of the trace on the command line.
_cudatrace_pids()
{
    local i database=trace.db
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == --db ]]; then
            database=${COMP_WORDS[i + 1]}
            [[ $database != = ]] || database=${COMP_WORDS[i + 2]-}
        fi
    done
    _cudatrace_words "$("${COMP_WORDS[0]}" sql --db "${database//\\/}" --format csv \
        'SELECT DISTINCT pid FROM processes' 2>/dev/null | tail -n +2)"
}

# Prints the kind of value that option $1 takes, as named in the help. Prints nothing if it takes none.
_cudatrace_kind()
{
    [[ $1 != --* ]] || sed -nE "s/^  $1 (([a-z]+\|)*[A-Z]+)( .*)?$/\1/p" <<<"$help"
}

# Offers values of option $1. Fails if it takes none.
_cudatrace_value()
{
    local kind choices
    kind=$(_cudatrace_kind "$1")
    [[ $kind ]] || return 1
    choices=$(sed -nE "s/.*\[$1 ([a-z]+(\|[a-z]+)+)\].*/\1/p" <<<"$help")
    case "$1 $kind" in
    *' FILE') _cudatrace_paths -f ;;
    *' DIR') _cudatrace_paths -d ;;
    *' PID') _cudatrace_pids ;;
    --session*) _cudatrace_sessions ;;
    --group*) mapfile -t COMPREPLY < <(compgen -g -- "$cur") ;;
    --clock*) _cudatrace_words 'counter monotonic' ;;
    --workers*) _cudatrace_words '1 2' ;;
    --log-level*) _cudatrace_words 'error warning notice info debug' ;;
    --keep*) _cudatrace_words '10m 1h 24h 7d' ;;
    '--for '* | --wait*) _cudatrace_words '10s 30s 1m 10m 1h' ;;
    --max-db*) _cudatrace_words '500M 2G 20G 100G' ;;
    '--gpu '*) _cudatrace_words '1s 10s 1m on off' ;;
    --gpu-samples*) _cudatrace_words '100ms 1s 10s off' ;;
    --ring*) _cudatrace_words '64K 1M 4M 16M 64M 256M 512M 1G' ;;
    --sort*) _cudatrace_words 'pid calls/s driver_% launches/s copied_MB/s held_MB lost open_s open_call command state failed calls' ;;
    --layers*) _cudatrace_words "all $(sed -nE 's/.* these layers: (.*), or all.*/\1/p' <<<"$help" | tr -d ,)" ;;
    *) _cudatrace_words "${choices//|/ }" ;;
    esac
}

_cudatrace_options()
{
    _cudatrace_words "$(grep -oE -e '--[a-z]+(-[a-z]+)*' <<<"$help") --help ${1-}"
}

# Sets `first` to the index of the first argument, or to 0 if the options do not end before the current word.
_cudatrace_first_argument()
{
    local i=2
    first=0
    while ((i < COMP_CWORD)); do
        case ${COMP_WORDS[i]} in
        --)
            first=$((i + 1))
            return
            ;;
        -*)
            if [[ ${COMP_WORDS[i + 1]} == = ]]; then
                i=$((i + 3))
            elif [[ $(_cudatrace_kind "${COMP_WORDS[i]}") ]]; then
                i=$((i + 2))
            else
                i=$((i + 1))
            fi
            ;;
        *)
            first=$i
            return
            ;;
        esac
    done
}

# Completes a command that begins at index $1. Uses the command's own completion if bash-completion is installed.
_cudatrace_command()
{
    local offset
    for offset in _comp_command_offset _command_offset; do
        if declare -F "$offset" >/dev/null; then
            "$offset" "$1"
            return
        fi
    done
    _cudatrace_paths -f
    if ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u; printf '%s\n' "${COMPREPLY[@]}")
    fi
}

# Bash splits --db=FILE into three words. Sets `cur` to the value being typed and `prev` to the option before it.
_cudatrace_current()
{
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
}

_cudatrace()
{
    local cur prev first help command=${COMP_WORDS[1]}
    COMPREPLY=()
    _cudatrace_current
    if ((COMP_CWORD == 1)); then
        _cudatrace_words "$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) +[a-z].*/\1/p' |
            grep -vx cudatrace) help --help --version"
        return
    fi
    help=$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null)
    _cudatrace_first_argument
    if [[ $command == @(run|doctor|probe) ]] && ((first > 0)); then
        _cudatrace_command "$first"
    elif _cudatrace_value "$prev"; then
        :
    elif [[ $cur == -* ]]; then
        _cudatrace_options "$([[ $command != @(run|doctor) ]] || echo --)"
    elif [[ $command == @(attach|detach) || ($command == doctor && $cur == [0-9]*) ]]; then
        _cudatrace_words "$(cd /proc && printf '%s\n' [0-9]*)"
    elif [[ $command == @(run|doctor) ]]; then
        _cudatrace_command "$COMP_CWORD"
    elif [[ $command == import ]]; then
        _cudatrace_paths -f
    elif [[ $command == diff ]] && ((first == 0 || COMP_CWORD < first + 2)); then
        _cudatrace_paths -f
    elif [[ $command == @(report|diff) ]]; then
        _cudatrace_words "$(sed -nE '/^Sections/,/^  --/s/^  ([a-z]+) +.*/\1/p' <<<"$help")"
    else
        _cudatrace_options
    fi
}

_cudatraced()
{
    local cur prev help
    COMPREPLY=()
    help=$("${COMP_WORDS[0]}" --help 2>/dev/null)
    _cudatrace_current
    _cudatrace_value "$prev" || _cudatrace_options
}

# Completes the last of the words $1… for other shells, which run this file in bash (cudatrace.zsh, cudatrace.fish). The first line of the
# output is `words`, `files`, `folders`, or `command N`, where N words precede a command that completes itself. Each other line is a
# word, a tab and the word's line of the help.
_cudatrace_offers()
{
    local how=words place=0 places=() word name text
    local -A texts
    _cudatrace_paths() { [[ $1 == -f ]] && how=files || how=folders; }
    _cudatrace_command() { how="command ${places[$1]}"; }
    COMP_WORDS=()
    for word in "$@"; do
        if [[ $word == --*=* ]]; then # bash splits it so
            COMP_WORDS+=("${word%%=*}" '=' "${word#*=}")
            places+=("$place" "$place")
        else
            COMP_WORDS+=("$word")
        fi
        places+=("$place")
        place=$((place + 1))
    done
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    if [[ ${1##*/} == cudatraced ]]; then
        _cudatraced
        set -- "$1" --help
    else
        _cudatrace
        if (($# > 2)); then set -- "$1" "$2" --help; else set -- "$1" --help; fi
    fi
    while IFS=$'\t' read -r name text; do
        texts[$name]=$text
    done < <("$@" 2>/dev/null | # the text after a long name is on the next line
        sed -nE -e '/^  --[^ ]+ [^ ]+$/N' -e 's/^  (--)?([a-z-]+)( ([a-z]+\|)*[A-Z]+)?[ \n]+([^ ].*)/\1\2\t\5/p')
    echo "$how"
    printf '%s\n' "${COMPREPLY[@]}" | awk '$0 && !seen[$0]++' | while IFS= read -r word; do
        printf '%s\t%s\n' "$word" "${texts[$word]-}"
    done
}

complete -F _cudatrace cudatrace
complete -F _cudatraced cudatraced
