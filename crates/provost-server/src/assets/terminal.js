// The terminal of an external agent: its screen as it is, what is typed into it, and its recordings.
import { $, $$ } from "./dom.js";
import { liveness } from "./live.js";
import { send } from "./act.js";
import { KEYS } from "./page.js";

const screen = $("#screen[data-from]");
const from = screen && new URL(screen.dataset.from, location.href);
const tellTerm = (says) => { if ($("#term-news")) $("#term-news").textContent = says; };

function drawCells(row, cells) {
  row.replaceChildren(...cells.map(({ text, fg, bg, styles = [] }) => {
    const span = document.createElement("span");
    span.textContent = text;
    span.className = [...styles, typeof fg === "number" && `c${fg}`, typeof bg === "number" && `b${bg}`].filter(Boolean).join(" ");
    if (typeof fg === "string") span.style.color = fg;
    if (typeof bg === "string") span.style.backgroundColor = bg;
    return span;
  }));
}

function drawScreen({ rows, cols, lines }) {
  if (Number(screen.dataset.rows) !== rows || Number(screen.dataset.cols) !== cols) {
    screen.replaceChildren(...Array.from({ length: rows }, () => [Object.assign(document.createElement("span"), { className: "row-of-cells" }), "\n"]).flat());
    Object.assign(screen.dataset, { rows, cols });
  }
  const all = $$(".row-of-cells", screen);
  for (const [row, cells] of Object.entries(lines)) drawCells(all[row], cells);
}

let socket = null;
function attach(role) {
  socket?.close();
  const url = new URL(from);
  url.protocol = url.protocol.replace("http", "ws");
  url.searchParams.set("role", role);
  const own = (socket = new WebSocket(url));
  own.addEventListener("open", () => { liveness(true); if (role === "control") fit(); });
  own.addEventListener("message", (event) => {
    const said = JSON.parse(event.data);
    if (said.type === "screen") drawScreen(said);
    else tellTerm(said.why);
  });
  own.addEventListener("close", () => { if (own === socket) { liveness(false); control(false); } });
}

const type = (text) => socket?.readyState === 1 && socket.send(JSON.stringify({ type: "input", text }));
let inControl = false;
function control(wanted) {
  const button = $("[data-attach]");
  if (!button || inControl === wanted) return;
  inControl = wanted;
  button.setAttribute("aria-pressed", wanted);
  button.firstChild.textContent = wanted ? "Let go " : "Take over ";
  screen.classList.toggle("held", wanted);
  tellTerm(wanted ? "You type: every key goes to the program; Ctrl-\\ detaches." : "Watching.");
  if (wanted) screen.focus();
}

// The window that fits: the program's is the smallest of all that are attached.
function fit() {
  const cell = document.createElement("span");
  cell.textContent = "0";
  screen.append(cell);
  const { width, height } = cell.getBoundingClientRect();
  cell.remove();
  const cols = Math.floor((screen.clientWidth - 32) / width);
  const rows = Math.max(24, Math.floor((innerHeight * 0.7) / height));
  if (socket?.readyState === 1) socket.send(JSON.stringify({ type: "resize", rows, cols: Math.max(80, cols) }));
}

const SENT = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", ArrowUp: "\x1b[A", ArrowDown: "\x1b[B", ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D", Home: "\x1b[H", End: "\x1b[F", Delete: "\x1b[3~", PageUp: "\x1b[5~", PageDown: "\x1b[6~" };
function typeKey(event) {
  if (event.ctrlKey && event.key === "\\") return release();
  let text = SENT[event.key] ?? (event.key.length === 1 ? event.key : "");
  if (event.ctrlKey && /^[a-z@[\]^_]$/i.test(event.key)) text = String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31);
  if (event.altKey && text) text = `\x1b${text}`;
  if (text) { type(text); event.preventDefault(); }
}
function release() { control(false); attach("watch"); }

if (screen && from.pathname.endsWith("/attach")) {
  attach("watch");
  screen.addEventListener("keydown", (event) => {
    if (!inControl) return;
    event.stopPropagation();
    typeKey(event);
  });
  $("[data-attach]").addEventListener("click", () => { if (inControl) return release(); attach("control"); control(true); });
  screen.addEventListener("paste", (event) => inControl && type(event.clipboardData.getData("text")));
  addEventListener("resize", () => inControl && fit());
  $("#typer").addEventListener("submit", async (event) => {
    event.preventDefault();
    const path = from.pathname.replace(/attach$/, "input");
    const what = { agent: Number(from.searchParams.get("agent")), text: `${$("#type").value}\r` };
    if (await send(path, what, tellTerm)) $("#type").value = "";
  });
}

// Recordings: the server draws the screen at each moment.
const slider = $("#at");
let playing = null;
async function moment(at) {
  const url = new URL(from);
  url.searchParams.set("at_ms", Math.round(at));
  const { screen: shown, next_ms: next } = await (await fetch(url)).json();
  drawScreen({ ...shown, lines: shown.cells });
  slider.value = at;
  $("#at-time").textContent = `${Math.floor(at / 60000)}:${String(Math.floor((at % 60000) / 1000)).padStart(2, "0")}`;
  $("#pos")?.setAttribute("d", `M${(at * 1000) / Math.max(slider.max, 1)} 2V44`);
  return next;
}
// A wait in the recording takes two seconds at most.
async function play(at) {
  const own = (playing = {});
  while (at !== null && playing === own) {
    const next = await moment(at);
    if (next !== null) await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(next - at, 40), 2000)));
    at = next === null ? null : Math.max(next, at + 40);
  }
  if (playing === own) stop();
}
function stop() { playing = null; $("[data-play]").firstChild.textContent = "Play "; }
KEYS["["] = () => mark(-1);
KEYS["]"] = () => mark(1);
function mark(by) {
  if (!slider) return;
  const all = $$("[data-mark]").map((link) => Number(link.dataset.mark));
  const at = Number(slider.value);
  const to = by > 0 ? all.find((one) => one > at) : all.findLast((one) => one < at);
  if (to !== undefined) { stop(); moment(to); }
}
if (screen && slider) {
  slider.addEventListener("input", () => { stop(); moment(Number(slider.value)); });
  $("[data-play]").addEventListener("click", () => {
    if (playing) return stop();
    $("[data-play]").firstChild.textContent = "Stop ";
    play(Number(slider.value) >= Number(slider.max) ? 0 : Number(slider.value));
  });
}

