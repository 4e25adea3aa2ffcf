// Lets a client that speaks MCP over HTTP, as the official conformance suite does, use a server on standard input and
// output: bridge.mjs PORT COMMAND ARGS… . Each session has a process of its own. For tests on this machine only.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [port, command, ...args] = process.argv.slice(2);
const sessions = new Map();

function start() {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(JSON.stringify(message.id))?.(line);
    waiting.delete(JSON.stringify(message.id));
  });
  const id = randomUUID();
  sessions.set(id, { child, waiting });
  return id;
}

createServer(async (request, response) => {
  const host = (request.headers.host ?? "").replace(/:\d+$/, "");
  const origin = request.headers.origin ? new URL(request.headers.origin).hostname : host;
  if (![host, origin].every((name) => ["localhost", "127.0.0.1", "[::1]"].includes(name)))
    return response.writeHead(403).end();
  let id = request.headers["mcp-session-id"];
  if (request.method === "DELETE") {
    sessions.get(id)?.child.kill();
    sessions.delete(id);
    return response.writeHead(200).end();
  }
  if (request.method !== "POST") return response.writeHead(405).end();
  let body = "";
  for await (const part of request) body += part;
  const message = JSON.parse(body);
  if (message.method === "initialize" || (!id && message.id !== undefined)) id = start();
  const session = sessions.get(id);
  if (!session) return response.writeHead(404).end();
  const answered = new Promise((done) => session.waiting.set(JSON.stringify(message.id), done));
  session.child.stdin.write(JSON.stringify(message) + "\n");
  if (message.id === undefined || !message.method) return response.writeHead(202).end();
  const headers = { "content-type": "application/json", "mcp-session-id": id };
  response.writeHead(200, headers).end(await answered);
}).listen(Number(port), "127.0.0.1", () => console.log(`listening on ${port}`));
