"""A program that paints, without a profile. As `composer` it takes a prompt, then works for three seconds with a spinner
while it still reads keys. As `menu` it takes return for a sign-in; as `splash` any return for a start."""
import os
import select
import sys
import time
import tty

kind = sys.argv[1]
text, working, spins = "", None, 0


def write(out):
    os.write(1, out.encode())


def paint():
    rows = ["Painter", ""]
    if kind == "menu":
        rows += ["How would you like to sign in?", "", "\u276f 1. With the browser", "  2. With a key", "", "Enter to choose"]
    elif kind == "splash":
        rows += ["Welcome. There is much to see here", ">"]
    else:
        rows += ["| Thinking"[spins % 2:] if working else "Ready", "> " + text]
    write("\x1b[?2026h\x1b[H\x1b[2J" + "\r\n".join(rows) + "\x1b[?2026l")


tty.setraw(0)
write("\x1b[?2004h")
while True:
    paint()
    ready, _, _ = select.select([0], [], [], 0.7 if working else None)
    spins += 1
    if working and time.monotonic() > working:
        working = None
        open("worked", "w").close()
    if not ready:
        continue
    keys = os.read(0, 65536).decode()
    if kind in ("menu", "splash") and "\r" in keys.replace("\x1b[200~", ""):
        open("entered", "w").close()
    elif kind == "composer" and keys == "\r" and text:
        text, working = "", time.monotonic() + 3
    elif kind == "composer":
        text += keys.replace("\x1b[200~", "").replace("\x1b[201~", "")
