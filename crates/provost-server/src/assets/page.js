// The page's keys. What a document shows is complete without any of its modules.
import { $, $$, byId, current, filter, hands, questions } from "./dom.js";
import "./live.js";
import "./act.js";

$("#q")?.addEventListener("input", filter);

// --- Moving ---
const stops = () => $$("[data-question], [data-row]").filter((row) => !row.hidden && row.offsetParent !== null);

function move(by) {
  $$(".answered").forEach((note) => note.remove());
  const all = stops();
  if (all.length === 0) return;
  if (all[0].closest(".rows")) hands.touch();
  const next = all[Math.min(Math.max(all.indexOf(current()) + by, 0), all.length - 1)];
  current()?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
  sessionStorage.setItem(`at ${location.pathname}`, next.id);
  if (next.dataset.question) questions.selected();
}

function agent(by) {
  const all = $$(".tree .ag, nav.filter a");
  const at = all.findIndex((link) => link.hasAttribute("aria-current"));
  all[at + by]?.click();
}

function fold() {
  const inside = current() ? $$("details", current()) : [];
  const all = inside.length > 0 ? inside : $$("details", $("#timeline") ?? $("#main"));
  const opens = all.some((details) => !details.open);
  all.forEach((details) => (details.open = opens));
}

function back() {
  if (location.pathname === "/") return;
  const run = location.pathname.match(/^(\/runs\/[^/]+)\/./)?.[1];
  location.href = run ? run + location.search : "/";
}

// A key of a run, pressed in the list: it does the same on the run's page. No link can say so.
function inRun(key) {
  const run = current()?.matches(".row") && $(".goal a", current());
  if (!run) return;
  const all = stops();
  const at = all.indexOf(current());
  sessionStorage.setItem("key", key);
  sessionStorage.setItem("next", (all[at + 1] ?? all[at - 1] ?? all[at]).id);
  sessionStorage.setItem("from-list", run.pathname);
  run.click();
}

// --- Questions ---
const asked = () => (current()?.dataset.question ? current() : stops().find((stop) => stop.dataset.question));

// Whether the end of the call is in view, and its beginning is or was; else the next part comes into view.
function reads(question) {
  const call = $(".cmd", question).getBoundingClientRect();
  const top = $(".top").offsetHeight;
  const foot = innerHeight - $(".keys").offsetHeight;
  if (call.top >= top && call.top < foot) question.dataset.begun = "yes";
  if (question.dataset.begun && call.bottom <= foot && call.bottom > top) return true;
  questions.changed();
  if (question.dataset.begun && call.top < foot) scrollBy(0, Math.min((foot - top) * 0.8, call.bottom - foot + 8));
  else scrollBy(0, call.top - top - 8);
  return false;
}

// A question is answered only where the whole call was in view to its end; elsewhere the key opens it, or goes on in it.
function decide(how) {
  const question = asked();
  if (!question) return how === "once" ? ($('[data-key="a"]', current() ?? document) ?? $('[data-key="a"]'))?.click() : null;
  if (!questions.areDead() && reads(question)) $(`[data-answer="${how}"]`, question)?.click();
}

// --- Keys ---
export const KEYS = {
  j: () => move(1),
  ArrowDown: () => move(1),
  k: () => move(-1),
  ArrowUp: () => move(-1),
  h: () => agent(-1),
  l: () => (asked() ? move(1) : agent(1)),
  i: () => (location.href = "/inbox"),
  g: () => $('[data-key="g"]')?.click(),
  "/": () => $("#q")?.focus(),
  "?": () => $("#keys").showModal(),
  o: fold,
  Escape: back,
  Enter: () => $(".goal a, .crumb a", current() ?? document.createElement("i"))?.click(),
  a: () => decide("once"),
  r: () => decide("run"),
  A: () => decide("always"),
  d: () => decide("deny"),
  v: () => (asked() ? reads(asked()) : decide("once")),
  s: () => inRun("s"),
  p: () => inRun("p"),
  x: () => inRun("x"),
  f: () => inRun("f"),
  t: () => inRun("t"),
};

const off = $("#keys-off");
if (off) {
  off.checked = localStorage.getItem("keys-off") === "yes";
  off.addEventListener("change", () => localStorage.setItem("keys-off", off.checked ? "yes" : "no"));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  // Enter sends a form, also from a field of several lines; with Shift it is a new line.
  const lines = event.key === "Enter" && !event.shiftKey && event.target.closest(".asks textarea");
  if (lines) {
    event.preventDefault();
    return lines.form.requestSubmit();
  }
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

// --- Where one was ---
const before = byId(location.hash.startsWith("#q-") ? location.hash.slice(1) : sessionStorage.getItem(`at ${location.pathname}`));
(before?.matches("[data-question], [data-row]") ? before : stops()[0])?.classList.add("at");
if (location.pathname === "/") {
  current()?.scrollIntoView({ block: "nearest" });
  sessionStorage.removeItem("from-list");
}
const pressed = sessionStorage.getItem("key");
sessionStorage.removeItem("key");
if (pressed) $(`[data-key="${CSS.escape(pressed)}"]`)?.click();
