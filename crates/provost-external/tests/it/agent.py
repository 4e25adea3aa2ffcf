"""Paints like an agent: a composer, a mark while it works, a dialog for consent. Text and a return that come in one read
are taken for a paste. It keeps what it was told in `told` (with --resume it goes on with it). It asks its model where the
gateway's variables are set; meanwhile its composer looks as when it is ready. With --starting its first prompt waits until
it has started, for which it runs a program. With --undaunted it works on after a denial. With --late it takes its prompt,
looks ready, reads nothing for a while, and then asks for consent; it reads key by key, and isn't ended by a request."""
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import tty
import urllib.request

ESC = "\x1b"


class Agent:
    def __init__(self):
        self.shown = ["Fake Agent"]
        self.composer = ""
        self.dialog = None
        self.working = None
        self.pasting = None
        self.then = None
        self.waits = False
        self.over, self.tells = os.pipe()
        if "--resume" in sys.argv:
            self.say("Resumed after: " + open("told").read().strip().replace("\n", " | "))

    def say(self, text):
        self.shown += text.split("\n")

    def paint(self):
        rows = list(self.shown[-12:])
        if self.dialog:
            kind, command = self.dialog
            if kind == "trust":
                folder = os.path.basename(os.getcwd())
                rows += ["", "Do you trust this folder?", "", "> 1. Trust folder (" + folder + ")", "  2. Don't trust"]
            else:
                rows += ["", "Run this command?", "", "  $ " + command, "", "> 1. Yes", "  2. No"]
            rows += ["", "enter to confirm"]
            cursor = ""
        else:
            if self.working:
                rows += ["", "* Working (esc to interrupt)"]
            rows += [""]
            lines = self.composer.split("\n")
            rows += ["> " + lines[0]] + ["  " + line for line in lines[1:]]
            cursor = ESC + "[%d;%dH" % (len(rows), 3 + len(lines[-1]))
            if self.waits:
                rows += ["  Waiting for startup"]
        text = "\r\n".join(row[:100] for row in rows)
        self.write(ESC + "[?2026h" + ESC + "[H" + ESC + "[2J" + text + cursor + ESC + "[?2026l")

    def write(self, text):
        os.write(1, text.encode())

    def read(self, text):
        if "--deaf" in sys.argv:
            return
        if self.pasting is not None or text.startswith(ESC + "[200~"):
            text = (self.pasting or "") + text
            self.pasting = text
            if not text.endswith(ESC + "[201~"):
                return
            self.pasting = None
            self.composer += text[6:-6].replace("\r", "\n")
        elif self.dialog:
            self.decide(text)
        elif text == "\r":
            prompt, self.composer = self.composer, ""
            if prompt == "/quit":
                sys.exit(0)
            if prompt and "--late" in sys.argv:
                self.ask_late()
            elif prompt and "--starting" in sys.argv:
                self.start_up(prompt)
            elif prompt:
                self.work(prompt)
        elif text == ESC:
            if self.working:
                self.working = None
                self.say("Interrupted.")
        elif len(text) > 1:
            self.composer += text.replace("\r", "\n")
        elif text.isprintable():
            self.composer += text

    def ask_late(self):
        self.paint()
        time.sleep(7)
        self.dialog = ("run", "touch consented")
        open("asked", "w").close()

    def start_up(self, prompt):
        sys.argv.remove("--starting")
        subprocess.Popen(["sleep", "1"])
        self.composer, self.waits = prompt, True
        self.paint()
        time.sleep(3)
        self.composer, self.waits = "", False
        self.work(prompt)

    def work(self, prompt):
        with open("told", "a") as told:
            told.write(prompt + "\n--\n")
        self.say("> " + prompt.split("\n")[0])
        self.working = (time.monotonic() + 0.3, prompt)

    def ask(self, count):
        def call():
            url = os.environ["PROVOST_GATEWAY_URL"] + "/anthropic/v1/messages"
            body = b'{"model":"claude","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}'
            key = {"x-api-key": os.environ["PROVOST_GATEWAY_TOKEN"], "content-type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(url, body, key)).read()

        def calls():
            try:
                for _ in range(count):
                    call()
                os.write(self.tells, b"a")
            except OSError:
                os.write(self.tells, b"f")

        threading.Thread(target=calls, daemon=True).start()

    def asked(self, how):
        open("answered" if how == b"a" else "not-answered", "w").close()
        if self.then == "exit":
            sys.exit(0)
        self.say("I have an answer." if how == b"a" else "Hm.")

    def done(self):
        prompt = self.working[1]
        self.working = None
        verb, _, rest = prompt.partition(" ")
        if verb == "run":
            self.dialog = ("run", rest.split("\n")[0])
        elif verb == "ask" or (verb.startswith("You") and "PROVOST_GATEWAY_URL" in os.environ):
            count, _, self.then = rest.partition(" ")
            self.ask(int(count) if verb == "ask" else 1)
        elif verb == "exit":
            sys.exit(int(rest))
        elif verb == "ran":
            self.say("Ran it.")
        elif verb == "daemon":
            subprocess.Popen(["setsid", "sleep", "600"])
            self.say("Started.")
        elif verb == "trust":
            self.dialog = ("trust", "touch trusted")
        elif verb == "chat":
            self.say("Read a file\n# Hello there.\n\n\nThe second line.\n? for shortcuts")
        elif verb == "fail":
            self.say("! Error: " + rest)
        elif verb == "flaky" or (verb == "Your" and not os.path.exists("failed")):
            open("failed", "w").close()
            self.say("! Error: 500 internal server error")
        elif verb == "tool":
            script = "sleep 4; touch tool-ended"
            subprocess.Popen(["sh", "-c", script], stdin=subprocess.DEVNULL)
            self.say("Started a tool.")
        elif verb == "register":
            self.registry = socket.create_connection(("127.0.0.1", int(rest)))
            self.registry.sendall(b"x" * 400)
            self.say("Registered.")
        elif verb == "stay":
            self.working = (time.monotonic() + 600, prompt)
        else:
            self.say("I did this: " + prompt.replace("\n", " / "))

    def decide(self, key):
        if key == "w":  # The dialog for another question, in the same place.
            self.dialog = ("run", "something else")
        elif key in ("1", "\r", "y"):
            command, self.dialog = self.dialog[1], None
            self.working = (time.monotonic() + 600, command)
            self.paint()
            subprocess.run(["sh", "-c", command])
            self.working = (time.monotonic() + 0.2, "ran " + command)
        elif key in ("2", ESC):
            self.dialog = None
            self.say("Refused.")
            if "--undaunted" in sys.argv:
                self.working = (time.monotonic() + 0.5, "on without it")

    def live(self):
        self.write(ESC + "[?2004h")
        while True:
            self.paint()
            wait = None
            if self.working:
                wait = max(0, self.working[0] - time.monotonic())
            ready, _, _ = select.select([0, self.over], [], [], wait)
            if self.over in ready:
                self.asked(os.read(self.over, 1))
            elif ready:
                self.read(os.read(0, 1 if self.dialog and "--late" in sys.argv else 65536).decode())
            elif self.working:
                self.done()


if "--late" in sys.argv:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
before = termios.tcgetattr(0)
tty.setraw(0)
try:
    Agent().live()
finally:
    termios.tcsetattr(0, termios.TCSANOW, before)
