// A WhatsApp that links a device by a code which a phone scans, in front of crabline, which links nobody.
//
//   node pairing.mjs SERVERS BAILEYS URL
//
// Its first line says where it listens. Whoever connects there is shown codes. A line that it is told is a code that a
// phone has scanned: the phone signs for that device, the device must show that it has its own keys, and is sent away
// to connect again, as WhatsApp does it. It says whether the device is linked; from then on it passes everything on to
// crabline at URL.

import { createHmac } from "node:crypto";
import { registerHooks } from "node:module";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [servers, libraries, url] = process.argv.slice(2);
const [sockets, wire, library, words] = [
  [servers, "ws/wrapper.mjs"],
  [servers, "@openclaw/crabline/dist/src/servers/whatsapp-baileys-websocket.js"],
  [libraries, "baileys/lib/index.js"],
  [libraries, "baileys/lib/WABinary/index.js"],
].map((parts) => pathToFileURL(path.join(...parts)).href);

// crabline has the server's side of the encryption and keeps it to itself, and its dictionary lacks the words for this.
registerHooks({
  resolve: (named, context, next) => (named.endsWith("/binary-node.js") ? next(words, context) : next(named, context)),
  load(file, context, next) {
    const loaded = next(file, context);
    return file === wire ? { ...loaded, source: `${loaded.source}\nexport { BaileysNoiseServer };` } : loaded;
  },
});
const { WebSocket, WebSocketServer } = await import(sockets);
const { Curve, proto } = await import(library);
const { BaileysNoiseServer } = await import(wire);

const JID = "15550000000:1@s.whatsapp.net";
const SERVER = "s.whatsapp.net";
const [ACCOUNT_SIGNS, DEVICE_SIGNS] = [Buffer.from([6, 0]), Buffer.from([6, 1])];
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const shown = new Map(); // the devices, by what their codes begin with
let linked = false;
let count = 0;

function pair(socket) {
  const noise = new BaileysNoiseServer();
  const device = { socket, tell: (node) => socket.send(noise.encodeNode(node)) };
  const steps = [
    (frame) => socket.send(noise.createServerHello(frame)),
    (frame) => {
      noise.finishClientHandshake(frame);
      const refs = [1, 2, 3].map((n) => `2@code-${++count}-${n}`);
      for (const ref of refs) shown.set(ref, device);
      const content = refs.map((ref) => ({ tag: "ref", attrs: {}, content: Buffer.from(ref) }));
      device.tell({ tag: "iq", attrs: { from: SERVER, type: "set", id: "codes", xmlns: "md" }, content: [{ tag: "pair-device", attrs: {}, content }] });
    },
  ];
  socket.on("message", async (data) => {
    for (const frame of noise.decodeFrames(data)) {
      const step = steps.shift();
      if (step) step(frame);
      else heed(device, await noise.decodeTransportNode(frame));
    }
  });
}

function scan(code) {
  const [ref, , identity, secret] = new URL(code).hash.slice(1).split(",");
  const device = shown.get(ref);
  if (!device) return say({ refused: "nobody was shown this code" });
  const phone = Curve.generateKeyPair();
  device.identity = Buffer.from(identity, "base64");
  device.phone = phone.public;
  device.facts = proto.ADVDeviceIdentity.encode({ rawId: 7, timestamp: 1_790_000_000, keyIndex: 1 }).finish();
  const accountSignature = Curve.sign(phone.private, Buffer.concat([ACCOUNT_SIGNS, device.facts, device.identity]));
  const details = proto.ADVSignedDeviceIdentity.encode({ details: device.facts, accountSignatureKey: phone.public, accountSignature }).finish();
  const hmac = createHmac("sha256", Buffer.from(secret, "base64")).update(details).digest();
  const content = [
    { tag: "device-identity", attrs: {}, content: proto.ADVSignedDeviceIdentityHMAC.encode({ details, hmac }).finish() },
    { tag: "device", attrs: { jid: JID, lid: "99:1@lid" } },
    { tag: "platform", attrs: { name: "android" } },
  ];
  device.tell({ tag: "iq", attrs: { from: SERVER, type: "set", id: "linked", xmlns: "md" }, content: [{ tag: "pair-success", attrs: {}, content }] });
}

function heed({ socket, tell, identity, phone, facts }, node) {
  if (node.tag !== "iq" || node.attrs.id !== "linked") return;
  const sign = node.content?.find(({ tag }) => tag === "pair-device-sign");
  if (!sign) return say({ refused: "the device doesn't believe the phone" });
  const { deviceSignature } = proto.ADVSignedDeviceIdentity.decode(sign.content[0].content);
  linked = Curve.verify(identity, Buffer.concat([DEVICE_SIGNS, facts, identity, phone]), deviceSignature);
  say(linked ? { linked: JID } : { refused: "the device hasn't signed" });
  tell({ tag: "stream:error", attrs: { code: "515" } });
  socket.close();
}

function passOn(socket) {
  const there = new WebSocket(url);
  const opened = new Promise((resolve) => there.once("open", resolve));
  socket.on("message", (data) => opened.then(() => there.send(data)));
  there.on("message", (data) => socket.send(data));
  socket.on("close", () => there.terminate());
  there.on("close", () => socket.terminate());
  there.on("error", () => socket.terminate());
}

const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
server.on("connection", (socket) => (linked ? passOn(socket) : pair(socket)));
server.on("listening", () => say({ url: `ws://127.0.0.1:${server.address().port}` }));
for await (const line of readline.createInterface({ input: process.stdin })) scan(line);
process.exit();
