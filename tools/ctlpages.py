"""The pages of oxbowctl that are made from its table: man page, completions for bash, zsh and fish. Used by tools/ctlgen.py."""
import re
import textwrap

MARK = re.compile(r"(<!-- verbs -->\n)(.*?)(<!-- end of verbs -->)", re.S)


def value_shown(item):
    return "" if item.get("type") == "flag" else item.get("value", "")


# ---- man page -----------------------------------------------------------------------------------------------------------


def roff(text):
    """Plain text for roff: backslashes, dashes and quotes."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def lines(text):
    """Plain text as lines for roff; none of them is a request."""
    wrapped = textwrap.wrap(text, 72, break_long_words=False, break_on_hyphens=False)
    return [("\\&" if line.startswith((".", "'")) else "") + roff(line) for line in wrapped]


def names_shown(item):
    names = [item["name"]] if item.get("positional") else []
    return ", ".join(names + item.get("names", []))


def word_help(item):
    text = item["help"]
    if item.get("values"):
        text += f" ({', '.join(item['values'])})"
    if "default" in item and item.get("type") != "flag":
        text += f" (default {item['default']})"
    return text + ("; must be given" if item.get("required") and not item.get("positional") else "")


def man_word(item):
    value = "" if item.get("positional") or not value_shown(item) or item.get("values") else f" \\fI{roff(value_shown(item))}\\fR"
    return [".TP", f"\\fB{roff(names_shown(item))}\\fR{value}", *lines(word_help(item))]


def synopsis(noun, row):
    words = [f"\\fB{roff(noun['noun'])}\\fR", f"\\fB{roff(row['verb'])}\\fR" if row["verb"] else ""]
    words += [f"\\fI{roff(item['name'])}\\fR" if not item.get("optional") else f"[\\fI{roff(item['name'])}\\fR]" for item in row["words"] if item["positional"]]
    words += ["[\\fIOPTION\\fR]..."] if any(not item["positional"] for item in row["words"]) else []
    return " ".join(word for word in words if word)


def man_row(noun, row):
    out = [f".SS {synopsis(noun, row)}", *lines(row["summary"] + ".")]
    out += [".br", *lines(row["help"])] if row.get("help") else []
    out += [line for item in row["words"] for line in man_word(item)]
    return [*out, ".PP", "Example:", f"\\fB{roff(row['example'])}\\fR"]


MAN_TEXT = """.SH NAME
oxbowctl \\- administer an Oxbow broker
.SH SYNOPSIS
.B oxbowctl
.RI [ OPTION ]...
.I NOUN
.RI [ VERB ]
.IR ...
.SH DESCRIPTION
Asks a running broker by its REST door, or sends and reads messages.
Nouns, verbs and options are those of pulsar\\-admin where it has them.
Options may stand anywhere behind the noun and verb that they belong to.
Answers are tables for people;
.B \\-o json
prints the JSON of the broker for programs.
.PP
A topic is written persistent://TENANT/NAMESPACE/NAME,
TENANT/NAMESPACE/NAME, or NAME in public/default.
Times are written as 30s, 10m, 3h, 2d, 1w; a bare number is seconds.
Sizes are written as 4096, 10M, 16G; where a policy can be without limit,
\\-1 means that.
"""
MAN_END = """.SH EXIT STATUS
0: done.
1: it failed; standard error says why, and what to do where that can be told.
2: wrong usage.
.SH ENVIRONMENT
.TP
.B OXBOWCTL_URL
the REST door of the broker, where \\-\\-url is not given
.SH SEE ALSO
.BR oxbowd (1)
"""


def man(found, options):
    out = ['.TH OXBOWCTL 1 "" "Oxbow" "User Commands"', MAN_TEXT.rstrip("\n"), ".SH OPTIONS"]
    out += [line for item in options for line in man_word(item)]
    for noun in found:
        out += [f".SH {roff(noun['noun'].upper())}", *lines(noun["about"] + ".")]
        out += lines(f"The verbs of {noun['also']} can be said with {noun['noun']} too.") if noun.get("also") else []
        out += [line for row in noun["verbs"] for line in man_row(noun, row)]
    return "\n".join(out) + "\n" + MAN_END


# ---- completions --------------------------------------------------------------------------------------------------------
#
# Each finds noun and verb among the words so far; only the program's own options, whose values are skipped, stand before them.


def names_of(item):
    return item.get("names", [])


def global_names(options):
    return [name for item in options for name in names_of(item)]


def with_value(items):
    """The options that a value stands behind."""
    return [name for item in items for name in names_of(item) if value_shown(item)]


def sayable(noun, found):
    """The verbs that can be said with a noun: its own, and those of the noun that it names with `also`."""
    own = [row["verb"] for row in noun["verbs"]]
    return noun["verbs"] + [row for other in found if other["noun"] == noun.get("also") for row in other["verbs"] if row["verb"] not in own]


def plain(text):
    """For the single quotes of a shell."""
    return text.replace("'", "'\\''")


def choices(row):
    return [(item["names"], item["values"]) for item in row["words"] if item.get("values") and item.get("names")]


BASH = """# oxbowctl.bash - completion for bash; made from spec/commands.
_oxbowctl()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} noun= verb= word skip= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $skip ]]; then
            skip=
        elif [[ $word == -* ]]; then
            case $word in
            %(valued)s) skip=1 ;;
            esac
        elif [[ ! $noun ]]; then
            noun=$word
        elif [[ ! $verb ]]; then
            verb=$word
        fi
    done
    local words=
    case "$previous" in
    -o | --output) words='table json' ;;
    %(others)s) return ;;
    esac
    if [[ $words ]]; then
        :
    elif [[ ! $noun ]]; then
        words='%(nouns)s'
        [[ $current == -* ]] && words='%(globals)s'
    else
        case "$noun $verb" in
