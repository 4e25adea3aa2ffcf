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
trap '$tmux kill-server 2>/dev/null; kill "$sleeper" 2>/dev/null; rm -rf "$folder"' EXIT

missing=()
for program in tmux vim htop less fzf dialog; do
    command -v "$program" >/dev/null || missing+=("$program")
done
if [ "${#missing[@]}" -gt 0 ]; then
    apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null || exit 2
fi

mkdir -p "$folder"/{home,state,work}
sleep 100000 & sleeper=$!
seq -f 'line %g of a text, äöü 漢字' 200 > "$folder/work/text"
printf 'fields=0 48 17 38 39\nleft_meters=\nleft_meter_modes=\nright_meters=\nright_meter_modes=\n' > "$folder/htoprc"
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
    "vim -u $folder/vimrc -N text"
    "less -N text"
    "sh -c 'fzf --layout=reverse --border < text'"
    "dialog --title Choice --menu Which? 12 40 4 1 one 2 two 3 three"
    "env HTOPRC=$folder/htoprc htop --readonly -d 100 -p $sleeper"
    "sh $folder/asks.sh"
)
keys=("/8 Enter i x y Escape 10 j" "Space / 7 Enter" "line Down Down" "Down Down" "Down" "")

# The screen of a command in a tmux of its own, with its colours.
screen() { # label, command, keys
    local command=$2
    $tmux new-session -d -s "$1" -x 100 -y 30 -c "$folder/work" "exec env HOME=$folder/home PROVOST_STATE_DIR=$folder/state $command"
    sleep 2.5
    for key in $3; do
        $tmux send-keys -t "$1" "$key"
        sleep 0.2
    done
    # asks.sh waits a second for each answer.
    [ "$4" = asks ] && sleep 6
    sleep 1
    $tmux capture-pane -e -p -t "$1" > "$folder/$1"
    $tmux display-message -p -t "$1" '#{cursor_x},#{cursor_y} alternate=#{alternate_on} #{pane_title}' | sed 's/ .*title.*//' |
        cut -d' ' -f1,2 >> "$folder/$1"
    $tmux kill-session -t "$1"
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
        screen "$name-bare" "${commands[$at]}" "${keys[$at]}" "$name"
        screen "$name-provost" "$provost exec -q -- ${commands[$at]}" "${keys[$at]}" "$name"
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
