# SPDX-License-Identifier: Apache-2.0
"""Shell completion: values of options, and the scripts for bash, zsh and fish.

Values are policies with axes, failure laws, generators and metrics. Functions ``complete_...`` have
the signature that ``shell_complete`` of a click parameter requires: context, parameter and
incomplete text. Modules are imported only when the shell requests a completion.

The scripts differ from those of click, because values like ``baseline:depth=easy,react=`` contain
colons, equals signs and commas. Bash splits words at colons and equals signs, and click's script
for fish splits them at commas. If a value can be continued, the scripts add no space after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

from rebat.core.errors import RebatError

Items: TypeAlias = "list[CompletionItem[str]]"
Helps = Mapping[str, str]
"""Help text of each candidate."""


class Keys(NamedTuple):
    """The keys that a text NAME:KEY=VALUE,... can have, with their help texts and choices."""

    helps: Helps
    choices: Callable[[str], Iterable[str]]


def items_of(helps: Helps, before: str, part: str, after: str = "") -> Items:
    """Return the candidates that begin with ``part``, each between ``before`` and ``after``."""
    return [
        CompletionItem(f"{before}{name}{after}", help=_line(text))
        for name, text in helps.items()
        if name.startswith(part.lower())
    ]


def notation(text: str, names: Helps, keys_of: Callable[[str, dict[str, str]], Keys]) -> Items:
    """Complete a text NAME:KEY=VALUE,...

    Parameters
    ----------
    text : str
        The incomplete text.
    names : mapping
        Help text by name.
    keys_of : callable
        Function that returns the keys, from the name and the values of the complete pairs.
    """
    name, colon, pairs = text.partition(":")
    if not colon:
        return items_of(names, "", text)
    *complete, part = pairs.split(",")
    before = text[: len(text) - len(part)]
    values = {key: value for key, _, value in (pair.partition("=") for pair in complete)}
    keys = keys_of(name.lower(), values)
    key, equals, value = part.partition("=")
    if equals:
        return _choices(keys.choices(key), f"{before}{key}=", value)
    unused = {key: text for key, text in keys.helps.items() if key not in values}
    return items_of(unused, before, part, "=")


def _choices(names: Iterable[str], before: str, value: str) -> Items:
    """Return the choices of a key. In a value like ``a+b``, complete only the last part."""
    joined, plus, part = value.rpartition("+")
    used = joined.split("+")
    return items_of({n: "" for n in names if n not in used}, f"{before}{joined}{plus}", part)


def _line(text: str | None) -> str | None:
    """Return a help text as one line, or None if it is empty."""
    return " ".join((text or "").split()) or None


# ---- policies


def complete_policy(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a policy, then its axes and their choices, or a file."""
    from rebat.policies.presets import ALIASES, PRESETS

    names = {name: row.summary for name, row in PRESETS.items()}
    names |= {alias: f"alias of {name}" for alias, name in ALIASES.items()}
    items = notation(incomplete, names, _axes)
    is_file = incomplete and not items and ":" not in incomplete
    return [CompletionItem(incomplete, type="file")] if is_file else items


def _axes(name: str, values: dict[str, str]) -> Keys:
    from rebat.policies.choosing import OPTIONS

    helps = {axis: OPTIONS[axis].meta.description or "" for axis in _axes_with_effect(name, values)}

    return Keys(helps, lambda axis: OPTIONS[axis].names if axis in OPTIONS else ())


def _axes_with_effect(name: str, values: dict[str, str]) -> Iterable[str]:
    """Return the axes that have an effect together with these values."""
    from rebat.policies.choosing import changed
    from rebat.policies.presets import ALIASES, PRESETS

    row = PRESETS.get(ALIASES.get(name, name))
    if row is None:
        return ()
    try:
        return changed(row.point, values).effective
    except RebatError:
        return row.point.effective


# ---- failure laws and generators


def complete_law(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a failure law, then its parameters."""
    return notation(incomplete, _laws(), _law_parameters)


def complete_law_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a failure law that has an MTBF."""
    from rebat.models.failures.laws import parameters

    helps = {name: text for name, text in _laws().items() if "mtbf" in parameters(name)}
    return items_of(helps, "", incomplete)


def _laws() -> Helps:
    from rebat.models.failures.laws import LAWS, prefabs

    laws = {name: (kind.__doc__ or "").partition("\n")[0] for name, kind in LAWS.items()}
    return laws | {name: prefab.title for name, prefab in prefabs().items()}


def _law_parameters(name: str, values: dict[str, str]) -> Keys:
    from rebat.models.failures.laws import parameters

    if name not in _laws():
        return Keys({}, lambda key: ())
    fields = parameters(name)
    helps = {key: "required" if field.required else "" for key, field in fields.items()}
    return Keys(helps, lambda key: _values(fields[key].type) if key in fields else ())


def _values(kind: Any) -> tuple[str, ...]:
    """Return the values of a Boolean or literal type. Other types have no list of values."""
    if kind is bool:
        return ("true", "false")
    return tuple(map(str, get_args(kind))) if str(get_origin(kind)) == "typing.Literal" else ()


def complete_generator(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a workload generator, then its options."""
    from rebat.workloads.generate import OPTIONS

    return notation(incomplete, dict.fromkeys(OPTIONS, ""), _generator_options)


def _generator_options(name: str, values: dict[str, str]) -> Keys:
    from rebat.workloads.generate import OPTIONS

    hints = get_type_hints(OPTIONS[name][0]) if name in OPTIONS else {}
    return Keys(dict.fromkeys(hints, ""), lambda key: _values(hints.get(key)))


# ---- metrics


def complete_metric(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a metric. If it is measured by size class, append ``:all``."""
    return items_of(_metrics(), "", incomplete)


def complete_metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the last name of a list of metrics, separated by commas."""
    before, comma, part = incomplete.rpartition(",")
    used = before.split(",")
    unused = {name: text for name, text in _metrics().items() if name not in used}
    return items_of(unused, before + comma, part)


def complete_formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete formats of figures, separated by commas."""
    from rebat.figures.canvas import METADATA

    complete, comma, part = incomplete.rpartition(",")
    unused = {name: "" for name in METADATA if name not in complete.split(",")}
    return items_of(unused, complete + comma, part)


def _metrics() -> Helps:
    from rebat.results.catalogue import CATALOGUE, FURTHER

    return {
        f"{row.name}:all" if row.by_class else row.name: row.heading.strip()
        for row in (*CATALOGUE, *FURTHER)
        if not row.derived and "*" not in row.name
    }


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
