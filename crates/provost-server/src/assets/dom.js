// What the modules of the page share.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
export const byId = (id) => document.getElementById(id);

// The row or question that keys are about.
export const current = () => $(".at");

// Keys are dead for a moment after a question came up or changed: none that was meant for another one counts.
const DEAD_MS = 500;
let questionsSince = performance.now();
export const questions = {
  changed: () => (questionsSince = performance.now()),
  selected: () => (questionsSince = Math.max(questionsSince, performance.now() - DEAD_MS / 2)),
  areDead: () => performance.now() - questionsSince < DEAD_MS,
};

// Rows keep their places for this long after a pointer or the selection has moved among them.
export const CALM_MS = 3000;
let touched = -CALM_MS;
export const hands = {
  touch: () => (touched = performance.now()),
  calmIn: () => touched + CALM_MS - performance.now(),
};

export function filter() {
  const wanted = ($("#q")?.value ?? "").toLowerCase();
  for (const row of $$(".rows > .row")) row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
}
