# Completion of galeras for bash. In ~/.bashrc:
#   eval "$(galeras completions bash)"
# Every TAB asks the program, so that it knows the steps and params of the workflow at hand.

_galeras() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" complete bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}

complete -o nospace -o nosort -F _galeras galeras 2>/dev/null ||
    complete -o nospace -F _galeras galeras
