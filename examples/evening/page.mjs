// An evening with the page alone, by keyboard: what evening.sh leaves is found and settled by keys, which are counted.
//
//     npm install playwright-core
//     node examples/evening/page.mjs FOLDER [PROVOST]
//
// FOLDER is where evening.sh put the runs; PROVOST names the program, and PROVOST_STATE_DIR where the runs are kept.
// CHROMIUM names the browser (/usr/bin/chromium). It fails where something isn't settled, or takes more keys than it should.
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [folder, provost = "provost"] = process.argv.slice(2);
if (!folder) throw new Error("usage: page.mjs FOLDER [PROVOST]");
const KEYS_MAX = 30;
const DEADLINE_MS = 60_000;

const server = spawn(provost, ["serve", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
page.setDefaultTimeout(DEADLINE_MS);
page.on("pageerror", (error) => { throw error; });

let keys = 0;
async function press(...all) {
  for (const key of all) {
    keys += 1;
    await page.keyboard.press(key);
  }
}
// Letters of a message aren't counted.
const says = (words) => page.keyboard.type(words);
// A person has looked at a question for longer than keys are dead.
const looks = () => page.waitForTimeout(600);

const selected = () => page.evaluate(() => document.querySelector(".row.at .goal")?.textContent ?? "");
const place = (goal) => page.evaluate((goal) => {
  const all = [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent);
  return all.findIndex((row) => row.textContent.includes(goal)) - all.findIndex((row) => row.matches(".at"));
}, goal);

async function selects(goal) {
  await page.locator(".row", { hasText: goal }).first().waitFor();
  for (let moves = 0; moves < 20; moves += 1) {
    if ((await selected()).includes(goal)) return;
    await press((await place(goal)) > 0 ? "j" : "k");
  }
  throw new Error(`${goal} isn't reached; ${await selected()} is selected`);
}

async function reaches(goal, state) {
  const until = Date.now() + DEADLINE_MS;
  for (;;) {
    const listed = spawnSync(provost, ["ps", "--all"], { encoding: "utf8" }).stdout.split("\n");
    if (listed.some((line) => line.includes(goal) && line.includes(state))) return;
    if (Date.now() > until) throw new Error(`${goal} never was ${state}:\n${listed.join("\n")}`);
    await page.waitForTimeout(200);
  }
}
const isHome = () => page.waitForURL((url) => url.pathname === "/");
const shows = (text) => page.locator("#main", { hasText: text }).waitFor();

try {
  const [link] = await new Promise((resolve, reject) => {
    createInterface({ input: server.stdout }).once("line", (line) => resolve([line]));
    server.once("exit", () => reject(new Error("the server didn't start")));
  });
  await page.goto(link);
  await page.locator("#g-needs .row").nth(1).waitFor();

  // Two ask: the first is approved, the second denied.
  await press("a");
  await page.waitForURL(/\/inbox/);
  await looks();
  await press("a");
  await page.locator("[data-question]").nth(1).waitFor({ state: "detached" });
  await looks();
  await press("d");
  await says("stay at Vite 7");
  await press("Enter");
  await shows("Nothing waits for you.");
  await press("Escape");
  await isHome();

  // One is stuck, one has a check that fails: each gets a message.
  for (const [goal, words] of [["Find out why the Windows build", "look at the console"], ["Bring the parser", "add the tests"]]) {
    await selects(goal);
    await press("p");
    await page.locator("#resume[open]").waitFor();
    await page.locator("#resume-text:focus").waitFor();
    await says(words);
    await press("Enter");
    await isHome();
    await reaches(goal, "completed");
  }

  // One has used up its tokens: what it needs more of is asked for first.
  await selects("Rotate the staging");
  await press("p");
  await page.locator("#resume-limits-tokens:focus").waitFor();
  await says("100000");
  await press("Enter");
  await isHome();
  await reaches("Rotate the staging", "completed");

  // One is paused.
  await selects("Translate the handbook");
  await press("p");
  await page.locator("#resume-text:focus").waitFor();
  await press("Enter");
  await isHome();
  await reaches("Translate the handbook", "completed");

  // One waits for a provider that won't come.
  await selects("Replace the cron jobs");
  await press("x");
  await page.locator("#ask[open]").waitFor();
  await press("Enter");
  await isHome();
  await reaches("Replace the cron jobs", "cancelled");

  for (const goal of ["Keep the ledger", "Upgrade the docs site"]) await reaches(goal, "completed");
  // Nothing is left but what works and what is finished.
  for (const group of ["g-needs", "g-stuck", "g-fail", "g-wait"]) await page.locator(`#${group}`).waitFor({ state: "hidden" });
  const working = await page.locator("#g-work .row").count();
  if (working !== 3) throw new Error(`${working} runs work, not 3`);
  console.log(`settled with ${keys} keys`);
  if (keys > KEYS_MAX) throw new Error(`${keys} keys are more than ${KEYS_MAX}`);
} catch (error) {
  await page.screenshot({ path: `${folder}/page.png` });
  console.error(`after ${keys} keys at ${page.url()}; ${folder}/page.png shows it`);
  throw error;
} finally {
  for (const name of ["atlas-api", "till", "infra"]) writeFileSync(`${folder}/${name}/stop`, "");
  await browser.close();
  server.kill("SIGINT");
}
