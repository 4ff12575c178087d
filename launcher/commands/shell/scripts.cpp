#include "launcher/commands/shell/scripts.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kBash =
    R"(# bash completion for scaletrain:  source <(scaletrain completion bash)
_scaletrain() {
  local -a typed
  local current word help
  read -ra typed <<<"${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && typed+=("")
  current=${typed[-1]}
  COMPREPLY=()
  while IFS=$'\t' read -r word help; do
    # Readline replaces what stands behind the last = only.
    [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && word=${word#"${current%=*}="}
    [[ $word == *= ]] && compopt -o nospace 2>/dev/null
    COMPREPLY+=("$word")
  done < <("${typed[0]}" completion candidates -- "${typed[@]:1}" 2>/dev/null)
}
complete -o default -F _scaletrain scaletrain
)";

constexpr const char* kZsh = R"(#compdef scaletrain
# zsh completion for scaletrain:  source <(scaletrain completion zsh), or in a folder of $fpath as
# _scaletrain
_scaletrain() {
  local -a plain open
  local word help
  while IFS=$'\t' read -r word help; do
    if [[ $word == *= ]]; then
      open+=("${word//:/\\:}:$help")
    else
      plain+=("${word//:/\\:}:$help")
    fi
  done < <("${words[1]}" completion candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ! $#plain && ! $#open )); then
    _files
    return
  fi
  if (( $#plain )); then _describe scaletrain plain; fi
  if (( $#open )); then _describe scaletrain open -S ''; fi
}
if [[ $funcstack[1] == _scaletrain ]]; then
  _scaletrain "$@"
elif (( $+functions[compdef] )); then
  compdef _scaletrain scaletrain
fi
)";

constexpr const char* kFish =
    R"(# fish completion for scaletrain:  scaletrain completion fish | source
function __scaletrain_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($words[1] completion candidates -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path "$current"
    else
        printf '%s\n' $found
    end
end
complete -c scaletrain -f -a '(__scaletrain_candidates)'
)";

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  throw core::UsageError("completion",
                         fmt::format("there is no script for \"{}\"", core::printable(shell)),
                         "use one of: bash, zsh, fish");
}

}  // namespace scaletrain::launcher