%(cases)s
        esac
        [[ $current == -* ]] && words="$words %(globals)s"
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _oxbowctl oxbowctl
"""


def bash_row(noun, row):
    pattern = f"'{noun['noun']} {row['verb']}'" if row["verb"] else f"'{noun['noun']} '*"
    out = [f"        {pattern})"]
    if choices(row):
        out += ['            case "$previous" in', *(f"            {' | '.join(names)}) words='{' '.join(values)}' ;;" for names, values in choices(row)), "            esac"]
    names = " ".join(name for item in row["words"] for name in names_of(item))
    return [*out, f"            [[ $words ]] || words='{names}'", "            ;;"]


def bash(found, options):
    cases = []
    for noun in found:
        if noun["verbs"][0]["verb"]:
            verbs = " ".join(row["verb"] for row in sayable(noun, found))
            cases += [f"        '{noun['noun']} ')", f"            words='{verbs}'", "            ;;"]
        cases += [line for row in sayable(noun, found) for line in bash_row(noun, row)]
    valued = with_value(options)
    return BASH % {"valued": " | ".join(valued), "others": " | ".join(name for name in valued if name not in ("-o", "--output")), "nouns": " ".join(noun["noun"] for noun in found), "globals": " ".join(global_names(options)),
                   "cases": "\n".join(cases)}


ZSH = """#compdef oxbowctl
# _oxbowctl - completion for zsh; made from spec/commands.
_oxbowctl()
{
    local noun= verb= word skip= i
    local -a found
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        if [[ -n $skip ]]; then
            skip=
        elif [[ $word == -* ]]; then
            case $word in
            (%(valued)s) skip=1 ;;
            esac
        elif [[ -z $noun ]]; then
            noun=$word
        elif [[ -z $verb ]]; then
            verb=$word
        fi
    done
    if [[ $words[CURRENT-1] == (-o|--output) ]]; then
        compadd table json
        return
    fi
    if [[ -z $noun ]]; then
        found=(
%(nouns)s
        )
    else
        case "$noun $verb" in
%(cases)s
        esac
    fi
    if [[ $words[CURRENT] == -* ]]; then
        found+=(
%(globals)s
        )
    fi
    (( $#found )) && _describe 'oxbowctl' found
    [[ -n $verb && $words[CURRENT] != -* ]] && _files
    return 0
}
_oxbowctl "$@"
"""


def zsh_item(name, text):
    return "            '" + plain(name.replace(":", "\\:")) + ":" + plain(text) + "'"


def zsh_row(noun, row):
    pattern = f"('{noun['noun']} {row['verb']}')" if row["verb"] else f"('{noun['noun']} '*)"
    out = [f"        {pattern}"]
    if choices(row):
        out += ["            case $words[CURRENT-1] in", *(f"            ({'|'.join(names)}) compadd {' '.join(values)}; return ;;" for names, values in choices(row)), "            esac"]
    items = [zsh_item(name, item["help"]) for item in row["words"] for name in names_of(item)]
    return [*out, "            found=(", *items, "            )", "            ;;"]


def zsh(found, options):
    cases = []
    for noun in found:
        if noun["verbs"][0]["verb"]:
            cases += [f"        ('{noun['noun']} ')", "            found=(", *(zsh_item(row["verb"], row["summary"]) for row in sayable(noun, found)), "            )", "            ;;"]
        cases += [line for row in sayable(noun, found) for line in zsh_row(noun, row)]
    return ZSH % {"valued": "|".join(with_value(options)), "nouns": "\n".join(zsh_item(noun["noun"], noun["about"]) for noun in found), "cases": "\n".join(cases),
                  "globals": "\n".join(zsh_item(name, item["help"]) for item in options for name in names_of(item))}


FISH = """# oxbowctl.fish - completion for fish; made from spec/commands.
function __oxbowctl_words
    set -l noun
    set -l verb
    set -l skip
    for word in (commandline -opc)[2..-1]
        if test -n "$skip"
            set skip
        else if string match -q -- '-*' $word
            contains -- $word %(valued)s; and set skip 1
        else if test -z "$noun"
            set noun $word
        else if test -z "$verb"
            set verb $word
        end
    end
    set -l previous (commandline -opc)[-1]
    if contains -- $previous -o --output
        printf '%%s\\n' table json
        return
    end
    if test -z "$noun"
        printf '%%s\\t%%s\\n' %(nouns)s
    else
        switch "$noun $verb"
%(cases)s
        end
    end
    if string match -q -- '-*' (commandline -ct)
        printf '%%s\\t%%s\\n' %(globals)s
    end
end
complete -c oxbowctl -f -a '(__oxbowctl_words)'
"""


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_pairs(pairs):
    return " ".join(f"{fish_quoted(name)} {fish_quoted(text)}" for name, text in pairs)


def fish_row(noun, row):
    out = [f"            case '{noun['noun']} {row['verb']}'" if row["verb"] else f"            case '{noun['noun']} *'"]
    for names, values in choices(row):
        out += [f"                if contains -- $previous {' '.join(names)}", f"                    printf '%s\\n' {' '.join(values)}", "                    return", "                end"]
    pairs = [(name, item["help"]) for item in row["words"] for name in names_of(item)]
    return out + ([f"                printf '%s\\t%s\\n' {fish_pairs(pairs)}"] if pairs else [])


def fish(found, options):
    cases = []
    for noun in found:
        if noun["verbs"][0]["verb"]:
            cases += [f"            case '{noun['noun']} '", f"                printf '%s\\t%s\\n' {fish_pairs((row['verb'], row['summary']) for row in sayable(noun, found))}"]
        cases += [line for row in sayable(noun, found) for line in fish_row(noun, row)]
    return FISH % {"valued": " ".join(with_value(options)), "nouns": fish_pairs((noun["noun"], noun["about"]) for noun in found), "cases": "\n".join(cases),
                   "globals": fish_pairs((name, item["help"]) for item in options for name in names_of(item))}


def short(route):
    """A route with TOPIC and NS as docs/admin.md has them."""
    method, _, path = route.partition(" ")
    for name, shown in (("{topic}", "TOPIC"), ("{namespace}", "NS")):
        if path.startswith(name):
            path = shown + path[len(name):]
    return f"`{method} {path}`"


def docs(text, found):
    """docs/oxbowctl.md with its tables made anew."""
    out = []
    for noun in found:
        out += [f"### {noun['noun']}: {noun['about']}", "", "| verb | what it does | asks |", "|---|---|---|"]
        out += [f"| `{row['verb'] or noun['noun']}` | {row['summary'].replace('|', '/')} | {' '.join(map(short, row['routes'])) or '-'} |" for row in noun["verbs"]]
        out += ["", f"The verbs of `{noun['also']}` can be said with `{noun['noun']}` too."] if noun.get("also") else []
        out.append("")
    return MARK.sub(lambda match: match.group(1) + "\n".join(["", *out]) + match.group(3), text)


def pages(found, options):
    """The content of each page, by its path."""
    return {"man/oxbowctl.1": man(found, options), "completion/oxbowctl.bash": bash(found, options), "completion/_oxbowctl": zsh(found, options),
            "completion/oxbowctl.fish": fish(found, options)}
