// Provost as a client of the official conformance suite of MCP, which appends the address of its test server:
// conformance client --command "node conformance-client.mjs" --suite … . What a user does is done here by commands: the server
// is added, logged in to where it asks for that, agreed to, and its tools are called in a run, whose questions are agreed to.
// PROVOST is the program.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";

const provost = process.env.PROVOST ?? "provost";
const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const home = mkdtempSync(join(process.env.WORK ?? tmpdir(), "conformance-"));
const work = join(home, "work");
mkdirSync(work);
const env = {
  ...process.env, HOME: home, PROVOST_STATE_DIR: join(home, "state"), XDG_CONFIG_HOME: join(home, "config"),
  ...(context.client_secret && { CLIENT_SECRET: context.client_secret }),
};

function run(...args) {
  const done = spawnSync(provost, args, { cwd: work, env, encoding: "utf8" });
  console.error(`$ provost ${args.join(" ")} (${done.status})\n${done.stdout}${done.stderr}`);
  return { ...done, text: done.stdout + done.stderr };
}

// The user logs in: opens the address in a browser, which comes back by itself.
function login(...args) {
  return new Promise((resolve) => {
    const child = spawn(provost, ["mcp", "login", "c", ...args], { cwd: work, env });
    let text = "";
    let opened = false;
    const heard = (data) => {
      text += data;
      const address = !opened && text.match(/\n {2}(https?:\S+)\n\n/)?.[1];
      if (!address) return;
      opened = true;
      fetch(address, { redirect: "follow" }).then((page) => page.text()).catch(() => child.kill());
    };
    child.stdout.on("data", heard);
    child.stderr.on("data", heard);
    child.on("close", (status) => {
      console.error(`$ provost mcp login c ${args.join(" ")} (${status})\n${text}`);
      resolve(status === 0);
    });
  });
}

// A value for each argument that a schema wants.
function example(schema) {
  const all = Object.entries(schema?.properties ?? {}).map(([name, of]) => {
    const values = { number: 3, integer: 3, boolean: true, array: [], object: {} };
    return [name, of.enum?.[0] ?? values[of.type] ?? "x"];
  });
  return Object.fromEntries(all);
}

// The command by which an error says that the user logs in, and its flags.
const LOGIN = /provost mcp login c((?: --scope [^\s`"]+)*)/;
const flags = (named) => named[1].trim().split(/\s+/).filter(Boolean);

const pinned = () => {
  const folder = join(home, "state", "mcp");
  return JSON.parse(readFileSync(join(folder, readdirSync(folder).find((name) => name.endsWith(".json"))), "utf8"));
};

function calls(tools) {
  if (context.toolCalls) return context.toolCalls;
  const echo = tools.find((tool) => tool.input_schema?.properties?.schema);
  if (scenario.startsWith("json-schema-2020-12") && echo) {
    const focal = tools.find((tool) => tool !== echo);
    return [{ name: echo.name, arguments: { schema: focal.input_schema } }];
  }
  return tools.map((tool) => ({ name: tool.name, arguments: example(tool.input_schema) }));
}

// A run that makes all calls, one after the other; its questions are agreed to. Returns what the calls gave.
function made(all) {
  const answers = all.map(({ name, arguments: input }) => ({ tools: [{ [`mcp__c__${name.replace(/[^A-Za-z0-9_-]/g, "_")}`]: input ?? {} }] }));
  writeFileSync(join(work, "script.yaml"), JSON.stringify({ answers: [...answers, { text: "VERDICT: PASS" }] }));
  return new Promise((resolve) => {
    const child = spawn(provost, ["run", "--model", "script:script.yaml", "call them"], { cwd: work, env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    child.stdout.on("data", (data) => (text += data));
    child.stderr.on("data", (data) => (text += data));
    const agree = setInterval(() => {
      for (const line of spawnSync(provost, ["approvals", "--json"], { cwd: work, env, encoding: "utf8" }).stdout.split("\n")) {
        if (line.trim()) run("approve", JSON.parse(line).id);
      }
    }, 150);
    child.on("close", (status) => {
      clearInterval(agree);
      console.error(`$ provost run (${status})\n${text}`);
      resolve(text + spawnSync(provost, ["logs", "last", "--json"], { cwd: work, env, encoding: "utf8" }).stdout);
    });
  });
}

const client = context.client_id ? ["--oauth-client-id", context.client_id] : [];
const secret = context.client_secret ? ["--oauth-client-secret-env", "CLIENT_SECRET"] : [];
// The client's own document, where the authorization server takes one: registered as any other client.
const document = scenario === "auth/basic-cimd" ? ["--oauth-client-id", "https://conformance-test.local/client-metadata.json"] : [];
let status = 1;
try {
  run("mcp", "add", "c", "--url", url, ...client, ...secret, ...document);
  let trusted = run("mcp", "trust", "c", "--yes");
  // As the error says: `provost mcp login c`, or with a scope that the login lacks.
  for (let times = 0; trusted.status !== 0 && times < 3; times += 1) {
    const named = trusted.text.match(LOGIN);
    if (!named || !(await login(...flags(named)))) break;
    trusted = run("mcp", "trust", "c", "--yes");
  }
  status = trusted.status;
  for (let times = 0; trusted.status === 0 && times < 3; times += 1) {
    const said = await made(calls(pinned().tools));
    const named = said.match(LOGIN);
    if (!named) break;
    // At most twice more: a server that is never content is left.
    if (times === 2 || !(await login(...flags(named)))) {
      status = 1;
      break;
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
process.exit(status);
