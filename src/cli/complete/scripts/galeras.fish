# Completion of galeras for fish, as ~/.config/fish/completions/galeras.fish:
#   galeras completions fish > ~/.config/fish/completions/galeras.fish
# Every TAB asks the program, so that it knows the steps and params of the workflow at hand.

function __galeras_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    command galeras complete fish -- $words "$current" 2>/dev/null
end

complete -c galeras -f -a '(__galeras_complete)'
