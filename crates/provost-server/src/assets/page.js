// Keeps a document up to date and takes its keys. What it shows is complete without it.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const body = document.body;

// Keys are dead for a moment after a question came up or changed: none that was meant for another one counts.
const DEAD_MS = 500;
let questionsSince = performance.now();

// --- Live sections ---
const live = $("#live");
function liveness(isLive) {
  if (!live) return;
  live.hidden = false;
  live.classList.toggle("off", !isLive);
  const at = new Date().toISOString().slice(11, 16);
  $(".txt", live).textContent = isLive ? "Live" : `Not live since ${at} UTC`;
}

function replace({ id, html }) {
  const old = document.getElementById(id);
  if (!old || old.outerHTML === html) return;
  const template = document.createElement("template");
  template.innerHTML = html;
  const fresh = template.content.firstElementChild;
  if (!fresh) return;
  // Folds, selection, focus, scroll and what is typed survive.
  for (const details of $$("details[id]", old)) {
    const twin = fresh.querySelector(`#${CSS.escape(details.id)}`);
    if (twin) twin.open = details.open;
  }
  for (const at of $$(".at[id]", old)) fresh.querySelector(`#${CSS.escape(at.id)}`)?.classList.add("at");
  for (const input of $$("input[id]", old)) {
    const twin = fresh.querySelector(`#${CSS.escape(input.id)}`);
    if (twin) twin.value = input.value;
  }
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const back = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.getAttribute("href") && `[href="${CSS.escape(focused.getAttribute("href"))}"]`);
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  const asked = $$("[data-question]", old).map((question) => question.id).join();
  old.replaceWith(fresh);
  if ($$("[data-question]", fresh).map((question) => question.id).join() !== asked) questionsSince = performance.now();
  if (back) fresh.querySelector(back)?.focus({ preventScroll: true });
  if (id === "timeline" && atEnd) scrollTo(0, document.documentElement.scrollHeight);
  if (id === "badge") news(fresh);
  filter();
}

function news(badge) {
  const count = Number(badge.textContent.trim() || 0);
  document.title = document.title.replace(/^\(\d+\) /, "");
  if (count > 0) document.title = `(${count}) ${document.title}`;
  $("#news").textContent = count > 0 ? `${count} waiting for you` : "";
}

if (body.dataset.live) {
  const events = new EventSource(body.dataset.live);
  events.addEventListener("open", () => liveness(true));
  events.addEventListener("error", () => liveness(false));
  events.addEventListener("sections", (event) => JSON.parse(event.data).forEach(replace));
} else if (live) {
  live.hidden = true;
}

// --- Acting ---
async function send(path, what, says, key) {
  const late = setTimeout(() => says("still asking"), 2000);
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", ...(key && { "Idempotency-Key": key }) }, body: JSON.stringify(what) });
    if (answer.ok) return await answer.json();
    const problem = await answer.json().catch(() => ({}));
    says(problem.detail ?? `refused (${answer.status})`);
  } catch {
    says("the server doesn't answer");
  } finally {
    clearTimeout(late);
  }
  return false;
}

// Asks in the document: `value` is null where only yes or no is wanted.
function ask(title, text, value) {
  const dialog = $("#ask");
  $("#ask-title").textContent = title;
  $("#ask-text").textContent = text;
  const input = $("#ask-input");
  input.hidden = value === null;
  input.value = value ?? "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? input.value : null), { once: true }));
}

async function act(button) {
  if (button.dataset.focus) {
    const field = document.getElementById(button.dataset.focus);
    return field ? field.focus() : $(".tabs a")?.click();
  }
  if (button.dataset.confirm && (await ask(button.dataset.confirm, "What it has done so far stays.", null)) === null) return;
  button.disabled = true;
  const done = await send(button.dataset.act, {}, (says) => (button.textContent = says));
  if (!done) setTimeout(() => (button.disabled = false), 2000);
}

async function answer(question, how) {
  const refusal = $("[data-refusal]", question);
  let given = { answer: "allow", scope: how };
  if (how === "deny") {
    const reason = await ask("Deny", "Why not? This is what the agent is told; Enter alone is nothing.", "");
    if (reason === null) return;
    given = { answer: "deny", reason };
  } else if (how === "always") {
    if ((await ask("Always allow this?", question.dataset.pattern, null)) === null) return;
  }
  const buttons = $$("[data-answer]", question);
  buttons.forEach((button) => (button.disabled = true));
  const done = await send(question.dataset.question, given, (says) => (refusal.textContent = says));
  if (done) refusal.textContent = "answered";
  else buttons.forEach((button) => (button.disabled = false));
}

