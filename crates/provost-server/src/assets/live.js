// Keeps a document up to date: sections come whole, and nothing moves under the hand.
import { $, $$, byId, current, filter, hands, questions } from "./dom.js";

const live = $("#live");
export function liveness(isLive) {
  if (!live) return;
  live.hidden = false;
  if (isLive || !live.classList.contains("off")) {
    const at = new Date().toISOString().slice(11, 16);
    $(".txt", live).textContent = isLive ? "Live" : `Not live since ${at} UTC`;
  }
  live.classList.toggle("off", !isLive);
}

function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// The sections as they were put in, without the ages in them.
const shown = new Map();

function replace({ id, html }) {
  const old = byId(id);
  const fresh = parsed(html);
  if (!old || !fresh) return;
  const bare = html.replace(/(<time[^>]*>)[^<]*/g, "$1");
  const ages = $$("time", fresh);
  if (shown.get(id) === bare && ages.length === $$("time", old).length) {
    $$("time", old).forEach((time, index) => (time.textContent = ages[index].textContent));
    return;
  }
  if (!old.matches(".row")) shown.set(id, bare);
  keep(old, fresh);
  const wasAtEnd = isAtEnd();
  const asked = (root) => $$("[data-question]", root).map((question) => question.id).join();
  if (asked(old) !== asked(fresh)) questions.changed();
  old.replaceWith(fresh);
  if (id === "inbox") keepAnswered(old, fresh);
  if (id === "timeline") grown(old, fresh, wasAtEnd);
  if (id === "badge") count(fresh);
  if (id === "g-needs") came(old, fresh).forEach((row) => announce($(".ask-line span", row)?.textContent));
  if (id === "g-done") came(old, fresh).forEach((row) => announce(`finished: ${$(".goal", row).textContent}`));
}

const came = (old, fresh) => $$(".row[id]", fresh).filter((row) => !old.querySelector(`#${row.id}`));

// Folds, how far a question was read, and what is typed survive.
function keep(old, fresh) {
  const twins = (selector, take) => {
    for (const element of $$(selector, old)) {
      const twin = fresh.querySelector(`#${CSS.escape(element.id)}`);
      if (twin) take(twin, element);
    }
  };
  twins("details[id]", (twin, details) => (twin.open = details.open));
  twins("input[id], textarea[id]", (twin, input) => (twin.value = input.value));
  twins("select[id]", (twin, select) => [...twin.options].forEach((option, index) => (option.selected = select.options[index]?.selected ?? option.selected)));
  twins("[data-begun]", (twin, question) => (twin.dataset.begun = question.dataset.begun));
}

// Selection and focus stay with what they are on, also where that moves to another section.
function apply(sections) {
  const at = current()?.id;
  const focused = document.activeElement;
  const href = focused?.getAttribute("href");
  const back = focused?.id ? `#${CSS.escape(focused.id)}` : href && `[href="${CSS.escape(href)}"]`;
  sections.forEach(replace);
  if (at && !current()) byId(at)?.classList.add("at");
  if (back && !document.contains(focused)) $(back)?.focus({ preventScroll: true });
  filter();
}

