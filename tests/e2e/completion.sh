#!/usr/bin/env bash
# Tests that bash completion offers exactly the words in the help texts (commands, options, formats, report sections), plus existing
# sessions, files, processes and commands. Like bash, the test calls the function that `complete` has registered.
set -euo pipefail

build=$(realpath "${CUDATRACE_BUILD:-build}")
source=$(realpath "$(dirname "$0")/../..")
PATH=$build/tools:$build/collector:$PATH
failures=0
dir=$(mktemp -d)
session=completion-$$
cleanup()
{
    cudatrace stop --session "$session" >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap cleanup EXIT

# Hide the functions of the bash-completion package, which would complete the commands that cudatrace runs.
unset -f _command_offset _comp_command_offset 2>/dev/null || true
. "$source/tools/cli/completions/cudatrace.bash"
cd "$dir"
# Use a folder that contains no sessions of other tests. The test runs every command with every option, and `gc --force` removes the files
# of all sessions that it finds.
mkdir shm
export CUDATRACE_SHM_DIR=$dir/shm

# offered WORD…: prints the completions of the last word, sorted, one per line. Pass `--db=x` as bash does: `--db` `=` `x`.
offered()
{
    local function
    function=$(complete -p "$1")
    function=${function#*-F }
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMP_LINE="$*"
    COMP_POINT=${#COMP_LINE}
    COMPREPLY=()
    "${function%% *}" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\n' "${COMPREPLY[@]}" | sed '/^$/d' | LC_ALL=C sort -u
}

fail()
{
    echo "completion: $*" >&2
    failures=$((failures + 1))
}

# same WHAT WANTED OFFERED: the two lists of lines must be equal, and not empty.
same()
{
    [ -n "$2" ] || fail "$1: nothing was expected, so nothing was tested"
    [ "$2" = "$3" ] || fail "$1: offered" "${3:-nothing}" "and should be" "$2"
}

# has WHAT WORD OFFERED: WORD must be one of the offered lines.
has()
{
    grep -qxF -e "$2" <<<"$3" || fail "$1: '$2' is not offered; offered:" "${3:-nothing}"
}

has_not()
{
    ! grep -qxF -e "$2" <<<"$3" || fail "$1: '$2' is offered"
}

sorted() { sed '/^$/d' | LC_ALL=C sort -u; }
options_of() { { grep -oE -e '--[a-z]+(-[a-z]+)*' <<<"$1"; echo --help; } | sorted; }

# ---- against the help texts ----

help=$(cudatrace --help)
commands=$(sed -nE 's/^  ([a-z]+) +[a-z].*/\1/p' <<<"$help" | grep -vx cudatrace | sorted)
same 'cudatrace' "$(printf '%s\n' "$commands" help --help --version | sorted)" "$(offered cudatrace '')"
for command in $commands; do
    help=$(cudatrace "$command" --help)
    wanted=$(options_of "$help")
    ! grep -E '.{101}' <<<"$help" || fail "cudatrace $command --help: that line has more than 100 columns"
    # The usage line lists all options that the help text explains.
    same "the usage of cudatrace $command" "$wanted" "$(options_of "$(sed '/^$/q' <<<"$help")")"
    same "cudatrace $command -" "$wanted" "$(offered cudatrace "$command" - | grep -vx -e --)"
    has "cudatrace ${command:0:2}" "$command" "$(offered cudatrace "${command:0:2}")"
    # The command must accept every offered option. An invalid argument keeps attach and probe from affecting the programs of other tests.
    no_process=()
    [[ $command != @(attach|probe) ]] || no_process=(0)
    for option in $(offered cudatrace "$command" --); do
        ! cudatrace "$command" "$option" "${no_process[@]}" 2>&1 </dev/null | grep -q 'unknown option' ||
            fail "cudatrace $command: $option is offered and unknown"
    done
done
same 'cudatraced -' "$(options_of "$(cudatraced --help)")" "$(offered cudatraced -)"

# ---- the texts for other shells ----

# In the help, the description of --sample is on the same line as the option, and the description of --gpu-samples, whose name is longer, is
# on the next line.
for option in --sample --gpu-samples; do
    text=$(_cudatrace_offers cudatrace run "$option" | sed -n "s/^$option\t//p")
    [[ $text ]] || fail "cudatrace run: $option is offered without a text"
    grep -qF -e "$text" <<<"$(cudatrace run --help)" || fail "cudatrace run $option: the help does not have the text '$text'"
done

# ---- the manuals ----

# In mdoc(7), an option is written `Fl Fl name`.
manual() { sed 's/Fl Fl \([a-z]\)/--\1/g' "$source/docs/man/$1.1"; }
synopsis=$(manual cudatrace | sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p')
every=
for command in $commands; do
    wanted=$(options_of "$(cudatrace "$command" --help)")
    every+=$wanted$'\n'
    # Select the part of the synopsis that begins with the command's name.
    part=$(awk -v command="$command" '/^\.Nm/ { here = 0 } / --help/ { here = 0 }
        /^\.Cm/ { for (i = 2; i <= NF; i++) here = here || $i == command } here' <<<"$synopsis")
    same "cudatrace(1), synopsis of $command" "$wanted" "$(options_of "$part")"
done
listed() { options_of "$(manual "$1" | grep '^\.It --')"; }
same 'cudatrace(1)' "$({ echo "$every"; echo --version; } | sorted)" "$(listed cudatrace)"
same 'cudatraced(1)' "$(options_of "$(cudatraced --help)")" "$(listed cudatraced)"

for command in sql report diff; do
    formats=$(cudatrace "$command" --help | sed -nE 's/.*--format ([a-z|]+)\].*/\1/p' | tr '|' '\n' | sorted)
    same "cudatrace $command --format" "$formats" "$(offered cudatrace "$command" --format '')"
    same "cudatrace $command --format=" "$formats" "$(offered cudatrace "$command" --format =)"
done
same 'cudatrace sql --format=c' csv "$(offered cudatrace sql --format = c)"

sections=$(cudatrace report --help | sed -nE '/^Shows where/,/^  --/s/^  ([a-z]+) +.*/\1/p' | sorted)
same 'cudatrace run --layers' "$(printf '%s\n' all driver ioctl nvtx runtime)" "$(offered cudatrace run --layers '')"
same 'cudatrace tail --layers' "$(printf '%s\n' all driver hook ioctl kernel nvtx runtime)" "$(offered cudatrace tail --layers '')"
same 'cudatrace report' "$sections" "$(offered cudatrace report '')"
same 'cudatrace report functions' "$sections" "$(offered cudatrace report functions '')"
for section in $sections; do
    ! cudatrace report --db nothing.db "$section" 2>&1 | grep -q 'no section' ||
        fail "report does not know its section $section"
done
for size in $(offered cudatraced --ring ''); do
    ! cudatraced --ring "$size" --db /dev/null/x 2>&1 | grep -q -e '--ring' || fail "--ring $size is offered and refused"
done

# ---- existing sessions and files ----

cudatraced --session "$session" --db "$dir/a trace.db"
for command in run flush status stop; do
    has "cudatrace $command --session" "$session" "$(offered cudatrace "$command" --session '')"
done
same 'a session once' "$session" "$(offered cudatrace stop --session "$session")"
views=$(cudatrace sql --help | sed -n '/^The views:/,/\.$/p' | grep -oE '[a-z_]+' | grep -vxE 'he|views' | sorted)
same 'cudatrace sql --help' "$(cudatrace sql --db 'a trace.db' --format csv \
    "SELECT name FROM sqlite_master WHERE type = 'view'" | tail -n +2 | sorted)" "$views"
has 'cudatrace stop --session=' "$session" "$(offered cudatrace stop --session = completion)"
has 'cudatraced --session' "$session" "$(offered cudatraced --session '')"

has 'cudatrace sql --db' 'a trace.db' "$(offered cudatrace sql --db '')"
has 'cudatrace report --db=' 'a trace.db' "$(offered cudatrace report --db = a)"
has 'cudatraced --db' 'a trace.db' "$(offered cudatraced --db a)"

demo=$build/tests/workloads/demo
if [ -x "$demo" ]; then
    LD_LIBRARY_PATH=$build/tests/simcuda cudatrace run --session "$session" -- "$demo" --rounds 1 >/dev/null
    pid=$(cudatrace sql --db 'a trace.db' --format csv 'SELECT pid FROM processes' | tail -n 1)
    has 'cudatrace report --pid' "$pid" "$(offered cudatrace report --db 'a trace.db' --pid '')"
    has 'cudatrace report --db= --pid' "$pid" "$(offered cudatrace report --db = 'a trace.db' --pid '')"
fi

cudatrace stop --session "$session" >/dev/null
has_not 'a session that is gone' "$session" "$(offered cudatrace stop --session '')"

# ---- the command of run ----

mkdir bin
printf '#!/bin/sh\n' >bin/traced-program
chmod +x bin/traced-program
PATH=$dir/bin:$PATH
has 'cudatrace run --' traced-program "$(offered cudatrace run -- traced-p)"
has 'cudatrace run' traced-program "$(offered cudatrace run traced-p)"
has 'cudatrace run --db x --' traced-program "$(offered cudatrace run --db x.db -- traced-p)"
has 'cudatrace run --db=x' traced-program "$(offered cudatrace run --db = x.db traced-p)"
for option in $(cudatrace run --help | grep -oE -e '^  --[a-z-]+ [A-Z]+' | sed 's/ *\(--[a-z-]*\).*/\1/'); do
    has "cudatrace run $option x" traced-program "$(offered cudatrace run "$option" x traced-p)"
    has "cudatrace run $option=x" traced-program "$(offered cudatrace run "$option" = x traced-p)"
    has_not "the value of $option" --help "$(offered cudatrace run "$option" -)"
done
has 'its arguments' 'a trace.db' "$(offered cudatrace run --session x -- cat 'a ')"
has_not 'its arguments' --session "$(offered cudatrace run -- cat --s)"
has_not 'its arguments' --session "$(offered cudatrace run cat --s)"
has_not 'its option --format' table "$(offered cudatrace run -- cat --format '')"
has 'cudatrace run -' -- "$(offered cudatrace run -)"
has 'cudatrace doctor --' traced-program "$(offered cudatrace doctor -- traced-p)"
has 'cudatrace doctor' traced-program "$(offered cudatrace doctor traced-p)"
has 'a process' $$ "$(offered cudatrace doctor ${$:0:1})"
has 'a process to attach to' $$ "$(offered cudatrace attach ${$:0:1})"
has 'a process after options' $$ "$(offered cudatrace detach --verbose '')"

# ---- with bash-completion, the command completes itself ----

_command_offset() { COMPREPLY=("offset-$1"); }
same 'cudatrace run -- with bash-completion' offset-3 "$(offered cudatrace run -- git '')"
same 'cudatrace run --db x with bash-completion' offset-4 "$(offered cudatrace run --db x git '')"

[ "$failures" -eq 0 ] || exit 1
echo 'completion: all as the help texts say'