// What a form asks for: empty fields are left out, and a dot in a name leads into an object.
function request(form) {
  const all = {};
  const agent = form.closest("[data-agent]")?.dataset.agent;
  if (agent) all.agent = Number(agent);
  for (const field of $$("[name]", form).filter((field) => field.value.trim() !== "")) {
    const [outer, inner] = field.name.split(".");
    const value = field.hasAttribute("data-number") ? Number(field.value) : field.value.trim();
    if (inner) (all[outer] ??= {})[inner] = value;
    else all[outer] = value;
  }
  return all;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.act || button?.dataset.focus) act(button);
  if (button?.dataset.dialog) document.getElementById(button.dataset.dialog)?.showModal();
  if (button?.hasAttribute("data-close")) button.closest("dialog").close();
  if (button?.dataset.answer) answer(button.closest("[data-question]"), button.dataset.answer);
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.send) {
    event.preventDefault();
    const refusal = $("[data-refusal]", form);
    const done = await send(form.dataset.send, request(form), (says) => (refusal.textContent = says), (form.dataset.key ??= crypto.randomUUID()));
    // The same key only for the same request.
    delete form.dataset.key;
    if (done) location.href = done.run ? `/runs/${done.run}` : location.pathname;
  } else if (form.id === "sayer") {
    event.preventDefault();
    const input = $("#say");
    if (!input.value.trim()) return;
    const what = { agent: Number(form.dataset.agent), text: input.value };
    if (await send(form.dataset.say, what, (says) => (input.placeholder = says))) input.value = "";
  } else if (form.role === "search" || form.classList.contains("find")) {
    event.preventDefault();
  }
});

// --- Filter ---
function filter() {
  const wanted = ($("#q")?.value ?? "").toLowerCase();
  for (const row of $$(".rows > .row")) row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
}
$("#q")?.addEventListener("input", filter);

// --- Keys ---
const stops = () => $$("[data-question], [data-row]").filter((row) => !row.hidden && row.offsetParent !== null);
const current = () => $(".at");

function move(by) {
  const all = stops();
  if (all.length === 0) return;
  const next = all[Math.min(Math.max(all.indexOf(current()) + by, 0), all.length - 1)];
  current()?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
  if (next.dataset.question) questionsSince = Math.max(questionsSince, performance.now() - DEAD_MS / 2);
}

function agent(by) {
  const all = $$(".tree .ag");
  const at = all.findIndex((link) => link.getAttribute("aria-current") === "true");
  all[at + by]?.click();
}

const KEYS = {
  j: () => move(1),
  ArrowDown: () => move(1),
  k: () => move(-1),
  ArrowUp: () => move(-1),
  h: () => agent(-1),
  l: () => (onlyQuestion() ? move(1) : agent(1)),
  i: () => (location.href = "/inbox"),
  g: () => $('[data-key="g"]')?.click(),
  "[": () => mark(-1),
  "]": () => mark(1),
  "/": () => $("#q")?.focus(),
  "?": () => $("#keys").showModal(),
  o: () => $$("details", current() ?? $("#timeline") ?? document).forEach((details) => (details.open = !details.open)),
  Escape: () => (location.pathname === "/" ? null : (location.href = location.pathname.match(/^(\/runs\/[^/]+)\/./)?.[1] ?? "/")),
  Enter: () => $(".goal a, .crumb a", current() ?? document.createElement("i"))?.click(),
  a: () => decide("once"),
  r: () => decide("run"),
  A: () => decide("always"),
  d: () => decide("deny"),
};

const onlyQuestion = () => (current()?.dataset.question ? current() : stops().find((stop) => stop.dataset.question));

// A question is answered only where the whole call is in view; elsewhere the key opens it.
function decide(how) {
  const question = onlyQuestion();
  if (!question) return how === "once" ? ($('[data-key="a"]', current() ?? document) ?? $('[data-key="a"]'))?.click() : null;
  if (performance.now() - questionsSince < DEAD_MS) return;
  const call = $(".cmd", question).getBoundingClientRect();
  if (call.top < 0 || call.bottom > innerHeight) return question.scrollIntoView({ block: "start" });
  $(`[data-answer="${how}"]`, question)?.click();
}

const off = $("#keys-off");
if (off) {
  off.checked = localStorage.getItem("keys-off") === "yes";
  off.addEventListener("change", () => localStorage.setItem("keys-off", off.checked ? "yes" : "no"));
}

document.addEventListener("keydown", (event) => {
  if (inControl && event.target === screen) return typeKey(event);
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if ($("dialog[open]")) return;
  const inField = event.target.closest("input:not([type=range]), textarea, select");
  if (inField) return event.key === "Escape" ? inField.blur() : undefined;
  if (off?.checked && event.key.length === 1 && event.key !== "?") return;
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  if (/^[1-9]$/.test(event.key)) return $(`.tabs a:nth-of-type(${event.key})`)?.click();
  const button = $(`button[data-key="${CSS.escape(event.key)}"]`);
  const does = button ? () => button.click() : KEYS[event.key];
  if (!does) return;
  event.preventDefault();
  does();
});

// --- Terminal ---
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
  tellTerm(wanted ? "You type: every key goes to the program; Ctrl-\\ lets go." : "Watching.");
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

if (location.hash.startsWith("#q-")) $(location.hash)?.classList.add("at");
else stops()[0]?.classList.add("at");
