// A Baileys that does what a test says in place of the line to WhatsApp; all else in it is the real one's.
//
// It connects to the port that it is given for an address, and is told lines of JSON: {"on": "ev" | "ws", "name", "value"}
// for what happens there, {"frame", "xml"} for a frame that it sends, {"breaks", "node"} for a message that it can't read,
// {"wait": true} for the end of all long waits.
// It tells {"frame"} when one goes out and {"handed"} when it was handed over, {"sends": ID} for a message, which goes on at
// ws's "sent", {"waits"} for a long wait that begins, and {"pieces"} for the megabytes of a file that were fetched.

import { EventEmitter } from "node:events";
import net from "node:net";
import readline from "node:readline";
import { Readable } from "node:stream";

export * from "REAL";

const LONG = 10_000;
const soon = globalThis.setTimeout;
const waits = [];
let tell;
globalThis.setTimeout = (done, time, ...given) => {
  if (!(time >= LONG)) return soon(done, time, ...given);
  waits.push(done);
  tell?.({ waits: time });
  return { unref() {} };
};

export async function downloadMediaMessage(message, form) {
  let count = 0;
  function* pieces() {
    while (count < message.message.documentMessage.pieces) yield (count++, Buffer.alloc(1024 * 1024));
  }
  const stream = Readable.from(pieces(), { highWaterMark: 1 }).on("close", () => tell({ pieces: count }));
  return form === "buffer" ? Buffer.concat(await stream.toArray()) : stream;
}

export default function connect({ waWebSocketUrl, logger }) {
  const [ev, ws] = [new EventEmitter(), new EventEmitter()];
  const line = net.connect(Number(waWebSocketUrl), "127.0.0.1");
  tell = (told) => line.write(`${JSON.stringify(told)}\n`);
  ws.socket = { send: (frame, done) => void (tell({ frame }), done?.()) };
  readline.createInterface({ input: line }).on("line", (text) => {
    const { on, name, value, frame, xml, breaks, node, wait } = JSON.parse(text);
    if (wait) waits.splice(0).forEach((done) => done());
    else if (breaks) logger.error({ error: new TypeError(breaks), node }, "error in handling message");
    else if (!frame) ({ ev, ws })[on].emit(name, value);
    else {
      logger.trace({ msg: "xml send", xml });
      ws.socket.send(frame);
      tell({ handed: frame });
    }
  });
  const sendMessage = async (_chat, _content, { messageId }) => {
    tell({ sends: messageId });
    await new Promise((resolve) => ws.once("sent", resolve));
  };
  return { ev, ws, sendMessage };
}
