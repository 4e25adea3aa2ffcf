// Lets a client that speaks MCP over HTTP, as the official conformance suite does, use a server on standard input and
// output: bridge.mjs PORT COMMAND ARGS… . Each session has a process of its own; requests of the current revision, which has
// no sessions, share one. For tests on this machine only.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [port, command, ...args] = process.argv.slice(2);
const sessions = new Map();
const STATELESS = "2026-07-28";

class Program {
  constructor() {
    this.child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.waiting = new Map();
    this.next = 1;
    createInterface({ input: this.child.stdout }).on("line", (line) => this.heard(JSON.parse(line)));
    this.child.on("exit", () => this.waiting.forEach(({ done }) => done(null)));
  }

  heard(message) {
    const waits = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    // Requests of several clients may have the same id.
    waits?.done({ ...message, id: waits.id });
  }

  ask(message) {
    const id = this.next++;
    return new Promise((done) => {
      this.waiting.set(id, { id: message.id, done });
      this.child.stdin.write(JSON.stringify({ ...message, id }) + "\n");
    });
  }

  tell(message) {
    this.child.stdin.write(JSON.stringify(message) + "\n");
  }
}

let shared;
function programOf(message, headers) {
  const id = headers["mcp-session-id"];
  if (id) return { id, program: sessions.get(id) };
  const meta = message.params?._meta ?? {};
  const version = headers["mcp-protocol-version"] ?? meta["io.modelcontextprotocol/protocolVersion"];
  if (message.method !== "initialize" && (version === STATELESS || message.method === "server/discover"))
    return { program: (shared ??= new Program()) };
  const fresh = randomUUID();
  sessions.set(fresh, new Program());
  return { id: fresh, program: sessions.get(fresh) };
}

createServer(async (request, response) => {
  const host = (request.headers.host ?? "").replace(/:\d+$/, "");
  const origin = request.headers.origin ? new URL(request.headers.origin).hostname : host;
  if (![host, origin].every((name) => ["localhost", "127.0.0.1", "[::1]"].includes(name)))
    return response.writeHead(403).end();
  if (request.method === "DELETE") {
    const id = request.headers["mcp-session-id"];
    sessions.get(id)?.child.kill();
    return response.writeHead(sessions.delete(id) ? 200 : 404).end();
  }
  if (request.method !== "POST") return response.writeHead(405, { allow: "POST, DELETE" }).end();
  let body = "";
  for await (const part of request) body += part;
  let message;
  try {
    message = JSON.parse(body);
  } catch {
    const error = { code: -32700, message: "Parse error" };
    return response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
  }
  const { id, program } = programOf(message, request.headers);
  if (!program) return response.writeHead(404).end();
  if (message.id === undefined || !message.method) {
    program.tell(message);
    return response.writeHead(202).end();
  }
  const answer = await program.ask(message);
  if (!answer) return response.writeHead(502).end();
  // The current revision has statuses of HTTP for errors of the protocol.
  const status = id ? 200 : { [-32601]: 404, [-32600]: 400, [-32602]: 400, [-32020]: 400, [-32021]: 400, [-32022]: 400 }[answer.error?.code] ?? 200;
  const headers = { "content-type": "application/json", ...(id && { "mcp-session-id": id }) };
  response.writeHead(status, headers).end(JSON.stringify(answer));
}).listen(Number(port), "127.0.0.1", () => console.log(`listening on ${port}`));

process.on("SIGTERM", () => {
  [shared, ...sessions.values()].forEach((program) => program?.child.kill());
  process.exit(0);
});
