# Bash completion for cudatrace and cudatraced. Source it, or install it where bash-completion looks.
# tests/e2e/completion.sh holds it against the help texts.

# The words of $1 that begin as the current word does.
_cudatrace_words()
{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_cudatrace_files()
{
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

_cudatrace_folders()
{
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
}

# Sessions are the names behind the user in /dev/shm/cudatrace.UID.SESSION, and have no dot.
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

# The processes of the trace that the command line names.
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

# The value of option $1; false when it takes none.
_cudatrace_value()
{
    case $1 in
    --db | --output) _cudatrace_files ;;
    --session) _cudatrace_sessions ;;
    --shm-dir) _cudatrace_folders ;;
    --format)
        if [[ ${COMP_WORDS[1]} == export ]]; then
            _cudatrace_words 'chrome perfetto jsonl csv nsys'
        else
            _cudatrace_words 'text csv json markdown'
        fi
        ;;
    --pid) _cudatrace_pids ;;
    --clock) _cudatrace_words 'counter monotonic' ;;
    --log-level) _cudatrace_words 'error warning notice info debug' ;;
    --group) mapfile -t COMPREPLY < <(compgen -g -- "$cur") ;;
    --keep) _cudatrace_words '10m 1h 24h 7d' ;;
    --max-db) _cudatrace_words '500M 2G 20G 100G' ;;
    --ring) _cudatrace_words '64K 256K 1M 4M 16M 64M 256M' ;;
    --layers) _cudatrace_words 'all driver runtime ioctl nvtx' ;;
    --color) _cudatrace_words 'auto always never' ;;
    --interval) _cudatrace_words '0.5 1 2 10' ;;
    --sort) _cudatrace_words 'pid calls/s driver_% launches/s copied_MB/s held_MB lost open_s open_call command state failed calls' ;;
    --calls | --sample | --from | --to | --around | --width | --count | --find) ;;
    *) return 1 ;;
    esac
}

# Sets `first` to the place of the first argument if the options end before the current word, else to 0.
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
        --db | --session | --shm-dir | --format | --output | --pid | --from | --to | --around | --width | --color | --interval | --sort | --count | --find | --ring | --keep | --max-db | --layers | --calls | --sample)
            [[ ${COMP_WORDS[i + 1]} == = ]] && i=$((i + 3)) || i=$((i + 2))
            ;;
        -*) i=$((i + 1)) ;;
        *)
            first=$i
            return
            ;;
        esac
    done
}

# A command that begins at place $1, completed as it completes itself where bash-completion is there.
_cudatrace_command()
{
    local offset
    for offset in _comp_command_offset _command_offset; do
        if declare -F "$offset" >/dev/null; then
            "$offset" "$1"
            return
        fi
    done
    _cudatrace_files
    if ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u; printf '%s\n' "${COMPREPLY[@]}")
    fi
}

# Bash parts --db=FILE into three words: sets `cur` to what is being typed and `prev` to the option before it.
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
    local cur prev first
    COMPREPLY=()
    _cudatrace_current
    if ((COMP_CWORD == 1)); then
        _cudatrace_words 'run sql report diff timeline top html export flush set status stop doctor gc help --help --version'
        return
    fi
    _cudatrace_first_argument
    if [[ ${COMP_WORDS[1]} == @(run|doctor) ]] && ((first > 0)); then
        _cudatrace_command "$first"
        return
    fi
    if _cudatrace_value "$prev"; then
        return
    fi
    case ${COMP_WORDS[1]} in
    run)
        if [[ $cur == -* ]]; then
            _cudatrace_words '--db --session --shm-dir --ring --keep --max-db --layers --calls --sample --help --'
        else
            _cudatrace_command "$COMP_CWORD"
        fi
        ;;
    doctor)
        if [[ $cur == -* ]]; then
            _cudatrace_words '--db --session --shm-dir --help --'
        elif [[ $cur == [0-9]* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && printf '%s\n' [0-9]*)" -- "$cur")
        else
            _cudatrace_command "$COMP_CWORD"
        fi
        ;;
    sql) _cudatrace_words '--db --session --shm-dir --format --help' ;;
    report)
        if [[ $cur == -* ]]; then
            _cudatrace_words '--db --session --shm-dir --pid --from --to --format --help'
        else
            _cudatrace_words 'bottleneck phases processes threads categories functions kernels graphs launches gaps waits copies memory leaks contexts modules errors losses'
        fi
        ;;
    timeline)
        _cudatrace_words '--db --session --shm-dir --pid --from --to --around --layers --width --color --help'
        ;;
    top)
        _cudatrace_words '--db --session --shm-dir --interval --sort --all --find --pid --threads --once --count --json --format --help'
        ;;
    html)
        _cudatrace_words '--db --session --shm-dir --output --from --to --pid --layers --calls --help'
        ;;
    export)
        _cudatrace_words '--db --session --shm-dir --format --output --from --to --pid --layers --calls --help'
        ;;
    diff)
        if [[ $cur == -* ]]; then
            _cudatrace_words '--format --help'
        else
            _cudatrace_first_argument
            if ((first == 0 || COMP_CWORD < first + 2)); then
                _cudatrace_files
            else
                _cudatrace_words 'summary functions kernels memory errors'
            fi
        fi
        ;;
    set) _cudatrace_words '--session --shm-dir --db --layers --calls --sample --help' ;;
    gc) _cudatrace_words '--session --shm-dir --dry-run --force --help' ;;
    flush | status | stop) _cudatrace_words '--session --shm-dir --db --help' ;;
    esac
}

_cudatraced()
{
    local cur prev
    COMPREPLY=()
    _cudatrace_current
    _cudatrace_value "$prev" ||
        _cudatrace_words '--db --session --shm-dir --foreground --ring --keep --max-db --clock --log-level --auto --group --system --help --version'
}

complete -F _cudatrace cudatrace
complete -F _cudatraced cudatraced
