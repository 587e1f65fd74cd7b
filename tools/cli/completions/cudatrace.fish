# Fish completion for cudatrace and cudatraced. Runs the bash completion, which is installed with it.
set -g __cudatrace_bash_file (dirname (status filename))/../../bash-completion/completions/cudatrace

function __cudatrace_offers
    set -l words (commandline -opc) (commandline -ct)
    set -l told (bash -c '. "$0" && _cudatrace_offers "$@"' $__cudatrace_bash_file $words 2>/dev/null)
    # The current word as --option= and its value. Both are one string, which may be empty.
    set -l option (string replace -r -- '^(--[^=]*=)?.*' '$1' $words[-1])
    set -l value (string replace -r -- '^--[^=]*=' '' $words[-1])
    switch "$told[1]"
        case files
            string join \n -- $option(__fish_complete_path $value)
        case folders
            string join \n -- $option(__fish_complete_directories $value)
        case 'command *'
            set -l place (math (string replace 'command ' '' $told[1]) + 1)
            set -l ending $words[-1]
            set -e words[-1]
            string join \n -- (complete -C (string join ' ' -- (string escape -- $words[$place..-1]) "$ending"))
        case '*'
            string join \n -- $option$told[2..-1]
    end
end

complete -c cudatrace -f -a '(__cudatrace_offers)'
complete -c cudatraced -f -a '(__cudatrace_offers)'
