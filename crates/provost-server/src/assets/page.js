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
  $(".txt", live).textContent = "";
}

// --- Acting ---
async function send(path, what, says) {
  const late = setTimeout(() => says("still asking"), 2000);
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) });
    if (answer.ok) return true;
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
  if (button.dataset.focus) return document.getElementById(button.dataset.focus)?.focus();
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

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.act || button?.dataset.focus) act(button);
  if (button?.dataset.answer) answer(button.closest("[data-question]"), button.dataset.answer);
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.id === "sayer") {
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
  "/": () => $("#q")?.focus(),
  "?": () => $("#keys").showModal(),
  o: () => $$("details", current() ?? $("#timeline") ?? document).forEach((details) => (details.open = !details.open)),
  Escape: () => (location.pathname === "/" ? null : (location.href = location.pathname.endsWith("/changes") ? location.pathname.replace(/\/changes$/, "") : "/")),
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
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if ($("dialog[open]")) return;
  const inField = event.target.closest("input, textarea, select");
  if (inField) return event.key === "Escape" ? inField.blur() : undefined;
  if (off?.checked && event.key.length === 1 && event.key !== "?") return;
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const button = $(`button[data-key="${CSS.escape(event.key)}"]`);
  const does = button ? () => button.click() : KEYS[event.key];
  if (!does) return;
  event.preventDefault();
  does();
});

if (location.hash.startsWith("#q-")) $(location.hash)?.classList.add("at");
else stops()[0]?.classList.add("at");
