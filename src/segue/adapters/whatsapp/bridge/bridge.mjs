// A linked device of a WhatsApp account, by Baileys: lines of JSON both ways.
//
//   node bridge.mjs MODULES FOLDER [URL]
//
// Out: {"event": "qr", "code"}, {"event": "open", "me"}, {"event": "closed", "why", "final"}, {"event": "message", "n", ...}, and
// {"answer": CALL, "result"} or {"answer": CALL, "error", "sure"}. In: {"call", "do": "send" | "typing" | "fetch", ...} and {"ack": n}.
// It ends when nobody is left to talk to it.
//
// Law: WhatsApp hears that a message was received only once Segue has acknowledged it. Baileys says so before it tells anybody of
// the message, so the frame that says it is held back, and all behind it: frames are encrypted in their order.

import { createHash } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, folder, url] = process.argv.slice(2);
const baileys = await import(pathToFileURL(path.join(modules, "baileys", "lib", "index.js")));
const { BufferJSON, DisconnectReason, downloadMediaMessage, initAuthCreds, jidNormalizedUser, normalizeMessageContent, proto } = baileys;

// Libraries print to where the lines of JSON go, and keys among it.
console.log = console.info = console.warn = console.error = console.debug = () => {};
process.umask(0o077);
await fs.mkdir(folder, { recursive: true, mode: 0o700 });
// Files that were coming or going when an earlier bridge, or Segue, was killed.
for (const name of await fs.readdir(folder)) if (/^(fetched|sent)-/.test(name)) await fs.rm(path.join(folder, name), { force: true });

