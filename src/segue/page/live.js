// The wire: what the gateway sent so far, and what to send it. A lost connection opens anew and is shown all of it again,
// so nothing is lost or doubled. What was typed and not yet accepted is kept and sent again.
import { useEffect, useReducer, useRef } from "/page/preact-htm.js";

const LARGEST = 4 * 1024 * 1024; // Bytes of a frame that the gateway reads.
const PAUSE = 50; // Milliseconds between two looks at an answer that grows.

const start = {
  session: null, transcript: [], growing: "", waiting: [], notices: [], handoff: null, unsent: [], sessions: [], commands: [], found: null, state: "connecting",
};

// crypto.randomUUID is there only over https or on this machine itself.
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

function reduce(now, frame) {
  const noticed = (notice) => ({ ...now, notices: [...now.notices, { ...notice, after: now.transcript.length }] });
  if ("state" in frame) return { ...now, state: frame.state };
  if ("unsent" in frame) return { ...now, unsent: [...now.unsent, frame.unsent] };
  if ("accepted" in frame) return { ...now, unsent: now.unsent.map((m) => (m.id === frame.accepted ? { ...m, accepted: true } : m)) };
  if ("transcript" in frame) return { ...now, session: frame.session, transcript: frame.transcript, growing: "", notices: [], handoff: frame.session ? null : now.handoff };
  if ("handoff" in frame) return { ...now, handoff: frame.handoff };
  if ("entries" in frame) return { ...now, session: frame.session, transcript: [...now.transcript, ...frame.entries], growing: "" };
  if ("growing" in frame) return { ...now, growing: frame.growing };
  if ("notice" in frame) return noticed({ text: frame.notice, files: frame.files });
  if ("invitation" in frame) return noticed({ invitation: frame.invitation });
  // What was accepted is shown by the gateway from here on: among what waits, or in the transcript.
  if ("waiting" in frame)
    return { ...now, waiting: frame.waiting, growing: frame.waiting.length ? now.growing : "", unsent: now.unsent.filter((m) => !m.accepted) };
  if ("sessions" in frame) return { ...now, sessions: frame.sessions };
  if ("commands" in frame) return { ...now, commands: frame.commands };
  if ("found" in frame) return { ...now, found: frame.found };
  return now;
}

// An answer that grows is sent whole with every word: of those that come quickly only the last is shown.
function unhurried(tell) {
  let grown = null, timer = 0;
  const flush = () => {
    clearTimeout(timer);
    if (grown) tell(grown);
    grown = null;
  };
  return (frame) => {
    if (!("growing" in frame)) flush();
    else if (!grown) timer = setTimeout(flush, PAUSE);
    if ("growing" in frame) grown = frame;
    else tell(frame);
  };
}

// The address of the page names the session that is shown, and whoever opens one with a name is brought there.
function addresses(send) {
  const named = () => location.hash.slice(1);
  let wanted = named(), asked = false, shown = "";
  const ask = () => { asked = true; send({ resume: wanted }); };
  const settle = () => {
    wanted = "";
    if (shown !== named()) history[named() ? "pushState" : "replaceState"](null, "", shown ? `#${shown}` : location.pathname);
  };
  return {
    opened: () => { asked = false; },
    turned: () => { wanted = named(); if (wanted && wanted !== shown) ask(); },
    saw: (frame) => {
      if ("session" in frame) {
        shown = frame.session?.id ?? "";
        if (wanted && wanted !== shown && !asked) ask();
        else if (!wanted || wanted === shown) settle();
      } else if ("notice" in frame && asked) settle(); // It can't be had, and the notice says why.
    },
  };
}

export function useGateway() {
  const [now, tell] = useReducer(reduce, start);
  const socket = useRef(null);
  const unsent = useRef([]);
  const invites = useRef(false); // Whether a way to take the conversation along belongs below the next notice.
  unsent.current = now.unsent.filter((m) => !m.accepted);
  const send = (frame) => socket.current?.readyState === WebSocket.OPEN && socket.current.send(JSON.stringify(frame));
  useEffect(() => {
    let wait = 250, timer = 0, over = false;
    const address = addresses(send);
    const connect = () => {
      const own = new WebSocket(location.origin.replace(/^http/, "ws") + "/live"), show = unhurried(tell);
      socket.current = own;
      own.onopen = () => {
        wait = 250;
        address.opened();
        tell({ state: "here" });
        for (const m of unsent.current) send({ say: m.text, id: m.id });
        send({ list: true });
        send({ commands: true });
      };
      own.onmessage = (event) => {
        const frame = JSON.parse(event.data);
        show(frame);
        address.saw(frame);
        if ("transcript" in frame || "entries" in frame) send({ list: true });
        if ("notice" in frame && invites.current) {
          invites.current = false;
          send({ invite: true });
        }
      };
      own.onclose = (event) => {
        if (over) return;
        if (event.code === 4401) return location.reload();
        if (event.code === 4403) return tell({ state: "elsewhere" });
        tell({ state: "away" });
        timer = setTimeout(connect, wait);
        wait = Math.min(wait * 2, 5000);
      };
    };
    connect();
    addEventListener("popstate", address.turned);
    return () => { over = true; clearTimeout(timer); removeEventListener("popstate", address.turned); socket.current?.close(); };
  }, []);
  // What somebody says stays on the screen until it is accepted; returns why it can't be said, if it can't.
  const say = (text) => {
    const message = { id: newId(), text };
    const size = new TextEncoder().encode(JSON.stringify({ say: text, id: message.id })).length;
    if (size > LARGEST) return `That has ${megabytes(size)} MB, and a message can have ${megabytes(LARGEST)}. Shorten it, or send it in parts.`;
    tell({ unsent: message });
    send({ say: text, id: message.id });
    invites.current ||= text.trim() === "/handoff";
    return "";
  };
  // What a button says for somebody isn't shown as theirs.
  const command = (text) => {
    send({ say: text, id: newId() });
    invites.current ||= text === "/handoff";
  };
  return { now, say, command, send, tell };
}

const megabytes = (bytes) => (bytes / 1024 / 1024).toFixed(1);
