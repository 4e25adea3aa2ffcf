#!/usr/bin/env bash
# Full-screen programs in tmux with and without Provost: are their screens equal, cell by cell and colour by colour, in a
# dark and in a light terminal? Prints a table; exit status 1 if a screen differs.
#
# Usage: examples/attended/compare.sh [PROVOST]     (target/debug/provost unless given; installs programs with apt)
set -u
here=$(cd "$(dirname "$0")" && pwd)
provost=$(realpath "${1:-$here/../../target/debug/provost}")
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/attended.XXXXXX")
tmux="tmux -L provost-attended-$$ -f $folder/tmux.conf"
trap '$tmux kill-server 2>/dev/null; rm -rf "$folder"' EXIT

missing=()
for program in tmux vim htop less fzf dialog; do
    command -v "$program" >/dev/null || missing+=("$program")
done
if [ "${#missing[@]}" -gt 0 ]; then
    apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null || exit 2
fi

mkdir -p "$folder"/{home,state,work}
seq -f 'line %g of a text, äöü 漢字' 200 > "$folder/work/text"
# Without what changes: ids, loads, memory.
cat > "$folder/htoprc" <<'HTOP'
htop_version=3.2.2
config_reader_min_version=3
fields=48 17 18 38 2 1
screen:Main=USER PRIORITY NICE M_VIRT STATE Command
.sort_key=USER
header_layout=two_50_50
column_meters_0=Hostname
column_meter_modes_0=2
column_meters_1=Hostname
column_meter_modes_1=2
HTOP
cat > "$folder/vimrc" <<'VIM'
syntax on
set laststatus=2 number ruler
" Vim asks the terminal for its background colour, and chooses its colours by the answer.
set statusline=%{&background}\ %{&term}\ %{&t_Co}\ %l,%c
VIM
# What the terminal itself answers to queries.
cat > "$folder/asks.sh" <<'ASKS'
old=$(stty -g); stty raw -echo min 0 time 10
ask() { printf "$2"; answer=$(dd bs=200 count=1 2>/dev/null | cat -v); printf '%-12s %s\r\n' "$1" "$answer"; }
ask text '\033]10;?\033\\'; ask background '\033]11;?\033\\'; ask palette '\033]4;1;?\033\\'
ask DA1 '\033[c'; ask DA2 '\033[>c'; ask version '\033[>q'; ask cursor '\033[6n'; ask mode '\033[?2004$p'
ask pixels '\033[14t'; ask cells '\033[16t'; ask size '\033[18t'
stty "$old"; exec cat
ASKS

# A program, and the keys that are typed at it, as tmux names them.
names=(vim less fzf dialog htop asks)
commands=(
    "vim -n -i NONE -u $folder/vimrc -N text"
    "less -N text"
    "sh -c 'fzf --layout=reverse --border < text'"
    "dialog --title Choice --menu Which? 12 40 4 1 one 2 two 3 three"
    "sh -c 'sleep 1000 & until grep -q sleep /proc/\$!/comm; do :; done; HTOPRC=$folder/htoprc exec htop --readonly -d 100 -p \$!'"
    "sh $folder/asks.sh"
)
keys=("/8 Enter i x y Escape 10 j" "Space / 7 Enter" "line Down Down" "Down Down" "Down" "")

# Waits until the screen hasn't changed for this number of tenths of a second, for half a minute at most.
settles() { # label, tenths
    local before="" now quiet=0 round
    for round in $(seq 300); do
        now=$($tmux capture-pane -e -p -t "$1" | cksum)
        # Before a program has painted, it isn't there.
        if [ "$now" = "$before" ] && [ -n "$($tmux capture-pane -p -t "$1" | tr -d '[:space:]')" ]; then quiet=$((quiet + 1)); else quiet=0; fi
        [ "$quiet" -ge "$2" ] && return
        before=$now
        sleep 0.1
    done
}

# The screen of a command in tmux, with its colours, cursor and modes.
screen() { # label, command, keys
    $tmux new-session -d -s "$1" -x 100 -y 30 -c "$folder/work" \
        "exec env HOME=$folder/home PROVOST_STATE_DIR=$folder/state $2"
    settles "$1" 20
    for key in $3; do
        $tmux send-keys -t "$1" "$key"
        settles "$1" 2
    done
    settles "$1" 15
    $tmux capture-pane -e -p -t "$1" > "$folder/$1"
    $tmux display-message -p -t "$1" 'cursor #{cursor_x},#{cursor_y} #{cursor_flag} alternate #{alternate_on} keypad #{keypad_flag} mouse #{mouse_any_flag}' >> "$folder/$1"
    # A closed terminal doesn't end an attended program.
    env HOME="$folder/home" PROVOST_STATE_DIR="$folder/state" "$provost" --global cancel last >/dev/null 2>&1
    $tmux kill-session -t "$1" 2>/dev/null
}

failed=0
printf '| program | dark | light |\n|---|---|---|\n'
declare -A row
for theme in dark light; do
    case $theme in
        dark) style="fg=#cccccc,bg=#101010" ;;
        light) style="fg=#202020,bg=#fafafa" ;;
    esac
    printf 'set -g status off\nset -g default-terminal tmux-256color\nset -g window-style "%s"\nset -sg escape-time 10\n' "$style" \
        > "$folder/tmux.conf"
    $tmux kill-server 2>/dev/null
    for at in "${!names[@]}"; do
        name=${names[$at]}
        screen "$name-bare" "${commands[$at]}" "${keys[$at]}"
        screen "$name-provost" "$provost exec -q -- ${commands[$at]}" "${keys[$at]}"
        if cmp -s "$folder/$name-bare" "$folder/$name-provost"; then
            row[$name]="${row[$name]:-} equal |"
        else
            row[$name]="${row[$name]:-} **differs** |"
            failed=1
            diff <(cat -v "$folder/$name-bare") <(cat -v "$folder/$name-provost") | head -"${DIFF_LINES:-6}" >&2
        fi
    done
done
for name in "${names[@]}"; do
    echo "| $name |${row[$name]}"
done
exit $failed
