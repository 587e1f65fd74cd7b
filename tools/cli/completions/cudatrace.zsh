#compdef cudatrace cudatraced
# Zsh completion for cudatrace and cudatraced. Runs the bash completion, which is installed with it.

local bash_file=${${(%):-%x}:A:h}/../../bash-completion/completions/cudatrace
local -a told offers
told=("${(@f)$(bash -c '. "$0" && _cudatrace_offers "$@"' $bash_file "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
[[ $PREFIX != --*=* ]] || compset -P 1 '*='
case $told[1] in
files) _files ;;
folders) _files -/ ;;
command\ *)
    shift ${told[1]#command } words
    ((CURRENT -= ${told[1]#command }))
    _normal
    ;;
*)
    offers=("${(@)told[2,-1]//:/\\:}")
    offers=("${(@)${(@)offers/$'\t'/:}%:}")
    _describe cudatrace offers
    ;;
esac