const PATIENCE = 20_000;
const OWN = "3EB05E60E"; // how the ids of Segue's own messages begin
const KEPT = 1000;
const SOON = 1000; // in which Baileys tells of what it has read
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// The keys of the device: a file each, replaced whole, so that no crash leaves half of one.
let writing = Promise.resolve();
const file = (name) => path.join(folder, `${name.replaceAll("/", "__").replaceAll(":", "-")}.json`);
const read = async (name) => {
  try {
    return JSON.parse(await fs.readFile(file(name), "utf-8"), BufferJSON.reviver);
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
};
const write = (name, value) =>
  (writing = writing.then(async () => {
    if (value == null) return fs.rm(file(name), { force: true });
    const half = `${file(name)}.half`;
    const opened = await fs.open(half, "w", 0o600);
    await opened.writeFile(JSON.stringify(value, BufferJSON.replacer));
    await opened.sync();
    await opened.close();
    await fs.rename(half, file(name));
  }));
const creds = (await read("creds")) ?? initAuthCreds();
const keys = {
  async get(kind, ids) {
    const found = {};
    for (const id of ids) {
      const value = await read(`${kind}-${id}`);
      found[id] = kind === "app-state-sync-key" && value ? proto.Message.AppStateSyncKeyData.fromObject(value) : value;
    }
    return found;
  },
  async set(changed) {
    for (const [kind, values] of Object.entries(changed))
      for (const [id, value] of Object.entries(values)) await write(`${kind}-${id}`, value);
  },
};

let socket;
let receipt = ""; // the message that the frame which is sent next says was received
let heldFrames = []; // frames that wait, the first of which is such a one
const unheard = new Set(); // messages that Segue hasn't acknowledged
const waiting = new Map(); // sent messages whose arrival at WhatsApp is waited for
const messages = new Map(); // the newest messages, for their files
const numbers = new Map();
let number = 0;

// Its trace is the one place where Baileys tells what a frame says, right before it sends it.
const logger = { level: "trace", child: () => logger };
for (const level of ["debug", "info", "warn", "fatal"]) logger[level] = () => {};
logger.trace = (told) => {
  const found = told?.msg === "xml send" && /^<receipt\b(?=[^>]*\bid=['"]([^'"]+)['"])(?![^>]*\btype=['"](?:read|retry|played|hist_sync|peer_msg)\b)/.exec(told.xml);
  receipt = found && unheard.has(found[1]) ? found[1] : "";
};

// What Baileys can't read it tells to nobody, though it may have said before that it was received.
logger.error = (told, why) => {
  const id = why === "error in handling message" && /^<message\b[^>]*?\bid=['"]([^'"]+)['"]/.exec(told?.node)?.[1];
  if (id) setTimeout(() => unheard.has(id) && ![...numbers.values()].includes(id) && pass({ id, error: String(told.error) }), SOON);
};

// A message for Segue, which is to acknowledge it.
function pass(message) {
  numbers.set(++number, message.id);
  say({ event: "message", n: number, ...message });
}

function flush(real) {
  while (heldFrames.length && !unheard.has(heldFrames[0].id)) {
    const { bytes } = heldFrames.shift();
    real(bytes);
  }
}

function connect() {
  heldFrames = [];
  unheard.clear();
  socket = baileys.default({
    auth: { creds, keys },
    logger,
    markOnlineOnConnect: false,
    syncFullHistory: false,
    getMessage: async (key) => messages.get(key.id)?.message,
    ...(url ? { waWebSocketUrl: url } : {}),
  });
  const line = socket.ws.socket;
  const real = line.send.bind(line);
  line.send = (bytes, done) => {
    const id = receipt;
    receipt = "";
    if (!id && !heldFrames.length) return real(bytes, done);
    heldFrames.push({ id, bytes });
    done?.();
  };
  socket.release = () => flush(real);
  socket.ws.on("CB:message", (node) => unheard.add(node.attrs.id));
  socket.ws.on("CB:ack,class:message", (node) => waiting.get(node.attrs.id)?.(node.attrs.error));
  socket.ev.on("creds.update", (changed) => write("creds", Object.assign(creds, changed)));
  socket.ev.on("connection.update", updated);
  socket.ev.on("messages.upsert", ({ messages: told }) => told.forEach(tell));
}

function updated({ qr, connection, lastDisconnect }) {
  if (qr) say({ event: "qr", code: qr });
  if (connection === "open") say({ event: "open", me: { id: jidNormalizedUser(creds.me.id), lid: creds.me.lid ? jidNormalizedUser(creds.me.lid) : "" } });
  if (connection !== "close") return;
  const code = lastDisconnect?.error?.output?.statusCode;
  if (code === DisconnectReason.restartRequired) return void writing.then(connect); // right after it was linked
  const final = code === DisconnectReason.loggedOut || code === DisconnectReason.forbidden;
  say({ event: "closed", why: lastDisconnect?.error?.message ?? "the line broke", final });
  writing.then(() => process.exit(0));
}

const FOREIGN = [
  ["contactsArrayMessage", "contacts"],
  ["eventMessage", "event"],
  ["groupInviteMessage", "invitation"],
  ["liveLocationMessage", "live location"],
  ...["", "V2", "V3", "V4", "V5"].map((form) => [`pollCreationMessage${form}`, "poll"]),
  ["ptvMessage", "video note"],
];
const plain = (jid) => (jid ? jidNormalizedUser(jid) : "");
function tell(message) {
  const { key } = message;
  const content = normalizeMessageContent(message.message);
  const self = key.fromMe && [plain(creds.me.id), plain(creds.me.lid)].includes(plain(key.remoteJid)) && !key.id.startsWith(OWN);
  const told = content && (!key.fromMe || self) && !/@(broadcast|newsletter)$/.test(key.remoteJid) && said(content);
  if (!told) {
    unheard.delete(key.id);
    return socket.release();
  }
  messages.set(key.id, message);
  if (messages.size > KEPT) messages.delete(messages.keys().next().value);
  const group = key.remoteJid.endsWith("@g.us");
  const who = group ? [key.participant, key.participantAlt] : [key.remoteJid, key.remoteJidAlt, ...(self ? [creds.me.id, creds.me.lid] : [])];
  const people = [...new Set(who.filter(Boolean).map(plain))];
  pass({ id: key.id, group: group ? plain(key.remoteJid) : "", people, name: message.pushName ?? "", at: Number(message.messageTimestamp), ...told });
}

// What a message says, in few fields; null if it says nothing to anybody. Anybody can send one that lacks any of them.
function said(content) {
  const protocol = content.protocolMessage;
  const changed = protocol?.key?.id ?? "";
  if (protocol?.type === proto.Message.ProtocolMessage.Type.REVOKE) return changed ? { deletes: changed } : null;
  if (protocol?.editedMessage) return changed ? { ...said(normalizeMessageContent(protocol.editedMessage) ?? {}), edits: changed } : null;
  if (content.conversation) return { text: content.conversation };
  if (content.contactMessage) return { text: `Contact: ${content.contactMessage.displayName ?? ""}` };
  const foreign = FOREIGN.find(([one]) => content[one]);
  if (foreign) return { remarks: [`They sent something that isn't understood here (${foreign[1]}).`] };
  const kind = ["extendedTextMessage", "imageMessage", "videoMessage", "audioMessage", "documentMessage", "stickerMessage", "locationMessage"].find((one) => content[one]);
  if (!kind) return null;
  const part = content[kind];
  const context = part.contextInfo ?? {};
  const told = { text: part.text ?? part.caption ?? "", quotes: context.stanzaId ?? "", forwarded: !!context.isForwarded, mentions: (context.mentionedJid ?? []).map(plain) };
  if (kind === "locationMessage") return { ...told, text: `Location: ${part.degreesLatitude}, ${part.degreesLongitude}` };
  if (kind === "extendedTextMessage") return told;
  return { ...told, file: { kind: kind.replace("Message", ""), media: part.mimetype ?? "", name: part.fileName ?? "", size: Number(part.fileLength ?? 0) } };
}

async function send({ chat, key, text, path: where, name, media, quoted }) {
  // A resend that says so is another message: whether WhatsApp would take it for the same one nobody has seen.
  const id = OWN + createHash("sha256").update(`${key}\n${text}`).digest("hex").slice(0, 13).toUpperCase();
  const kind = ["image", "video", "audio"].find((one) => media?.startsWith(`${one}/`)) ?? "document";
  const content = where ? { [kind]: { url: where }, mimetype: media, fileName: name, caption: text || undefined } : { text, linkPreview: null };
  let late;
  const arrived = new Promise((resolve, reject) => {
    waiting.set(id, (error) => (error ? reject(Object.assign(new Error(`WhatsApp refused it (${error})`), { sure: true })) : resolve()));
    late = () => reject(new Error("WhatsApp didn't say that it has it"));
  });
  arrived.catch(() => {});
  try {
    await socket.sendMessage(chat, content, { messageId: id, quoted: messages.get(quoted) });
    // Only now: before it a file goes up, however large.
    setTimeout(late, PATIENCE).unref();
    await arrived;
    return { id };
  } finally {
    waiting.delete(id);
  }
}

const calls = {
  send,
  async typing({ chat }) {
    const last = [...messages.values()].findLast(({ key }) => plain(key.remoteJid) === chat);
    if (last) await socket.readMessages([last.key]);
    await socket.sendPresenceUpdate("composing", chat);
    return {};
  },
  async fetch({ id, most }) {
    const message = messages.get(id);
    if (!message) throw Object.assign(new Error("it isn't known any more"), { sure: true });
    const where = path.join(folder, `fetched-${createHash("sha256").update(id).digest("hex").slice(0, 16)}`);
    const opened = await fs.open(where, "w");
    try {
      // No longer than it may be by a piece: what its sender says of its length may be wrong.
      let left = most;
      for await (const piece of await downloadMediaMessage(message, "stream", {}, { logger, reuploadRequest: socket.updateMediaMessage })) {
        await opened.writeFile(piece);
        if ((left -= piece.length) < 0) break;
      }
    } catch (error) {
      await fs.rm(where, { force: true });
      throw error;
    } finally {
      await opened.close();
    }
    return { path: where };
  },
};

connect();
for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  if ("ack" in asked) {
    unheard.delete(numbers.get(asked.ack));
    numbers.delete(asked.ack);
    socket.release();
    continue;
  }
  calls[asked.do](asked).then(
    (result) => say({ answer: asked.call, result }),
    (error) => say({ answer: asked.call, error: String(error.message ?? error), sure: !!error.sure }),
  );
}
await writing;
process.exit(0);
