#compdef galeras
# Completion of galeras for zsh. In ~/.zshrc, after compinit:
#   eval "$(galeras completions zsh)"
# or as a file `_galeras` in a folder of $fpath. Every TAB asks the program, so that it knows the
# steps and params of the workflow at hand.

_galeras() {
    local line value shown
    local -a whole whole_shown open open_shown
    while IFS= read -r line; do
        value=${line%%$'\t'*}
        shown=${line/$'\t'/  -- }
        # A folder and `name=` go on.
        if [[ $value == */ || $value == *= ]]; then
            open+=("$value")
            open_shown+=("$shown")
        else
            whole+=("$value")
            whole_shown+=("$shown")
        fi
    done < <("${(Q)words[1]/#\~/$HOME}" complete zsh -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)
    compadd -l -d whole_shown -a whole
    compadd -l -S '' -d open_shown -a open
}

if [[ $funcstack[1] == _galeras ]]; then
    _galeras "$@"
else
    compdef _galeras galeras
fi
