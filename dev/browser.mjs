// Every page of a server in a browser, in light, dark and at phone width: errors of scripts, sideways scrolling and what axe
// finds; and that rows keep their places, that a paste and a dead key answer nothing, that other sites and names get nothing.
// browser.sh prepares it: FOLDER has the runs of examples/evening, and gets a picture of each page.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [folder, provost] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const found = [];
const finds = (text) => { found.push(text); console.log(text); };

const server = spawn(provost, ["serve", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const link = await new Promise((resolve) => createInterface({ input: server.stdout }).once("line", resolve));
const { origin, port } = new URL(link);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const first = await browser.newContext();
await (await first.newPage()).goto(link);
const storageState = await first.storageState();

const listed = spawnSync(provost, ["ps", "--all", "--json"], { encoding: "utf8" }).stdout.trim().split("\n").map((line) => JSON.parse(line));
const asking = listed.find((run) => run.goal.startsWith("Keep the ledger"));
const blocked = listed.find((run) => run.goal.startsWith("Bring the parser"));
const pages = { home: "/", inbox: "/inbox", run: `/runs/${asking.run}`, blocked: `/runs/${blocked.run}` };
for (const tab of ["changes", "conversation", "explain", "log", "terminal"]) pages[tab] = `/runs/${asking.run}/${tab}`;
const wide = { width: 1360, height: 900 };
const kinds = {
  light: { viewport: wide, colorScheme: "light" },
  dark: { viewport: wide, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 780 }, colorScheme: "light" },
  forced: { viewport: wide, forcedColors: "active" },
  plain: { viewport: wide, javaScriptEnabled: false },
};

async function looks(kind, context) {
  const page = await context.newPage();
  page.on("pageerror", (error) => finds(`${kind}: ${error.message}`));
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(origin + path);
    await page.waitForTimeout(500);
    await page.screenshot({ path: `${folder}/pictures/${name}-${kind}.png` });
    if (kind === "plain") continue;
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) finds(`${name}, ${kind}: scrolls sideways`);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
    for (const { id, impact, nodes } of violations) finds(`${name}, ${kind}: axe ${id} (${impact}): ${nodes[0].html.slice(0, 120)}`);
  }
}

// A key that comes as a question comes up answers nothing; the list is filtered by keyboard.
async function keys() {
  const page = await (await browser.newContext({ viewport: wide, storageState })).newPage();
  page.on("request", (request) => request.method() === "POST" && finds("a key was heard as the question came up"));
  await page.addInitScript(() => addEventListener("DOMContentLoaded", () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }))));
  await page.goto(`${origin}/inbox`);
  await page.waitForTimeout(500);
  const home = await page.context().newPage();
  await home.goto(`${origin}/`);
  await home.locator(".row").nth(3).waitFor();
  await home.keyboard.press("?");
  if (!(await home.locator("#keys[open]").count())) finds("? doesn't list the keys");
  await home.keyboard.press("Escape");
  await home.keyboard.press("/");
  await home.keyboard.type("ledger");
  if ((await home.locator(".row:visible").count()) !== 1) finds("the filter doesn't leave one run");
}

// Pages of other sites, and other names of this machine, get nothing.
async function others() {
  const page = await (await browser.newContext({ storageState })).newPage();
  const answers = { [`http://127.0.0.1:${port}/`]: 401, [`http://localhost:${port}/`]: 401, [`http://other.localhost:${port}/`]: 421 };
  for (const [url, status] of Object.entries(answers)) {
    const answer = await page.goto(url);
    if (answer.status() !== status) finds(`${url} answers ${answer.status()}, not ${status}`);
  }
  await page.goto("data:text/html,<p>another site</p>");
  const sent = await page.evaluate(async (url) => {
    try {
      const answer = await fetch(url, { method: "POST", mode: "no-cors", credentials: "include", body: "{}" });
      return answer.type;
    } catch (error) {
      return String(error);
    }
  }, `${origin}/v1/runs/${asking.run}/cancel`);
  const status = JSON.parse(spawnSync(provost, ["show", asking.run, "--json"], { encoding: "utf8" }).stdout).status;
  if (status.includes("cancelled")) finds(`another site cancelled a run (${sent})`);
}

try {
  mkdirSync(`${folder}/pictures`, { recursive: true });
  for (const [kind, options] of Object.entries(kinds)) {
    const context = await browser.newContext({ ...options, storageState, bypassCSP: true });
    await looks(kind, context);
    await context.close();
  }
  await keys();
  await others();
} finally {
  await browser.close();
  server.kill("SIGINT");
}
console.log(`${Object.keys(pages).length * Object.keys(kinds).length} pages, ${found.length} findings; pictures in ${folder}/pictures`);
process.exitCode = found.length > 0 ? 1 : 0;
