# SPDX-License-Identifier: Apache-2.0
"""Completion scripts for bash, zsh and fish, and the texts exchanged with these shells.

The scripts differ from those of click, because values like ``baseline:depth=easy,react=`` contain
colons, equals signs and commas. Bash splits words at colons and equals signs, and click's script
for fish splits them at commas. If a value can be continued, the scripts add no space after it.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

_BASH = """\
# rebat: completion for bash 4.4 or later
%(complete_func)s() {
    local kind value files=""
    COMPREPLY=()
    while IFS=, read -r kind value; do
        if [[ $kind == file || $kind == dir ]]; then
            files=$kind
        elif [[ -n $kind ]]; then
            COMPREPLY+=("$value")
            if [[ $value == *[=:] ]]; then compopt -o nospace 2>/dev/null; fi
        fi
    done < <(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \
COMP_BREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1" 2>/dev/null)
    if [[ -n $files && ${#COMPREPLY[@]} -eq 0 ]]; then
        if [[ $files == dir ]]; then compopt -o dirnames 2>/dev/null
        else compopt -o default 2>/dev/null; fi
    elif [[ $files == file ]]; then
        compopt -o filenames 2>/dev/null
        local IFS=$'\\n'
        COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
    fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
# rebat: completion for zsh
%(complete_func)s() {
    local -a response described plain open files
    local kind value text
    response=("${(@f)$(env COMP_WORDS="${words[1,CURRENT]}" COMP_CWORD=$((CURRENT - 1)) \
%(complete_var)s=zsh_complete ${words[1]} 2>/dev/null)}")
    for kind value text in ${response}; do
        case $kind in
            file) files=(-f) ;;
            dir) files=(-/) ;;
            *)
                if [[ $value == *[=:] ]]; then open+=("${value//\\\\:/:}")
                elif [[ $text == _ ]]; then plain+=("$value")
                else described+=("$value:$text"); fi ;;
        esac
    done
    if (( ${#described} )); then _describe -V unsorted described -U; fi
    if (( ${#plain} )); then compadd -U -V unsorted -a plain; fi
    if (( ${#open} )); then compadd -U -S '' -V unsorted -a open; fi
    if (( ${#files} )); then
        if [[ $PREFIX == --*=* ]]; then compset -P '--*='; fi
        _path_files $files
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
# rebat: completion for fish
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp | string collect) \
COMP_CWORD=(commandline -ct | string collect -a) %(prog_name)s 2>/dev/null)
    for completion in $response
        set -l parts (string split -m 1 "," $completion)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --keep-order --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class RebatBash(BashComplete):
    """Completion for bash. It parses the entire line, because bash splits words at colons."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the incomplete word at the cursor."""
        line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = split_arg_string(line)[1:]
        self._word = "" if not words or line[-1].isspace() else words.pop()
        return words, self._word

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the candidates without the part that bash treats as separate words."""
        breaks = set(os.environ.get("COMP_BREAKS", "")) & set(":=")
        start = 1 + max((self._word.rfind(sign) for sign in breaks), default=-1)
        items = with_option(super().get_completions(args, incomplete), self._word)
        return [CompletionItem(item.value[start:], type=item.type) for item in items]


class WholeWord(ShellComplete):
    """Completion for shells that replace the entire word, including ``--option=``."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return candidates for the entire word."""
        return with_option(super().get_completions(args, incomplete), incomplete)


class RebatZsh(WholeWord, ZshComplete):
    """Completion for zsh."""

    source_template = _ZSH


class RebatFish(WholeWord, FishComplete):
    """Completion for fish."""

    source_template = _FISH


def with_option(items: list[CompletionItem[str]], word: str) -> list[CompletionItem[str]]:
    """For a word like ``--policy=base``, return complete words. (click returns only the values.)"""
    option, equals, _ = word.partition("=")
    if not equals or not word.startswith("--"):
        return items
    return [
        CompletionItem(f"{option}={item.value}", type=item.type, help=item.help) for item in items
    ]


SHELLS: dict[str, type[ShellComplete]] = {"bash": RebatBash, "zsh": RebatZsh, "fish": RebatFish}


def register() -> None:
    """Register the completion classes of this module with click."""
    from click.shell_completion import add_completion_class

    for name, shell in SHELLS.items():
        add_completion_class(shell, name)


def script(shell: str, cli: click.Command, variable: str) -> str:
    """Return the completion script of a shell. It sets the environment variable ``variable``."""
    return SHELLS[shell](cli, {}, "rebat", variable).source()