// A group with a run that begins to need you comes up at once; the others wait for calm. Until then each row shows in
// its old place how its run is, and one that has left is dimmed.
const held = new Map();
let settling;
function arrange(sections) {
  const begins = ({ id, html }) => id === "g-needs" && came(byId(id), parsed(html)).length > 0;
  const isNow = (section) => hands.calmIn() <= 0 || !section.id.startsWith("g-") || begins(section);
  const now = sections.filter(isNow);
  now.forEach(({ id }) => held.delete(id));
  apply(now);
  sections.filter((section) => !now.includes(section)).forEach(hold);
  const asking = $$("#g-needs .row[id]").map((row) => row.id);
  for (const row of $$(".group:not(#g-needs) .row[id]")) if (asking.includes(row.id)) leave(row);
  if (held.size > 0) settling ??= setTimeout(settle, hands.calmIn());
}
function hold(section) {
  held.set(section.id, section);
  shown.delete(section.id);
  const fresh = parsed(section.html);
  const rows = () => $$(`#${section.id} .row[id]`);
  apply(rows().map((row) => ({ id: row.id, html: fresh.querySelector(`#${row.id}`)?.outerHTML ?? "" })));
  rows().forEach((row) => row.classList.toggle("left", !fresh.querySelector(`#${row.id}`)));
}
function leave(row) {
  if (row.matches(".at")) $(`#g-needs #${row.id}`)?.classList.add("at");
  row.classList.remove("at");
  row.classList.add("left");
  ["id", "data-row"].forEach((name) => row.removeAttribute(name));
}
function settle() {
  settling = undefined;
  if (hands.calmIn() > 0) return void (settling = setTimeout(settle, hands.calmIn()));
  apply([...held.values()]);
  held.clear();
}
addEventListener("pointermove", (event) => event.target.closest?.(".rows") && hands.touch());

// A timeline is followed where its end is in view; elsewhere it says how much has come.
const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
const more = byId("more-turns");
function grown(old, fresh, wasAtEnd) {
  if (wasAtEnd) return toEnd();
  const had = new Set($$("[id^=e-]", old).map((item) => item.id));
  const turns = Number(more?.dataset.count ?? 0) + $$("[id^=e-]", fresh).filter((item) => !had.has(item.id)).length;
  if (!more || turns === 0) return;
  more.dataset.count = turns;
  more.textContent = turns === 1 ? "1 new turn" : `${turns} new turns`;
  more.hidden = false;
}
const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);
more?.addEventListener("click", toEnd);
addEventListener("scroll", () => {
  if (more && isAtEnd()) { more.hidden = true; more.dataset.count = 0; }
}, { passive: true });

// A question that has its answer folds to that, until one moves on.
async function keepAnswered(old, fresh) {
  const place = fresh.lastElementChild;
  place.prepend(...$$(".answered", old));
  for (const question of $$("[data-question]", old).filter((question) => !byId(question.id))) {
    const note = Object.assign(document.createElement("p"), { className: "panel answered", textContent: "answered" });
    place.prepend(note);
    const asked = await fetch(question.dataset.question).then((given) => given.json()).catch(() => ({}));
    note.textContent = `${$(".cmd", question).textContent.trim()}: ${asked.answer?.text ?? "needs no answer any more"}`;
  }
}

function announce(text) {
  const news = $("#news");
  if (text) news.textContent = news.textContent ? `${news.textContent}; ${text}` : text;
  setTimeout(() => (news.textContent = ""), 5000);
}
function count(badge) {
  const waiting = Number(badge.textContent.trim() || 0);
  document.title = document.title.replace(/^\(\d+\) /, "");
  if (waiting > 0) document.title = `(${waiting}) ${document.title}`;
  if (waiting > 0 && !byId("g-needs")) announce(`${waiting} waiting for you`);
}

// Ages go on where nothing comes.
function span(ms) {
  const minutes = Math.floor(ms / 60000);
  if (minutes < 1) return `${Math.max(0, Math.floor(ms / 1000))} s`;
  if (minutes < 60) return `${minutes} min`;
  if (minutes >= 1440) return `${Math.floor(minutes / 1440)} d`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}
setInterval(() => {
  if (!live?.matches(".off")) return;
  for (const time of $$("time.ago")) time.textContent = `${span(Date.now() - Date.parse(time.dateTime))} ago`;
}, 1000);

if (document.body.dataset.live) {
  const events = new EventSource(document.body.dataset.live);
  events.addEventListener("open", () => liveness(true));
  events.addEventListener("error", () => liveness(false));
  events.addEventListener("sections", (event) => arrange(JSON.parse(event.data)));
} else if (live) {
  live.hidden = true;
}
