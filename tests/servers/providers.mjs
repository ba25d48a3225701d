// Servers shaped like the providers', all in one process that has loaded them once.
//
// A line of JSON asks, a line answers: {"start": "crabline:telegram", "with": {...}} gives a number and a URL, {"stop": 1}
// ends that server at once, as a power cut would. When nobody is left to ask, the process ends.

import net from "node:net";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const modules = process.argv[2];
const load = (file) => import(pathToFileURL(path.join(modules, file)));
const makers = {
  async crabline(provider, settings) {
    const servers = "@openclaw/crabline/dist/src/servers";
    const { startCrablineServer } = await load(`${servers}/index.js`);
    // Its index doesn't know its own Feishu.
    const { startFeishuServer } = await load(`${servers}/feishu.js`);
    const start = provider === "feishu" ? startFeishuServer : startCrablineServer;
    const server = await start({ channel: provider, ...settings });
    return [server.manifest.baseUrl, () => server.close()];
  },
  async aimock(_, { port, host, ...config }) {
    const { startFromConfig } = await load("@copilotkit/aimock/dist/config-loader.js");
    const { llmock, url } = await startFromConfig(config, { port, host });
    return [url, () => llmock.stop()];
  },
};

// What these servers say themselves nobody reads.
console.log = console.info = console.warn = console.error = () => {};

let opened = [];
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...where) {
  const sockets = new Set();
  this.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  opened.push({ server: this, sockets });
  return listen.apply(this, where);
};

const running = new Map();
let number = 0;

async function start(what, settings) {
  opened = [];
  const [kind, provider] = what.split(":");
  const [url, close] = await makers[kind](provider, settings);
  running.set(++number, { opened, close });
  return { number, url };
}

async function stop(number) {
  const { opened, close } = running.get(number);
  running.delete(number);
  const closed = opened.map(({ server }) => new Promise((done) => server.close(done)));
  for (const { sockets } of opened) for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
  // This ends its timers; that nobody listens any more is no news.
  close().catch(() => {});
  return {};
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const answer = await (asked.start ? start(asked.start, asked.with) : stop(asked.stop)).catch((error) => ({
    error: String(error),
  }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit();
