// An editor session by the protocol's own SDK: prompt, a call denied, a call allowed, cancel, load.
// session.mjs PROVOST WORK SLOW: the program, a folder whose agent asks to publish something, and one whose agent takes a
// minute. The environment says where the state is.
import { spawn, spawnSync } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [provost, work, slow] = process.argv.slice(2);
const say = (...words) => console.log(...words);
const commands = (...args) => {
  const done = spawnSync(provost, args, { cwd: work, encoding: "utf8" });
  say(`$ provost ${args.join(" ")}`);
  say((done.stdout + done.stderr).trimEnd());
};

/** Waits until a command's output has a word. */
async function until(word, ...args) {
  for (;;) {
    // The connection must be heard meanwhile.
    await new Promise((done) => setTimeout(done, 50));
    if (spawnSync(provost, args, { cwd: work, encoding: "utf8" }).stdout.includes(word)) return;
  }
}

function check(holds, what) {
  say(`${holds ? "ok  " : "FAIL"} ${what}`);
  if (!holds) process.exitCode = 1;
}

/** A connection to a new `provost acp`; `answer` is asked about each call that needs approval. */
async function connected(answer, use) {
  const child = spawn(provost, ["acp"], { cwd: work, stdio: ["pipe", "pipe", "inherit"] });
  const seen = [];
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const client = acp
    .client({ name: "provost-check" })
    .onNotification(acp.methods.client.session.update, ({ params }) => void seen.push(params.update))
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      say(`asked: ${params.toolCall.title} [${params.options.map((option) => option.name).join(" | ")}]`);
      return answer(params);
    });
  await client.connectWith(stream, async (agent) => {
    const begun = await agent.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
    });
    check(begun.protocolVersion === 1 && begun.agentInfo.name === "provost", "initialize");
    await use(agent, seen, child);
  });
  child.kill();
}

const choose = (kind) => ({ options }) => ({
  outcome: { outcome: "selected", optionId: options.find((option) => option.kind === kind).optionId },
});
const prompt = (agent, sessionId, text) =>
  agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
const fresh = async (agent, cwd = work) =>
  (await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
/** The updates with the pieces of a message joined: how many there are depends on the time. */
function joined(seen) {
  const all = [];
  for (const update of seen) {
    const last = all.at(-1);
    if (update.messageId && last?.messageId === update.messageId && last.sessionUpdate === update.sessionUpdate)
      last.content = { ...last.content, text: last.content.text + update.content.text };
    else all.push({ ...update });
  }
  return all;
}
const kinds = (seen) => seen.map((update) => update.sessionUpdate).join(" ");

await connected(choose("reject_once"), async (agent, seen) => {
  const session = await fresh(agent);
  const ended = await prompt(agent, session, "deny: publish it");
  check(ended.stopReason === "end_turn", `denied, ${ended._meta.outcome}`);
  check(seen.some((update) => update.status === "failed"), `a failed call: ${kinds(seen)}`);
});

let allowed;
let live;
await connected(choose("allow_once"), async (agent, seen) => {
  allowed = await fresh(agent);
  const ended = await prompt(agent, allowed, "allow: publish it");
  check(ended.stopReason === "end_turn", `allowed, ${ended._meta.outcome}`);
  live = JSON.stringify(joined(seen));
});

await connected(choose("allow_once"), async (agent, seen) => {
  await agent.request(acp.methods.agent.session.load, { sessionId: allowed, cwd: work, mcpServers: [] });
  const shown = joined(seen).filter((update) => update.sessionUpdate !== "user_message_chunk");
  check(JSON.stringify(shown) === live, `load shows the same ${shown.length} updates`);
});

await connected(choose("allow_once"), async (agent) => {
  const session = await fresh(agent, slow);
  const running = prompt(agent, session, "wait: take your time");
  await until('"running"', "ps", "--json");
  const begun = Date.now();
  await agent.notify(acp.methods.agent.session.cancel, { sessionId: session });
  const ended = await running;
  check(ended.stopReason === "cancelled" && Date.now() - begun < 1000, `cancelled in ${Date.now() - begun} ms`);
});

let waiting;
await connected(
  () => new Promise(() => {}),
  async (agent, seen, child) => {
    waiting = await fresh(agent);
    prompt(agent, waiting, "kill: publish it").catch(() => {});
    await until("echo", "approvals");
    commands("ps");
    commands("approvals");
    child.kill("SIGKILL");
  },
).catch(() => say("the editor was killed"));

await connected(choose("allow_once"), async (agent, seen) => {
  await agent.request(acp.methods.agent.session.load, { sessionId: waiting, cwd: work, mcpServers: [] });
  while (!seen.some((update) => update.content?.text === "done"))
    await new Promise((done) => setTimeout(done, 20));
  check(true, "the question was asked again, and the run went on");
});
commands("show", waiting);
process.exit();
