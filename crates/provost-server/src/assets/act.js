// Acts on runs: buttons, answers, forms.
import { $, $$, byId } from "./dom.js";

export async function send(path, what, says, key) {
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

// What a key in the list of runs has begun ends there, at the next run.
const isFromList = () => sessionStorage.getItem("from-list") === location.pathname;
function toList() {
  sessionStorage.setItem("at /", sessionStorage.getItem("next"));
  location.href = "/";
}

async function act(button) {
  if (button.dataset.focus) {
    const field = byId(button.dataset.focus);
    return field ? field.focus() : $(".tabs a")?.click();
  }
  if (button.dataset.confirm && (await ask(button.dataset.confirm, "What it has done so far stays.", null)) === null) return;
  button.disabled = true;
  const done = await send(button.dataset.act, {}, (says) => (button.textContent = says));
  if (done && isFromList()) toList();
  if (!done) setTimeout(() => (button.disabled = false), 2000);
}

// What is given to a tool: empty fields are left out; what isn't JSON where it should be goes as it is, and is refused.
function fields(form) {
  const all = {};
  for (const field of $$("[data-kind]", form)) {
    if (field.dataset.kind === "list") {
      const chosen = [...field.selectedOptions].map((option) => option.value);
      if (chosen.length > 0) all[field.name] = chosen;
    } else if (field.value.trim() !== "") {
      all[field.name] = field.dataset.kind === "json" ? json(field.value) : field.value;
    }
  }
  return all;
}
function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function answer(question, how) {
  const refusal = $("[data-refusal]", question);
  const form = $("[data-answers]", question);
  let given = form && how === "once" ? { answer: "fields", fields: fields(form) } : { answer: "allow", scope: how };
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

async function start(form) {
  const refusal = $("[data-refusal]", form);
  const done = await send(form.dataset.send, request(form), (says) => (refusal.textContent = says), (form.dataset.key ??= crypto.randomUUID()));
  // The same key only for the same request.
  delete form.dataset.key;
  if (done?.run) location.href = `/runs/${done.run}`;
  else if (done && isFromList()) toList();
  else if (done) location.href = location.pathname + location.search;
}

async function say(form) {
  const input = $("#say");
  const refusal = $("[data-refusal]", form);
  if (!input.value.trim()) return;
  const what = { agent: Number(form.dataset.agent), text: input.value };
  if (!(await send(form.dataset.say, what, (says) => (refusal.textContent = says)))) return;
  [input.value, refusal.textContent] = ["", "said"];
  if (isFromList()) toList();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.act || button?.dataset.focus) act(button);
  if (button?.dataset.dialog) byId(button.dataset.dialog)?.showModal();
  if (button?.hasAttribute("data-close")) button.closest("dialog").close();
  if (button?.dataset.answer) answer(button.closest("[data-question]"), button.dataset.answer);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method === "dialog" || form.closest(".term-foot")) return;
  event.preventDefault();
  if (form.matches("[data-answers]")) answer(form.closest("[data-question]"), "once");
  else if (form.dataset.send) start(form);
  else if (form.dataset.say) say(form);
});
